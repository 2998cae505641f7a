/** The page of `tidemark ui`: the list of a folder's runs, and one that is running. It asks its own server and nobody else. */

import { el, svg, type Child } from '../dom';
import { startTheme, themeButton } from '../theme';
import { listView } from './list';
import { liveView } from './live';
import { nameIn, place, readListing, readLive } from './read';

/** Time between two questions, milliseconds: for the list, and for one that is running. */
const LIST_EVERY = 3000;
const LIVE_EVERY = 1000;

const main = el('main', { id: 'main' });
const folder = el('span');
const trouble = el('p', { class: 'bad-text', role: 'alert', hidden: true });

/** What is shown now, as it was said, so that nothing moves under a hand for nothing. */
let shown = '';

async function ask(path: string): Promise<string> {
  const answer = await fetch(path, { headers: { accept: 'application/json' } });
  const said = await answer.text();
  if (!answer.ok) throw new Error(said.trim() || `the server answers ${answer.status}`);
  return said;
}

function show(children: Child[]): void {
  const focused = document.activeElement?.getAttribute('aria-label');
  main.replaceChildren(trouble, ...el('div', {}, children).childNodes);
  if (focused) main.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function complain(error: unknown): void {
  trouble.textContent = `▲ ${error instanceof Error ? error.message : String(error)}`;
  trouble.hidden = false;
}

async function list(): Promise<void> {
  const said = await ask('/api/runs');
  if (said === shown) return;
  shown = said;
  const listing = readListing(JSON.parse(said));
  folder.textContent = listing.folder;
  const draw = () => show(listView(listing, draw));
  draw();
}

async function live(name: string): Promise<boolean> {
  const read = readLive(JSON.parse(await ask(place('api/live', name))));
  show(liveView(name, read));
  document.title = `${read.scenario || name} · Tidemark`;
  return read.running;
}

async function start(): Promise<void> {
  startTheme();
  const name = nameIn(location.pathname, 'live');
  document.body.append(
    el('header', {}, el('div', { class: 'row' },
      el('h1', {}, svg('svg', { class: 'mark', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('path', { d: 'M1 6q3.5-4 7 0t7 0M1 11q3.5-4 7 0t7 0' })), name === null ? 'Tidemark' : el('a', { href: '/' }, 'Tidemark'), folder),
      el('div', { class: 'tools' }, themeButton()))),
    main);
  main.append(trouble);
  for (;;) {
    let goesOn = true;
    try {
      if (name === null) await list();
      else goesOn = await live(name);
      trouble.hidden = true;
    } catch (error) {
      // a run that has ended has another page
      if (name !== null && (await hasEnded(name))) location.replace(place('runs', name, '/report.html'));
      complain(error);
    }
    document.documentElement.dataset['ready'] = 'true';
    if (!goesOn) await new Promise((resolve) => { setTimeout(resolve, LIST_EVERY); });
    await new Promise((resolve) => { setTimeout(resolve, name === null ? LIST_EVERY : LIVE_EVERY); });
  }
}

async function hasEnded(name: string): Promise<boolean> {
  try {
    const { runs } = readListing(JSON.parse(await ask('/api/runs')));
    return runs.some((run) => run.name === name && run.state === 'finished');
  } catch {
    return false;
  }
}

void start();
