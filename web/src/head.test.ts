import { describe, expect, it } from 'vitest';
import { atLeast, dropped, fewNote, headline, notesBeside, passed, percentile, percentileNote, served, within } from './head';
import { readRun, type ObjectiveResult, type Summary } from './run';
import { failureKinds } from './table';

const spaced = (text: string) => text.replaceAll(/[\u202f\u00a0]/g, ' ');

function summary(of: Record<string, unknown>): Summary {
  return readRun(JSON.stringify({ manifest: { summary: { offered_per_s: 100, achieved_per_s: 92, ...of } } })).manifest.summary;
}

const good = { requests: 924, response_time_us: { p50: 800, p99: 12_300, max: 50_000 } };
const failing = { requests: 990, dropped: 10, errors: { timeout: 66 }, failed: 76, response_time_us: { p50: 900, p90: 5000, p99: null, max: null }, good };
const clean = { requests: 1000, failed: 0, response_time_us: { p50: 800, p99: 12_300, max: 50_000 }, good: { ...good, requests: 1000 } };

describe('the headline', () => {
  it('tells the 99th percentile where all went well', () => {
    expect(spaced(headline(summary(clean)))).toBe('92/s of 100/s offered, 99 % within 12.3 ms, no errors');
    expect(spaced(headline(summary({ ...clean, failed_steps: 20 })))).toBe('92/s of 100/s offered, 99 % within 12.3 ms, 20 steps of sessions failed');
  });
  it('never tells a time for what is not reached', () => {
    const line = spaced(headline(summary(failing)));
    expect(line).toBe('92/s of 100/s offered, p99 not reached: 7.60 % had no good answer');
    expect(line).not.toContain('within');
  });
  it('tells both where few failed', () => {
    const few = { ...failing, dropped: 0, requests: 1000, errors: { timeout: 1 }, failed: 1, response_time_us: { p99: 13_000 } };
    expect(spaced(headline(summary(few)))).toBe('92/s of 100/s offered, 99 % within 13.0 ms, 0.100 % had no good answer');
  });
  it('says of a run of before that its times are of the good answers', () => {
    const { failed, good: _, ...before } = { ...failing, response_time_us: clean.response_time_us };
    expect(failed).toBe(76);
    expect(spaced(headline(summary(before)))).toBe('92/s of 100/s offered, 99 % of the good answers within 12.3 ms, 7.60 % had no good answer');
    expect(percentileNote(summary(before))).toContain('older Tidemark');
    const nothing = { requests: 5, errors: { connect: 5 }, response_time_us: { p50: 0, p99: 0, max: 0 } };
    expect(spaced(headline(summary(nothing)))).toContain('p99 not reached: 100 % had no good answer');
  });
  it('says where nothing was due, or nothing ended', () => {
    expect(headline(summary({}))).toBe('No request was due in the measured window');
    expect(headline(summary({ dropped: 3, failed: 3 }))).toBe('No request ended in the measured window; 3 arrivals dropped');
  });
  it('is a bound where the driver was at its limit', () => {
    const bound = summary({ ...clean, driver: { limits: ['its busiest thread was on a CPU for 99 % of the time'] } });
    expect(headline(bound)).toMatch(/^at least 92\/s/);
    expect(atLeast(summary(clean))).toBe('');
    expect(atLeast({ ...bound, achieved_per_s: 0 })).toBe('');
  });
});

describe('the notes', () => {
  it('do not say again what the banner and its list of limits say', () => {
    const limit = 'answers were read late ($& of all); give it cores of its own (--pin)';
    const held = 'the load generator was at its limit: the system can do at least what was achieved';
    const range = ', the median is 1ms to 2ms, without and with the load generator\'s own share';
    expect(notesBeside([`${held}; ${limit}`, 'another'], [limit])).toEqual(['another']);
    expect(notesBeside([`${held}${range}; ${limit}`], ['one more', limit])).toEqual([held + range]);
    expect(notesBeside([`a; ${limit}`], [])).toEqual([`a; ${limit}`]);
  });
});

describe('few requests', () => {
  const few = { requests: 50, failed: 0, response_time_us: { p50: 800, p90: 5000, p99: null, p999: null, max: 12_300 }, good: { ...good, requests: 50 } };
  it('have no percentile that would be the slowest of them', () => {
    expect(spaced(headline(summary(few)))).toBe('92/s of 100/s offered, all within 12.3 ms, no errors');
    expect(spaced(percentile('p99', summary(few)).below)).toBe('too few: 50 requests');
    expect(percentileNote(summary(few))).toContain('50 requests have no p99.');
    expect([fewNote(1000), fewNote(0)]).toEqual(['', '']);
    expect(fewNote(999)).toContain('p99.9');
  });
  it('are not the reason where a percentile was not reached', () => {
    expect(percentile('p50', summary({ ...few, failed: 40, errors: { timeout: 40 }, response_time_us: {} })).exact).toBe('not reached');
  });
});

