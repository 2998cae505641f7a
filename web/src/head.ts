/** The top of the page: verdict, what ran, and the figures that matter. */

import { el, facts, svg, type Child } from './dom';
import { isCutOff } from './ledger';
import { count, duration, moment, NOTHING, plural, quantity, rate, share, size, span, cores } from './format';
import type { Latency, Manifest, ObjectiveResult, ProcessSummary, RunPage, Status, Summary } from './run';
import { PERCENTILES } from './run';

/** How a percentile is called. */
export const PERCENTILE_NAMES = { p50: 'p50', p90: 'p90', p99: 'p99', p999: 'p99.9', max: 'max' } as const;

/** The process whose use is the system's cost. */
const SYSTEM = 'system';
const DRIVER = 'driver';

const VERDICTS: Record<Status, { word: string; icon: string }> = {
  pass: { word: 'Pass', icon: 'M5 12.5l4.5 4.5L19 7.5' },
  fail: { word: 'Fail', icon: 'M6.5 6.5l11 11M17.5 6.5l-11 11' },
  invalid: { word: 'Invalid', icon: 'M12 5.5v8M12 17.5v.5' },
};

/** Of all requests that were due, those without a good answer. */
export const failedShare = (summary: Pick<Summary, 'failed' | 'due'>): number => (summary.due > 0 ? summary.failed / summary.due : 0);

/** How many requests a percentile is of at least: one of them lies beyond it. */
const LEAST: Partial<Record<keyof Latency, number>> = { p50: 2, p90: 10, p95: 20, p99: 100, p999: 1000 };

/** Whether so many requests do not have a percentile: it would be the slowest of them under another name. */
export const isTooFew = (key: keyof Latency, due: number): boolean => due > 0 && due < (LEAST[key] ?? 0);

/** What else a dash means where there are few requests. */
export function fewNote(due: number): string {
  const first = (['p50', 'p90', 'p99', 'p999'] as const).find((key) => isTooFew(key, due));
  return first ? `${NOTHING} is also where there are too few: ${plural(due, 'request')} have no ${PERCENTILE_NAMES[first]}.` : '';
}

/** `99 % within 12.3 ms`; where that is not reached, so. */
export const within = (part: string, us: number | null): string => (us === null ? `${part} not reached` : `${part} within ${duration(us)}`);

/** The run in one line. A percentile that was not reached is never told as a time. */
export function headline(summary: Summary): string {
  if (summary.due === 0) return 'No request was due in the measured window';
  if (summary.requests === 0) return `No request ended in the measured window; ${plural(summary.dropped, 'arrival')} dropped`;
  const p99 = summary.response_time_us.p99;
  const missing = `${share(failedShare(summary))} had no good answer`;
  const rates = `${atLeast(summary)}${rate(summary.achieved_per_s)} of ${rate(summary.offered_per_s)} offered`;
  const { max } = summary.response_time_us;
  const failures = summary.failed_steps > 0 ? `${plural(summary.failed_steps, 'step')} of sessions failed` : 'no errors';
  if (summary.failed === 0 && p99 === null && max !== null) return `${rates}, all within ${duration(max)}, ${failures}`;
  if (summary.failed === 0) return `${rates}, ${within('99\u202f%', p99)}, ${failures}`;
  // A run of before, and nothing was answered: its times are of nothing.
  const nothing = p99 === null || (summary.of_good_only && summary.good.requests === 0);
  if (nothing) return `${rates}, p99 not reached: ${missing}`;
  return `${rates}, 99\u202f%${summary.of_good_only ? ' of the good answers' : ''} within ${duration(p99)}, ${missing}`;
}

/** Where the driver was at its limit, its rates are bounds. */
export const atLeast = (summary: Summary): string => (summary.driver.limits.length > 0 && summary.achieved_per_s > 0 ? 'at least ' : '');

/** What a pass says. */
export function passed(objectives: readonly ObjectiveResult[]): string {
  const asked = objectives.filter((it) => !it.default);
  const unasked = objectives.filter((it) => it.default);
  if (asked.length > 0) return asked.length === 1 ? 'The objective was met.' : `All ${asked.length} objectives were met.`;
  if (unasked.length === 0) return 'The scenario sets no objectives.';
  return `The scenario sets no objectives; judged by what every run is held to: ${unasked.map((it) => `${it.objective} (${it.measured})`).join(', ')}.`;
}

