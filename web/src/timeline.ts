/** The time axis that all charts over time share: its bins, phases, faults and events, and what part of it is shown. */

import type uPlot from 'uplot';
import { bandRoom } from './bands';
import { bands, bandsIn, type Band } from './faults';
import { clock } from './format';
import { hasBand, maintenanceBands } from './maintenance';
import type { Fault, Maintenance, Phase, RunEvent, RunPage } from './run';
import { FONT } from './stage';
import { colour } from './theme';

/** An event that lies on the axis, with the number that the table of events gives it. */
export interface Mark extends RunEvent {
  number: number;
}

/** More marks than this are drawn without their numbers. */
const NUMBERED_MARKS = 24;

export interface Timeline {
  /** Middle of each bin, seconds since the run began. */
  x: number[];
  bin_s: number;
  end_s: number;
  phases: Phase[];
  marks: Mark[];
  /** What was broken when. */
  bands: Band[];
  /** The part that is shown; null for all of it. */
  view: [number, number] | null;
  setView(view: [number, number] | null): void;
  onView(listener: () => void): void;
}

/** What of a run says where things lie on the axis. */
type Timed = Pick<RunPage, 'seconds' | 'bin_s' | 'events'> & { manifest: { phases: Phase[]; summary: { faults: Fault[]; maintenance: Maintenance[] } } };

export function timeline(run: Timed): Timeline {
  const listeners: (() => void)[] = [];
  const { faults, maintenance } = run.manifest.summary;
  const last = run.seconds.at(-1);
  const end_s = last === undefined ? 0 : last + run.bin_s;
  const line: Timeline = {
    x: run.seconds.map((second) => second + run.bin_s / 2),
    bin_s: run.bin_s,
    end_s,
    phases: run.manifest.phases,
    // Phases, and what stores did beside their work, have their own bands; an event for each would only hide the others.
    marks: run.events
      .map((event, index) => ({ ...event, number: index + 1 }))
      .filter((event) => event.kind !== 'phase' && !hasBand(event.kind, maintenance) && event.at_s >= 0 && event.at_s <= end_s),
    bands: [...bands(faults, end_s), ...maintenanceBands(maintenance, faults, end_s)].sort((a, b) => a.from_s - b.from_s),
    view: null,
    setView(view) {
      if (view) {
        const [from, to] = [Math.max(0, view[0]), Math.min(end_s, view[1])];
        // Less than two bins would show nothing.
        if (to - from < 2 * run.bin_s) return;
        line.view = to - from >= end_s ? null : [from, to];
      } else {
        line.view = null;
      }
      for (const listener of listeners) listener();
    },
    onView: (listener) => { listeners.push(listener); },
  };
  return line;
}

/** The bin at an index, for a person: `12–13 s`. */
export function binName(line: Timeline, index: number): string {
  const from = (line.x[index] ?? 0) - line.bin_s / 2;
  const to = from + line.bin_s;
  if (to < 120) return `${clock(from).replace(/\s*s$/, '')}–${clock(to)}`;
  return `${clock(from, true)}–${clock(to, true)}`;
}

/** The phase that a moment lies in. */
export function phaseAt(line: Timeline, second: number): Phase | undefined {
  return line.phases.find((phase) => second * 1e6 >= phase.start_us && second * 1e6 < phase.end_us);
}

/** What there is to say of a bin beside its figures: its phase, and faults and events in it. */
export function remarks(line: Timeline, index: number): string {
  const middle = line.x[index] ?? 0;
  const phase = phaseAt(line, middle);
  const near = line.marks.filter((mark) => Math.abs(mark.at_s - middle) <= line.bin_s / 2).slice(0, 2);
  return [
    phase && (phase.measured ? phase.name : `${phase.name} (not counted)`),
    ...bandsIn(line.bands, middle - line.bin_s / 2, middle + line.bin_s / 2).slice(0, 2).map((band) => band.names[0]),
    ...near.map((mark) => `${mark.number} ${mark.text}`),
  ].filter(Boolean).join(' · ');
}

