/** Response times over time, every request counted: the picture that percentiles are cut from. */

import uPlot from 'uplot';
import { follow, frame, timeAxis, timeOptions, timeScale, valueAxis, zoom } from './chart';
import { drawBandNames, drawBands } from './bands';
import { el } from './dom';
import { inWords } from './faults';
import { count, duration, plural, share, tick } from './format';
import type { RunPage } from './run';
import { intensity, logRange, RAMPS, rampColour } from './scale';
import { stand, whenStanding } from './stage';
import { onTheme, theme } from './theme';
import { binName, drawMarks, drawPhaseNames, type Timeline } from './timeline';

const HEIGHT = 300;

/** Steps of the colour scale; more cannot be told apart. */
const SHADES = 64;

export function heatmap(line: Timeline, run: RunPage): HTMLElement | null {
  const { bounds_us: bounds, cells } = run.heatmap;
  if (line.x.length === 0 || cells.length === 0 || bounds.length === 0) return null;

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

  const summary = `Heat map of response times over time: from ${duration(min)} to ${duration(max)}, at most ${count(most)} requests in a cell. ${[inWords(line.bands), 'Arrow keys move the cursor.'].filter(Boolean).join(' ')}`;
  const { figure, host, legend, say } = frame('Response times of all requests', 'requests by time and response time, whatever their outcome; logarithmic', summary, HEIGHT);
  legend.replaceWith(colourLegend(most));

  const show = (plot: uPlot) => {
    const { idx, top } = plot.cursor;
    if (idx === null || idx === undefined) {
      say(null);
      return;
    }
    const all = perBin.get(idx) ?? 0;
    const us = top !== undefined && top >= 0 ? plot.posToVal(top, 'y') : 0;
    const bucket = bounds.findLastIndex((bound) => bound <= us);
    if (bucket < 0 || us >= upper(bucket)) {
      say(`${binName(line, idx)}: ${plural(all, 'request')} ended`);
      return;
    }
    const here = counts.get(idx * bounds.length + bucket) ?? 0;
    say(`${binName(line, idx)}, ${duration(lower(bucket))} to ${duration(upper(bucket))}: ${plural(here, 'request')}${all > 0 ? `, ${share(here / all)} of ${count(all)}` : ''}`);
  };

  const options = timeOptions(line, 22);
  whenStanding(() => {
    const plot = stand(host, {
      height: HEIGHT,
      ...options,
      cursor: { ...options.cursor, y: true, points: { show: false } },
      scales: { x: timeScale(line), y: { distr: 3, range: () => logRange(min, max, 0.5) } },
      axes: [timeAxis(), valueAxis({ log: true, tick: tick.duration })],
      series: [{}, { show: true, stroke: 'transparent', points: { show: false } }],
      hooks: {
        drawClear: [(it) => drawBands(line.bands, it)],
        draw: [(it) => {
          drawCells(it, line, counts, bounds.length, most, lower, upper);
          drawPhaseNames(line, it);
          drawBandNames(line.bands, it);
          drawMarks(line, it, true);
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
function colourLegend(most: number): HTMLElement {
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
      el('span', { class: 'ramp-tick', style: `left:${(intensity(value, most) * 100).toFixed(1)}%` }, tick.quantity(value)))));
}
