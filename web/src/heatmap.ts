/** Response times over time, every request counted: the picture that percentiles are cut from. What had no good answer lies above all rows. */

import uPlot from 'uplot';
import { follow, frame, PHASE_BAND, timeAxis, timeOptions, timeScale, valueAxis, X_AXIS, zoom } from './chart';
import { bandRoom, drawBandNames, drawBands } from './bands';
import { el } from './dom';
import { inWords } from './faults';
import { count, duration, plural, share, tick } from './format';
import type { RunPage } from './run';
import { intensity, logRange, RAMPS, rampColour } from './scale';
import { FONT, stand, whenStanding } from './stage';
import { colour, onTheme, theme } from './theme';
import { binName, drawMarks, drawPhaseNames, type Timeline } from './timeline';

const HEIGHT = 300;

/** Steps of the colour scale; more cannot be told apart. */
const SHADES = 64;

/** Height of the band of what had no good answer, and of the space below it, CSS pixels. */
const BAND = 24;
const BAND_SPACE = 4;

/** The faintest that the band is drawn: a single failure must be seen beside thousands. */
const BAND_LEAST = 0.4;

export function heatmap(line: Timeline, run: RunPage): HTMLElement | null {
  const { bounds_us: bounds, cells } = run.heatmap;
  const failed = new Map(run.heatmap.failed);
  const nothing = cells.length === 0 || bounds.length === 0;
  if (line.x.length === 0 || (nothing && failed.size === 0)) return null;
  const mostFailed = Math.max(0, ...failed.values());
  const room = failed.size > 0 ? BAND + BAND_SPACE : 0;

  const upper = (bucket: number): number => {
    const next = bounds[bucket + 1];
    if (next !== undefined) return next;
    // The last bucket may be open; it is drawn as wide as the one before.
    const [low, before] = [bounds[bucket] ?? 1, bounds[bucket - 1]];
    return before ? (low * low) / before : low * 1.1;
  };
  const lower = (bucket: number) => Math.max(0.5, bounds[bucket] ?? 0.5);
  const counts = new Map<number, number>();
  const perBin = new Map<number, number>();
  let [most, min, max] = [1, Infinity, 0];
  for (const [at, bucket, requests] of cells) {
    const key = at * bounds.length + bucket;
    const sum = (counts.get(key) ?? 0) + requests;
    counts.set(key, sum);
    perBin.set(at, (perBin.get(at) ?? 0) + requests);
    most = Math.max(most, sum);
    min = Math.min(min, lower(bucket));
    max = Math.max(max, upper(bucket));
  }

  // Nothing but failures: there is still an axis of time.
  if (nothing) [min, max] = [1000, 1000];
  const [low, high] = logRange(min, max, 0.5);
  const missing = [...failed.values()].reduce((sum, value) => sum + value, 0);

  const words = [
    nothing ? 'no good answer at all' : `from ${duration(min)} to ${duration(max)}, at most ${count(most)} requests in a cell`,
    missing > 0 && `${count(missing)} without a good answer, at most ${count(mostFailed)} in a bin of time`,
  ].filter(Boolean).join('; ');
  const summary = `Heat map of response times over time: ${words}. ${[inWords(line.bands), 'Arrow keys move the cursor.'].filter(Boolean).join(' ')}`;
  const { figure, host, legend, say } = frame('Response times of all requests', `good answers by time and response time, logarithmic${room > 0 ? '; above them, in red, what had no good answer' : ''}`, summary, HEIGHT);
  legend.replaceWith(colourLegend(nothing ? 0 : most, mostFailed));

  const show = (plot: uPlot) => {
    const { idx, top } = plot.cursor;
    if (idx === null || idx === undefined) {
      say(null);
      return;
    }
    const without = failed.get(idx) ?? 0;
    const all = (perBin.get(idx) ?? 0) + without;
    if (room > 0 && top !== undefined && top >= 0 && top <= room) {
      say(`${binName(line, idx)}: ${plural(without, 'request')} without a good answer${all > 0 ? `, ${share(without / all)} of ${count(all)}` : ''}`);
      return;
    }
    const us = top !== undefined && top >= 0 ? plot.posToVal(top, 'y') : 0;
    const bucket = bounds.findLastIndex((bound) => bound <= us);
    if (bucket < 0 || us >= upper(bucket)) {
      say(`${binName(line, idx)}: ${plural(all, 'request')}${without > 0 ? `, ${count(without)} of them without a good answer` : ' ended'}`);
      return;
    }
    const here = counts.get(idx * bounds.length + bucket) ?? 0;
    say(`${binName(line, idx)}, ${duration(lower(bucket))} to ${duration(upper(bucket))}: ${plural(here, 'request')}${all > 0 ? `, ${share(here / all)} of ${count(all)}` : ''}${without > 0 ? `; ${count(without)} without a good answer` : ''}`);
  };

  const options = timeOptions(line, PHASE_BAND);
  const top = PHASE_BAND + bandRoom(line.bands);
  whenStanding(() => {
    const plot = stand(host, {
      height: HEIGHT,
      ...options,
      cursor: { ...options.cursor, y: true, points: { show: false } },
      scales: { x: timeScale(line), y: { distr: 3, range: () => withRoom(low, high, room, HEIGHT - top - X_AXIS) } },
      axes: [timeAxis(), valueAxis({ log: true, tick: nothing ? () => '' : (us) => (us <= high * 1.001 ? tick.duration(us) : '') })],
      series: [{}, { show: true, stroke: 'transparent', points: { show: false } }],
      hooks: {
        drawClear: [(it) => drawBands(line.bands, it)],
        draw: [(it) => {
          drawCells(it, line, counts, bounds.length, most, lower, upper);
          if (room > 0) drawFailed(it, line, failed, mostFailed);
          drawPhaseNames(line, it);
          drawBandNames(line.bands, it);
          drawMarks(line, it, true, room);
        }],
        setCursor: [show],
        setSelect: [(it) => zoom(line, it)],
      },
    }, [line.x, line.x.map(() => null)] as unknown as uPlot.AlignedData);
    follow(line, plot, host);
  });
  return figure;
}

