/** What was broken on purpose: its place on the time axis, in words, and the dips that it made. */

import { el, type Child } from './dom';
import { atSecond, clock, count, NOTHING, rate, share, span } from './format';
import type { Dip, Fault } from './run';
import { table } from './table';

/** A smaller share missing is no dip. */
export const NO_DIP = 0.0005;

/** The part of the time axis in which something was broken. */
export interface Band {
  /** What the charts and the table call it: `A`. */
  letter: string;
  fault: string;
  from_s: number;
  to_s: number;
  /** Whether it ended because it was put right, and not because the run did. */
  healed: boolean;
  /** What stands above it, from the longest that may fit to the shortest. */
  names: string[];
  /** Something broken; or something that a store does at times beside its work. */
  tone: 'fault' | 'work';
}

/** Whether a fault of this kind breaks nothing, but asks a store for what it does by itself at other times. */
export const isMaintenance = (kind: string): boolean => kind === 'rewrite' || kind === 'snapshot';

/** A to Z, then AA. */
export function letter(index: number): string {
  return (index >= 26 ? letter(Math.floor(index / 26) - 1) : '') + String.fromCharCode(65 + (index % 26));
}

/** When it was put right: undone, and what had to be started again was ready. */
const rightUs = (it: Fault): number | null => (it.kind === 'kill' || it.kind === 'stop' ? it.ready_us : it.healed_us);

/** The faults that lie on the axis, from their begin until they were put right, in the order of their begin. */
export function bands(faults: readonly Fault[], end_s: number): Band[] {
  const all = faults.flatMap((it, index): Band[] => {
    if (it.begin_us === null || it.begin_us < 0 || it.begin_us / 1e6 >= end_s) return [];
    const from_s = it.begin_us / 1e6;
    const right_us = rightUs(it);
    const healed = right_us !== null && right_us / 1e6 <= end_s;
    const to_s = healed ? Math.max(from_s, right_us / 1e6) : end_s;
    const name = letter(index);
    const short = [it.kind, it.target].filter(Boolean).join(' ');
    const names = [`${name} ${it.fault}`, `${name} ${short}`, name].filter((text, at, list) => text.trim() !== name || at === list.length - 1);
    return [{ letter: name, fault: it.fault, from_s, to_s, healed, names, tone: isMaintenance(it.kind) ? 'work' : 'fault' }];
  });
  return all.sort((a, b) => a.from_s - b.from_s);
}

/** The bands that a stretch of time touches. */
export const bandsIn = (all: readonly Band[], from_s: number, to_s: number): Band[] =>
  all.filter((band) => band.from_s < to_s && (band.to_s > from_s || band.from_s >= from_s));

/** Where all bands lie, for who does not see them. */
export function inWords(all: readonly Band[]): string {
  return all.map((it) => `${it.letter ? `Fault ${it.letter}, ` : ''}${it.fault}, ${clock(it.from_s)} to ${it.healed ? clock(it.to_s) : 'the end'}.`).join(' ');
}

export interface Place {
  /** Index of the band. */
  band: number;
  x: number;
  text: string;
}

/**
 * Names beside each other in one row, none on another: each as long as the room up to the next band allows, the
 * shortest in any case while there is any. `spots` say where the bands begin, ascending; `gap` is kept between two names.
 */
export function places(spots: readonly { from: number; names: readonly string[] }[], left: number, right: number, gap: number, width: (text: string) => number): Place[] {
  const found: Place[] = [];
  let free = left;
  spots.forEach(({ from, names }, band) => {
    const next = spots[band + 1]?.from;
    const limit = next === undefined ? right : Math.min(right, Math.max(left, next) - gap);
    // Only the plot's own end moves a name away from where its band begins.
    const tried = names.map((text) => ({ band, text, x: Math.max(free, Math.min(from, right - width(text))) }));
    const last = tried.at(-1);
    // The shortest may push the next one aside.
    const fitting = tried.find(({ x, text }) => x + width(text) <= limit)
      ?? (last && last.x + width(last.text) <= right ? last : undefined);
    if (!fitting) return;
    found.push(fitting);
    free = fitting.x + width(fitting.text) + gap;
  });
  return found;
}

const round = (seconds: number): string => span(Number(seconds.toPrecision(3)));

