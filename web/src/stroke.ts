/** What tells lines of a chart apart: eight colours, and from the ninth line on dashes, too. */

import { el } from './dom';

export interface Stroke {
  /** Name of the colour in the style sheet. */
  colour: string;
  dash?: number[];
}

const COLOURS = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];

/** Solid, dashed, dotted, both in turn. */
const DASHES: (number[] | null)[] = [null, [8, 4], [2, 3], [10, 3, 2, 3]];

/** How many lines differ. */
export const STROKES = COLOURS.length * DASHES.length;

export function strokeOf(index: number): Stroke {
  const dash = DASHES[Math.floor(index / COLOURS.length) % DASHES.length];
  return { colour: COLOURS[index % COLOURS.length] ?? 'c0', ...(dash ? { dash } : {}) };
}

/** A piece of such a line, for a legend or a table. */
export function swatch({ colour, dash }: Stroke): HTMLElement {
  const style = `--swatch:var(--${colour})`;
  return dash ? el('i', { class: 'swatch dashed', style: `${style};background:${dashes(dash)}` }) : el('i', { class: 'swatch', style });
}

/** The same dashes in CSS. */
export function dashes(dash: readonly number[]): string {
  let at = 0;
  const stops = dash.map((length, index) => {
    const from = at;
    at += length;
    return `${index % 2 === 0 ? 'var(--swatch)' : 'transparent'} ${from}px ${at}px`;
  });
  return `repeating-linear-gradient(to right,${stops.join(',')})`;
}