/** A note that says no more than the banner. */
const AT_ITS_LIMIT = 'the load generator was at its limit: the system can do at least what was achieved';

/** The notes without what stands beside them: the limits of the driver. */
export const notesBeside = (notes: readonly string[], limits: readonly string[]): string[] =>
  notes.map((note) => limits.reduce((rest, limit) => rest.replace(`; ${limit}`, ''), note)).filter((note) => note !== AT_ITS_LIMIT);

export function verdict(manifest: Manifest): HTMLElement {
  const { summary } = manifest;
  const { status, reasons } = summary.verdict;
  const { word, icon } = VERDICTS[status];
  const meaning = status === 'invalid' ? 'This run does not show whether its objectives are met.' : null;
  // A reason may name what held the driver up already.
  const limits = summary.driver.limits.filter((limit) => !reasons.some((reason) => reason.includes(limit)));
  const drift = summary.steady_state?.steady === false ? `Not steady: ${summary.steady_state.reason}.` : '';
  const saysSo = reasons.some((reason) => reason.startsWith('incomplete: stopped by the user'));
  const notes = [manifest.interrupted && !saysSo ? 'Stopped early by the user.' : '',
    manifest.cut_short ? `Cut short: ${manifest.cut_short}` : '', ...notesBeside(manifest.notes, summary.driver.limits)].filter(Boolean);
  return el('section', { class: `verdict ${status}`, 'aria-labelledby': 'verdict' },
    svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'icon' }, svg('path', { d: icon })),
    el('div', {},
      el('h2', { id: 'verdict' }, el('strong', {}, word), el('span', { class: 'headline' }, headline(summary))),
      meaning && el('p', {}, meaning),
      reasons.length > 0 && el('ul', {}, reasons.map((reason) => el('li', {}, reason))),
      summary.driver.limits.length > 0 && el('p', { class: 'bad-text' }, '▲ The load generator was at its limit: rates are at least what is shown, times and failures at most.'),
      limits.length > 0 && el('ul', {}, limits.map((limit) => el('li', {}, `load generator: ${limit}`))),
      drift && el('p', { class: 'bad-text' }, `▲ ${drift}`),
      summary.warnings.map((warning) => el('p', { class: 'bad-text' }, `▲ ${warning}`)),
      status === 'pass' && reasons.length === 0 && el('p', {}, passed(manifest.objectives)),
      notes.length > 0 && el('ul', { class: 'notes' }, notes.map((note) => el('li', {}, note)))));
}

export function whatRan({ manifest, closed_loop }: Pick<RunPage, 'manifest' | 'closed_loop'>): HTMLElement {
  const { system, machine, summary } = manifest;
  const sync = system.sync_latency;
  const excluded = manifest.phases.filter((phase) => !phase.measured);
  const excluded_s = excluded.reduce((sum, phase) => sum + (phase.end_us - phase.start_us) / 1e6, 0);
  return el('section', { 'aria-labelledby': 'what' },
    el('h2', { id: 'what', class: 'quiet-heading' }, 'What ran'),
    manifest.description && el('p', { class: 'lead' }, manifest.description.trim()),
    facts([
      ['Scenario', manifest.scenario],
      ['Load', manifest.load && [manifest.load, closed_loop && el('span', { class: 'sub' }, `${closed_loop} (a rate counts it)`)]],
      ['Measured', summary.measured_s > 0
        ? `${span(Number(summary.measured_s.toFixed(1)))}${excluded.length > 0 ? `, after ${span(Number(excluded_s.toFixed(1)))} not counted (${excluded.map((phase) => phase.name).join(', ')})` : ''}`
        : 'nothing'],
      ['System', (system.name || system.url) && [system.name, system.url && system.url !== system.name && el('span', { class: 'sub' }, system.url),
        system.spoken.map((how) => el('span', { class: 'sub' }, how))]],
      ['Services', manifest.services.length > 0 && manifest.services.map((it) =>
        el('div', {}, `${it.name}${it.instances > 1 ? ` ×${it.instances}` : ''}${it.balancer ? ` behind ${it.balancer}` : ''}`))],
      ['Beside it', manifest.targets.length > 0 && manifest.targets.map((it) =>
        el('div', {}, it.name, el('span', { class: 'sub' }, [it.url === it.name ? '' : it.url, it.protocol].filter(Boolean).join(' · '))))],
      ['Watched', manifest.watched.length > 0 && manifest.watched.map((it) =>
        el('div', {}, it.name, el('span', { class: 'sub' }, [it.what === it.name ? '' : it.what, it.found].filter(Boolean).join(' · '))))],
      ['Durability', [
        system.durability ?? 'not stated by the system',
        sync && el('span', { class: 'sub' }, `disk sync in the same run: median ${duration(sync.p50_us)}, p99 ${duration(sync.p99_us)}, longest ${duration(sync.max_us)} (${count(sync.count)} syncs)`),
      ]],
      ['Started', moment(manifest.started_at)],
      ['Machine', machine.cpu_model || machine.cores > 0
        ? [machine.cpu_model || 'unknown CPU', el('span', { class: 'sub' }, [plural(machine.cores, 'core'), size(machine.memory_bytes), machine.os].filter(Boolean).join(' · '))]
        : null],
    ]));
}

