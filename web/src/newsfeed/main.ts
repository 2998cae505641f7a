/** The news feed's page: who one is, four screens, and the way between them. */

import { el } from '../dom';
import type { Participant } from './api';
import { Names } from './names';
import { failed, voice } from '../notice';
import { findView, friendsView } from './people';
import { feedView, postsView } from './posts';
import { recall, remember, signInView } from './signin';
import type { View } from './view';

const SCREENS: readonly (readonly [hash: string, name: string, view: (me: Participant, names: Names) => View])[] = [
  ['#feed', 'My feed', feedView],
  ['#posts', 'My posts', postsView],
  ['#friends', 'My friends', friendsView],
  ['#find', 'Find people', findView],
];

const names = new Names();
const head = el('header');
const main = el('main', { id: 'main', tabindex: -1 });
let me: Participant | null = null;
let shown: View | null = null;

function header(): void {
  const links = me === null ? null : el('nav', { 'aria-label': 'Screens' }, SCREENS.map(([hash, name]) =>
    el('a', { href: hash, 'aria-current': hash === screen()[0] && 'page' }, name)));
  const who = me && el('p', { class: 'me' }, el('bdi', { class: 'my-name' }, me.name),
    el('button', { type: 'button', class: 'plain', onclick: () => enter(null) }, 'Sign out'));
  head.replaceChildren(
    el('div', { class: 'row' }, el('p', { class: 'brand' }, 'News feed'), who),
    ...(links ? [links] : []));
}

function screen(): (typeof SCREENS)[number] {
  return SCREENS.find(([hash]) => hash === location.hash) ?? SCREENS[0]!;
}

/** Shows what the address says. The focus goes to its heading, which is then read out, but not at the very beginning. */
function show(first = false): void {
  shown?.stop?.();
  shown = me === null ? signInView(enter) : screen()[2](me, names);
  header();
  const heading = el('h1', { tabindex: -1 }, shown.title);
  main.replaceChildren(heading, ...shown.elements);
  document.title = `${shown.title} · News feed`;
  if (!first) {
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function enter(who: Participant | null): void {
  me = who;
  remember(who);
  if (who === null) history.replaceState(null, '', location.pathname);
  show();
}

async function start(): Promise<void> {
  try {
    me = await recall();
    show(true);
  } catch (error) {
    header();
    main.replaceChildren(el('h1', {}, 'News feed'), failed(error, () => void start()));
  }
}

const skip = (event: Event) => {
  // The address says which screen is shown.
  event.preventDefault();
  main.focus();
};
document.body.append(
  el('a', { class: 'skip', href: '#main', onclick: skip }, 'Skip to the content'), head, main,
  el('footer', {}, el('a', { href: '/docs' }, 'HTTP API')), voice());
addEventListener('hashchange', () => show());
void start();
