import { describe, expect, it } from 'vitest';
import { CHARTS_MAX, ownCells, ownCharts, ownName, ownNumber, ratioCells } from './own-lines';
import { readRun } from './run';

const ITEMS = { metric: 'cart_items', kind: 'histogram', count: 3, sum: 13, per_s: 3, values: { mean: 4.3333, p50: 4, p90: 7, p99: 7, max: 7 }, no_number: 2, example: '${n}: it has no value' };
const SPENT = { metric: 'spent', kind: 'counter', unit: 'EUR', count: 1, sum: 12.5, per_s: 12.5, no_number: 0 };
const read = (metrics: unknown, own: unknown = []) => readRun(JSON.stringify({ manifest: { summary: { metrics } }, own, seconds: [0, 1] }));

describe('what the scenario measured itself', () => {
  it('is read whatever stands there', () => {
    expect(read(3).manifest.summary.metrics).toEqual([]);
    expect(read(['x']).manifest.summary.metrics[0]).toMatchObject({ metric: '', kind: 'histogram', count: 0, values: { p50: null } });
    expect(read([], 3).own).toEqual([]);
  });

  it('is told in cells', () => {
    const [items, spent] = read([ITEMS, SPENT]).manifest.summary.metrics;
    if (!items || !spent) throw new Error('nothing read');
    expect([ownName(items), ...ownCells(items)]).toEqual(['cart_items', '3', '13', '3.00/s', '4.33', '4', '7', '7', '7']);
    expect([ownName(spent), ...ownCells(spent)]).toEqual(['spent (EUR)', '1', '12.5', '12.5/s', '–', '–', '–', '–', '–']);
  });

  it('has ratios, which are unknown where they are divided by nothing', () => {
    const { ratios } = readRun(JSON.stringify({ manifest: { summary: { ratios: [
      { name: 'each', of: ['flights'], per: ['A', 'B'], value: 8.5, as: 'plain' }, { name: 'empty', of: ['empty'], per: ['A'], value: 0.041, as: 'percent' },
      { name: 'none', of: ['empty'], per: ['C'], value: null, as: 'percent' },
    ] } } })).manifest.summary;
    expect(ratios.map((of) => ratioCells(of).join(', ').replace(/\u202f|\u00a0/g, ' '))).toEqual(['each, 8.5, flights, A + B', 'empty, 4.10 %, empty, A', 'none, unknown, empty, C']);
  });

  it('has a chart for each metric, up to a bound', () => {
    const own = [{ metric: 'cart_items', kind: 'histogram', unit: '', per_s: [3, null], p50: [4, null], p99: [7, null], max: [7, null] }, { metric: 'spent', kind: 'counter', unit: 'EUR', per_s: [12.5, 0] }];
    const [items, spent] = ownCharts(read([], own).own);
    expect(items?.lines.map((line) => line.values)).toEqual([[4, null], [7, null], [7, null]]);
    expect(spent).toMatchObject({ title: 'spent (EUR)', lines: [{ values: [12.5, 0] }] });
    expect(ownCharts(Array.from({ length: 40 }, () => read([], own).own[0]!))).toHaveLength(CHARTS_MAX);
  });

  it('has numbers without needless zeros', () => {
    expect([3, 0.35, 12_345, null].map(ownNumber)).toEqual(['3', '0.35', '12.3k', '–']);
  });
});
