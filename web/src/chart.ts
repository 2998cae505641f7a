/** Line charts over time, with a legend that shows the values under the cursor. */

import uPlot from 'uplot';
import { bandRoom, drawBandNames, drawBands } from './bands';
import { el } from './dom';
import { inWords } from './faults';
import { clock } from './format';
import type { Series } from './run';
import { extent, logRange, logTicks, TIME_STEPS } from './scale';
import { axis, stand, whenStanding } from './stage';
import { swatch } from './stroke';
import { colour } from './theme';
import { binName, drawMarks, drawPhaseNames, drawPhases, phaseAt, remarks, type Timeline } from './timeline';

/** Width of the value axis: the same for all charts, so that their time axes stand above each other. */
const VALUE_AXIS = 62;
/** Room that the names of the phases take above a plot. */
export const PHASE_BAND = 22;
/** Height of the time axis. */
export const X_AXIS = 28;

/** So many points at most are drawn as dots too. */
const DOTTED = 40;

/** From so many points on lines are thin, or they would fill the chart. */
const DENSE = 600;

export interface Line {
  label: string;
  values: Series;
  /** Name of the colour in the style sheet. */
  colour: string;
  width?: number;
  dash?: number[];
  /** Filled down to zero. */
  filled?: boolean;
  /** Mostly zero, and then not drawn: else it would lie on the axis and hide it. */
  sparse?: boolean;
  /** Hidden until the reader asks for it. */
  hidden?: boolean;
}

export interface ChartOptions {
  title: string;
  /** Unit and what else must be known to read it. */
  note: string;
  lines: Line[];
  format: (value: number | null) => string;
  tick: (value: number) => string;
  log?: boolean;
  height?: number;
  /** Steps of the value axis, where powers of ten do not fit. */
  steps?: number[];
  /** The axis reaches at least to here. */
  atLeast?: number;
  /** Whether the phases are named above the plot. */
  phaseNames?: boolean;
  /** What stands in the place of the chart where no line has a value. */
  nothing?: string;
  /** Controls beside the title. */
  controls?: HTMLElement;
}

/** The frame of every chart: title, note, place for the plot, legend. */
export interface Frame {
  figure: HTMLElement;
  host: HTMLElement;
  legend: HTMLElement;
  /** Says what is under the cursor in the place of the note; null gives the note back. */
  say: (text: string | null) => void;
}

export function frame(title: string, note: string, summary: string, height: number, controls?: HTMLElement): Frame {
  const host = el('div', { class: 'plot', tabindex: 0, role: 'group', 'aria-roledescription': 'chart', 'aria-label': summary, style: `min-height:${height}px` });
  const legend = el('div', { class: 'legend' });
  const line = el('p', { class: 'note' }, note);
  const figure = el('figure', { class: 'chart' },
    el('figcaption', {}, el('div', {}, el('h3', {}, title), line), controls), host, legend);
  const say = (text: string | null) => {
    // Nothing below may move while the cursor does.
    line.style.height = text === null ? '' : `${line.offsetHeight}px`;
    line.classList.toggle('live', text !== null);
    line.textContent = text ?? note;
  };
  return { figure, host, legend, say };
}

