/** The arithmetic of axes and colours; no drawing. */

import type { PercentilePoint, Series } from './run';

/** Steps of a time axis, seconds. */
export const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** Steps of an axis of bytes: powers of two, so that its ticks are round in KiB and MiB. */
export const SIZE_STEPS = Array.from({ length: 51 }, (_, power) => 2 ** power);

/** The nearest 1, 2 or 5 times a power of ten at or below `value`. */
export function niceBelow(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value) + 1e-12);
  const lead = value / decade + 1e-9;
  return decade * (lead >= 5 ? 5 : lead >= 2 ? 2 : 1);
}

/** The nearest 1, 2 or 5 times a power of ten at or above `value`. */
export function niceAbove(value: number): number {
  const below = niceBelow(value);
  if (below >= value * (1 - 1e-9)) return below;
  return niceBelow(below * 2.5);
}

/** Bounds of a logarithmic axis: round numbers around the values, at least a decade apart. */
export function logRange(min: number | null, max: number | null, floor = 1): [number, number] {
  // A little air, so that no line runs along the frame.
  const low = niceBelow(Math.max(floor, (min ?? floor) / 1.1));
  let high = niceAbove(Math.max(low, (max ?? low) * 1.1));
  if (high < low * 10) high = low * 10;
  return [low, high];
}

/** Ticks of a logarithmic axis: 1-2-5 where there is room, else decades, else every n-th decade. */
export function logTicks(min: number, max: number, room: number): number[] {
  if (!(min > 0) || !(max > min)) return [];
  const first = Math.floor(Math.log10(min));
  const last = Math.ceil(Math.log10(max));
  const within = (value: number) => value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9);
  const decades = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
  const fine = decades.flatMap((decade) => [decade, 2 * decade, 5 * decade]).filter(within);
  if (fine.length <= room) return fine;
  const coarse = decades.filter(within);
  const every = Math.max(1, Math.ceil(coarse.length / Math.max(1, room)));
  return coarse.filter((_, index) => index % every === 0);
}

/** Place of a percentile on the curve's axis: the number of nines, `-log10(1 - p)`. */
export function ninesOf(percentile: number): number {
  return percentile >= 100 ? Infinity : -Math.log10(1 - Math.max(0, percentile) / 100);
}

/** The percentile at a place of the curve's axis. */
export const percentileAt = (nines: number): number => 100 * (1 - 10 ** -nines);

/**
 * A percentile curve on the axis of nines. The maximum has no finite place; it is put where one
 * request of all stands.
 */
export function curve(points: readonly PercentilePoint[], requests: number): [nines: number, us: number][] {
  const finite = points
    .filter(([percentile, us]) => percentile < 100 && us > 0)
    .map(([percentile, us]): [number, number] => [ninesOf(percentile), us])
    .sort((a, b) => a[0] - b[0]);
  const max = points.filter(([percentile]) => percentile >= 100).reduce((most, [, us]) => Math.max(most, us), 0);
  if (max > 0) {
    const last = finite.at(-1)?.[0] ?? 0;
    finite.push([Math.max(last + 1e-6, requests > 1 ? Math.log10(requests) : last), max]);
  }
  return finite;
}

/** Where a curve ends, percent: 100, or less where the rest had no good answer; null where it has no point. */
export const endOf = (points: readonly PercentilePoint[]): number | null =>
  points.reduce<number | null>((most, [percentile]) => Math.max(most ?? 0, Math.min(100, percentile)), null);

/** The value of a percentile curve at a place: that of the first point at or after it. */
export function valueAt(points: readonly (readonly [number, number])[], nines: number): number | null {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.[0] ?? Infinity) < nines) low = middle + 1;
    else high = middle;
  }
  return points[low]?.[1] ?? null;
}

/** Smallest and largest value; null if there is none. */
export function extent(all: readonly Series[], positive = false): [number, number] | null {
  let min = Infinity;
  let max = -Infinity;
  for (const series of all) {
    for (const value of series) {
      if (value === null || (positive && value <= 0)) continue;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  }
  return min <= max ? [min, max] : null;
}

/** Whether a series says anything but zero. */
export const speaks = (series: Series): boolean => series.some((value) => value !== null && value !== 0);

/** Fewer points that still show every peak: the largest value of each group. */
export function peaks(series: Series, length: number): Series {
  if (series.length <= length) return [...series];
  return Array.from({ length }, (_, index) => {
    const from = Math.floor((index * series.length) / length);
    const to = Math.floor(((index + 1) * series.length) / length);
    return series.slice(from, to).reduce((most, value) => (value === null ? most : Math.max(most ?? value, value)), null);
  });
}

/** Above 1, the many are told apart better than the few. */
const INTENSITY_POWER = 1.4;

/** How strongly a count is coloured, 0 to 1: logarithmic, since a tail of single requests must be seen beside thousands. */
export function intensity(count: number, most: number): number {
  if (most <= 1) return 1;
  return Math.min(1, Math.max(0, Math.log(count) / Math.log(most))) ** INTENSITY_POWER;
}

/** A colour ramp, given by its ends in OKLCH. Lightness runs evenly, so equal steps look equal. */
export interface Ramp {
  lightness: [number, number];
  chroma: [number, number, number];
  hue: [number, number];
}

/** Few requests are close to the paper, many far from it. */
export const RAMPS: Record<'light' | 'dark', Ramp> = {
  light: { lightness: [0.93, 0.3], chroma: [0.045, 0.115, 0.1], hue: [185, 278] },
  dark: { lightness: [0.34, 0.95], chroma: [0.06, 0.12, 0.12], hue: [268, 105] },
};

/** Colour of a ramp at 0 to 1 as sRGB bytes. */
export function rampColour(ramp: Ramp, at: number): [number, number, number] {
  const mix = (a: number, b: number, t: number) => a + (b - a) * t;
  const lightness = mix(ramp.lightness[0], ramp.lightness[1], at);
  const [begin, middle, end] = ramp.chroma;
  const chroma = at < 0.5 ? mix(begin, middle, at * 2) : mix(middle, end, at * 2 - 1);
  const hue = (mix(ramp.hue[0], ramp.hue[1], at) * Math.PI) / 180;
  return oklabToRgb(lightness, chroma * Math.cos(hue), chroma * Math.sin(hue));
}

/** OKLab to sRGB bytes; what lies outside the gamut is clipped. */
function oklabToRgb(lightness: number, a: number, b: number): [number, number, number] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const byte = (linear: number) => {
    const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, value)));
  };
  return [
    byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    byte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}
