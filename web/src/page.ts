/** The order of the page. */

import { billPart, cpuTable } from './bill-part';
import { resourceCharts, driverCharts, errorChart, labelChart, loadCharts } from './charts';
import { copyButton, el, facts, svg, type Child } from './dom';
import { faultsPart } from './faults';
import { atSecond, clock, coreList, count, cores, duration, moment, share, shellLine, size } from './format';
import { atLeast, failedShare, fewNote, tiles, verdict, whatRan } from './head';
import { heatmap } from './heatmap';
import { ledgerPart } from './ledger';
import { operationsPart } from './operations';
import { ownPart } from './own';
import { scriptPart } from './script';
import { toldParts } from './part-bars';
import { partsPart } from './parts';
import { percentileChart } from './percentiles';
import type { Agent, Good, LagClass, Latency, ObjectiveResult, RunPage } from './run';
import { split } from './store-lines';
import { storesPart, watchedPart } from './stores';
import { errorSection, groupTable, labelTable, phaseTable, table, targetTable, time } from './table';
import { themeButton } from './theme';
import { timeline, type Timeline } from './timeline';

interface Part {
  id: string;
  title: string;
  /** As short as a way mark. */
  short: string;
  content: Child;
}

export function page(run: RunPage, source: string): HTMLElement[] {
  const line = timeline(run);
  const { faults, groups, ledger, maintenance, metrics, parts: where, ratios, slowest, targets } = run.manifest.summary;
  const phased = phaseTable(run);
  const byPhase: Part[] = phased ? [{ id: 'phases', title: 'By phase', short: 'Phases', content: phased }] : [];
  const byTarget: Part[] = targets.length > 0 ? [{ id: 'targets', title: 'By target', short: 'Targets', content: targetTable(run) }] : [];
  const byGroup: Part[] = groups.length > 0 ? [{ id: 'groups', title: 'By group', short: 'Groups', content: groupTable(run) }] : [];
  const went: Part[] = toldParts(where) || slowest.length > 0 ? [{ id: 'parts', title: 'Where the time went', short: 'Parts', content: partsPart(run) }] : [];
  const figures = run.manifest.script;
  const script: Part[] = figures && figures.checks.length + figures.metrics.length > 0 ? [{ id: 'script', title: 'The script', short: 'Script', content: scriptPart(figures) }] : [];
  const own: Part[] = metrics.length + ratios.length > 0 ? [{ id: 'own', title: metrics.length > 0 ? 'Own metrics' : 'Ratios', short: 'Metrics', content: ownPart(run, line) }] : [];
  const broken: Part[] = faults.length > 0 ? [{ id: 'faults', title: 'Faults', short: 'Faults', content: faultsPart(faults) }] : [];
  const told = split(run);
  const watched: Part[] = told.watched.length > 0 ? [{ id: 'watched', title: 'What was watched beside it', short: 'Watched', content: watchedPart(run, line) }] : [];
  const stores: Part[] = told.stores.length + maintenance.length > 0 ? [{ id: 'stores', title: 'What the stores say', short: 'Stores', content: storesPart(run, line) }] : [];
  const lost: Part[] = ledger ? [{ id: 'ledger', title: 'Nothing lost?', short: 'Ledger', content: ledgerPart(ledger, run.manifest) }] : [];
  const operations: Part[] = run.operations.length > 0 ? [{ id: 'operations', title: 'Operations', short: 'Operations', content: operationsPart(run, line) }] : [];
  const { bill } = run.manifest;
  const priced: Part[] = bill ? [{ id: 'cost', title: 'What it costs in money', short: 'Cost', content: billPart(bill) }] : [];
  const parts: Part[] = [
    { id: 'over-time', title: 'Throughput and latency over time', short: 'Over time', content: loadCharts(run, line) },
    ...broken,
    ...stores,
    ...watched,
    ...operations,
    { id: 'heat-map', title: 'Response-time heat map', short: 'Heat map', content: heatmap(line, run) ?? empty('No request ended.') },
    { id: 'percentiles', title: 'Latency distribution', short: 'Percentiles', content: [percentileChart(run) ?? empty('No request had a good answer in the measured window.'), latencyTable(run)] },
    ...went,
    ...byPhase,
    ...byTarget,
    { id: 'labels', title: 'By label', short: 'Labels', content: [labelTable(run) ?? empty('The scenario has no labelled steps.'), labelChart(run, line)] },
    ...byGroup,
    ...own,
    ...script,
    { id: 'resources', title: 'What it cost', short: 'Resources', content: [resourceCharts(run, line), cpuTable(run.cpu_by_tier)] },
    ...priced,
    { id: 'driver', title: 'The load generator’s own health', short: 'Load generator', content: driverPart(run, line) },
    { id: 'errors', title: 'No good answer', short: 'Failures', content: [errorChart(run, line), errorSection(run)] },
    ...lost,
    { id: 'objectives', title: 'Objectives', short: 'Objectives', content: objectivesPart(run) },
    { id: 'events', title: 'Events', short: 'Events', content: eventsPart(run) },
    { id: 'setup', title: 'Machine, limits and command', short: 'Set-up', content: setupPart(run) },
    { id: 'scenario', title: 'Scenario', short: 'Scenario', content: scenarioPart(run) },
  ];
  return [
    el('a', { class: 'skip', href: '#main' }, 'To the report'),
    masthead(run, source, parts),
    el('main', { id: 'main' },
      verdict(run.manifest), whatRan(run), tiles(run),
      parts.map(({ id, title, content }) => el('section', { 'aria-labelledby': id }, el('h2', { id }, title), content)),
      definitions()),
    zoomChip(line),
    el('footer', {}, `Tidemark ${run.manifest.version}`.trim(), ' · ', run.manifest.id, ' · ', moment(run.manifest.started_at)),
  ];
}

