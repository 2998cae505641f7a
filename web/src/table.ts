/** Tables: one form for all of them, and the table by label, which can be sorted. */

import { choice, el, svg, type Child } from './dom';
import { atSecond, count, duration, NOTHING, plural, rate, share } from './format';
import { failedShare, PERCENTILE_NAMES } from './head';
import { PERCENTILES, total, type ErrorKind, type Latency, type RunPage, type Series, type Step, type Summary } from './run';
import { peaks } from './scale';

export interface Column {
  name: string;
  /** Numbers stand right. */
  number?: boolean;
}

/** How a table is laid out: names with figures keep their names in sight, and stand close together where they are few. */
function layout([first, ...others]: readonly Column[]): string {
  if (!first || first.number || others.length === 0 || !others.every((it) => it.number)) return 'plain';
  return others.length > 3 ? 'labels' : 'labels few';
}

/** A table that scrolls sideways where it is wider than the page. */
export function table(caption: string, columns: readonly Column[], rows: readonly (readonly Child[])[], kind = layout(columns)): HTMLElement {
  return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    el('table', { class: kind },
      el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, columns.map((it) => el('th', { scope: 'col', class: it.number && 'number' }, it.name)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, row.map((cell, index) =>
        index === 0
          ? el('th', { scope: 'row', class: columns[index]?.number && 'number' }, cell)
          : el('td', { class: columns[index]?.number && 'number' }, cell)))))));
}

const errorsOf = (step: Pick<Step, 'errors'>): number => total(step.errors);

/** How many of each kind. */
const kindsOf = (errors: Step['errors']): string =>
  Object.entries(errors).filter(([, value]) => value > 0).map(([kind, value]) => `${kind} ${count(value)}`).join(', ');

/** A time; what there is none of says why. */
export const time = (us: number | null, of: number): Child =>
  (us === null ? el('span', { title: of > 0 ? 'not reached, or too few requests' : 'no requests' }, NOTHING) : duration(us));

type Measure = 'response_time_us' | 'service_time_us' | 'good';

const MEASURES: Record<Measure, string> = { response_time_us: 'response time', service_time_us: 'service time', good: 'response time of the good answers' };

/** Figures of nothing are none, even where an older run wrote zeros. */
function latencyIn(step: Step, measure: Measure): Latency | null {
  if (step.good.requests === 0) return null;
  return measure === 'good' ? step.good.response_time_us : step[measure];
}

/** What is not reached is slower than everything. */
const order = (step: Step, us: number | null): number => us ?? (step.requests > 0 ? Infinity : -1);

interface SortColumn {
  name: string;
  colour?: string;
  by: (step: Step, measure: Measure) => number | string;
  show: (step: Step, measure: Measure) => Child;
}

/** Whether any label has more than one point in time. */
const withTrend = (trends: ReadonlyMap<string, Series>): boolean =>
  [...trends.values()].some((trend) => trend.filter((value) => value !== null).length > 1);

function columns(trends: ReadonlyMap<string, Series>): SortColumn[] {
  const timed = (name: string, key: keyof Latency, colour?: string): SortColumn => ({
    name, ...(colour ? { colour } : {}),
    by: (step, measure) => order(step, latencyIn(step, measure)?.[key] ?? null),
    show: (step, measure) => time(latencyIn(step, measure)?.[key] ?? null, step.requests),
  });
  return [
    { name: 'Label', by: (step) => step.label, show: (step) => step.label },
    { name: 'Count', by: (step) => step.requests, show: (step) => count(step.requests) },
    {
      name: 'Share', by: (step) => step.share,
      show: (step) => [
        share(step.share),
        el('span', { class: 'bar', 'aria-hidden': 'true' }, el('i', { style: `width:${(step.share * 100).toFixed(1)}%` })),
      ],
    },
    { name: 'Rate', by: (step) => step.achieved_per_s, show: (step) => rate(step.achieved_per_s) },
    timed('Mean', 'mean'),
    ...PERCENTILES.map((key) => timed(PERCENTILE_NAMES[key], key, key)),
    {
      name: 'Failed', by: errorsOf,
      show: (step) => {
        const errors = errorsOf(step);
        if (errors === 0) return '0';
        return el('span', { class: 'bad-text', title: kindsOf(step.errors) }, count(errors));
      },
    },
    ...(withTrend(trends) ? [{
      name: 'p99 over time', by: (step: Step) => order(step, step.response_time_us.p99),
      show: (step: Step) => sparkline(trends.get(step.label) ?? []),
    }] : []),
  ];
}

