/** Flights: searched, chosen, booked. */

import { el, type Child } from '../dom';
import { nothing, say } from '../notice';
import { byCity, city, DESTINATIONS, isFlown, ORIGINS } from './airports';
import { book, browse, find, type Flight, type Search } from './api';
import { done, field, form, put, select, type View } from './parts';
import { dayField, many, price, times, wrongTrip } from './words';

const BROWSE = 'Browse all days';

export function flightsView(user: string): View {
  const choices = (codes: readonly string[]) => byCity(codes).map((code) => [code, `${city(code)} (${code})`] as const);
  const from = select(choices(ORIGINS), 'CDG');
  const to = select(choices(DESTINATIONS), 'JFK');
  const today = dayField(Date.now(), 0);
  const leave = el('input', { type: 'date', required: true, min: today, value: dayField(Date.now(), 1) });
  const back = el('input', { type: 'date', required: true, min: today, value: dayField(Date.now(), 7) });
  const oneWay = el('input', { type: 'checkbox', id: 'one-way' });
  const returning = field('Return', back);
  const check = () => {
    to.setCustomValidity(from.value === to.value ? 'Choose another airport than the one you leave from.' : '');
    returning.hidden = back.disabled = oneWay.checked;
    back.min = leave.value || today;
    if (back.value !== '' && back.value < back.min) back.value = back.min;
  };
  for (const control of [from, to, leave, oneWay]) control.addEventListener('change', check);
  const results = el('div', { class: 'results' });
  const search = form('Search', [
    el('div', { class: 'fields' }, field('From', from), field('To', to), field('Leave', leave), returning),
    el('div', { class: 'tick' }, oneWay, el('label', { for: 'one-way' }, 'One way')),
  ], ['Find flights', BROWSE], async (button) => {
    put(results);
    const asked: Search = { from: from.value, to: to.value, leave: leave.value, back: back.value, oneWay: oneWay.checked };
    const legs = button === BROWSE ? await browse(asked) : await find(asked);
    const found = offer(user, asked, legs, results);
    put(results, found);
    results.querySelector('h2')?.focus();
    return null;
  });
  return { title: 'Flights', elements: [el('div', { class: 'card search' }, search), results] };
}

/** What was found, to choose from and book; where it is booked, `results` says so. */
function offer(user: string, asked: Search, [out = [], back = []]: Flight[][], results: HTMLElement): Child {
  const heading = el('h2', { tabindex: -1 }, out.length > 0 ? 'Choose your flights' : 'No flights');
  if (out.length === 0) {
    const text = isFlown(asked.from, asked.to) ? 'Nothing leaves on that day. Try another day, or browse all days.' : 'The airline does not fly there from here.';
    say(text);
    return [heading, nothing(text)];
  }
  say(`${many(out.length + back.length, 'flight')} found.`);
  const chosen: (Flight | null)[] = [out[0] ?? null, back[0] ?? null];
  const leg = (index: number, name: string, flights: Flight[]) => el('fieldset', {},
    el('legend', {}, name),
    el('div', { class: 'options' }, flights.map((flight, at) => option(`leg${index}`, flight, at === 0, () => { chosen[index] = flight; }))));
  const [from, to] = [city(asked.from), city(asked.to)];
  const none = asked.oneWay || back.length > 0 ? null
    : nothing(isFlown(asked.to, asked.from) ? `Nothing flies back on that day. ` : `The airline does not fly from ${to} to ${from}. `, 'Only the flight out is booked.');
  const both = back.length > 0;
  return [heading, form('Book', [
    el('div', { class: 'legs' }, leg(0, `${from} → ${to}`, out), both && leg(1, `${to} → ${from}`, back), none),
    el('p', { class: 'note' }, 'All times are in UTC.'),
  ], [both ? 'Book these flights' : 'Book this flight'], async () => {
    const [first, second = null] = chosen;
    if (!first) return null;
    const wrong = wrongTrip(first, second);
    if (wrong !== '') return el('p', { class: 'fault', role: 'alert' }, wrong);
    const booked = await book(user, first, second);
    put(results, el('h2', { tabindex: -1 }, 'Booked'), el('div', { class: 'card' },
      done(booked.length > 1 ? 'Both flights are booked.' : 'The flight is booked.',
        el('p', {}, booked.length > 1 ? 'Your booking numbers:' : 'Your booking number:'),
        el('ul', { class: 'numbers' }, booked.map((id) => el('li', {}, el('code', {}, id)))),
        el('p', {}, el('a', { href: 'checkin.html' }, 'See my bookings')))));
    results.querySelector('h2')?.focus();
    return null;
  })];
}

function option(group: string, flight: Flight, chosen: boolean, choose: () => void): HTMLElement {
  return el('label', { class: 'flight' },
    el('input', { type: 'radio', name: group, checked: chosen, onchange: choose }),
    el('span', { class: 'what' }, el('strong', {}, flight.number), el('span', {}, times(flight.departs_ms, flight.arrives_ms)),
      el('span', { class: 'note' }, `${many(flight.miles, 'mile')} · economy ${price(flight.economy)} · first ${price(flight.first)}`)));
}
