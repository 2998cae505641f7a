/** The parts of the time as bars and rows. Pure, tested. */

import { duration } from './format';
import type { Part, PartName, Parts, Step } from './run';

/** All parts, in the order in which they come to pass. */
export const PARTS: readonly { key: PartName; name: string; colour: string }[] = [
  { key: 'wait', name: 'Wait', colour: 'c0' }, { key: 'connect', name: 'Connect', colour: 'c2' }, { key: 'handshake', name: 'Handshake', colour: 'c4' },
  { key: 'first_byte', name: 'First byte', colour: 'c1' }, { key: 'transfer', name: 'Transfer', colour: 'c3' },
];

/** So many labels have a bar. */
export const BARS_MAX = 40;

export interface Bar {
  label: string;
  mean_us: number;
  says: string;
  /** Widths in percent of the longest bar. */
  pieces: { colour: string; width: number }[];
}

/** Whether there is more to tell than response and service time do. */
export const toldParts = (parts: Parts | null): boolean => parts !== null && (['connect', 'handshake', 'transfer'] as const).some((key) => parts[key].count > 0);

const wholeOf = (parts: Parts): number => PARTS.reduce((sum, { key }) => sum + parts[key].mean_us, 0);

/** A bar for each label, up to a bound. */
export function barsOf(steps: readonly Pick<Step, 'label' | 'parts'>[]): Bar[] {
  const known = steps.flatMap(({ label, parts }) => (parts ? [{ label, parts }] : [])).slice(0, BARS_MAX);
  const longest = Math.max(...known.map(({ parts }) => wholeOf(parts)), 0);
  return known.map(({ label, parts }) => {
    const there = PARTS.filter(({ key }) => parts[key].mean_us > 0);
    return {
      label, mean_us: wholeOf(parts), says: there.map(({ key, name }) => `${name.toLowerCase()} ${duration(parts[key].mean_us)}`).join(', '),
      pieces: there.map(({ key, colour }) => ({ colour, width: (100 * parts[key].mean_us) / longest })),
    };
  });
}

/** A row for each part that there is. */
export function partRows(parts: Parts): { name: string; part: Part; of: number }[] {
  const whole = wholeOf(parts);
  return PARTS.filter(({ key }) => parts[key].count > 0).map(({ key, name }) => ({ name, part: parts[key], of: whole > 0 ? parts[key].mean_us / whole : 0 }));
}
