/** Friends, and people who may become friends. */

import { el } from '../dom';
import { allFriends, befriend, friends, search, type Participant } from './api';
import { Field, form } from './form';
import { PagedList } from './list';
import type { Names } from './names';
import { failed, nothing, say } from '../notice';
import { nameOf } from './posts';
import { count } from './text';
import type { View } from './view';

/** People whom a search shows. */
export const FOUND_MAX = 20;

/** Whom a search offers: no double, neither oneself nor who is a friend already. */
export function offered(found: readonly number[], me: number, friends: ReadonlySet<number>): number[] {
  return [...new Set(found)].filter((id) => id !== me && !friends.has(id));
}

/** What a search has found, in words. */
export function outcome(found: number, offered: number): string {
  if (found === 0) return 'Nobody has posted a story with any of these words.';
  if (offered === 0) return 'Nobody new: who wrote about this is a friend already, or yourself.';
  const people = offered === 1 ? '1 person' : `${count(offered)} people`;
  return offered > FOUND_MAX ? `${people}; the ${FOUND_MAX} who posted last:` : `${people}:`;
}

/** A name with what tells people of one name apart. */
export function numbered(name: HTMLElement, id: number): HTMLElement {
  return el('span', { class: 'who' }, name, el('span', { class: 'note' }, `no. ${id}`));
}

export function friendsView(me: Participant, names: Names): View {
  const list = new PagedList<number>({
    name: 'My friends', load: (cursor) => friends(me.id, cursor), show: (id) => el('div', { class: 'person' }, numbered(nameOf(id, names), id)),
    empty: ['No friends yet. ', el('a', { href: '#find' }, 'Find people'), ' who write about something.'],
  });
  void list.read();
  return { title: 'My friends', elements: [list.element] };
}

export function findView(me: Participant, names: Names): View {
  const keywords = new Field({
    label: 'Keywords', hint: () => 'any of these words in a story',
    wrong: (text) => (/[\p{L}\p{N}]/u.test(text) ? '' : 'A word is missing.'),
  });
  const results = el('div', { class: 'results' });
  const person = (id: number) => {
    const end = el('span', { class: 'end' });
    const name = nameOf(id, names);
    const refusal = el('div', { class: 'refusal' });
    const ask = async () => {
      if (button.getAttribute('aria-disabled') === 'true') return;
      button.setAttribute('aria-disabled', 'true');
      refusal.replaceChildren();
      try {
        await befriend(me.id, id);
      } catch (error) {
        button.removeAttribute('aria-disabled');
        refusal.append(failed(error));
        return;
      }
      const done = el('span', { class: 'good', tabindex: -1 }, '✓ Friend');
      end.replaceChildren(done);
      done.focus();
      say(`${name.textContent} is your friend now`);
    };
    const button = el('button', { type: 'button', class: 'plain', 'aria-label': 'Befriend', onclick: () => void ask() }, 'Befriend');
    void names.of(id).then((text) => button.setAttribute('aria-label', `Befriend ${text}, number ${id}`));
    end.append(button);
    return el('li', {}, el('div', { class: 'person' }, numbered(name, id), end), refusal);
  };
  let latest = 0;
  const find = async () => {
    const mine = latest += 1;
    results.replaceChildren(el('p', { class: 'note' }, 'Looking…'));
    try {
      const [found, already] = await Promise.all([search(keywords.value), allFriends(me.id)]);
      if (mine !== latest) return;
      const people = offered(found, me.id, already);
      const text = outcome(found.length, people.length);
      say(text);
      results.replaceChildren(people.length === 0 ? nothing(text) : el('p', { class: 'note' }, text),
        ...(people.length === 0 ? [] : [el('ul', { class: 'rows', 'aria-label': 'People found' }, people.slice(0, FOUND_MAX).map(person))]));
    } catch (error) {
      if (mine === latest) results.replaceChildren(failed(error, () => void find()));
    }
  };
  return { title: 'Find people', elements: [el('div', { class: 'card' }, form('Find people', [keywords], 'Find', find)), results] };
}
