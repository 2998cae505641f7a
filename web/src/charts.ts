/** The charts over time of each section. */

import { timeChart, type Line } from './chart';
import { choice, el, type Child } from './dom';
import { cores, duration, quantity, rate, size, sizeRate, tick } from './format';
import { isInstance, PERCENTILE_NAMES } from './head';
import { PERCENTILES, type ProcessSeries, type RunPage, type Series } from './run';
import { SIZE_STEPS, speaks } from './scale';
import { drawAll } from './stage';
import { strokeOf } from './stroke';
import type { Timeline } from './timeline';

/** Colours of the processes, wherever they appear. */
const PROCESS_COLOURS: Record<string, string> = { system: 'c1', driver: 'c2', machine: 'c0' };

/** Colours of what has no colour of its own, in this order. */
const CYCLE = ['c3', 'c4', 'c5', 'c6', 'c7', 'c8'];

/** So many labels are shown at first. */
const LABELS_SHOWN = 6;

/** The line of the slowest request is thin: it is one request, not a distribution. */
const LATENCY_WIDTHS = { p50: 2, p90: 1.75, p99: 1.75, p999: 1.5, max: 1 } as const;

export function loadCharts(run: RunPage, line: Timeline): Child {
  const { series } = run;
  const lines: Line[] = [
    { label: 'offered', values: series.offered_per_s, colour: 'c0', dash: [5, 4], width: 1.5 },
    { label: 'achieved', values: series.achieved_per_s, colour: 'c1', width: 2, filled: true },
    ...optional([['errors', series.errors_per_s, 'bad'], ['dropped', series.dropped_per_s, 'c2']]),
  ];
  let measure: 'response_time_us' | 'service_time_us' = 'response_time_us';
  let log = true;
  const place = el('div');
  const latency = (): HTMLElement => timeChart(line, {
    title: measure === 'response_time_us' ? 'Response time' : 'Service time',
    note: `percentiles of all requests that ended in each second; a gap: not reached, or no requests; ${log ? 'logarithmic' : 'linear'}`,
    lines: PERCENTILES.map((key): Line => ({ label: PERCENTILE_NAMES[key], values: series[measure][key], colour: key, width: LATENCY_WIDTHS[key] })),
    format: duration, tick: tick.duration, log, height: 260, phaseNames: true, controls,
    nothing: run.heatmap.failed.length > 0 ? 'No percentile was reached in any second: too few had a good answer.' : 'No request ended.',
  });
  const controls = el('div', { class: 'controls' },
    choice('Which time', [['response_time_us', 'Response'], ['service_time_us', 'Service']] as const, measure, (value) => { measure = value; renew(); }),
    choice('Scale', [['log', 'Log'], ['linear', 'Linear']] as const, 'log', (value) => { log = value === 'log'; renew(); }));
  const renew = () => exchange(place, latency);
  place.append(latency());
  return [
    el('p', { class: 'note' }, el('span', { class: 'with-mouse' }, 'Drag to look at a part of the time, double-click for all of it; all charts over time follow. '), el('span', { class: 'with-finger' }, 'Move a finger along a chart to read its values. '), `Hatched: not counted.${line.bands.some((it) => it.tone === 'fault') ? ' Red, with a letter: a fault, from its begin until it was put right.' : ''}${line.bands.some((it) => it.tone === 'work') ? ' Violet: a store rewrites its append-only file or takes a snapshot.' : ''}`),
    timeChart(line, { title: 'Throughput', note: 'requests per second', lines, format: rate, tick: tick.rate, height: 240, phaseNames: true }),
    place,
    pairs([
      anySpeaks([series.in_flight, series.waiting, series.connections]) && timeChart(line, {
        title: 'Connections and requests', note: 'at the end of each second', height: 160, format: quantity, tick: tick.quantity,
        lines: [
          { label: 'connections', values: series.connections, colour: 'c0', dash: [5, 4] },
          { label: 'in flight', values: series.in_flight, colour: 'c1' },
          { label: 'waiting', values: series.waiting, colour: 'c2' },
        ],
      }),
      anySpeaks([series.received_bytes_per_s, series.sent_bytes_per_s]) && timeChart(line, {
        title: 'Traffic of the load generator', note: 'bytes per second', height: 160, format: sizeRate, tick: tick.size, steps: SIZE_STEPS,
        lines: [
          { label: 'received', values: series.received_bytes_per_s, colour: 'c1' },
          { label: 'sent', values: series.sent_bytes_per_s, colour: 'c2' },
          ...optional([['bodies that were decoded, as they came', series.encoded_bytes_per_s, 'c3'], ['the same, decoded', series.decoded_bytes_per_s, 'c4']]),
        ],
      }),
    ]),
  ];
}

export function labelChart(run: RunPage, line: Timeline): Child {
  if (run.steps.length === 0 || line.x.length < 2) return null;
  const requests = new Map(run.manifest.summary.steps.map((step) => [step.label, step.requests]));
  const order = [...run.steps].sort((a, b) => (requests.get(b.label) ?? 0) - (requests.get(a.label) ?? 0));
  const shown = new Set(order.slice(0, LABELS_SHOWN).map((step) => step.label));
  let measure: 'p99_us' | 'p50_us' | 'achieved_per_s' = 'p99_us';
  const place = el('div');
  const chart = (): HTMLElement => {
    const times = measure !== 'achieved_per_s';
    return timeChart(line, {
      title: 'Labels over time', controls,
      note: `${times ? `${measure === 'p99_us' ? '99th percentile' : 'median'} of the response time, logarithmic` : 'good answers per second'}${run.steps.length > LABELS_SHOWN ? `; the ${LABELS_SHOWN} most frequent at first` : ''}`,
      lines: run.steps.map((step, index): Line => ({
        label: step.label, values: step[measure], ...strokeOf(index), width: 1.5, hidden: !shown.has(step.label),
      })),
      format: times ? duration : rate, tick: times ? tick.duration : tick.rate, log: times,
    });
  };
  const controls = el('div', { class: 'controls' }, choice('What of the labels', [['p99_us', 'p99'], ['p50_us', 'p50'], ['achieved_per_s', 'Rate']] as const, measure, (value) => {
    measure = value;
    exchange(place, chart);
  }));
  place.append(chart());
  return place;
}