/** A percentile of all that was due; where it is not reached, what it is of the good answers. */
export function percentile(key: keyof Latency, summary: Summary): { value: string; exact: string; below: string } {
  const us = summary.response_time_us[key];
  if (summary.good.requests === 0) return { value: NOTHING, exact: 'not reached', below: summary.due > 0 ? 'nothing answered well' : 'nothing answered' };
  if (us === null && isTooFew(key, summary.due)) return { value: NOTHING, exact: 'too few requests', below: `too few: ${plural(summary.due, 'request')}` };
  if (us === null) return { value: NOTHING, exact: 'not reached', below: `not reached; good\u00a0answers\u00a0${duration(summary.good.response_time_us[key])}` };
  return { value: duration(us), exact: `${us} µs`, below: `service ${duration(summary.service_time_us[key])}` };
}

export function dropped(summary: Summary): string {
  if (summary.dropped > 0) return 'arrivals given up at a bound';
  if (summary.due === 0) return 'nothing was due';
  return summary.failed > 0 ? 'none given up at a bound' : 'every arrival was served';
}

/** Which requests the percentiles are of. */
export function percentileNote(summary: Summary): string {
  if (summary.of_good_only) return 'Percentiles are of the response time of the good answers only, as this run of an older Tidemark has them; only the measured window counts.';
  return [
    'Percentiles are of the response time of all requests that were due in the measured window.',
    summary.failed > 0 && `${NOTHING} is not reached: ${share(failedShare(summary))} had no good answer, which is slower than every bound.`,
    fewNote(summary.due),
  ].filter(Boolean).join(' ');
}

/** Whether a process is a part of the system: what was driven, another service, a balancer. An instance counts within its service. */
export function isOfSystem(name: string, services: readonly { name: string }[]): boolean {
  return name === SYSTEM || services.some((it) => it.name === name || `${it.name}-balancer` === name);
}

/** Whether a process is one of several instances of a service, whose figures are in the service's. */
export function isInstance(name: string, services: readonly { name: string }[]): boolean {
  return services.some((it) => name.startsWith(`${it.name}.`) && /^\d+$/.test(name.slice(it.name.length + 1)));
}

/** What the cost is of: the system, or, where that was not watched, the stores that the run started, one of which may be what is driven; else what was watched. */
export function served(processes: readonly ProcessSummary[], watched: readonly { name: string }[] = [], services: readonly { name: string }[] = []): { name: string; of: string; processes: ProcessSummary[] } {
  const system = processes.filter((process) => isOfSystem(process.name, services));
  const others = processes.filter((process) => process.name !== DRIVER);
  const stores = others.filter((process) => !watched.some((it) => it.name === process.name));
  if (system.length > 0 || others.length === 0) return { name: 'System', of: system.length > 1 ? 'all services of the system' : 'the system', processes: system };
  if (stores.length === 0) return { name: 'Watched', of: others.length === 1 ? others[0]?.name ?? '' : `all ${others.length} that were watched`, processes: others };
  return stores.length === 1 ? { name: 'Store', of: stores[0]?.name ?? 'the store', processes: stores } : { name: 'Stores', of: plural(stores.length, 'store process', 'store processes'), processes: stores };
}

