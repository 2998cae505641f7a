/** What the stores say of themselves, beside the latency, and what they did beside their work; and pages of metrics that were watched. */

import { timeChart } from './chart';
import { el, type Child } from './dom';
import { duration, tick } from './format';
import { maintenanceTable } from './maintenance';
import type { RunPage } from './run';
import { split, storeCharts, type StoreChart } from './store-lines';
import type { Timeline } from './timeline';

export function storesPart(run: RunPage, line: Timeline): Child {
  return [maintenanceTable(run.manifest.summary.maintenance), charts(run, line, storeCharts(split(run).stores))];
}

export function watchedPart(run: RunPage, line: Timeline): Child {
  return charts(run, line, storeCharts(split(run).watched, 'the page'));
}

function charts(run: RunPage, line: Timeline, all: StoreChart[]): Child {
  const { response_time_us: times } = run.series;
  return [
    all.length > 0 && [
      timeChart(line, {
        title: 'Response time beside it', note: 'percentiles of all requests that ended in each second, logarithmic', height: 180, log: true, phaseNames: true,
        lines: [{ label: 'p50', values: times.p50, colour: 'p50' }, { label: 'p99', values: times.p99, colour: 'p99' }, { label: 'longest', values: times.max, colour: 'max', width: 1 }],
        format: duration, tick: tick.duration,
      }),
      el('div', { class: 'pair' }, all.map((chart) => timeChart(line, { ...chart, height: 160 }))),
    ],
  ];
}