function shades(): string[] {
  return Array.from({ length: SHADES }, (_, index) => `rgb(${rampColour(RAMPS[theme()], index / (SHADES - 1)).join()})`);
}

/** The axis reaches higher, by the room that the band takes. */
function withRoom(low: number, high: number, room: number, height: number): [number, number] {
  const part = room / height;
  return [low, high * (high / low) ** (part / (1 - part))];
}

/** A band above all rows: what had no good answer is slower than every bound. */
function drawFailed(plot: uPlot, line: Timeline, failed: ReadonlyMap<number, number>, most: number): void {
  const { ctx } = plot;
  const { left, top, width } = plot.bbox;
  const ratio = devicePixelRatio;
  const height = BAND * ratio;
  const [from, to] = [plot.scales['x']?.min ?? 0, plot.scales['x']?.max ?? line.end_s];
  const together = Math.max(1, Math.ceil((to - from) / line.bin_s / width));
  // Of bins that are drawn together the worst is shown.
  const groups = new Map<number, number>();
  for (const [at, requests] of failed) {
    const group = Math.floor(at / together);
    groups.set(group, Math.max(groups.get(group) ?? 0, requests));
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.fillStyle = colour('excluded');
  ctx.fillRect(left, top, width, height);
  ctx.fillStyle = colour('bad');
  for (const [group, requests] of groups) {
    const begin = (line.x[group * together] ?? 0) - line.bin_s / 2;
    const x0 = Math.round(plot.valToPos(begin, 'x', true));
    const x1 = Math.round(plot.valToPos(begin + line.bin_s * together, 'x', true));
    ctx.globalAlpha = BAND_LEAST + (1 - BAND_LEAST) * intensity(requests, most);
    ctx.fillRect(x0, top, Math.max(1, x1 - x0), height);
  }
  ctx.restore();
  ctx.save();
  ctx.fillStyle = colour('bad');
  ctx.font = FONT.replace('12px', `${10.5 * ratio}px`);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillText('no good', left - 6 * ratio, top + 6 * ratio);
  ctx.fillText('answer', left - 6 * ratio, top + 18 * ratio);
  ctx.restore();
}

function drawCells(
  plot: uPlot, line: Timeline, counts: ReadonlyMap<number, number>, buckets: number, most: number,
  lower: (bucket: number) => number, upper: (bucket: number) => number,
): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const palette = shades();
  const ys = Array.from({ length: buckets }, (_, bucket) => [
    Math.round(plot.valToPos(upper(bucket), 'y', true)), Math.round(plot.valToPos(lower(bucket), 'y', true)),
  ] as const);
  // Bins narrower than a pixel are drawn together, so that none is painted over; their colour is that of their mean.
  const [from, to] = [plot.scales['x']?.min ?? 0, plot.scales['x']?.max ?? line.end_s];
  const together = Math.max(1, Math.ceil((to - from) / line.bin_s / width));
  const drawn = together === 1 ? counts : merged(counts, buckets, together);

  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  for (const [key, requests] of drawn) {
    const [group, bucket] = [Math.floor(key / buckets), key % buckets];
    const begin = (line.x[group * together] ?? 0) - line.bin_s / 2;
    const x0 = Math.round(plot.valToPos(begin, 'x', true));
    const x1 = Math.round(plot.valToPos(begin + line.bin_s * together, 'x', true));
    const [y0, y1] = ys[bucket] ?? [0, 0];
    ctx.fillStyle = palette[Math.round(intensity(Math.max(1, requests / together), most) * (SHADES - 1))] ?? '';
    ctx.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
  }
  ctx.restore();
}

function merged(counts: ReadonlyMap<number, number>, buckets: number, together: number): Map<number, number> {
  const groups = new Map<number, number>();
  for (const [key, requests] of counts) {
    const to = Math.floor(Math.floor(key / buckets) / together) * buckets + (key % buckets);
    groups.set(to, (groups.get(to) ?? 0) + requests);
  }
  return groups;
}

/** What the colours mean, with a few counts in between. */
function colourLegend(most: number, mostFailed: number): HTMLElement {
  const failed = mostFailed > 0 && el('span', { class: 'note' }, el('i', { class: 'swatch block', style: '--swatch:var(--bad)' }), ` no good answer, at most ${tick.quantity(mostFailed)} in a bin`);
  if (most === 0) return el('div', { class: 'ramp-legend' }, failed);
  const bar = el('span', { class: 'ramp' });
  const paint = () => {
    const stops = [0, 0.25, 0.5, 0.75, 1].map((at) => `rgb(${rampColour(RAMPS[theme()], at).join()})`);
    bar.style.background = `linear-gradient(to right, ${stops.join()})`;
  };
  paint();
  onTheme(paint);
  const decades = Array.from({ length: 8 }, (_, power) => 10 ** power).filter((value) => value < most * 0.6);
  const ticks = [...(decades.length > 0 ? decades : [1]), most].filter((value, index, all) => all.indexOf(value) === index);
  return el('div', { class: 'ramp-legend' },
    el('span', { class: 'note' }, 'requests in a cell'),
    el('span', { class: 'ramp-scale' }, bar, ticks.map((value) =>
      el('span', { class: 'ramp-tick', style: `left:${(intensity(value, most) * 100).toFixed(1)}%` }, tick.quantity(value)))),
    failed);
}
