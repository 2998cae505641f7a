/** What a script measured itself: checks and metrics, as its own tool means them. */

import { el, type Child } from './dom';
import { count, share } from './format';
import { list, number, object, text } from './loose';
import { table } from './table';

export interface ScriptFigures {
  iterations: number;
  exceptions: number;
  checks: { group: string; name: string; passes: number; fails: number }[];
  metrics: { name: string; kind: string; is_time: boolean; own: boolean; figures: { name: string; value: number }[] }[];
}

export function scriptOf(value: unknown): ScriptFigures | null {
  if (value === null || value === undefined) return null;
  const it = object(value);
  return {
    iterations: number(it.iterations), exceptions: number(it.exceptions),
    checks: list(it.checks).map(object).map((of) => ({ group: text(of.group), name: text(of.name), passes: number(of.passes), fails: number(of.fails) })),
    metrics: list(it.metrics).map(object).map((of) => ({
      name: text(of.name), kind: text(of.kind), is_time: of.is_time === true, own: of.own === true,
      figures: list(of.figures).map(object).map((figure) => ({ name: text(figure.name), value: number(figure.value) })),
    })),
  };
}

const figure = (value: number): string => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3))));

export function scriptPart(script: ScriptFigures): Child {
  const own = script.metrics.filter((of) => of.own);
  return [
    script.exceptions > 0 && el('p', { class: 'bad-text' }, `▲ ${count(script.exceptions)} of ${count(script.iterations)} iterations ended with an exception.`),
    script.checks.length > 0 && table('Checks of the script', [{ name: 'Check' }, { name: 'Share', number: true }, { name: 'Held', number: true }, { name: 'Failed', number: true }], script.checks.map((of) => [
      [...of.group.split('::').filter((part) => part !== ''), of.name].join(' › '),
      share(of.passes / Math.max(1, of.passes + of.fails)), count(of.passes), of.fails === 0 ? '0' : el('span', { class: 'bad-text' }, count(of.fails)),
    ]), 'plain own'),
    own.length > 0 && table('Metrics of the script', [{ name: 'Metric' }, { name: 'Figures' }], own.map((of) => [
      of.name, of.figures.map((one) => `${one.name} ${figure(one.value)}${of.is_time && ['gauge', 'trend'].includes(of.kind) && one.name !== 'count' ? ' ms' : ''}`).join(' · '),
    ]), 'plain own'),
  ];
}