/** The cells of a fault's row after its name; null where there is nothing to hold it against. */
export interface Cells {
  at: string;
  until: string;
  started: string;
  depth: string;
  rates: string;
  length: string;
  /** Not back while it could be seen. */
  lasting: boolean;
  recovery: string;
  errors: string;
  dropped: string;
  backlog: string;
}

export function cells(it: Fault): Cells {
  const none: Cells = {
    at: 'never', until: '', started: '', depth: NOTHING, rates: '', length: NOTHING, lasting: false, recovery: NOTHING, errors: NOTHING, dropped: NOTHING, backlog: NOTHING,
  };
  if (it.begin_us === null) return none;
  const right_us = rightUs(it);
  const begun = {
    ...none, at: atSecond(it.begin_us / 1e6),
    started: it.healed_us === null || it.healed_us === right_us ? '' : `started again at ${atSecond(it.healed_us / 1e6)}`,
    until: right_us === null ? 'not put right' : `until ${atSecond(right_us / 1e6)}`,
  };
  return it.dip ? { ...begun, ...dipCells(it, it.dip) } : begun;
}

/** Whether it was not back: one that never was 10 % deep was, though too few seconds of it were seen to say so. */
export const isLasting = (dip: Dip): boolean => dip.length_s === null && dip.depth >= 0.1;

/** Seconds at 90 % after which a dip is over. */
const RECOVERED_S = 3;

/** How long it was seen after it was put right, where that is too short to say whether it was back. */
function seenTooShortS(it: Fault, dip: Dip): number | null {
  const right_us = rightUs(it);
  if (it.begin_us === null || right_us === null) return null;
  const left_s = Math.max(0, it.begin_us / 1e6 + dip.seen_s - right_us / 1e6);
  return left_s < RECOVERED_S ? left_s : null;
}

function dipCells(it: Fault, dip: Dip): Omit<Cells, 'at' | 'until' | 'started'> {
  const felt = dip.depth >= NO_DIP;
  const seen_s = isLasting(dip) ? seenTooShortS(it, dip) : null;
  const lasting = isLasting(dip) && seen_s === null;
  const otherwise = seen_s === null ? 'never below 90\u202f%' : `not known: seen for only ${round(seen_s)} after it was put right`;
  return {
    depth: felt ? share(dip.depth) : 'no dip',
    rates: felt ? `${rate(dip.lowest_per_s)} of ${rate(dip.before_per_s)}` : `of ${rate(dip.before_per_s)}`,
    length: dip.length_s !== null ? round(dip.length_s) : lasting ? `not back within ${round(dip.seen_s)}` : otherwise,
    lasting,
    recovery: dip.recovery_s === null ? NOTHING : round(dip.recovery_s),
    errors: count(dip.errors), dropped: count(dip.dropped), backlog: count(dip.backlog_max),
  };
}

export function faultsPart(faults: readonly Fault[]): Child {
  const mistakes = faults.filter((it) => it.error !== null);
  const columns = ['At', 'Depth', 'Length', 'Recovery', 'Errors', 'Dropped', 'Largest backlog'];
  return [
    el('p', { class: 'lead' }, 'What was broken on purpose, and what the load felt of it. A dip is a fall of the requests that succeeded each second, below their mean before the fault. It is over once they are back at 90\u202f% of that for three seconds. Recovery counts from when the fault was put right.'),
    table('Faults', [{ name: 'Fault' }, ...columns.map((name) => ({ name, number: true }))], faults.map(row), 'faults'),
    mistakes.map((it) => el('p', { class: 'bad-text' }, `▲ ${it.fault}: ${it.error}`)),
  ];
}

function row(it: Fault, index: number): Child[] {
  const shown = cells(it);
  const sub = (text: string) => text && el('span', { class: 'sub' }, text);
  return [
    [el('b', { class: 'fault-letter' }, letter(index)), ' ', it.fault],
    [it.begin_us === null ? el('span', { class: 'bad-text' }, shown.at) : shown.at, sub(shown.started), sub(shown.until)],
    [shown.depth, sub(shown.rates)],
    shown.lasting ? el('span', { class: 'bad-text' }, `▲ ${shown.length}`) : shown.length,
    shown.recovery, shown.errors, shown.dropped, shown.backlog,
  ];
}
