/** What stores did beside their work: its place on the time axis, and what the load felt of it. */

import { el, type Child } from './dom';
import { isLasting, isMaintenance, NO_DIP, type Band } from './faults';
import { atSecond, duration, NOTHING, rate, share, size, span } from './format';
import type { Fault, Maintenance } from './run';
import { table } from './table';

/** Where they lie on the axis. What a fault asked for is that fault's band. */
export function maintenanceBands(all: readonly Maintenance[], faults: readonly Fault[], end_s: number): Band[] {
  const asked = new Set(faults.filter((it) => isMaintenance(it.kind)).map((it) => it.fault));
  return all.flatMap((it): Band[] => {
    const from_s = it.begin_us / 1e6;
    if ((it.fault !== null && asked.has(it.fault)) || from_s < 0 || from_s >= end_s) return [];
    const ended_s = it.end_us === null ? null : it.end_us / 1e6;
    const healed = ended_s !== null && ended_s <= end_s;
    const name = `${it.kind} of ${it.store}`;
    return [{ letter: '', fault: name, from_s, to_s: healed ? Math.max(from_s, ended_s) : end_s, healed, names: [name, it.kind], tone: 'work' }];
  });
}

/** Whether a band shows what an event tells; a run that was killed has only the events. */
export const hasBand = (kind: string, all: readonly Maintenance[]): boolean => isMaintenance(kind) && all.length > 0;

const round = (seconds: number): string => span(Number(seconds.toPrecision(3)));

/** The cells of a row after its name. */
export function maintenanceCells(it: Maintenance): { at: string; took: string; fork: string; size: string; depth: string; length: string; before: string; highest: string; times: string; raised: string } {
  const { dip, latency } = it;
  const felt = dip !== null && dip.depth >= NO_DIP;
  return {
    at: atSecond(it.begin_us / 1e6),
    took: it.end_us === null ? 'not over' : `for ${round((it.end_us - it.begin_us) / 1e6)}`,
    fork: it.fork_us === null ? NOTHING : duration(it.fork_us),
    size: it.size_before_bytes === null || it.size_after_bytes === null ? '' : `${size(it.size_before_bytes)} became ${size(it.size_after_bytes)}`,
    depth: dip === null ? NOTHING : felt ? `${share(dip.depth)} fewer` : 'no fewer',
    length: dip === null || !felt ? '' : isLasting(dip) ? `not back within ${round(dip.seen_s)}` : dip.length_s === null ? 'never below 90\u202f%' : `${rate(dip.lowest_per_s)} of ${rate(dip.before_per_s)}, for ${round(dip.length_s)}`,
    before: latency === null ? NOTHING : duration(latency.before_p99_us),
    highest: latency === null ? NOTHING : latency.highest_p99_us === null ? 'not reached' : duration(latency.highest_p99_us),
    times: latency?.ratio == null || latency.ratio < 1.1 ? '' : `${latency.ratio >= 10 ? Math.round(latency.ratio) : latency.ratio.toFixed(1)} times as long`,
    raised: latency === null ? NOTHING : latency.length_s === null ? `not back within ${round(latency.seen_s)}` : latency.length_s === 0 ? 'not raised' : round(latency.length_s),
  };
}

/** So many rows at most; a page has the rest in its JSON. */
const ROWS_MAX = 100;

export function maintenanceTable(all: readonly Maintenance[]): Child {
  if (all.length === 0) return null;
  const columns = ['At', 'Fork', 'Throughput', 'p99 before', 'p99 at most', 'p99 raised for'];
  return [
    el('p', { class: 'lead' }, 'When stores rewrote their append-only files or took snapshots, by their own account, and what the load felt of it: requests that succeeded each second until they were back at 90\u202f% of before for three seconds and at least while the store was at it, and the highest 99th percentile of a second, which is raised while it is more than 1.5 times that of the ten seconds before.'),
    table('Rewrites and snapshots', [{ name: '' }, ...columns.map((name) => ({ name, number: true }))], all.slice(0, ROWS_MAX).map(row), 'faults'),
    all.length > ROWS_MAX && el('p', { class: 'note' }, `${all.length - ROWS_MAX} more are not shown.`),
  ];
}

function row(it: Maintenance): Child[] {
  const shown = maintenanceCells(it);
  const sub = (text: string) => text && el('span', { class: 'sub' }, text);
  return [
    [`${it.kind} of ${it.store}`, sub(it.fault === null ? 'not asked for by the scenario' : ''), it.error !== null && el('span', { class: 'bad-text' }, `▲ ${it.error}`)],
    [shown.at, sub(shown.took)],
    [shown.fork, sub(shown.size)],
    [shown.depth, sub(shown.length)],
    shown.before,
    [shown.highest, sub(shown.times)],
    shown.raised,
  ];
}
