/** What several views are made of. */

import { el, type Child } from '../dom';
import { failed, say } from '../notice';

export interface View { title: string; elements: HTMLElement[] }

let controls = 0;

/** A control below its label. */
export function field(label: string, control: HTMLInputElement | HTMLSelectElement): HTMLElement {
  control.id = `control${controls += 1}`;
  return el('div', { class: 'field' }, el('label', { for: control.id }, label), control);
}

export function select(options: readonly (readonly [value: string, shown: string])[], chosen: string): HTMLSelectElement {
  return el('select', {}, options.map(([value, shown]) => el('option', { value, selected: value === chosen }, shown)));
}

export function put(place: HTMLElement, ...children: Child[]): void {
  place.replaceChildren(...el('div', {}, children).childNodes);
}

/** What is drawn of an answer once it has come. */
export function loaded<T>(ask: () => Promise<T>, draw: (answer: T) => Child): HTMLElement {
  const place = el('div', { class: 'results' });
  const load = async () => {
    put(place, el('p', { class: 'note' }, 'Loading…'));
    try {
      put(place, draw(await ask()));
    } catch (error) {
      put(place, failed(error, () => void load()));
    }
  };
  void load();
  return place;
}

/** Does it once at a time, and shows below what came of it. `send` is told which button was used. */
export function form(name: string, children: Child, buttons: readonly string[], send: (button: string) => Promise<Child>): HTMLElement {
  let sending = false;
  const outcome = el('div', { class: 'outcome' });
  const submits = buttons.map((button, index) => el('button', { type: 'submit', class: index > 0 && 'plain', value: button }, button));
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (sending) return;
    sending = true;
    for (const button of submits) button.setAttribute('aria-disabled', 'true');
    put(outcome);
    try {
      put(outcome, await send((event.submitter as HTMLButtonElement | null)?.value ?? buttons[0] ?? ''));
    } catch (error) {
      put(outcome, failed(error));
    } finally {
      sending = false;
      for (const button of submits) button.removeAttribute('aria-disabled');
    }
  };
  return el('form', { 'aria-label': name, onsubmit: (event) => void submit(event as SubmitEvent) },
    children, el('div', { class: 'buttons' }, submits), outcome);
}

/** That something is done, seen and heard. */
export function done(text: string, ...more: Child[]): HTMLElement {
  say(text);
  return el('div', { class: 'done' }, el('p', { class: 'good' }, `✓ ${text}`), more);
}