describe('the tiles', () => {
  it('show a percentile, or that it is not reached and what the good answers had', () => {
    expect(spaced(percentile('p50', summary(failing)).value)).toBe('900 µs');
    const p99 = percentile('p99', summary(failing));
    expect([p99.value, p99.exact, spaced(p99.below)]).toEqual(['–', 'not reached', 'not reached; good answers 12.3 ms']);
    expect(percentile('p50', summary({ requests: 3, errors: { reset: 3 }, failed: 3 })).value).toBe('–');
  });
  it('say that every arrival was served only where each had a good answer', () => {
    expect(dropped(summary(clean))).toBe('every arrival was served');
    expect(dropped(summary(failing))).toBe('arrivals given up at a bound');
    expect(dropped(summary({ ...failing, dropped: 0 }))).toBe('none given up at a bound');
    expect(dropped(summary({}))).toBe('nothing was due');
  });
});

describe('what the cost is of', () => {
  const of = (...names: string[]) => served(names.map((name) => ({ name, cpu_s: 1, cpu_share: 0.5, rss_bytes_max: 1 })));
  it('is the system where that was watched, also beside stores', () => {
    expect(of('system', 'driver', 'redis').processes.map((it) => it.name)).toEqual(['system']);
    expect(of('driver')).toEqual({ name: 'System', of: 'the system', processes: [] });
  });
  it('is all services with their balancers, and each instance once', () => {
    const rows = ['system', 'web.1', 'web.2', 'web-balancer', 'auth', 'redis', 'driver'].map((name) => ({ name, cpu_s: 1, cpu_share: 0.5, rss_bytes_max: 1 }));
    const all = served(rows, [], [{ name: 'auth' }, { name: 'web' }]);
    expect(all.processes.map((it) => it.name)).toEqual(['system', 'web-balancer', 'auth']);
    expect(all.of).toBe('all services of the system');
    const two = served(rows.filter((it) => ['system', 'auth'].includes(it.name)), [], [{ name: 'auth' }]);
    expect([two.processes.length, two.of]).toEqual([2, 'all services of the system']);
  });
  it('is the store where that is what is driven', () => {
    expect(of('kv', 'driver')).toMatchObject({ name: 'Store', of: 'kv', processes: [{ name: 'kv' }] });
    expect(of('kv.1', 'kv.2', 'driver')).toMatchObject({ name: 'Stores', of: '2 store processes' });
  });
  it('is what was watched where the run started nothing', () => {
    const watched = (...names: string[]) => served(names.map((name) => ({ name, cpu_s: 1, cpu_share: 0.5, rss_bytes_max: 1 })), [{ name: 'nginx' }, { name: 'db1' }]);
    expect(watched('driver', 'nginx')).toMatchObject({ name: 'Watched', of: 'nginx' });
    expect(watched('driver', 'nginx', 'db1')).toMatchObject({ name: 'Watched', of: 'all 2 that were watched' });
    expect(watched('driver', 'nginx', 'redis')).toMatchObject({ name: 'Store', of: 'redis', processes: [{ name: 'redis' }] });
    expect(watched('driver', 'nginx', 'system')).toMatchObject({ name: 'System' });
  });
});

it('a share within a time, or not reached', () => {
  expect(spaced(within('99 %', 1500))).toBe('99 % within 1.50 ms');
  expect(within('99 %', null)).toBe('99 % not reached');
});

it('a pass says what was asked for, and what every run is held to', () => {
  const objective = (text: string, byDefault: boolean): ObjectiveResult => ({ objective: text, met: true, measured: '0%', default: byDefault, undecided: false, undecided_by: '' });
  expect(passed([])).toBe('The scenario sets no objectives.');
  expect(passed([objective('errors < 0.1%', true)])).toBe('The scenario sets no objectives; judged by what every run is held to: errors < 0.1% (0%).');
  expect(passed([objective('p99 < 1s', false), objective('errors < 0.1%', true)])).toBe('The objective was met.');
  expect(passed([objective('p99 < 1s', false), objective('p50 < 1s', false)])).toBe('All 2 objectives were met.');
});

it('failures that only the summary knows are listed too', () => {
  const kinds = failureKinds([], summary(failing));
  expect(kinds.map((it) => [it.kind, it.count])).toEqual([['timeout', 66], ['dropped', 10]]);
  const listed = failureKinds([{ kind: 'dropped', count: 10, known_after_us: summary({}).response_time_us, examples: [] }], summary(failing));
  expect(listed.map((it) => it.kind)).toEqual(['dropped', 'timeout']);
});
