/** Draws the faults into the charts over time: a band each, and its name in a row above the plot. */

import type uPlot from 'uplot';
import { places, type Band } from './faults';
import { FONT } from './stage';
import { colour } from './theme';

/** Height of the row of names, CSS pixels. */
const ROW = 18;

/** The room that the names of faults take above a plot, CSS pixels. */
export const bandRoom = (bands: readonly Band[]): number => (bands.length > 0 ? ROW : 0);

/** The bands within what is shown, with their ends in device pixels. */
function shown(bands: readonly Band[], plot: uPlot): { band: Band; from: number; to: number; names: string[] }[] {
  const { left, width } = plot.bbox;
  const place = (second: number) => plot.valToPos(second, 'x', true);
  return bands
    .map((band) => ({ band, names: band.names, from: place(band.from_s), to: place(band.to_s) }))
    .filter(({ from, to }) => to >= left && from <= left + width)
    // A moment is still seen.
    .map((it) => ({ ...it, from: Math.max(left, it.from), to: Math.min(left + width, Math.max(it.to, it.from + 2 * devicePixelRatio)) }));
}

/** Tints the bands. Drawn below everything else. */
export function drawBands(bands: readonly Band[], plot: uPlot): void {
  const { ctx } = plot;
  const { top, height } = plot.bbox;
  ctx.save();
  for (const { band, from, to } of shown(bands, plot)) {
    ctx.fillStyle = colour(`${band.tone}-soft`);
    ctx.fillRect(from, top, to - from, height);
  }
  ctx.restore();
}

/** The ends of the bands, and above the plot their bars and names. Drawn above everything else. */
export function drawBandNames(bands: readonly Band[], plot: uPlot): void {
  if (bands.length === 0) return;
  const { ctx } = plot;
  const ratio = devicePixelRatio;
  const { left, top, width, height } = plot.bbox;
  const all = shown(bands, plot);
  ctx.save();
  ctx.setLineDash([]);
  ctx.font = FONT.replace('12px', `600 ${11 * ratio}px`);
  ctx.textAlign = 'left';
  ctx.textBaseline = 'bottom';
  for (const { band, from, to } of all) {
    ctx.fillStyle = colour(band.tone);
    ctx.fillRect(from, top - 3 * ratio, to - from, 3 * ratio);
    ctx.fillRect(from, top, ratio, height);
    if (band.healed) ctx.fillRect(to - ratio, top, ratio, height);
  }
  const named = places(all, left, left + width, 8 * ratio, (text) => ctx.measureText(text).width);
  for (const { band, x, text } of named) {
    ctx.fillStyle = colour(all[band]?.band.tone ?? 'fault');
    ctx.fillText(text, x, top - 4 * ratio);
  }
  ctx.restore();
}