/** Everything below in device pixels. */
function edges(plot: uPlot, phase: Phase): [number, number] {
  const { left, width } = plot.bbox;
  const inside = (x: number) => Math.min(left + width, Math.max(left, x));
  return [inside(plot.valToPos(phase.start_us / 1e6, 'x', true)), inside(plot.valToPos(phase.end_us / 1e6, 'x', true))];
}

/** Hatches what is not counted. Drawn below everything else. */
export function drawPhases(line: Timeline, plot: uPlot): void {
  const { ctx } = plot;
  const { top, height } = plot.bbox;
  for (const phase of line.phases) {
    const [from, to] = edges(plot, phase);
    if (phase.measured || to - from < 1) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, top, to - from, height);
    ctx.clip();
    ctx.fillStyle = colour('excluded');
    ctx.fillRect(from, top, to - from, height);
    ctx.strokeStyle = colour('hatch');
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    const step = 7 * devicePixelRatio;
    for (let x = Math.floor((from - height) / step) * step; x < to; x += step) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x + height, top);
    }
    ctx.stroke();
    ctx.restore();
  }
}

/** Names the phases in a band above the plot, as far as there is room. */
export function drawPhaseNames(line: Timeline, plot: uPlot): void {
  const { ctx } = plot;
  const ratio = devicePixelRatio;
  const base = plot.bbox.top - (5 + bandRoom(line.bands)) * ratio;
  ctx.save();
  ctx.font = FONT.replace('12px', `${11 * ratio}px`);
  // The series before may have left its dashes.
  ctx.setLineDash([]);
  ctx.textAlign = 'center';
  ctx.textBaseline = 'bottom';
  for (const phase of line.phases) {
    const [from, to] = edges(plot, phase);
    if (to - from < 4) continue;
    ctx.strokeStyle = colour(phase.measured ? 'accent' : 'faint');
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.moveTo(from + ratio, base + 2 * ratio);
    ctx.lineTo(to - ratio, base + 2 * ratio);
    ctx.stroke();
    const names = phase.measured
      ? [`${phase.name} · ${phase.level} · measured`, `${phase.name} · measured`, phase.name]
      : [`${phase.name} · not counted`, phase.name];
    const fitting = names.find((name) => ctx.measureText(name).width <= to - from - 8 * ratio);
    if (!fitting) continue;
    ctx.fillStyle = colour(phase.measured ? 'ink' : 'muted');
    ctx.fillText(fitting, (from + to) / 2, base);
  }
  ctx.restore();
}

/** A dashed line for each event, numbered as in the table of events; the numbers begin so many CSS pixels below the top. */
export function drawMarks(line: Timeline, plot: uPlot, numbered = false, below = 0): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const ratio = devicePixelRatio;
  const radius = 7 * ratio;
  // The right ends of the rows of numbers; one that would lie on another goes a row down.
  const rows: number[] = [];
  ctx.save();
  for (const mark of line.marks) {
    const x = Math.round(plot.valToPos(mark.at_s, 'x', true));
    if (x < left || x > left + width) continue;
    const ink = colour(['fault', 'exited', 'bound', 'interrupted'].includes(mark.kind) ? 'bad' : 'muted');
    ctx.strokeStyle = ink;
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    if (!numbered || line.marks.length > NUMBERED_MARKS) continue;
    ctx.setLineDash([]);
    const centre = Math.min(left + width - radius, Math.max(left + radius, x));
    const free = rows.findIndex((end) => end < centre - radius);
    const row = free < 0 ? rows.length : free;
    rows[row] = centre + radius;
    const middle = top + radius + (2 + below) * ratio + row * 16 * ratio;
    ctx.fillStyle = ink;
    ctx.beginPath();
    ctx.arc(centre, middle, radius, 0, 2 * Math.PI);
    ctx.fill();
    ctx.fillStyle = colour('surface');
    ctx.font = FONT.replace('12px', `600 ${9.5 * ratio}px`);
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    ctx.fillText(String(mark.number), centre, middle + 0.5 * ratio);
  }
  ctx.restore();
}