/** A chart over time. */
export function timeChart(line: Timeline, options: ChartOptions): HTMLElement {
  const height = options.height ?? 220;
  const { figure, host, legend, say } = frame(options.title, options.note, summarise(options, line), height, options.controls);
  if (line.x.length === 0 || !extent(options.lines.map((it) => it.values))) {
    host.replaceWith(el('p', { class: 'empty' }, options.nothing ?? 'Nothing was recorded.'));
    legend.remove();
    return figure;
  }

  let plot: uPlot | null = null;
  const items = options.lines.map((it, index) => legendItem(it, (show) => plot?.setSeries(index + 1, { show })));
  legend.append(...items.map(({ button }) => button));

  const show = (index: number | null | undefined) => {
    const at = index ?? null;
    items.forEach(({ value }, item) => {
      value.textContent = at === null ? '' : options.format(options.lines[item]?.values[at] ?? null);
    });
    say(at === null ? null : [binName(line, at), remarks(line, at)].filter(Boolean).join(' · '));
  };

  whenStanding(() => {
    const made = stand(host, {
      height,
      ...timeOptions(line, options.phaseNames ? PHASE_BAND : 10),
      scales: {
        x: timeScale(line),
        y: options.log
          ? { distr: 3, range: (it) => logRange(...shownExtent(it, true)) }
          : { range: (it, _min, max) => linearRange(it, max, options) },
      },
      axes: [timeAxis(), valueAxis(options)],
      series: [{}, ...options.lines.map((it) => lineStyle(it, line))],
      hooks: {
        drawClear: [(it) => { drawPhases(line, it); drawBands(line.bands, it); }],
        draw: [(it) => { if (options.phaseNames) drawPhaseNames(line, it); drawBandNames(line.bands, it); drawMarks(line, it, options.phaseNames); }],
        setCursor: [(it) => show(it.cursor.idx)],
        setSelect: [(it) => zoom(line, it)],
      },
    }, [line.x, ...options.lines.map((it) => drawn(it, options))] as uPlot.AlignedData);
    plot = made;
    follow(line, made, host);
  });
  return figure;
}

/** What is drawn of a line. Zero has no place on a logarithmic axis; the clock's own step is the least that was measured. */
function drawn(it: Line, options: ChartOptions): Series {
  if (it.sparse) return it.values.map((value) => (value === 0 ? null : value));
  return options.log ? it.values.map((value) => (value === null ? null : Math.max(1, value))) : it.values;
}

/** Values of the shown lines within the shown time. */
function shownExtent(plot: uPlot, positiveOnly: boolean): [number | null, number | null] {
  const [from, to] = plot.series[0]?.idxs ?? [0, plot.data[0].length - 1];
  const shown = plot.series.flatMap((series, index) =>
    index > 0 && series.show ? [Array.from(plot.data[index] ?? []).slice(from, to + 1) as Series] : []);
  return extent(shown, positiveOnly) ?? [null, null];
}

function linearRange(_plot: uPlot, max: number | null, options: ChartOptions): [number, number] {
  const most = Math.max(max ?? 0, options.atLeast ?? 0);
  return [0, most > 0 ? most * 1.08 : 1];
}

/** What is common to all charts over time. */
export function timeOptions(line: Timeline, top: number): Pick<uPlot.Options, 'cursor' | 'legend' | 'padding' | 'select'> {
  return {
    legend: { show: false },
    padding: [top + bandRoom(line.bands), 18, 0, 0],
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false },
      points: { size: 7, width: 1.5, fill: () => colour('surface') },
      // Only the place of the cursor is shared by the library; zoom goes through the timeline.
      sync: { key: 'time', setSeries: false, scales: ['x', null], filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave', sub: () => true } },
      bind: { dblclick: () => () => { line.setView(null); return null; } },
    },
  };
}

export function timeScale(line: Timeline): uPlot.Scale {
  return { time: false, range: () => line.view ?? [0, line.end_s] };
}

export function timeAxis(): uPlot.Axis {
  return axis({
    scale: 'x', space: 64, size: X_AXIS, incrs: TIME_STEPS,
    values: (_plot, splits) => splits.map((second) => clock(second, (splits.at(-1) ?? 0) >= 120)),
  });
}

export function valueAxis(options: Pick<ChartOptions, 'log' | 'tick' | 'steps'>): uPlot.Axis {
  const common = { size: VALUE_AXIS, values: (_plot: uPlot, splits: number[]) => splits.map((it) => options.tick(it)) };
  if (!options.log) return axis({ ...common, space: 28, ...(options.steps ? { incrs: options.steps } : {}) });
  return axis({
    ...common,
    splits: (plot, _axis, min, max) => logTicks(min, max, Math.max(2, plot.height / 28)),
    filter: (_plot, splits) => splits,
    grid: { stroke: () => colour('grid'), width: 1, filter: (_plot, splits) => splits },
  });
}

