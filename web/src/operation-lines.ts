/** What is drawn and told of operations. Pure, tested. */

import type { Line } from './chart';
import type { OperationFigures, OperationSeries } from './run';

/** So many lines are shown at first. */
export const SHOWN = 6;

const PALETTE = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];

export const MEASURES = [['p95_us', 'p95'], ['p99_us', 'p99'], ['median_us', 'Median'], ['per_s', 'Rate']] as const;
export type Measure = (typeof MEASURES)[number][0];

export const NOTES: Record<Measure, string> = {
  p95_us: '95th percentile of the duration, a gap where more than 5\u00a0% failed, logarithmic', p99_us: '99th percentile of the duration, a gap where more than 1\u00a0% failed, logarithmic',
  median_us: 'median of the duration, a gap where half failed, logarithmic', per_s: 'operations per second',
};

export const nameOf = (it: { entity: string; operation: string }): string => `${it.entity} ${it.operation}`;

/** A line for each operation; of many, those that are most frequent are shown at first. */
export function operationLines(operations: readonly OperationSeries[], measure: Measure): Line[] {
  const frequent = new Set([...operations].sort((a, b) => b.measured.count - a.measured.count).slice(0, SHOWN));
  return operations.map((it, index): Line => ({
    label: nameOf(it), values: it[measure], colour: PALETTE[index % PALETTE.length] ?? 'c1', width: 1.5,
    hidden: !frequent.has(it), ...(index >= PALETTE.length ? { dash: index >= 2 * PALETTE.length ? [2, 2] : [5, 3] } : {}),
  }));
}

/** Where the driver saw the same, its row stands beneath that of the system. */
export function operationRows(operations: readonly OperationSeries[]): { entity: string; operation: string; by: string; of: OperationFigures }[] {
  return operations.flatMap(({ entity, operation, measured, driver }) => [
    { entity, operation, by: 'system', of: measured },
    ...(driver ? [{ entity, operation, by: 'driver', of: driver }] : []),
  ]);
}