/** The table by label. */
export function labelTable(run: RunPage): HTMLElement | null {
  const { summary } = run.manifest;
  if (summary.steps.length === 0) return null;
  const trends = new Map(run.steps.map((step) => [step.label, step.p99_us]));
  const all = columns(trends);
  const state: { measure: Measure; column: number | null; down: boolean } = { measure: 'response_time_us', column: null, down: true };
  const whole: Step = {
    label: 'All', requests: summary.due, share: summary.due > 0 ? 1 : 0, achieved_per_s: summary.achieved_per_s,
    errors: { ...summary.errors, dropped: summary.dropped }, response_time_us: summary.response_time_us, service_time_us: summary.service_time_us, good: summary.good,
    parts: summary.parts,
  };
  const measures: [Measure, string][] = [['response_time_us', 'Response time'], ['service_time_us', 'Service time']];
  if (summary.failed > 0 && !summary.of_good_only) measures.push(['good', 'Good answers']);

  const headers = all.map((column, index) => el('th', { scope: 'col', class: index > 0 && 'number' },
    el('button', { type: 'button', onclick: () => sortBy(index) },
      column.colour && el('i', { class: 'swatch', style: `--swatch:var(--${column.colour})` }), column.name, el('span', { class: 'order', 'aria-hidden': 'true' }))));
  const body = el('tbody');
  const foot = el('tfoot');
  const caption = el('caption', { class: 'unseen' });

  const row = (step: Step) => el('tr', {}, all.map((column, index) =>
    index === 0 ? el('th', { scope: 'row' }, column.show(step, state.measure)) : el('td', { class: 'number' }, column.show(step, state.measure))));

  function render(): void {
    const { column, down, measure } = state;
    const by = column === null ? undefined : all[column]?.by;
    const steps = [...summary.steps];
    if (by) {
      steps.sort((a, b) => {
        const [left, right] = [by(a, measure), by(b, measure)];
        const after = typeof left === 'string' ? left.localeCompare(String(right)) : left === right ? 0 : left - Number(right);
        return down ? -after : after;
      });
    }
    headers.forEach((header, index) => {
      const sorted = index === column;
      if (sorted) header.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else header.removeAttribute('aria-sort');
      const sign = header.querySelector('.order');
      if (sign) sign.textContent = sorted ? (down ? ' ↓' : ' ↑') : '';
    });
    caption.textContent = `Figures by label, ${MEASURES[measure]}`;
    body.replaceChildren(...steps.map(row));
    foot.replaceChildren(row(whole));
    // The bar and the trend of the whole say nothing.
    foot.querySelector('.bar')?.remove();
    if (withTrend(trends)) foot.querySelector('td:last-child')?.replaceChildren();
  }

  /** Once: the way that is most often wanted; again: the other; a third time: the scenario's order. */
  function sortBy(index: number): void {
    const first = index !== 0;
    if (state.column !== index) Object.assign(state, { column: index, down: first });
    else if (state.down === first) state.down = !first;
    else state.column = null;
    render();
  }

  render();
  return el('div', { class: 'by-label' },
    el('div', { class: 'row' },
      el('p', { class: 'note' }, `In the scenario’s order; a press on a heading sorts.${summary.dropped > 0 ? ' What was dropped belongs to no label; “All” counts it.' : ''}`),
      choice('Which time', measures, 'response_time_us', (value) => { state.measure = value; render(); })),
    el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Figures by label' },
      el('table', { class: 'labels' }, caption, el('thead', {}, el('tr', {}, headers)), body, foot)));
}

