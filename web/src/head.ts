/** The top of the page: verdict, what ran, and the figures that matter. */

import { el, facts, svg, type Child } from './dom';
import { count, duration, moment, NOTHING, plural, quantity, rate, share, size, span, cores } from './format';
import type { Manifest, Status } from './run';
import { PERCENTILES } from './run';

/** How a percentile is called. */
export const PERCENTILE_NAMES = { p50: 'p50', p90: 'p90', p99: 'p99', p999: 'p99.9', max: 'max' } as const;

/** The process whose use is the system's cost. */
const SYSTEM = 'system';

const VERDICTS: Record<Status, { word: string; icon: string }> = {
  pass: { word: 'Pass', icon: 'M5 12.5l4.5 4.5L19 7.5' },
  fail: { word: 'Fail', icon: 'M6.5 6.5l11 11M17.5 6.5l-11 11' },
  invalid: { word: 'Invalid', icon: 'M12 5.5v8M12 17.5v.5' },
};

export function errorCount(manifest: Manifest): number {
  return Object.values(manifest.summary.errors).reduce((sum, value) => sum + value, 0);
}

export function verdict(manifest: Manifest): HTMLElement {
  const { summary } = manifest;
  const { status, reasons } = summary.verdict;
  const { word, icon } = VERDICTS[status];
  const errors = errorCount(manifest);
  const headline = summary.requests > 0
    ? `${rate(summary.achieved_per_s)} of ${rate(summary.offered_per_s)} offered, 99\u202f% within ${duration(summary.response_time_us.p99)}, ${errors === 0 ? 'no errors' : `${share(errors / summary.requests)} errors`}`
    : 'No request ended in the measured window';
  const meaning = status === 'invalid' ? 'The measurement cannot be trusted; its figures say nothing about the system.' : null;
  const drift = summary.steady_state?.steady === false ? `Not steady: ${summary.steady_state.reason}.` : '';
  const notes = [manifest.interrupted ? 'Stopped early by the user.' : '', ...manifest.notes].filter(Boolean);
  return el('section', { class: `verdict ${status}`, 'aria-labelledby': 'verdict' },
    svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'icon' }, svg('path', { d: icon })),
    el('div', {},
      el('h2', { id: 'verdict' }, el('strong', {}, word), el('span', { class: 'headline' }, headline)),
      meaning && el('p', {}, meaning),
      reasons.length > 0 && el('ul', {}, reasons.map((reason) => el('li', {}, reason))),
      drift && el('p', { class: 'bad-text' }, `▲ ${drift}`),
      status === 'pass' && reasons.length === 0 && el('p', {}, manifest.objectives.length > 0 ? 'Every objective was met.' : 'The scenario sets no objectives.'),
      notes.length > 0 && el('ul', { class: 'notes' }, notes.map((note) => el('li', {}, note)))));
}

