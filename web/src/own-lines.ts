/** What is drawn and told of what the scenario measured itself. Pure, tested. */

import type { Line } from './chart';
import { digits, NOTHING, plain, quantity, rate, share, tick } from './format';
import type { OwnMetric, OwnSeries, Ratio } from './run';

export interface OwnChart {
  title: string;
  note: string;
  lines: Line[];
  format: (value: number | null) => string;
  tick: (value: number) => string;
}

/** So many metrics have a chart; the others are in the table. */
export const CHARTS_MAX = 24;

/** A number in whatever unit: three digits, without zeros that say nothing. */
export function ownNumber(value: number | null): string {
  if (value === null) return NOTHING;
  return Math.abs(value) < 1000 ? plain(value) : quantity(value);
}

export const ownName = (of: Pick<OwnMetric, 'metric' | 'unit'>): string => (of.unit === '' ? of.metric : `${of.metric} (${of.unit})`);

/** The cells of a ratio's row. */
export const ratioCells = ({ name, of, per, value, as }: Ratio): string[] => [
  name, value === null ? 'unknown' : as === 'percent' ? share(value) : ownNumber(value), of.join(' + '), per.join(' + '),
];

/** A chart for each metric: the spread of a histogram, the rate of a counter. */
export function ownCharts(all: readonly OwnSeries[]): OwnChart[] {
  return all.slice(0, CHARTS_MAX).map((of): OwnChart => (of.kind === 'counter'
    ? { title: ownName(of), note: 'counted per second', lines: [{ label: of.metric, values: of.per_s, colour: 'c1', filled: true }], format: rate, tick: tick.rate }
    : {
      title: ownName(of), note: 'percentiles of the numbers of each second', format: ownNumber, tick: tick.quantity,
      lines: [
        { label: 'p50', values: of.p50, colour: 'p50' }, { label: 'p99', values: of.p99, colour: 'p99' }, { label: 'largest', values: of.max, colour: 'max', width: 1 },
      ],
    }));
}

/** The cells of a metric's row, behind its name. */
export const ownCells = ({ kind, count, sum, per_s, values }: OwnMetric): string[] => [
  quantity(count), ownNumber(sum), `${per_s === 0 ? '0' : digits(per_s)}/s`,
  ...(['mean', 'p50', 'p90', 'p99', 'max'] as const).map((key) => (kind === 'counter' ? NOTHING : ownNumber(values[key]))),
];