export function resourceCharts(run: RunPage, line: Timeline): Child {
  const { processes } = run;
  if (processes.length === 0 || line.x.length === 0) return el('p', { class: 'empty' }, 'No process was watched.');
  type Key = Exclude<keyof ProcessSeries, 'name'>;
  const of = (key: Key, suffix = '', dash?: number[]): Line[] => processes
    .map((process, index): Line => ({
      label: process.name + suffix, values: process[key], width: process.name === 'machine' ? 1.25 : 1.75,
      colour: PROCESS_COLOURS[process.name] ?? CYCLE[index % CYCLE.length] ?? 'c3', ...(dash ? { dash } : {}),
      // the service's line has them in it
      ...(isInstance(process.name, run.manifest.services) ? { hidden: true } : {}),
    }))
    .filter((it) => speaks(it.values))
    // The machine's sum would flatten what the processes do; where only it was seen, it is shown.
    .map((it, _index, all) => (key !== 'cpu_share' && it.colour === 'c0' && all.length > 1 ? { ...it, hidden: true } : it));
  const { cores: machine } = run.manifest.machine;
  const small = { height: 160 };
  const chart = (title: string, note: string, lines: Line[], format: (value: number | null) => string, ticks: (value: number) => string, steps?: number[]) =>
    lines.length > 0 && timeChart(line, { ...small, title, note, lines, format, tick: ticks, ...(steps ? { steps } : {}) });
  return [
    timeChart(line, {
      title: 'CPU', note: `cores in use${machine > 0 ? `, of ${machine}` : ''}; dashed: of that, in the kernel; stolen: taken away by the hypervisor`, format: cores, tick: tick.cores, phaseNames: true,
      lines: [...of('cpu_share'), ...of('cpu_system_share', ', kernel', [4, 3]).filter((it) => it.colour !== 'c0'), ...of('steal_share', ', stolen', [1, 3])],
    }),
    pairs([
      chart('Memory', 'resident', of('rss_bytes'), size, tick.size, SIZE_STEPS),
      chart('Threads', 'at the end of each second', of('threads').some((it) => varies(it.values)) ? of('threads') : [], quantity, tick.quantity),
      chart('Disk, written', 'bytes per second', of('disk_written_bytes'), sizeRate, tick.size, SIZE_STEPS),
      chart('Disk, read', 'bytes per second', of('disk_read_bytes'), sizeRate, tick.size, SIZE_STEPS),
      chart('Network', 'bytes per second, all interfaces; dashed: sent', [...of('net_received_bytes', ', received'), ...of('net_sent_bytes', ', sent', [5, 4])], sizeRate, tick.size, SIZE_STEPS),
      chart('Context switches, voluntary', 'per second', of('voluntary_switches'), rate, tick.rate),
      chart('Context switches, involuntary', 'per second', of('involuntary_switches'), rate, tick.rate),
    ]),
  ];
}

export function driverCharts(run: RunPage, line: Timeline): Child {
  if (!anySpeaks([run.series.lag_p99_us])) return null;
  return timeChart(line, {
    title: 'Schedule lag', note: '99th percentile of how late requests left by the load generator’s own fault, logarithmic', height: 160,
    lines: [{ label: 'p99', values: run.series.lag_p99_us, colour: 'p99' }], format: duration, tick: tick.duration, log: true,
  });
}

export function errorChart(run: RunPage, line: Timeline): Child {
  const kinds = 'dropped' in run.error_series ? run.error_series : { ...run.error_series, dropped: run.series.dropped_per_s };
  const lines = Object.entries(kinds)
    .filter(([kind, series]) => kind !== 'ok' && speaks(series))
    .map(([kind, values], index): Line => ({ label: kind, values, colour: ['bad', 'c2', ...CYCLE][index % 8] ?? 'bad', filled: true, sparse: true }));
  return lines.length > 0 && timeChart(line, { title: 'Failures over time', note: 'per second, by kind', lines, format: rate, tick: tick.rate, height: 160 });
}

/** Whether there is a change to see. */
const varies = (series: Series): boolean => new Set(series.filter((value) => value !== null)).size > 1;

const anySpeaks = (all: Series[]): boolean => all.some(speaks);

/** Lines that are only there if they say something. */
function optional(all: [label: string, values: Series, colour: string][]): Line[] {
  return all.filter(([, values]) => speaks(values)).map(([label, values, colour]) => ({ label, values, colour, sparse: true }));
}

function pairs(charts: Child[]): HTMLElement {
  return el('div', { class: 'pair' }, charts);
}

/** Puts another chart in the place of one; the control that was pressed moves along and keeps the focus. */
export function exchange(place: HTMLElement, chart: () => HTMLElement): void {
  // Making the chart moves the control, which loses the focus by that.
  const focused = document.activeElement;
  place.replaceChildren(chart());
  drawAll();
  if (focused instanceof HTMLElement && place.contains(focused)) focused.focus();
}