export function whatRan(manifest: Manifest): HTMLElement {
  const { system, machine, summary } = manifest;
  const sync = system.sync_latency;
  const excluded = manifest.phases.filter((phase) => !phase.measured);
  const excluded_s = excluded.reduce((sum, phase) => sum + (phase.end_us - phase.start_us) / 1e6, 0);
  return el('section', { 'aria-labelledby': 'what' },
    el('h2', { id: 'what', class: 'quiet-heading' }, 'What ran'),
    manifest.description && el('p', { class: 'lead' }, manifest.description.trim()),
    facts([
      ['Scenario', manifest.scenario],
      ['Load', manifest.load],
      ['Measured', summary.measured_s > 0
        ? `${span(Number(summary.measured_s.toFixed(1)))}${excluded.length > 0 ? `, after ${span(Number(excluded_s.toFixed(1)))} not counted (${excluded.map((phase) => phase.name).join(', ')})` : ''}`
        : 'nothing'],
      ['System', (system.name || system.url) && [system.name, system.url && system.url !== system.name && el('span', { class: 'sub' }, system.url)]],
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

export function tiles(manifest: Manifest): HTMLElement {
  const { summary, machine } = manifest;
  const errors = errorCount(manifest);
  const { response_time_us: response, service_time_us: service, ledger } = summary;
  const system = summary.processes.filter((process) => process.name === SYSTEM);
  const cpu_s = system.reduce((sum, process) => sum + process.cpu_s, 0);
  const cpu_share = system.reduce((sum, process) => sum + process.cpu_share, 0);
  const reached = summary.offered_per_s > 0 ? summary.achieved_per_s / summary.offered_per_s : 0;
  const empty = summary.requests === 0;
  const answered = summary.requests > errors;

  const shown: Tile[] = [
    {
      name: 'Achieved', value: rate(summary.achieved_per_s), exact: `${summary.achieved_per_s}/s`,
      below: `of ${rate(summary.offered_per_s)} offered`,
      extra: el('span', { class: 'meter', 'aria-hidden': 'true' }, el('i', { style: `width:${Math.min(100, reached * 100).toFixed(2)}%` })),
    },
    ...PERCENTILES.map((key): Tile => ({
      name: key === 'p50' ? 'p50, median' : key === 'max' ? 'Longest' : PERCENTILE_NAMES[key],
      value: answered ? duration(response[key]) : NOTHING, exact: `${response[key]} µs`, colour: key,
      below: answered ? `service ${duration(service[key])}` : 'nothing answered',
    })),
    { name: 'Requests', value: quantity(summary.requests), exact: count(summary.requests), below: `in ${span(Number(summary.measured_s.toFixed(1)))} measured` },
    { name: 'Errors', value: empty ? NOTHING : quantity(errors), exact: count(errors), below: empty ? 'no requests' : `${share(errors / summary.requests)} of requests`, bad: errors > 0 },
    { name: 'Dropped', value: quantity(summary.dropped), exact: count(summary.dropped), below: summary.dropped > 0 ? 'arrivals given up at a bound' : 'every arrival was served', bad: summary.dropped > 0 },
    {
      name: 'Per CPU-second', value: cpu_s > 0 ? quantity((summary.achieved_per_s * summary.measured_s) / cpu_s) : NOTHING,
      below: cpu_s > 0 ? 'requests, of the system' : 'the system was not watched',
    },
    {
      name: 'System CPU', value: system.length > 0 ? cores(cpu_share) : NOTHING,
      below: system.length > 0 ? `cores in use${machine.cores > 0 ? ` of ${machine.cores}` : ''}` : 'the system was not watched',
    },
    ledger
      ? { name: 'Writes lost', value: ledger.verified ? count(ledger.verified.lost) : NOTHING, below: ledger.verified ? `of ${quantity(ledger.acknowledged)} acknowledged` : 'not verified', bad: !ledger.verified || ledger.verified.lost > 0 }
      : { name: 'Memory, most', value: system.length > 0 ? size(system.reduce((sum, it) => sum + it.rss_bytes_max, 0)) : NOTHING, below: 'resident, of the system' },
  ];
  return el('section', { 'aria-labelledby': 'figures' },
    el('h2', { id: 'figures', class: 'quiet-heading' }, 'Key figures'),
    el('p', { class: 'note' }, 'Percentiles are of the response time; only the measured window counts.'),
    el('dl', { class: 'tiles' }, shown.map((tile) =>
      el('div', { class: tile.bad ? 'tile bad' : 'tile', ...(tile.colour ? { style: `--swatch:var(--${tile.colour})` } : {}) },
        el('dt', {}, tile.colour && el('i', { class: 'swatch' }), tile.name),
        el('dd', { class: 'figure', title: tile.exact }, tile.bad && el('span', { class: 'warn', 'aria-hidden': 'true' }, '▲ '), tile.value),
        el('dd', { class: 'below' }, tile.below),
        tile.extra && el('dd', {}, tile.extra)))));
}
