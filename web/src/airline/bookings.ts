/** One's bookings, the newest first. */

import { el } from '../dom';
import { failed, nothing, say } from '../notice';
import { city, routeOf } from './airports';
import { bookings, browse, cancel, type Booking, type Flight } from './api';
import { loaded, put, type View } from './parts';
import { many, moment, times } from './words';

/** Bookings that are shown at once. */
const PAGE = 20;

export function bookingsView(user: string): View {
  const flights = new Flights();
  return {
    title: 'My bookings',
    elements: [loaded(() => bookings(user), (all) => {
      const rest = all.reverse();
      const [rows, foot, counted] = [el('ul', { class: 'rows', 'aria-label': 'Bookings' }), el('div', { class: 'foot' }), el('p', { class: 'note' })];
      let left = rest.length;
      const count = () => {
        if (left > 0) counted.textContent = `${many(left, 'booking')}. All times are in UTC.`;
        else put(counted, nothing('You have no bookings. ', el('a', { href: 'flights.html' }, 'Find flights')));
      };
      const more = () => {
        const shown = rest.splice(0, PAGE).map((it) => row(user, it, flights, () => { left -= 1; count(); }));
        rows.append(...shown);
        put(foot, rest.length > 0 && el('button', { type: 'button', class: 'plain', onclick: () => more()?.focus() }, `Show more of ${rest.length}`));
        return shown[0]?.querySelector('button');
      };
      count();
      more();
      return [counted, rows, foot];
    })],
  };
}

/** The flights of routes, each asked for once. */
class Flights {
  private readonly known = new Map<string, Promise<Flight[]>>();

  /** When a booked flight leaves and arrives. Who is not in the timetable any more has left. */
  async times({ flight, number }: Booking): Promise<string> {
    const route = routeOf(number);
    if (route === null) return '';
    const asked = this.known.get(number) ?? browse({ from: route[0], to: route[1], oneWay: true }).then(([out = []]) => out);
    this.known.set(number, asked);
    try {
      const found = (await asked).find((it) => it.id === flight);
      return found ? times(found.departs_ms, found.arrives_ms) : 'This flight has left.';
    } catch {
      // It is a help only; the list is there without it.
      return '';
    }
  }
}

function row(user: string, booking: Booking, flights: Flights, gone: () => void): HTMLLIElement {
  const route = routeOf(booking.number);
  const name = route === null ? booking.number : `${city(route[0])} → ${city(route[1])}`;
  const when = el('p', {}, '…');
  void flights.times(booking).then((text) => { when.textContent = text; });
  const [buttons, refusal] = [el('div', { class: 'buttons' }), el('div', { class: 'refusal' })];
  const ask = (focus: boolean) => {
    const button = el('button', { type: 'button', class: 'plain', 'aria-label': `Cancel ${name}`, onclick: sure }, 'Cancel');
    put(buttons, button);
    if (focus) button.focus();
  };
  const sure = () => {
    const keep = el('button', { type: 'button', class: 'plain', onclick: () => ask(true) }, 'Keep it');
    put(buttons, el('button', { type: 'button', class: 'danger', onclick: () => void remove() }, 'Cancel this booking'), keep);
    keep.focus();
  };
  const remove = async () => {
    put(refusal);
    try {
      await cancel(user, booking.id);
    } catch (error) {
      put(refusal, failed(error));
      ask(true);
      return;
    }
    const next = (element.nextElementSibling ?? element.previousElementSibling)?.querySelector('button');
    element.remove();
    gone();
    say(`The booking ${name} is cancelled.`);
    (next ?? document.querySelector('h1'))?.focus();
  };
  const element = el('li', { class: 'card' },
    el('div', { class: 'row' }, el('h2', {}, name), el('strong', {}, booking.number)), when,
    el('p', { class: 'note' }, `Booked ${moment(booking.booked_ms)}, number `, el('code', {}, booking.id)), buttons, refusal);
  ask(false);
  return element;
}
