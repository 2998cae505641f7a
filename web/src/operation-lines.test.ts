import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readComparison } from './compared';
import { operationLines, operationRows } from './operation-lines';
import { readRun, type OperationSeries } from './run';

const figures = (count: number) => ({ count, errors: 0, per_s: count / 10, mean_us: 2, median_us: 1, p95_us: 3, p99_us: 4 });
const kind = (operation: string, count: number): OperationSeries => ({
  entity: 'Feed', operation, measured: figures(count), driver: null, per_s: [1], median_us: [2], p95_us: [3], p99_us: [null],
});

test('what the Rust side writes is read as it stands', () => {
  const run = readRun(readFileSync(new URL('../../crates/report/tests/fixtures/page.json', import.meta.url), 'utf8'));
  const [login, session] = run.operations;
  expect(login).toMatchObject({ entity: 'Login', operation: 'request', per_s: [10, 10, 10, 10, 0] });
  expect(login?.measured).toMatchObject({ count: 30, errors: 1, per_s: 10 });
  expect(login?.driver?.count).toBeGreaterThan(10);
  expect(login?.p95_us.at(-1)).toBeNull();
  // one of thirty failed: a tenth of its second, and more than a hundredth of all
  expect(login?.p95_us[1]).toBeNull();
  expect(login?.measured).toMatchObject({ mean_us: null, p99_us: null });
  expect(login?.measured.p95_us).toBeGreaterThan(1000);
  expect(session?.driver).toBeNull();
  expect(run.operations_left_out).toBe(0);
});

test('a run of before has none, and what is missing becomes empty', () => {
  expect(readRun('{}').operations).toEqual([]);
  const [bare] = readRun('{"seconds":[0,1],"operations":[{}]}').operations;
  expect(bare).toMatchObject({ entity: '', measured: { count: 0, p95_us: null }, driver: null, p99_us: [null, null] });
});

test('of many operations the most frequent are shown, in colours of their own', () => {
  const lines = operationLines(Array.from({ length: 10 }, (_, index) => kind(`op${index}`, index)), 'p95_us');
  expect(lines.map((line) => !line.hidden)).toEqual([false, false, false, false, true, true, true, true, true, true]);
  expect(new Set(lines.map((line) => `${line.colour} ${line.dash}`)).size).toBe(10);
  expect(lines[3]).toMatchObject({ label: 'Feed op3', values: [3] });
  expect(operationLines([kind('store', 1)], 'per_s')[0]?.values).toEqual([1]);
});

test('what the driver saw stands beneath the same of the system', () => {
  const rows = operationRows([{ ...kind('post', 8), driver: figures(7) }, kind('store', 9)]);
  expect(rows.map((row) => [row.operation, row.by, row.of.count])).toEqual([['post', 'system', 8], ['post', 'driver', 7], ['store', 'system', 9]]);
});

test('variants that did none of something have no figures', () => {
  const operations = { seconds: [0, 1], bin_s: 1, kinds: [{ entity: 'Feed', operation: 'store', variants: [figures(5), null], p95_us: [[3, 4], []] }] };
  const read = (value: unknown) => readComparison(JSON.stringify({ comparison: { parts: [{ variants: [], operations: value }] } }))?.parts[0]?.operations;
  expect(read(operations)?.kinds[0]).toMatchObject({ variants: [{ count: 5 }, null], p95_us: [[3, 4], [null, null]] });
  expect(read(null)).toBeNull();
  expect(read(undefined)).toBeNull();
});