interface Tile {
  name: string;
  value: string;
  below: Child;
  exact?: string;
  colour?: string;
  /** Something that a reader must not miss. */
  bad?: boolean;
  extra?: Child;
}

export function tiles({ manifest, good_elsewhere }: Pick<RunPage, 'manifest' | 'good_elsewhere'>): HTMLElement {
  const { summary, machine } = manifest;
  const { ledger } = summary;
  const { name: who, of: whose, processes: system } = served(summary.processes, manifest.watched, manifest.services);
  const cpu_s = system.reduce((sum, process) => sum + process.cpu_s, 0);
  const cpu_share = system.reduce((sum, process) => sum + process.cpu_share, 0);
  const attained = summary.achieved_share;
  const empty = summary.due === 0;

  const shown: Tile[] = [
    {
      name: 'Achieved', value: rate(summary.achieved_per_s), exact: `${summary.achieved_per_s}/s`,
      below: [
        `${atLeast(summary) ? 'at least, ' : ''}of ${rate(summary.offered_per_s)} offered${attained < 0.9995 ? `: ${share(attained)}` : ''}`,
        ...good_elsewhere.map((says) => el('span', { class: 'sub' }, says)),
      ],
      extra: el('span', { class: 'meter', 'aria-hidden': 'true' }, el('i', { style: `width:${Math.min(100, attained * 100).toFixed(2)}%` })),
    },
    ...PERCENTILES.map((key): Tile => ({
      name: key === 'p50' ? 'p50, median' : key === 'max' ? 'Longest' : PERCENTILE_NAMES[key],
      colour: key, ...percentile(key, summary),
    })),
    { name: 'Requests due', value: quantity(summary.due), exact: count(summary.due), below: `in ${span(Number(summary.measured_s.toFixed(1)))} measured` },
    { name: 'No good answer', value: empty ? NOTHING : quantity(summary.failed), exact: count(summary.failed), below: empty ? 'nothing was due' : `${share(failedShare(summary))} of what was due`, bad: summary.failed > 0 },
    { name: 'Dropped', value: empty ? NOTHING : quantity(summary.dropped), exact: count(summary.dropped), below: dropped(summary), bad: summary.dropped > 0 },
    {
      name: 'Per CPU-second', value: cpu_s > 0 ? quantity((summary.achieved_per_s * summary.measured_s) / cpu_s) : NOTHING,
      below: cpu_s > 0 ? `good answers, of ${whose}` : 'the system was not watched',
    },
    {
      name: `${who} CPU`, value: system.length > 0 ? cores(cpu_share) : NOTHING,
      below: system.length > 0 ? `cores in use${machine.cores > 0 ? ` of ${machine.cores}` : ''}${who === 'System' ? '' : `, by ${whose}`}` : 'the system was not watched',
    },
    ledger
      ? { name: 'Writes lost', value: ledger.verified ? count(ledger.verified.lost) : NOTHING, below: ledger.verified ? `of ${quantity(ledger.acknowledged)} acknowledged${isCutOff(ledger) ? ', undecided' : ''}` : 'not verified', bad: !ledger.verified || isCutOff(ledger) || ledger.verified.lost > 0 }
      : { name: 'Memory, most', value: system.length > 0 ? size(system.reduce((sum, it) => sum + it.rss_bytes_max, 0)) : NOTHING, below: `resident, of ${whose}` },
  ];
  return el('section', { 'aria-labelledby': 'figures' },
    el('h2', { id: 'figures', class: 'quiet-heading' }, 'Key figures'),
    el('p', { class: 'note' }, percentileNote(summary)),
    el('dl', { class: 'tiles' }, shown.map((tile) =>
      el('div', { class: tile.bad ? 'tile bad' : 'tile', ...(tile.colour ? { style: `--swatch:var(--${tile.colour})` } : {}) },
        el('dt', {}, tile.colour && el('i', { class: 'swatch' }), tile.name),
        el('dd', { class: 'figure', title: tile.exact }, tile.bad && el('span', { class: 'warn', 'aria-hidden': 'true' }, '▲ '), tile.value),
        el('dd', { class: 'below' }, tile.below),
        tile.extra && el('dd', {}, tile.extra)))));
}
