/** What the system says that it did: over time, in figures beside what the driver saw, and of several variants beside each other. */

import { timeChart, type Line } from './chart';
import { exchange } from './charts';
import type { ComparedKind, ComparedOperations } from './compared';
import { choice, el, type Child } from './dom';
import { count, duration, NOTHING, plural, rate, tick } from './format';
import { MEASURES, nameOf, NOTES, operationLines, operationRows, SHOWN, type Measure } from './operation-lines';
import type { OperationFigures, RunPage } from './run';
import { strokeOf } from './stroke';
import { table, type Column } from './table';
import { timeline, type Timeline } from './timeline';

const leftOut = (kinds: number): Child => kinds > 0 && el('p', { class: 'note' }, `${plural(kinds, 'kind')} of operations, the least frequent, ${kinds === 1 ? 'is' : 'are'} not shown; “tidemark cube” has them all.`);

const failed = (errors: number): Child => (errors > 0 ? el('span', { class: 'bad-text' }, count(errors)) : '0');

const time = (us: number | null): Child => (us === null ? el('span', { title: 'not reached' }, NOTHING) : duration(us));

const UNREACHED = `${NOTHING} is not reached: so many failed, and a failed operation is slower than every bound.`;

export function operationsPart(run: RunPage, line: Timeline): Child {
  const { operations } = run;
  let measure: Measure = 'p95_us';
  const place = el('div');
  const chart = (): HTMLElement => {
    const times = measure !== 'per_s';
    return timeChart(line, {
      title: 'Operations over time', controls, lines: operationLines(operations, measure),
      note: `${NOTES[measure]}${operations.length > SHOWN ? `; the ${SHOWN} most frequent at first` : ''}`,
      format: times ? duration : rate, tick: times ? tick.duration : tick.rate, log: times, phaseNames: true,
    });
  };
  const controls = el('div', { class: 'controls' }, choice('What of the operations', MEASURES, measure, (value) => {
    measure = value;
    exchange(place, chart);
  }));
  place.append(chart());
  const rows = operationRows(operations);
  const beside = rows.some((it) => it.by === 'driver');
  const columns: Column[] = [
    { name: 'Operation' }, ...(beside ? [{ name: 'As seen by' }] : []),
    ...['Count', 'Errors', 'Rate', 'Mean', 'Median', 'p95', 'p99'].map((name) => ({ name, number: true })),
  ];
  return [
    el('p', { class: 'lead' }, 'What the system itself says that it did. Every figure is of all single operations; a failed one is slower than every bound.'),
    place,
    table('Operations', columns, rows.map(({ by, of, ...it }) => [
      nameOf(it), ...(beside ? [by] : []),
      count(of.count), failed(of.errors), rate(of.per_s), time(of.mean_us), time(of.median_us), time(of.p95_us), time(of.p99_us),
    ]), 'labels'),
    el('p', { class: 'note' }, `Of the measured window.${beside ? ' The load generator’s times are response times, from when a request was due.' : ''}${rows.some(({ of }) => of.errors > 0) ? ` ${UNREACHED}` : ''}`),
    leftOut(run.operations_left_out),
  ];
}

/** The variants of a comparison beside each other, and one operation of them over time. */
export function comparedOperations(it: ComparedOperations, variants: readonly string[]): Child {
  const place = el('div');
  const line = timeline({ seconds: it.seconds, bin_s: it.bin_s, events: [], manifest: { phases: [], summary: { faults: [], maintenance: [] } } });
  const chart = (kind: ComparedKind) => timeChart(line, {
    title: nameOf(kind), note: 'p95 of the duration, since the measured window began; all rounds together; a gap where more than 5 % failed; logarithmic',
    lines: variants.map((label, index): Line => ({ label, values: kind.p95_us[index] ?? [], ...strokeOf(index) })),
    format: duration, tick: tick.duration, log: true, controls: select,
  });
  const select = el('div', { class: 'controls' }, el('select', {
    class: 'quiet', 'aria-label': 'Which operation',
    onchange: (event) => {
      const kind = it.kinds[(event.currentTarget as HTMLSelectElement).selectedIndex];
      if (kind) exchange(place, () => chart(kind));
    },
  }, it.kinds.map((kind) => el('option', {}, nameOf(kind)))));
  const [first] = it.kinds;
  if (!first) return null;
  place.append(chart(first));
  const cell = (of: OperationFigures | null, show: (it: OperationFigures) => Child): Child =>
    (of ? show(of) : el('span', { title: 'none of these' }, NOTHING));
  const hasErrors = it.kinds.some((kind) => kind.variants.some((of) => of !== null && of.errors > 0));
  const measures: [string, (of: OperationFigures) => Child][] = [
    ['Rate', (of) => rate(of.per_s)], ...(hasErrors ? [['Errors', (of) => failed(of.errors)] as [string, (of: OperationFigures) => Child]] : []),
    ['Median', (of) => time(of.median_us)], ['p95', (of) => time(of.p95_us)],
  ];
  return [
    el('h3', {}, 'Operations, as each system says'),
    table('Operations side by side',
      [{ name: 'Operation' }, { name: '' }, ...variants.map((name) => ({ name, number: true }))],
      it.kinds.flatMap((kind) => measures.map(([name, show], index) => [
        index === 0 ? nameOf(kind) : el('span', { class: 'unseen' }, nameOf(kind)), name, ...variants.map((_, variant) => cell(kind.variants[variant] ?? null, show)),
      ])), 'labels'),
    hasErrors && el('p', { class: 'note' }, UNREACHED),
    place,
    leftOut(it.left_out),
  ];
}
