import { describe, expect, it } from 'vitest';
import { curve, endOf, extent, intensity, logRange, logTicks, niceAbove, niceBelow, ninesOf, peaks, percentileAt, RAMPS, rampColour, speaks, valueAt } from './scale';

describe('logarithmic axes', () => {
  it('end at round numbers', () => {
    expect([1, 3, 7, 10, 99, 200].map(niceBelow)).toEqual([1, 2, 5, 10, 50, 200]);
    expect([1, 3, 7, 10, 99, 201].map(niceAbove)).toEqual([1, 5, 10, 10, 100, 500]);
  });
  it('hold every value and at least a decade', () => {
    for (const [min, max] of [[120, 2_400_000], [1, 1], [999, 1001], [0, 0]] as const) {
      const [low, high] = logRange(min, max);
      expect(low).toBeLessThanOrEqual(Math.max(1, min));
      expect(high).toBeGreaterThanOrEqual(max);
      expect(high / low).toBeGreaterThanOrEqual(10);
    }
    expect(logRange(null, null)).toEqual([1, 10]);
  });
  it('have as many ticks as there is room for', () => {
    expect(logTicks(100, 1000, 8)).toEqual([100, 200, 500, 1000]);
    expect(logTicks(100, 1e7, 8)).toEqual([100, 1000, 1e4, 1e5, 1e6, 1e7]);
    expect(logTicks(1, 1e8, 4).length).toBeLessThanOrEqual(4);
    expect(logTicks(0, 10, 5)).toEqual([]);
    expect(logTicks(10, 10, 5)).toEqual([]);
  });
});

describe('the percentile curve', () => {
  it('counts nines and back', () => {
    expect(ninesOf(0)).toBeCloseTo(0);
    expect(ninesOf(90)).toBeCloseTo(1);
    expect(ninesOf(99.9)).toBeCloseTo(3);
    expect(ninesOf(100)).toBe(Infinity);
    expect(percentileAt(ninesOf(97.3))).toBeCloseTo(97.3);
  });
  it('puts the longest where one of all stands, after everything else', () => {
    expect(curve([[50, 10], [90, 20], [100, 30]], 1000).at(-1)).toEqual([3, 30]);
    const few = curve([[99.9, 20], [100, 30]], 10);
    expect(few[1]?.[0]).toBeGreaterThan(few[0]?.[0] ?? 0);
  });
  it('is empty where nothing was measured', () => {
    expect(curve([], 0)).toEqual([]);
    expect(curve([[50, 0], [100, 0]], 0)).toEqual([]);
  });
  it('takes the value of the first point at or after a place', () => {
    const points = [[1, 10], [2, 20], [3, 30]] as const;
    expect([0, 1, 1.5, 3, 3.5].map((at) => valueAt(points, at))).toEqual([10, 10, 20, 30, null]);
  });
});

describe('series', () => {
  it('have an extent unless they are silent', () => {
    expect(extent([[null, 3], [0, 7]])).toEqual([0, 7]);
    expect(extent([[null, 3], [0, 7]], true)).toEqual([3, 7]);
    expect(extent([[null], []])).toBeNull();
    expect(speaks([null, 0])).toBe(false);
    expect(speaks([null, 1])).toBe(true);
  });
  it('keep their peaks when they are made shorter', () => {
    const long = Array.from({ length: 1000 }, (_, index) => (index === 503 ? 99 : 1));
    const short = peaks(long, 50);
    expect(short).toHaveLength(50);
    expect(short.filter((value) => value === 99)).toHaveLength(1);
    expect(peaks([1, null], 50)).toEqual([1, null]);
    expect(peaks([null, null, null, 2], 2)).toEqual([null, 2]);
  });
});

describe('colours', () => {
  it('rise with the count, and one request is seen', () => {
    expect(intensity(1, 1)).toBe(1);
    expect(intensity(1, 1000)).toBe(0);
    expect(intensity(1000, 1000)).toBe(1);
    expect(intensity(10, 1000)).toBeLessThan(intensity(20, 1000));
  });
  it.each(['light', 'dark'] as const)('of the %s ramp change lightness evenly and in one direction', (name) => {
    const luma = Array.from({ length: 33 }, (_, index) => {
      const [r, g, b] = rampColour(RAMPS[name], index / 32);
      const linear = (byte: number) => ((byte / 255 + 0.055) / 1.055) ** 2.4;
      return Math.cbrt(0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b));
    });
    const steps = luma.slice(1).map((value, index) => value - (luma[index] ?? 0));
    const sign = name === 'dark' ? 1 : -1;
    expect(steps.every((step) => step * sign > 0)).toBe(true);
    const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length;
    expect(steps.every((step) => step / mean > 0.5 && step / mean < 1.6)).toBe(true);
  });
});

describe('the end of a percentile curve', () => {
  it('is where the good answers end', () => {
    expect(endOf([[0, 5], [92.4, 900]])).toBe(92.4);
    expect(endOf([[0, 5], [100, 900]])).toBe(100);
    expect(endOf([])).toBeNull();
  });
  it('keeps its last point where it is', () => {
    expect(curve([[0, 5], [90, 900]], 1000).at(-1)).toEqual([ninesOf(90), 900]);
  });
});
