/** Who one is: chosen by name, and remembered as long as the tab is open. */

import { el } from '../dom';
import { Failure } from '../asked';
import { create, named, participant, type Participant, readParticipant } from './api';
import { Field, form } from './form';
import { failed, say } from '../notice';
import { numbered } from './people';
import { count, wrongName } from './text';
import type { View } from './view';

const KEY = 'newsfeed-participant';

/** What an earlier visit of this tab has kept, if it is of use. */
export function kept(text: string | null): Participant | null {
  try {
    return text === null ? null : readParticipant(JSON.parse(text));
  } catch {
    return null;
  }
}

export function remember(me: Participant | null): void {
  try {
    if (me) sessionStorage.setItem(KEY, JSON.stringify(me));
    else sessionStorage.removeItem(KEY);
  } catch {
    // A tab without storage forgets.
  }
}

function recalled(): Participant | null {
  try {
    return kept(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}

/** Who was signed in, if the server still knows them by that name: one that has started anew gives the number to others. */
export async function recall(): Promise<Participant | null> {
  const before = recalled();
  if (before === null) return null;
  try {
    const now = await participant(before.id);
    if (now.name === before.name) return now;
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 404) throw error;
  }
  remember(null);
  return null;
}

export function signInView(enter: (me: Participant) => void): View {
  const name = new Field({ label: 'Your name', hint: () => 'up to 50 characters', wrong: wrongName, autocomplete: 'username' });
  const choices = el('div', { class: 'results' });
  const add = async (wanted: string) => {
    try {
      enter(await create(wanted));
    } catch (error) {
      choices.append(failed(error));
    }
  };
  const look = async () => {
    const wanted = name.value.trim();
    choices.replaceChildren(el('p', { class: 'note' }, 'Looking…'));
    try {
      const found = await named(wanted);
      const text = found.length === 0 ? 'There is nobody of that name yet.' : found.length === 1 ? 'Somebody has that name. Is it you?' : `${count(found.length)} participants have that name. Which one are you?`;
      let asked = false;
      const fresh = el('button', {
        type: 'button', class: found.length > 0 ? 'plain' : '',
        onclick: async () => {
          if (asked) return;
          asked = true;
          await add(wanted);
          asked = false;
        },
      }, 'Create a new ', el('bdi', {}, wanted));
      choices.replaceChildren(el('p', {}, text),
        ...(found.length === 0 ? [] : [el('ul', { class: 'rows', 'aria-label': 'Participants of that name' }, found.map((it) => el('li', {}, el('div', { class: 'person' },
          numbered(el('bdi', {}, it.name), it.id),
          el('button', { type: 'button', class: 'plain', 'aria-label': `Go on as ${it.name}, number ${it.id}`, onclick: () => enter(it) }, 'This is me')))))]),
        fresh);
      say(text);
      choices.querySelector('button')?.focus();
    } catch (error) {
      choices.replaceChildren(failed(error, () => void look()));
    }
  };
  const note = el('p', { class: 'note' }, 'There are no passwords: this system is made to be put under load, and whoever says a name is taken at their word.');
  return { title: 'Sign in', elements: [el('div', { class: 'card' }, form('Sign in', [name], 'Sign in', look), choices), note] };
}
