import { describe, expect, it } from 'vitest';
import { bands, inWords } from './faults';
import { hasBand, maintenanceBands, maintenanceCells } from './maintenance';
import { readRun } from './run';
import { split, storeCharts } from './store-lines';

const DIP = { before_per_s: 1000, lowest_per_s: 860, depth: 0.14, length_s: 2, recovery_s: 0.2, errors: 0, dropped: 0, backlog_max: 4, seen_s: 9 };
const BUMP = { before_p99_us: 2100, highest_p99_us: 38_000, ratio: 18.1, rise_us: 35_900, length_s: 3, seen_s: 9 };
const REWRITE = { kind: 'rewrite', store: 'cache', begin_us: 12_300_000, end_us: 14_100_000, fault: 'rewrite cache', fork_us: 9000, size_before_bytes: 2048, size_after_bytes: 1024, dip: DIP, latency: BUMP };
const FAULT = { fault: 'rewrite cache', kind: 'rewrite', target: 'cache', begin_us: 12_200_000, healed_us: 14_150_000, dip: DIP };

const run = (summary: object, rest: object = {}) => readRun(JSON.stringify({ manifest: { summary }, seconds: Array.from({ length: 30 }, (_, at) => at), ...rest }));
const read = (changed: object) => {
  const [one] = run({ maintenance: [{ ...REWRITE, ...changed }] }).manifest.summary.maintenance;
  if (!one) throw new Error('nothing read');
  return one;
};

it('series of pages that were watched stand by themselves', () => {
  const page = run({}, { stores: [
    { name: 'db1', figures: [{ figure: 'node_load1', values: [1] }, { figure: 'net_bytes_total{device="eth0"}_per_s', values: [2] }] },
    { name: 'cache', figures: [{ figure: 'bytes', values: [1] }] },
  ] });
  page.manifest.watched.push({ name: 'db1', what: 'http://db1:9100/metrics', found: '2 series' });
  const { watched, stores } = split(page);
  expect(stores.map((it) => it.name)).toEqual(['cache']);
  const charts = storeCharts(watched, 'the page');
  expect(charts.map((it) => [it.title, it.note])).toEqual([['node load1', 'as the page says it'], ['net bytes total{device="eth0"}', 'per second']]);
  expect(charts[1]?.format(2048)).toContain('KiB');
});

describe('what stores did beside their work', () => {
  it('is read whatever stands there', () => {
    expect(run({ maintenance: 3 }).manifest.summary.maintenance).toEqual([]);
    expect(run({ maintenance: ['x'] }).manifest.summary.maintenance[0]).toMatchObject({ kind: '', end_us: null, fault: null, dip: null, latency: null });
  });

  it('is told in cells', () => {
    expect(maintenanceCells(read({}))).toEqual({
      at: '12.30\u202fs', took: 'for 1.8\u202fs', fork: '9.00\u202fms', size: '2.00\u202fKiB became 1.00\u202fKiB', depth: '14.0\u202f% fewer',
      length: '860/s of 1.00k/s, for 2\u202fs', before: '2.10\u202fms', highest: '38.0\u202fms', times: '18 times as long', raised: '3\u202fs',
    });
    const never = maintenanceCells(read({ end_us: null, dip: { ...DIP, length_s: null }, latency: { ...BUMP, highest_p99_us: null, ratio: null, length_s: null } }));
    expect(never).toMatchObject({ took: 'not over', length: 'not back within 9\u202fs', highest: 'not reached', times: '', raised: 'not back within 9\u202fs' });
    expect(maintenanceCells(read({ dip: { ...DIP, depth: 0 }, latency: { ...BUMP, length_s: 0 } }))).toMatchObject({ depth: 'no fewer', length: '', raised: 'not raised' });
  });

  it('has a band of its own, unless a fault asked for it', () => {
    const { faults, maintenance } = run({ faults: [FAULT], maintenance: [REWRITE, { ...REWRITE, fault: undefined, begin_us: 20e6, end_us: null }] }).manifest.summary;
    const own = maintenanceBands(maintenance, faults, 30);
    expect(own).toMatchObject([{ letter: '', from_s: 20, to_s: 30, healed: false, tone: 'work', names: ['rewrite of cache', 'rewrite'] }]);
    expect(bands(faults, 30)).toMatchObject([{ letter: 'A', tone: 'work' }]);
    expect(inWords(own)).toBe('rewrite of cache, 20\u202fs to the end.');
  });

  it('stands once on the time axis', () => {
    expect([hasBand('rewrite', [read({})]), hasBand('ready', [read({})]), hasBand('rewrite', [])]).toEqual([true, false, false]);
  });
});

describe('charts of stores', () => {
  const values = Array.from({ length: 30 }, () => 5);
  const stores = (names: string[], figures: string[]) =>
    storeCharts(run({}, { stores: names.map((name) => ({ name, figures: figures.map((figure) => ({ figure, values })) })) }).stores);

  it('has those that say something, and one for what nobody has thought of', () => {
    const charts = stores(['cache'], ['used_memory', 'used_memory_rss', 'keyspace_hits_per_s', 'is_master', 'odd_things_per_s', 'level']);
    expect(charts.map(({ title, lines }) => [title, lines.map(({ label }) => label)])).toEqual([
      ['Hits and misses', ['hits']], ['Memory', ['used', 'resident']], ['odd things', ['cache']], ['level', ['cache']],
    ]);
  });

  it('names the store where there are several, and shows the first lines', () => {
    const [chart] = stores(Array.from({ length: 14 }, (_, at) => `cache.${at + 1}`), ['instantaneous_ops_per_sec']);
    expect(chart?.lines.map(({ label }) => label).slice(0, 2)).toEqual(['cache.1', 'cache.2']);
    expect(chart?.lines.filter(({ hidden }) => hidden).length).toBe(2);
  });
});
