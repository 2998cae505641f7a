import { describe, expect, it } from 'vitest';
import { badge, comparison, hasHistory, heightOf, historyOf, isComparable, moments, nameIn, pageOf, place, points, readListing, readLive } from './read';

describe('what the server says', () => {
  it('is read whatever stands there', () => {
    expect(readListing(null)).toEqual({ folder: '', left_out: 0, runs: [] });
    const [run] = readListing({ runs: [{ name: [5], state: 'odd', reasons: ['a', {}], p99_us: 'x', verdict: null }] }).runs;
    expect(run).toMatchObject({ name: '', state: 'unreadable', reasons: ['a'], p99_us: null, verdict: '' });
    expect(run?.warnings).toBe(0);
    expect(readListing({ runs: [{ warnings: 2 }, { warnings: 'x' }] }).runs.map((of) => of.warnings)).toEqual([2, 0]);
    expect(readLive({ seconds: [{}], processes: 'x', running: 1 })).toMatchObject({ running: false, processes: [], seconds: [{ at_s: 0, p99_us: null }] });
  });
});

describe('places', () => {
  it('hold any name', () => {
    const name = 'a/b?c#d%20 ä';
    expect(nameIn(place('live', name), 'live')).toBe(name);
    expect(place('runs', 'x', '/report.html')).toBe('/runs/x/report.html');
    expect(comparison('a&b', 'c')).toBe('/compare?a=a%26b&b=c');
    expect(historyOf('a/b & c')).toBe('/history?scenario=a%2Fb%20%26%20c');
    for (const path of ['/', '/live', '/live/', '/runs/x', '/live/x/y', '/live/%']) expect(nameIn(path, 'live')).toBeNull();
  });
});

it('a run is told in a word', () => {
  const of = (state: string, verdict = '') => readListing({ runs: [{ state, verdict }] }).runs.map(badge)[0];
  expect(of('finished', 'pass')).toEqual({ word: 'pass', tone: 'pass' });
  expect(of('running')).toEqual({ word: 'running', tone: 'running' });
  expect(of('killed')).toEqual({ word: 'killed', tone: 'killed' });
  const kinds = ['finished', 'running', 'killed', 'comparison', 'unreadable'];
  expect(readListing({ runs: kinds.map((state) => ({ state })) }).runs.filter(isComparable).map((run) => run.state)).toEqual(['finished', 'killed']);
});

it('a search leads to its page, also while it goes on, and is nothing to compare', () => {
  const of = (run: object) => readListing({ runs: [{ name: 'x', scenario: 's', ...run }] }).runs[0]!;
  const search = of({ state: 'running', trials: 3, says: ['holds 5/s', {}] });
  expect(search.says).toEqual(['holds 5/s']);
  expect([search, of({ state: 'running' }), of({ state: 'limit', trials: 0 }), of({})].map(pageOf)).toEqual(['/runs/x/report.html', '/live/x', '/runs/x/report.html', null]);
  expect(isComparable(of({ state: 'killed', trials: 3 }))).toBe(false);
  expect(badge(of({ state: 'limit', trials: 3 }))).toEqual({ word: 'limit', tone: '' });
  expect(['pass', 'fail', 'invalid', ''].filter((verdict) => hasHistory(of({ state: 'finished', verdict })))).toEqual(['pass', 'fail']);
});

it('lines share a scale, and have gaps', () => {
  expect(points([[0, 10], [5, null, 5]])).toEqual([['0.0,98.0 500.0,2.0'], ['0.0,50.0', '1000.0,50.0']]);
  expect(points([[], []])).toEqual([[], []]);
  const [line] = points([[1, 100, 0]], true);
  expect(line).toHaveLength(1);
  expect(line?.[0]).toMatch(/^0\.0,[89]\d\.\d 500\.0,2\.0$/);
});

it('a chart has marks at round values that lie within it', () => {
  expect(heightOf([[20, 21, null]]).marks).toEqual([0, 10, 20]);
  expect(heightOf([[0.4]]).marks).toEqual([0, 0.2, 0.4]);
  expect(heightOf([[950, 40_000]], true).marks).toEqual([1000, 5000, 20_000]);
  expect(heightOf([[3630, 3700]], true).marks).toEqual([3630, 3700]);
  expect(heightOf([[], [null, 0]]).marks).toEqual([]);
  const { of } = heightOf([[5, 10]]);
  expect([of(10), of(5), of(0)]).toEqual([2, 50, 98]);
});

it('moments go evenly from the first second to the last', () => {
  const seconds = (count: number) => Array.from({ length: count }, (_, at) => ({ at_s: at + 1 }));
  expect(moments(seconds(31))).toEqual([1, 11, 21, 31]);
  expect(moments(seconds(2))).toEqual([1, 2]);
  expect([moments(seconds(1)), moments([])]).toEqual([[1], []]);
});