/** The figures of each target, where requests went to several. */
export function targetTable(run: RunPage): Child {
  const { targets } = run.manifest.summary;
  if (targets.length === 0) return null;
  const number = true;
  return table('Figures by target', [{ name: 'Target' }, { name: 'Count', number }, { name: 'Share', number }, { name: 'Rate', number }, { name: 'Median', number }, { name: 'p99', number }, { name: 'Failed', number }],
    targets.map((of) => [
      of.label, count(of.requests), share(of.share), rate(of.achieved_per_s), time(of.response_time_us.p50, of.requests), time(of.response_time_us.p99, of.requests),
      errorsOf(of) === 0 ? '0' : el('span', { class: 'bad-text' }, count(errorsOf(of))),
    ]));
}

/** The figures of each phase of the load, where several are measured: those of one are those of the whole. */
export function phaseTable(run: RunPage): Child {
  const { phases } = run.manifest.summary;
  if (phases.filter((of) => of.measured).length < 2) return null;
  const number = true;
  const times = ['p50', 'p90', 'p99', 'p999', 'max'] as const;
  const cores = (of: number | null) => of === null ? NOTHING : of.toFixed(2);
  return [
    el('p', { class: 'note' }, 'A request is of the phase in which it was due, whenever it ended. System and load generator: the cores that they used, a mean.'),
    table('Figures by phase', [{ name: 'Phase' }, ...['Length', 'Offered', 'Achieved', 'Median', 'p90', 'p99', 'p99.9', 'Longest', 'Failed', 'System', 'Load generator'].map((name) => ({ name, number }))],
      phases.map((of) => [
        [of.measured ? of.name : `${of.name} (not measured)`, el('span', { class: 'sub' }, of.level)], duration((of.to_s - of.from_s) * 1e6), rate(of.offered_per_s), rate(of.achieved_per_s),
        ...times.map((key) => time(of.response_time_us[key], of.due)),
        of.failed === 0 ? '0' : el('span', { class: 'bad-text' }, count(of.failed)), cores(of.system_cores), cores(of.driver_cores),
      ])),
  ];
}

/** The figures of several steps together, where the scenario has groups of steps. */
export function groupTable(run: RunPage): Child {
  const { groups } = run.manifest.summary;
  if (groups.length === 0) return null;
  const number = true;
  const times = ['p50', 'p90', 'p99', 'p999', 'max'] as const;
  return [
    el('p', { class: 'note' }, 'Several steps together, from the first request to the last answer, waits in between included. None of these counts as a request.'),
    table('Figures by group', [{ name: 'Group' }, ...['Count', 'Rate', 'Median', 'p90', 'p99', 'p99.9', 'Longest', 'Failed'].map((name) => ({ name, number }))],
      groups.map((of) => [
        of.group, count(of.count), rate(of.achieved_per_s), ...times.map((key) => time(of.response_time_us[key], of.count)),
        errorsOf(of) === 0 ? '0' : el('span', { class: 'bad-text', title: kindsOf(of.errors) }, count(errorsOf(of))),
      ])),
  ];
}

