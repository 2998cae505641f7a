/** The percentile curve: how long the slowest in ten, in a hundred, in a thousand took. */

import uPlot from 'uplot';
import { frame, legendItem, valueAxis } from './chart';
import { duration, nines, quantity, share, tick } from './format';
import { within } from './head';
import type { PercentilePoint, RunPage } from './run';
import { curve, endOf, extent, logRange, ninesOf, percentileAt, valueAt } from './scale';
import { axis, stand, whenStanding } from './stage';
import { colour } from './theme';

const HEIGHT = 300;

/** More curves than this need more room, and one at a time to be in front. */
const MANY = 8;
const HEIGHT_OF_MANY = 460;

/** One curve of the chart. */
export interface Curve {
  label: string;
  colour: string;
  dash?: number[];
  points: [nines: number, us: number][];
  /** Where it ends, percent; less than 100 where the rest had no good answer. */
  end: number | null;
}

/** A curve of so many requests that had a good answer. */
export const curveOf = (points: readonly PercentilePoint[], good: number): Pick<Curve, 'points' | 'end'> => ({ points: curve(points, good), end: endOf(points) });

export function percentileChart(run: RunPage): HTMLElement | null {
  const { summary } = run.manifest;
  const answered = summary.good.requests;
  const { response_time_us: response } = summary;
  const words = `Percentile curve of response and service time. Response time: ${within('50\u202f%', response.p50)}, ${within('99\u202f%', response.p99)}, ${within('99.9\u202f%', response.p999)}, longest ${response.max === null ? 'not reached' : duration(response.max)}. Arrow keys move the cursor.`;
  return percentileCurves([
    { label: 'response time', colour: 'p50', ...curveOf(run.percentiles.response_time_us, answered) },
    { label: 'service time', colour: 'service', dash: [6, 4], ...curveOf(run.percentiles.service_time_us, answered) },
  ], 'Percentiles', words, summary.of_good_only ? 'good answers only' : 'all requests that were due');
}

/** Percentile curves in one chart; null where none has a point. */
export function percentileCurves(curves: Curve[], title: string, words: string, of = 'all requests that were due'): HTMLElement | null {
  const lines = curves.filter((it) => it.points.length > 0);
  if (lines.length === 0) return null;

  const x = [...new Set(lines.flatMap((it) => it.points.map(([at]) => at)))].sort((a, b) => a - b);
  const ys = lines.map((it) => x.map((at) => valueAt(it.points, at)));
  const last = x.at(-1) || 1;
  const [low, high] = extent(ys, true) ?? [1, 1];
  const isMany = lines.length > MANY;
  const height = isMany ? HEIGHT_OF_MANY : HEIGHT;
  const { figure, host, legend, say } = frame(title, `measured window, ${of}; both axes logarithmic${ending(lines)}`, words, height);
  const most = Math.max(...lines.map((it) => it.end ?? 0));
  const end = most < 100 ? share(most / 100) : 'longest';

  let plot: uPlot | null = null;
  const items = lines.map((it, index) => legendItem({ ...it }, (show) => plot?.setSeries(index + 1, { show })));
  legend.append(...items.map(({ button }) => button));
  if (isMany) {
    // the name under the pointer, or with the focus, has its curve in front
    const front = (line: number | null) => plot?.setSeries(line, { focus: true });
    items.forEach(({ button }, index) => {
      for (const event of ['pointerenter', 'focus']) button.addEventListener(event, () => front(index + 1));
      for (const event of ['pointerleave', 'blur']) button.addEventListener(event, () => front(null));
    });
  }

  whenStanding(() => {
    const made = stand(host, {
      height,
      focus: { alpha: 0.15 },
      legend: { show: false },
      padding: [10, 28, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7, width: 1.5, fill: () => colour('surface') } },
      scales: { x: { time: false, range: () => [0, last * 1.02] }, y: { distr: 3, range: () => logRange(low, high) } },
      axes: [
        axis({
          size: 28,
          splits: (it) => places(last, it.width, end).map(({ at }) => at),
          values: (it) => places(last, it.width, end).map(({ name }) => name),
        }),
        valueAxis({ log: true, tick: tick.duration }),
      ],
      series: [{}, ...lines.map((it): uPlot.Series => ({
        label: it.label, stroke: () => colour(it.colour), width: 2, spanGaps: true, points: { show: x.length === 1, size: 6 },
        ...(it.dash ? { dash: it.dash } : {}),
      }))],
      hooks: {
        setCursor: [(it) => {
          const index = it.cursor.idx;
          const at = index === null || index === undefined ? undefined : x[index];
          items.forEach(({ value }, line) => { value.textContent = index === null || index === undefined ? '' : duration(ys[line]?.[index] ?? null); });
          say(at === undefined ? null : at === last ? atTheEnd(most) : `${share(percentileAt(at) / 100)} of requests took at most this; one in ${quantity(10 ** at)} took longer${most < 100 ? ' or had no good answer' : ''}`);
        }],
      },
    }, [x, ...ys] as uPlot.AlignedData);
    plot = made;
    host.addEventListener('keydown', (event) => {
      const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const stride = Math.max(1, Math.round(x.length / 60));
      const next = Math.min(x.length - 1, Math.max(0, (made.cursor.idx ?? (step > 0 ? -stride : x.length)) + step * stride));
      made.setCursor({ left: made.valToPos(x[next] ?? 0, 'x'), top: 10 }, true);
    });
  });
  return figure;
}

const atTheEnd = (end: number): string => (end < 100 ? `the longest good answer; ${share(1 - end / 100)} had none` : 'the longest of all');

/** Which curves end early, and why. */
function ending(lines: readonly Curve[]): string {
  const early = lines.filter((it) => it.end !== null && it.end < 100);
  const ends = new Set(early.map((it) => share((it.end ?? 0) / 100)));
  if (early.length === 0) return '';
  if (ends.size === 1 && early.length === lines.length) return `; ends at ${[...ends].join()}: the rest had no good answer`;
  return `; ${early.map((it) => `${it.label} ends at ${share((it.end ?? 0) / 100)}`).join(', ')}: the rest had no good answer`;
}

/** Widths of a label's characters and of the space between labels, CSS pixels. */
const CHARACTER = 7;
const SPACE = 8;

/** The median, each number of nines that there is room for, and the end. */
function places(last: number, width: number, end: string): { at: number; name: string }[] {
  const room = (width - 100) / (last * 1.02);
  const half = (name: string) => (name.length * CHARACTER) / 2;
  const longest = { at: last, name: end };
  const median = { at: ninesOf(50), name: '50\u202f%' };
  const wanted = Array.from({ length: Math.floor(last) }, (_, index) => ({ at: index + 1, name: nines(index + 1) }));
  const fit = (a: { at: number; name: string }, b: { at: number; name: string }) => (b.at - a.at) * room >= half(a.name) + half(b.name) + SPACE;
  const shown: { at: number; name: string }[] = [];
  for (const place of wanted) {
    const before = shown.at(-1);
    if (fit(place, longest) && (!before || fit(before, place))) shown.push(place);
  }
  return [...(fit(median, shown[0] ?? longest) ? [median] : []), ...shown, longest];
}
