import { describe, expect, it } from 'vitest';
import { BARS_MAX, barsOf, partRows, toldParts } from './part-bars';
import { readRun } from './run';

const times_us = { p50: 600, p99: 900, max: 1000 };
const PARTS = { wait: { mean_us: 100, count: 10 }, first_byte: { mean_us: 300, count: 10, times_us }, transfer: { mean_us: 600, count: 2, times_us } };
const summaryOf = (summary: unknown) => readRun(JSON.stringify({ manifest: { summary } })).manifest.summary;

describe('where the time went', () => {
  it('is read whatever stands there', () => {
    expect(summaryOf({}).parts).toBeNull();
    expect(summaryOf({ parts: 3 }).parts).toMatchObject({ connect: { mean_us: 0, count: 0, times_us: null } });
    expect(summaryOf({ slowest: ['x'] }).slowest).toMatchObject([{ label: '', status: null, connect_us: null, first_byte_us: 0 }]);
  });

  it('is told where there is more than response and service time', () => {
    const { parts } = summaryOf({ parts: PARTS });
    expect(toldParts(parts)).toBe(true);
    expect(toldParts(summaryOf({ parts: { wait: PARTS.wait, first_byte: PARTS.first_byte } }).parts)).toBe(false);
    expect(toldParts(null)).toBe(false);
    expect(partRows(parts!).map(({ name, of }) => [name, of])).toEqual([['Wait', 0.1], ['First byte', 0.3], ['Transfer', 0.6]]);
  });

  it('is a bar for each label, the longest as wide as there is room', () => {
    const half = { wait: { mean_us: 0, count: 5 }, first_byte: { mean_us: 500, count: 5 } };
    const { steps } = summaryOf({ steps: [{ label: 'A', parts: PARTS }, { label: 'none' }, { label: 'B', parts: half }] });
    const bars = barsOf(steps);
    expect(bars.map(({ label, mean_us }) => [label, mean_us])).toEqual([['A', 1000], ['B', 500]]);
    expect(bars[0]?.pieces.map(({ width }) => width)).toEqual([10, 30, 60]);
    expect(bars[1]?.pieces.map(({ width }) => width)).toEqual([50]);
    expect(bars[1]?.says).toBe('first byte 500\u202fµs');
    expect(barsOf(Array.from({ length: 99 }, () => steps[0]!))).toHaveLength(BARS_MAX);
  });
});
