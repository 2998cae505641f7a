/** The two lists of posts: what friends have posted, and one's own with a form. */

import { el } from '../dom';
import { inbound, outbound, post, type Participant, type Post } from './api';
import { Field, form } from './form';
import { PagedList } from './list';
import { isShown, listen, type State } from './live';
import { stand, type Names } from './names';
import { failed, say } from '../notice';
import { STORY_BYTES_MAX, SUBJECT_BYTES_MAX, used, wrongText } from './text';
import type { View } from './view';

/** A name that is filled in once it is known. */
export function nameOf(id: number, names: Names): HTMLElement {
  const element = el('bdi', {}, stand(id));
  void names.of(id).then((name) => { element.textContent = name; });
  return element;
}

function card(it: Post, by: HTMLElement | null): HTMLElement {
  return el('article', { class: 'card' },
    el('h2', { dir: 'auto' }, it.subject),
    el('p', { class: 'note' }, by && [by, ' · '], el('time', { datetime: it.occurred }, it.occurred)),
    el('p', { class: 'story', dir: 'auto' }, it.story));
}

const STATES: Record<State, string> = {
  connecting: 'Connecting…',
  live: 'Live: new posts appear here by themselves',
  lost: 'Not live now; trying to connect again',
};

export function feedView(me: Participant, names: Names): View {
  const list = new PagedList<Post>({
    name: 'Posts of my friends', load: (cursor) => inbound(me.id, cursor), show: (it) => card(it, nameOf(it.from, names)),
    empty: ['Nothing yet. What your friends post from now on appears here. ', el('a', { href: '#find' }, 'Find people'), ' to befriend.'],
  });
  const state = el('p', { class: 'state', 'data-state': 'connecting', role: 'status' }, STATES.connecting);
  void list.read();
  const stop = listen(me.id, {
    state(now) {
      state.dataset['state'] = now;
      state.textContent = STATES[now];
    },
    read: () => void list.read(),
    post(it) {
      void names.of(it.from).then((name) => say(`New post from ${name}: ${it.subject}`));
      if (list.reading || isShown(list.items, it)) void list.read();
      else list.prepend(it);
    },
  });
  return { title: 'My feed', elements: [state, list.element], stop };
}

export function postsView(me: Participant): View {
  const list = new PagedList<Post>({ name: 'My posts', load: (cursor) => outbound(me.id, cursor), show: (it) => card(it, null), empty: 'You have posted nothing yet.' });
  const field = (label: string, max: number, rows?: number) =>
    new Field({ label, hint: (text) => used(text, max), wrong: (text) => wrongText(label, text, max), ...(rows && { rows }) });
  const subject = field('Subject', SUBJECT_BYTES_MAX);
  const story = field('Story', STORY_BYTES_MAX, 6);
  const outcome = el('div', { class: 'outcome' });
  const send = async () => {
    outcome.replaceChildren();
    try {
      await post(me.id, subject.value, story.value);
    } catch (error) {
      // The button that sends stands right above.
      outcome.append(failed(error));
      return;
    }
    subject.value = story.value = '';
    say('Posted to your friends');
    outcome.append(el('p', { class: 'good' }, '✓ Posted to your friends.'));
    subject.focus();
    await list.read();
  };
  void list.read();
  const element = form('New post', [subject, story], 'Post', send);
  element.addEventListener('input', () => outcome.replaceChildren());
  element.append(outcome);
  return { title: 'My posts', elements: [el('div', { class: 'card' }, el('h2', {}, 'New post'), element), list.element] };
}
