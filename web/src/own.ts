/** What the scenario measured itself. */

import { timeChart } from './chart';
import { el, type Child } from './dom';
import { count } from './format';
import { CHARTS_MAX, ownCells, ownCharts, ownName, ratioCells } from './own-lines';
import type { RunPage } from './run';
import { table } from './table';
import type { Timeline } from './timeline';

export function ownPart(run: RunPage, line: Timeline): Child {
  const { metrics, ratios } = run.manifest.summary;
  const without = metrics.some((of) => of.no_number > 0);
  const columns = ['Numbers', 'Sum', 'Rate', 'Mean', 'Median', 'p90', 'p99', 'Largest', ...(without ? ['No number'] : [])];
  return [
    ratios.length > 0 && table('Ratios', [{ name: 'Ratio' }, { name: 'Value', number: true }, { name: 'Of' }, { name: 'Per' }], ratios.map(ratioCells), 'plain own'),
    metrics.length > 0 && [el('p', { class: 'lead' }, 'Numbers that the scenario measures itself, of the measured window. The rate of a counter is how much it counted each second.'),
    table('Own metrics', [{ name: 'Metric' }, ...columns.map((name) => ({ name, number: true }))], metrics.map((of) => [
      ownName(of), ...ownCells(of),
      ...(without ? [of.no_number === 0 ? '0' : el('span', { class: 'bad-text', title: of.example }, count(of.no_number))] : []),
    ]), 'plain own')],
    line.x.length > 1 && el('div', { class: 'pair' }, ownCharts(run.own).map((chart) => timeChart(line, { ...chart, height: 160 }))),
    run.own.length > CHARTS_MAX && el('p', { class: 'note' }, `The first ${CHARTS_MAX} are drawn.`),
  ];
}
