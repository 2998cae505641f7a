/** What the stores say of themselves, beside the latency, and what they did beside their work. */

import { timeChart } from './chart';
import { el, type Child } from './dom';
import { duration, tick } from './format';
import { maintenanceTable } from './maintenance';
import type { RunPage } from './run';
import { storeCharts } from './store-lines';
import type { Timeline } from './timeline';

export function storesPart(run: RunPage, line: Timeline): Child {
  const charts = storeCharts(run.stores);
  const { response_time_us: times } = run.series;
  return [
    maintenanceTable(run.manifest.summary.maintenance),
    charts.length > 0 && [
      timeChart(line, {
        title: 'Response time beside it', note: 'percentiles of all requests that ended in each second, logarithmic', height: 180, log: true, phaseNames: true,
        lines: [{ label: 'p50', values: times.p50, colour: 'p50' }, { label: 'p99', values: times.p99, colour: 'p99' }, { label: 'longest', values: times.max, colour: 'max', width: 1 }],
        format: duration, tick: tick.duration,
      }),
      el('div', { class: 'pair' }, charts.map((chart) => timeChart(line, { ...chart, height: 160 }))),
    ],
  ];
}
