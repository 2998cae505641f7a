/** What is said to everybody, also to those who hear the page. */

import { el, type Child } from './dom';
import { Failure } from './asked';

let polite: HTMLElement | null = null;

/** The place from which changes are read out; it must stand in the page before something is said. */
export function voice(): HTMLElement {
  polite ??= el('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
  return polite;
}

/** Has a change read out when there is a pause. */
export function say(text: string): void {
  const place = voice();
  // The same words once more are a change only in an emptied place.
  place.textContent = '';
  setTimeout(() => { place.textContent = text; }, 50);
}

/** A failure in words, with a way to try again where that may help. */
export function failed(error: unknown, again?: () => void): HTMLElement {
  const passing = error instanceof Failure && error.passing;
  const text = error instanceof Failure ? error.message : 'This page made a mistake. Load it again.';
  if (!(error instanceof Failure)) console.error(error);
  return el('div', { class: 'failure', role: 'alert' },
    el('p', {}, text),
    passing && again && el('button', { type: 'button', class: 'plain', onclick: again }, 'Try again'));
}

/** What a list says when it has nothing. */
export function nothing(...children: Child[]): HTMLElement {
  return el('p', { class: 'empty' }, ...children);
}