/** A small picture of a series, on a logarithmic height: its form, not its values. */
function sparkline(series: Series): Child {
  const [width, height] = [96, 20];
  const points = peaks(series, width / 1.5);
  const known = points.filter((value): value is number => value !== null && value > 0).map(Math.log);
  if (known.length < 2) return NOTHING;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const y = (value: number) => height - 2 - (high > low ? (Math.log(value) - low) / (high - low) : 0.5) * (height - 4);
  let path = '';
  let pen = false;
  points.forEach((value, index) => {
    if (value === null || value <= 0) { pen = false; return; }
    path += `${pen ? 'L' : 'M'}${((index / Math.max(1, points.length - 1)) * width).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  return svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' }, svg('path', { d: path }));
}

/** What failed, by kind, and the first cases of each. */
export function errorSection(run: RunPage): Child {
  const { summary } = run.manifest;
  const kinds = failureKinds(run.errors, summary);
  const statuses = Object.entries(summary.statuses).map(([status, answers]) => `${status}: ${count(answers)}`).join(' · ');
  const answered = statuses && el('p', { class: 'note' }, `Status codes of all answers, right and wrong ones: ${statuses}`);
  if (kinds.length === 0) {
    if (summary.due === 0) return el('p', { class: 'empty' }, 'No request was due in the measured window.');
    return [el('p', { class: 'good-text' }, '✓ Every request had a good answer.'), answered];
  }
  const known = kinds.some((it) => it.known_after_us.p50 !== null);
  return [
    summary.failed > 0 && el('p', { class: 'note' }, `${count(summary.failed)} of ${count(summary.due)} requests that were due had no good answer (${share(failedShare(summary))}).${known ? ' “Known after”: how long after it was due a failure was known, the median and the longest.' : ''}`),
    answered,
    table('Failures by kind', [{ name: 'Kind' }, { name: 'Count', number: true }, { name: 'Of what was due', number: true }, ...(known ? [{ name: 'Known after', number: true }] : []), { name: 'Meaning' }],
      kinds.map((it) => [
        it.kind, it.kind === 'variable' && summary.failed_steps > 0 ? [count(it.count), el('span', { class: 'sub' }, `and ${plural(summary.failed_steps, 'step')} of sessions, which sent no request`)] : it.count > 0 ? count(it.count) : el('span', { title: 'only outside the measured window' }, '0'), summary.due > 0 ? share(it.count / summary.due) : NOTHING,
        ...(known ? [knownAfter(it)] : []), MEANINGS[it.kind] ?? '',
      ])),
    kinds.filter((it) => it.examples.length > 0).map((it) => el('details', { open: true },
      el('summary', {}, `First examples of ${it.kind}`),
      el('ol', { class: 'examples' }, it.examples.map((example) => el('li', {},
        el('span', { class: 'when' }, atSecond(example.at_s)), el('b', {}, example.label), el('code', {}, example.detail)))))),
  ];
}

function knownAfter({ known_after_us: { p50, max } }: ErrorKind): Child {
  if (p50 === null) return NOTHING;
  return [duration(p50), max !== null && max !== p50 && el('span', { class: 'sub' }, `${duration(max)} at most`)];
}

const UNKNOWN: Latency = { min: null, mean: null, p50: null, p90: null, p95: null, p99: null, p999: null, max: null };

/** The failures as the page lists them; those that only the summary knows are put behind. */
export function failureKinds(errors: readonly ErrorKind[], summary: Pick<Summary, 'errors' | 'dropped' | 'failures'>): ErrorKind[] {
  const listed = errors.filter((it) => it.count > 0 || it.examples.length > 0);
  const others = Object.entries({ ...summary.errors, dropped: summary.dropped })
    .filter(([kind, value]) => value > 0 && !listed.some((it) => it.kind === kind))
    .map(([kind, value]): ErrorKind => ({ kind, count: value, known_after_us: summary.failures.find((it) => it.kind === kind)?.known_after_us ?? UNKNOWN, examples: [] }));
  return [...listed, ...others];
}

/** The kinds of failure that the driver tells apart. */
const MEANINGS: Record<string, string> = {
  status: 'answered with a status that the step does not accept',
  check: 'answered, but a check or an extraction failed',
  timeout: 'no whole answer within the time-out',
  connect: 'no connection could be made',
  reset: 'the connection was closed before the answer was whole',
  protocol: 'the answer was not valid HTTP',
  variable: 'not sent: a variable that it needs was not set, or an expression in it failed',
  unfinished: 'due, and still without an answer when the run ended',
  dropped: 'due, and given up unsent because a bound was reached',
};
