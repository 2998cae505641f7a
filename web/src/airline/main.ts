/** The airline's page: which view its address names, and who is signed in. */

import { el } from '../dom';
import { failed, say, voice } from '../notice';
import { logout, SIGNED_OUT } from './api';
import { bookingsView } from './bookings';
import { flightsView } from './flights';
import { configView, loaderView } from './house';
import type { View } from './parts';
import { profileView } from './profile';
import { signInView } from './signin';
import { userCookie, userIn } from './words';

interface Place { file: string; name: string; view: (user: string) => View; secured: boolean }

/** The names are those of the public servers' pages. */
const PLACES: readonly Place[] = [
  { file: 'index.html', name: 'Home', view: homeView, secured: false },
  { file: 'flights.html', name: 'Flights', view: flightsView, secured: true },
  { file: 'checkin.html', name: 'My bookings', view: bookingsView, secured: true },
  { file: 'customerprofile.html', name: 'Profile', view: profileView, secured: true },
  { file: 'config.html', name: 'Configuration', view: configView, secured: false },
  { file: 'loader.html', name: 'Load customers', view: loaderView, secured: false },
];
const [NAVIGATION, HOUSE] = [PLACES.slice(0, 4), PLACES.slice(4)];

const place = PLACES.find(({ file }) => location.pathname.endsWith(`/${file}`)) ?? PLACES[0]!;
const head = el('header');
const main = el('main', { id: 'main', tabindex: -1 });

function homeView(): View {
  const does = ['Search a day both ways or browse all days, and book.', 'See when you fly, and cancel.', 'See your miles, and change your address.'];
  const links = NAVIGATION.slice(1).map(({ file, name }, index) => el('li', {},
    el('a', { href: file, class: 'card' }, el('strong', {}, name), el('span', { class: 'note' }, does[index]))));
  return {
    title: 'Welcome to the airline',
    elements: [
      el('p', {}, 'From 29 cities to 14, each route once a day.'),
      el('ul', { class: 'ways' }, links),
    ],
  };
}

const link = ({ file, name }: Place) => el('a', { href: file, 'aria-current': place.file === file && 'page' }, name);

function show({ title, elements }: View, focus: boolean): void {
  const user = userIn(document.cookie);
  head.replaceChildren(
    el('div', { class: 'row' }, el('p', { class: 'brand' }, 'Airline'),
      el('p', { class: 'me' }, user === null
        ? el('button', { type: 'button', class: 'plain', onclick: () => signIn('') }, 'Sign in')
        : [el('bdi', { class: 'my-name' }, user), el('button', { type: 'button', class: 'plain', onclick: () => void signOut(user) }, 'Sign out')])),
    el('nav', { 'aria-label': 'Pages' }, NAVIGATION.map(link)));
  const heading = el('h1', { tabindex: -1 }, title);
  main.replaceChildren(heading, ...elements);
  document.title = `${title} · Airline`;
  if (focus) heading.focus();
}

function start(focus: boolean): void {
  const user = userIn(document.cookie);
  if (place.secured && user === null) signIn('Sign in to go on.', focus);
  else show(place.view(user ?? ''), focus);
}

function signIn(why: string, focus = true): void {
  show(signInView(why, (user) => {
    document.cookie = userCookie(user);
    say(`Signed in as ${user}.`);
    start(true);
  }), focus);
}

async function signOut(user: string): Promise<void> {
  try {
    await logout(user);
  } catch (error) {
    main.prepend(failed(error));
    return;
  }
  document.cookie = userCookie(null);
  say('Signed out.');
  start(true);
}

const skip = (event: Event) => {
  // The address says which page is shown.
  event.preventDefault();
  main.focus();
};
document.body.append(
  el('a', { class: 'skip', href: '#main', onclick: skip }, 'Skip to the content'), head, main,
  el('footer', {}, HOUSE.map(link), el('a', { href: '/openapi.json' }, 'HTTP API')), voice());
addEventListener(SIGNED_OUT, () => {
  document.cookie = userCookie(null);
  signIn('Your session has ended. Sign in again to go on.');
});
start(false);