function lineStyle(it: Line, line: Timeline): uPlot.Series {
  return {
    label: it.label,
    show: !it.hidden,
    stroke: () => colour(it.colour),
    width: (it.width ?? 1.75) * (line.x.length > DENSE ? 0.6 : 1),
    ...(it.dash ? { dash: it.dash } : {}),
    ...(it.filled ? { fill: () => `color-mix(in srgb, ${colour(it.colour)} 14%, transparent)` } : {}),
    points: {
      show: () => false,
      size: line.x.length <= 3 ? 8 : 4,
      fill: () => colour(it.colour),
      // A second between two empty ones has no line; without a dot it would not be seen.
      filter: (plot, index) => (index === 0 ? null : dots(Array.from(plot.data[index] ?? []) as Series, line)),
    },
  };
}

function dots(values: Series, line: Timeline): number[] | null {
  const few = line.x.length <= DOTTED;
  const shown: number[] = [];
  values.forEach((value, index) => {
    if (value === null) return;
    if (few || ((values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null)) shown.push(index);
  });
  return shown.length > 0 ? shown : null;
}

/** A dragged range becomes the view of all charts. */
export function zoom(line: Timeline, plot: uPlot): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const view: [number, number] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  line.setView(view);
}

/** Shows the timeline's view, and lets the keyboard move the cursor. */
export function follow(line: Timeline, plot: uPlot, host: HTMLElement): void {
  line.onView(() => {
    if (!host.isConnected) return;
    const [min, max] = line.view ?? [0, line.end_s];
    plot.setScale('x', { min, max });
  });
  // A finger moves the cursor sideways and the page up and down.
  plot.over.style.touchAction = 'pan-y';
  plot.over.addEventListener('pointermove', (event) => {
    if (event.pointerType !== 'touch') return;
    const box = plot.over.getBoundingClientRect();
    place(plot, Math.min(box.width, Math.max(0, event.clientX - box.left)), Math.min(box.height, Math.max(0, event.clientY - box.top)));
  });
  host.addEventListener('keydown', (event) => {
    const [first, last] = plot.series[0]?.idxs ?? [0, line.x.length - 1];
    const now = plot.cursor.idx ?? null;
    const stride = event.shiftKey ? 10 : 1;
    const next: Record<string, number | null> = {
      ArrowRight: now === null ? first : now + stride, ArrowLeft: now === null ? last : now - stride,
      Home: first, End: last, Escape: null,
    };
    if (!(event.key in next)) return;
    event.preventDefault();
    const wanted = next[event.key] ?? null;
    const second = wanted === null ? undefined : line.x[Math.min(last, Math.max(first, wanted))];
    if (second === undefined) place(plot, -10, -10);
    else place(plot, plot.valToPos(second, 'x'), plot.over.clientHeight / 2);
  });
}

/** Moves the cursor of this chart and of those that follow it; the library's types leave the last argument out. */
function place(plot: uPlot, left: number, top: number): void {
  const move = plot.setCursor as (at: { left: number; top: number }, fire: boolean, publish: boolean) => void;
  move({ left, top }, true, true);
}

/** Longer names get a row of the legend for themselves on a narrow screen. */
const LONG_NAME = 8;

/** A legend entry: colour, name, value under the cursor; a press hides or shows its line. */
export function legendItem(it: Pick<Line, 'label' | 'colour' | 'dash' | 'hidden'>, toggle: (show: boolean) => void): { button: HTMLElement; value: HTMLElement } {
  const value = el('span', { class: 'value' });
  const button = el('button', { type: 'button', class: it.label.length > LONG_NAME && 'wide', 'aria-pressed': String(!it.hidden), title: 'Hide or show' },
    swatch(it), it.label, value);
  button.addEventListener('click', () => {
    const show = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(show));
    toggle(show);
  });
  return { button, value };
}

/** What the chart shows, in words: the range of each line within the measured time. */
function summarise(options: ChartOptions, line: Timeline): string {
  const counted = line.x.map((second) => phaseAt(line, second)?.measured ?? line.phases.length === 0);
  const ranges = options.lines.map((it) => {
    const range = extent([it.values.filter((_, index) => counted[index])]) ?? extent([it.values]);
    return range ? `${it.label} ${options.format(range[0])} to ${options.format(range[1])}` : `${it.label} nothing`;
  });
  return `${options.title}, ${options.note}. ${ranges.join('; ')}. ${[inWords(line.bands), 'Arrow keys move the cursor.'].filter(Boolean).join(' ')}`;
}