const empty = (text: string) => el('p', { class: 'empty' }, text);

function masthead(run: RunPage, source: string, parts: readonly Part[]): HTMLElement {
  return el('header', {},
    el('div', { class: 'row' },
      el('h1', {},
        svg('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true', class: 'mark' }, svg('path', { d: 'M1 6q3.5-4 7 0t7 0M1 11q3.5-4 7 0t7 0' })),
        'Tidemark ', el('span', {}, run.manifest.scenario || 'report')),
      el('div', { class: 'tools' }, downloadButton(run, source), themeButton())),
    el('nav', { 'aria-label': 'Sections' }, parts.map(({ id, short }) => el('a', { href: `#${id}` }, short))));
}

/** The numbers as they stand in the page. */
function downloadButton(run: RunPage, source: string): HTMLElement {
  return el('button', {
    type: 'button', class: 'quiet', title: 'The numbers behind this page', 'aria-label': 'Download JSON',
    onclick: () => {
      const url = URL.createObjectURL(new Blob([source], { type: 'application/json' }));
      el('a', { href: url, download: `${run.manifest.id || 'tidemark'}.json` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    },
  }, '↓ ', el('span', { class: 'long' }, 'Download '), 'JSON');
}

/** Shows that only a part of the time is seen, and gives the whole back; a finger cannot double-click. */
function zoomChip(line: Timeline): HTMLElement {
  const text = el('span');
  const chip = el('div', { class: 'chip', role: 'status', hidden: true }, text,
    el('button', { type: 'button', onclick: () => line.setView(null) }, 'Show all'));
  line.onView(() => {
    chip.hidden = line.view === null;
    if (line.view) text.textContent = `Shown: ${clock(line.view[0])} to ${clock(line.view[1])}`;
  });
  return chip;
}

/** All percentiles in figures: of what was due, and of the good answers by themselves. */
function latencyTable(run: RunPage): Child {
  const { summary } = run.manifest;
  const { good, response_time_us: response, response_time_less_lag_us: less } = summary;
  if (good.requests === 0) return null;
  const keys = ['min', 'mean', 'p50', 'p90', 'p95', 'p99', 'p999', 'max'] as const;
  const names = ['Fastest', 'Mean', 'p50', 'p90', 'p95', 'p99', 'p99.9', 'Longest'];
  const shown = keys.map((key, index) => ({ key, name: names[index] ?? key })).filter(({ key }) => key !== 'p95' || response.p95 !== null || good.response_time_us.p95 !== null);
  const row = (name: string, sub: string, of: Latency): Child[] => [[name, sub && el('span', { class: 'sub' }, sub)], ...shown.map(({ key }) => time(of[key], summary.due))];
  const apart = summary.failed > 0 && !summary.of_good_only;
  const ofGood = (it: Good) => [row('Good answers: response', `${count(it.requests)} of ${count(summary.due)}`, it.response_time_us), row('Good answers: service', '', it.service_time_us)];
  // Microseconds of the driver are of no interest where nothing else is that short.
  const differs = (['p50', 'p90', 'p99', 'max'] as const).some((key) => less[key] !== null && response[key] !== null && (response[key] - less[key]) * 20 > response[key]);
  return [
    apart && el('p', { class: 'note' }, `– is not reached: ${share(failedShare(summary))} of what was due had no good answer, which is slower than every bound.`),
    fewNote(summary.due) && el('p', { class: 'note' }, fewNote(summary.due)),
    table('Percentiles in figures', [{ name: '' }, ...shown.map(({ name }) => ({ name, number: true }))], [
      row('Response time', apart ? 'of all that was due' : '', response),
      row('Service time', '', summary.service_time_us),
      ...(differs ? [row('Response time', 'less the load generator’s own delay', less)] : []),
      ...(apart ? ofGood(good) : []),
    ], 'labels'),
    differs && el('p', { class: 'note' }, 'The load generator itself was late. Where the response time differs from that without its delay, the truth lies between the two.'),
  ];
}

function driverPart(run: RunPage, line: Timeline): Child {
  const { driver, steady_state: steady } = run.manifest.summary;
  const pins = run.manifest.driver_pinned_to;
  const lag = (it: Latency | null) => (it !== null && (it.max ?? 0) > 0 ? `p50 ${duration(it.p50)}, p99 ${duration(it.p99)}, longest ${duration(it.max)}` : '');
  return [
    el('p', { class: 'lead' }, 'Where the load generator was late or out of CPU, its figures say more about itself than about the system.'),
    driver.limits.length > 0 && [
      el('p', { class: 'bad-text' }, `▲ It was at its limit: the system did ${atLeast(run.manifest.summary)}what is shown, and its times and failures are at most that.`),
      el('ul', {}, driver.limits.map((limit) => el('li', {}, limit))),
    ],
    facts([
      ['Threads', driver.threads > 0 ? `${count(driver.threads)}, ${pins.length > 0 ? `pinned to ${pins.length > 1 ? 'cores' : 'core'} ${coreList(pins)}` : 'not pinned'}` : ''],
      ['Busiest thread', driver.threads > 0 && busiest(driver.busiest_thread_share)],
      ['Each thread', driver.cpu_share_by_thread.length > 1 ? `${driver.cpu_share_by_thread.map(share).join(', ')} of its time on a CPU` : ''],
      ['Without a core', driver.waited_share !== null ? `${share(driver.waited_share)} of the time ready to run${driver.core_wait_us !== null ? `, ${duration(driver.core_wait_us)} each time that a thread woke` : ''}` : ''],
      ['Steady state', steady && steady.reason],
      ['CPU time', driver.cpu_s > 0 ? `${driver.cpu_s.toFixed(1)}\u202fs` : ''],
      ['Schedule lag', lag(driver.lag_us)],
      ['Answers read late', lag(driver.read_lag_us)],
      ['Also on the cores', driver.busiest.map((it) => `${it.name} ${cores(it.cores)}`).join(', ')],
      ['Left late', driver.threads > 0 ? `${count(driver.late)} requests by 1\u202fms or more` : ''],
    ]),
    agentTable(driver.agents),
    lagHistogram(driver.lag_histogram),
    driverCharts(run, line),
  ];
}

/** The agents of a fleet, and which of them is the odd one out. */
function agentTable(agents: Agent[]): Child {
  const ms = (us: number) => `${(us / 1000).toFixed(3)}\u202fms`;
  const told = agents.flatMap((it) => [
    ...(it.lost !== null ? [`${it.agent} is lost: ${it.lost}`] : []),
    ...(it.odd !== null ? [`${it.agent} is the odd one out: ${it.odd}`] : []),
  ]);
  return agents.length > 0 && [
    table('Agents', [{ name: 'Agent' }, ...['Threads', 'Requests', 'CPU', 'Left late', 'Longest', 'Clock ahead'].map((name) => ({ name, number: true }))],
      agents.map((it) => [it.agent, count(it.threads), `${count(Math.round(it.requests_per_s))}/s`, cores(it.cpu_share), share(it.late_share), duration(it.lag_max_us),
        `${ms(it.clock_offset_us)} ± ${ms(it.clock_bound_us)}`])),
    told.length > 0 && el('ul', {}, told.map((text) => el('li', {}, text))),
  ];
}

/** How late requests left, as a table: most of it lies in one or two classes, where a chart would show a single bar. */
function lagHistogram(classes: LagClass[]): Child {
  const all = classes.reduce((sum, it) => sum + it.count, 0);
  return all > 0 && table('How late requests left', [{ name: 'From due to sent' }, { name: 'Requests', number: true }, { name: 'Share', number: true }],
    classes.filter((it) => it.count > 0).map((it) => [`${it.from_us > 0 ? duration(it.from_us) : '0'} to ${duration(it.to_us)}`, count(it.count), share(it.count / all)]));
}

/** From here on a driving thread has no room left for the unforeseen. */
const BUSY_SHARE = 0.9;

function busiest(part: number): Child {
  return part >= BUSY_SHARE
    ? el('span', { class: 'bad-text' }, `▲ ${share(part)} of its time on a CPU: at its limit`)
    : `${share(part)} of its time on a CPU`;
}

function objectivesPart(run: RunPage): Child {
  const { objectives } = run.manifest;
  if (objectives.length === 0) return empty('The scenario sets no objectives.');
  return [
    objectives.some((it) => it.default) && el('p', { class: 'note' }, '“Default”: nobody asked for it; each run is judged by it where its scenario says nothing on the matter.'),
    table('Objectives', [{ name: 'Objective' }, { name: 'Measured' }, { name: 'Result' }], objectives.map((it) => [
      [el('code', {}, it.objective), it.default && el('span', { class: 'tag' }, 'default')], it.measured, result(it),
    ]), 'plain objectives'),
  ];
}

/** Why an objective is neither met nor missed. */
const UNDECIDED: Record<string, string> = {
  'machine-bound': 'what was started had no core',
  'too-few': 'too few requests',
  'short-window': 'the measured window is too short',
};

function result(it: ObjectiveResult): Child {
  if (it.undecided) return [el('span', { class: 'odd-text' }, '? not decided'), el('span', { class: 'sub' }, UNDECIDED[it.undecided_by] ?? 'the load generator was the bottleneck')];
  return it.met ? el('span', { class: 'good-text' }, '✓ met') : el('span', { class: 'bad-text' }, '✗ missed');
}

function eventsPart(run: RunPage): Child {
  if (run.events.length === 0) return empty('No event was recorded.');
  return [
    el('p', { class: 'note' }, 'The numbers mark them in the charts over time; what lies before zero has no mark.'),
    table('Events', [{ name: 'No.', number: true }, { name: 'At', number: true }, { name: 'Kind' }, { name: 'What happened' }],
      run.events.map((event, index) => [String(index + 1), atSecond(event.at_s), event.kind, event.text])),
  ];
}

function setupPart(run: RunPage): Child {
  const { manifest } = run;
  const { machine, system } = manifest;
  const command = shellLine(manifest.command);
  const started = shellLine(system.command);
  const settings = Object.entries(system.settings);
  const known = (value: number, shown: string) => (value > 0 ? shown : '');
  return [
    facts([
      ['CPU', machine.cpu_model], ['Cores', known(machine.cores, count(machine.cores))], ['Memory', known(machine.memory_bytes, size(machine.memory_bytes))],
      ['Operating system', machine.os], ['Kernel', machine.kernel],
      ['Open files, at most', known(machine.open_files_limit, count(machine.open_files_limit))],
      ['Load average before', machine.cores > 0 ? `${cores(machine.load_average_1m)} over one minute` : ''],
      ['Taken by the hypervisor', machine.cores > 0 ? `${cores(machine.steal_share)} cores` : ''],
      ['System pinned to', system.pinned_to.length > 0 ? `cores ${coreList(system.pinned_to)}` : 'not pinned'],
      ['Load generator pinned to', manifest.driver_pinned_to.length > 0 ? `cores ${coreList(manifest.driver_pinned_to)}` : 'not pinned'],
      ['Tidemark', manifest.version], ['Git revision', manifest.git_revision], ['Seed', manifest.seed],
      ['Disk synced in', system.sync_latency?.path],
      ['Run directory', manifest.summary.run_dir],
    ]),
    command && code('Command', command),
    started && code('Command of the system', started),
    settings.length > 0 && [el('h3', {}, 'Settings of the system'), table('Settings of the system', [{ name: 'Setting' }, { name: 'Value' }], settings.map(([key, value]) => [el('code', {}, key), el('code', {}, value)]))],
  ];
}

function scenarioPart(run: RunPage): Child {
  if (run.scenario === '') return empty('The run kept no scenario.');
  return code('Scenario file, as it was when it ran', run.scenario, 'scenario');
}

function code(title: string, text: string, what = title.toLowerCase()): HTMLElement {
  return el('div', { class: 'code' },
    el('div', { class: 'row' }, el('h3', {}, title), copyButton(text, what)),
    el('pre', { tabindex: 0, 'aria-label': title }, el('code', {}, text)));
}

function definitions(): HTMLElement {
  return el('section', { class: 'definitions', 'aria-labelledby': 'words' },
    el('h2', { id: 'words', class: 'quiet-heading' }, 'What the words mean'),
    el('p', {}, el('dfn', {}, 'Response time'), ' runs from the moment at which a request was due to the last byte of its answer, so waiting for a late load generator or a busy connection counts. ',
      el('dfn', {}, 'Service time'), ' runs from the first byte sent to the last byte of the answer. ',
      el('dfn', {}, 'Offered'), ' is what became due, ', el('dfn', {}, 'achieved'), ' the good answers that came in the measured window; with a warm-up some are to requests that were due in it. ',
      'A ', el('dfn', {}, 'percentile'), ' is of all requests that were due in the measured window. One without a good answer (time-out, drop, broken connection, wrong status, failed check, never sent, unfinished) is slower than every bound: a percentile that falls among those is ', el('dfn', {}, 'not reached'), ' and shown as –. ',
      'Percentiles come from merged histograms with three significant digits; they are never averaged. ',
      el('dfn', {}, 'Cores'), ' of CPU: 1.00 is one core fully used.'));
}
