import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
// @ts-expect-error: plain JavaScript, so that the check script can use it too
import { makeRun } from '../sample/make.mjs';
import { readRun } from './run';

const run = (seconds: number) => JSON.stringify(makeRun(seconds));

describe('readRun', () => {
  it('reads a whole run', () => {
    const page = readRun(run(30));
    expect(page.seconds).toHaveLength(30);
    expect(page.manifest.summary.verdict.status).toMatch(/pass|fail/);
    expect(page.series.response_time_us.p999).toHaveLength(30);
    expect(page.processes.map((process) => process.name)).toEqual(['system', 'driver', 'machine']);
    expect(page.bin_s).toBe(1);
    expect(page.heatmap.cells.length).toBeGreaterThan(100);
  });

  it('says what is wrong with a page without a run', () => {
    expect(() => readRun('__TOKEN__')).toThrow(/no run has been put into it/);
    expect(() => readRun('{"format":1,')).toThrow(/cut short/);
  });

  it.each(['{}', '[]', 'null', '3', '"x"', '{"manifest":[],"seconds":3,"series":[],"steps":null,"events":{}}'])('makes an empty run of %s', (source) => {
    const page = readRun(source);
    expect(page.seconds).toEqual([]);
    expect(page.manifest.summary.verdict.status).toBe('invalid');
    expect(page.manifest.summary.verdict.reasons).toEqual(['the run holds no verdict']);
    expect(page.manifest.summary.ledger).toBeNull();
  });

  it('gives every series as many entries as there are seconds', () => {
    const page = readRun('{"seconds":[0,1,2],"series":{"offered_per_s":[1],"achieved_per_s":[1,2,3,4],"lag_p99_us":[null,"5",7]}}');
    expect(page.series.offered_per_s).toEqual([1, null, null]);
    expect(page.series.achieved_per_s).toEqual([1, 2, 3]);
    expect(page.series.lag_p99_us).toEqual([null, null, 7]);
    expect(page.series.service_time_us.max).toEqual([null, null, null]);
    expect(page.series.decoded_bytes_per_s, 'a page without it').toEqual([null, null, null]);
  });

  it('leaves out cells that lie nowhere', () => {
    const page = readRun('{"seconds":[0],"heatmap":{"bounds_us":[1,2],"cells":[[0,0,5],[1,0,5],[0,2,5],[-1,0,5],[0,1,0],null]}}');
    expect(page.heatmap.cells).toEqual([[0, 0, 5]]);
  });

  it('has the targets beside the system', () => {
    const targets = [{ name: 'cache', url: 'redis://127.0.0.1:1', address: '127.0.0.1:1', protocol: 'Redis (RESP2)' }];
    expect(readRun(JSON.stringify({ manifest: { targets } })).manifest.targets).toEqual([{ name: 'cache', url: 'redis://127.0.0.1:1', protocol: 'Redis (RESP2)' }]);
    expect(readRun('{}').manifest.targets).toEqual([]);
  });

  it('keeps all digits of a 64-bit seed', () => {
    expect(readRun('{"manifest":{"description":"\\"seed\\": 1","seed":18446744073709551615}}').manifest.seed).toBe('18446744073709551615');
  });

  it('keeps strings as they are', () => {
    const page = readRun('{"manifest":{"scenario":"<b>\\u003c/script> & \\"x\\""}}');
    expect(page.manifest.scenario).toBe('<b></script> & "x"');
  });

  it('tells a ledger that nobody looked at from one without losses', () => {
    const ledger = (it: unknown) => readRun(JSON.stringify({ manifest: { summary: { ledger: it } } })).manifest.summary.ledger;
    expect(ledger({ acknowledged: 5, not_verified: 'no answer' })).toEqual({ sent: 0, acknowledged: 5, torn: 0, broke_off: false, verified: null, not_verified: 'no answer' });
    const seen = ledger({ sent: 6, acknowledged: 5, found: 5, lost: 0, examples: [{ kind: 'lost', entry: '7', sent_us: [1, 2] }, { kind: 'lost' }] });
    expect(seen?.verified?.lost).toBe(0);
    expect(seen?.verified?.counted).toBeNull();
    expect(seen?.verified?.examples.map((it) => it.sent_us)).toEqual([[1, 2], null]);
  });

  it('takes the width of the bins', () => {
    expect(readRun('{"bin_s":5}').bin_s).toBe(5);
    expect(readRun('{"bin_s":0}').bin_s).toBe(1);
  });

  const summaryOf = (summary: unknown) => readRun(JSON.stringify({ manifest: { summary } })).manifest.summary;

  it('keeps what is not reached apart from zero', () => {
    const summary = summaryOf({ requests: 95, dropped: 5, errors: { timeout: 3 }, failed: 8, response_time_us: { p50: 0, p99: null }, good: { requests: 92, response_time_us: { p99: 9 } } });
    expect(summary.response_time_us).toEqual({ min: null, mean: null, p50: 0, p90: null, p95: null, p99: null, p999: null, max: null });
    expect(summary).toMatchObject({ due: 100, failed: 8, of_good_only: false });
    expect(summary.good.response_time_us.p99).toBe(9);
  });

  it.each([undefined, 0])('counts the failures of a run of before itself (failed: %s)', (failed) => {
    const summary = summaryOf({ requests: 95, dropped: 5, errors: { timeout: 3 }, failed, response_time_us: { p99: 7 }, steps: [{ requests: 10, errors: { timeout: 3 }, response_time_us: { p99: 6 } }] });
    expect(summary).toMatchObject({ due: 100, failed: 8, of_good_only: true });
    expect(summary.good).toMatchObject({ requests: 92, response_time_us: { p99: 7 } });
    expect(summary.steps[0]?.good).toMatchObject({ requests: 7, response_time_us: { p99: 6 } });
  });

  it('keeps groups of steps apart from the requests', () => {
    const groups = [{ group: 'Buy', count: 10, achieved_per_s: 0.8, errors: { status: 2 }, response_time_us: { p50: 7, p99: null } }];
    const summary = summaryOf({ requests: 40, groups });
    expect(summary.groups).toMatchObject([{ group: 'Buy', count: 10, errors: { status: 2 }, response_time_us: { p50: 7, p99: null } }]);
    expect(summary).toMatchObject({ requests: 40, due: 40, failed: 0 });
    expect(summaryOf({}).groups).toEqual([]);
  });

  it('reads the phases of the load', () => {
    const high = { name: 'high', level: '5/s', measured: true, from_s: 2, to_s: 4, requests: 9, dropped: 1, failed: 2, response_time_us: { p50: 7 }, processes: [{ name: 'driver', cpu_share: 0.5 }] };
    const summary = summaryOf({ phases: [{ name: 'warm-up' }, high] });
    expect(summary.phases).toMatchObject([{ name: 'warm-up', measured: false }, { name: 'high', measured: true, due: 10, failed: 2, response_time_us: { p50: 7, p99: null }, driver_cores: 0.5, system_cores: null }]);
    expect(summaryOf({}).phases).toEqual([]);
  });

  it('never makes a pass of a run that was stopped', () => {
    const verdictOf = (interrupted: boolean, status: string) => readRun(JSON.stringify({ manifest: { interrupted, summary: { verdict: { status, reasons: ['r'] } } } })).manifest.summary.verdict;
    expect(verdictOf(true, 'pass').status).toBe('invalid');
    expect(verdictOf(true, 'pass').reasons[0]).toMatch(/^incomplete: stopped by the user/);
    expect(verdictOf(true, 'fail')).toEqual({ status: 'fail', reasons: ['r'] });
    expect(verdictOf(false, 'pass')).toEqual({ status: 'pass', reasons: ['r'] });
  });

  it('leaves out failures that lie nowhere', () => {
    expect(readRun('{"seconds":[0,1],"heatmap":{"failed":[[1,5],[2,5],[-1,5],[0,0],null]}}').heatmap.failed).toEqual([[1, 5]]);
    expect(readRun('{"seconds":[0]}').heatmap.failed).toEqual([]);
  });

  it('reads the page that the Rust side makes', () => {
    const page = readRun(readFileSync(new URL('../../crates/report/tests/fixtures/page.json', import.meta.url), 'utf8'));
    const { summary } = page.manifest;
    expect(summary.failed).toBe(Object.values(summary.errors).reduce((sum, value) => sum + value, summary.dropped));
    expect(summary.of_good_only).toBe(false);
    expect(summary.failures.reduce((sum, it) => sum + it.count, 0)).toBe(summary.failed);
    expect(page.heatmap.failed.length).toBeGreaterThan(0);
    expect(page.errors.map((it) => it.kind)).toContain('dropped');
    expect(page.errors.find((it) => it.kind === 'timeout')?.known_after_us.p50).toBeGreaterThan(0);
  });
});
