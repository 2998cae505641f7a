/** For whoever runs the airline: what it runs on, what it holds, and the loader. None needs a session. */

import { el, facts } from '../dom';
import { activeDataService, count, dataServices, load, loadSize, runtime, type Named } from './api';
import { done, field, form, loaded, type View } from './parts';

const COUNTS = [
  ['Customers', 'Customers'], ['Sessions', 'Sessions'], ['Flights', 'Flights'], ['FlightSegments', 'Routes'], ['Bookings', 'Bookings'],
  ['Airports', 'Airports'],
] as const;

export function configView(): View {
  const names = (all: Named[]) => facts(all.map(({ name, description }) => [name, description] as const));
  const section = (title: string, content: HTMLElement) => el('section', { class: 'card' }, el('h2', {}, title), content);
  return {
    title: 'Configuration',
    elements: [
      section('Counts', loaded(() => Promise.all(COUNTS.map(([what]) => count(what))), (counts) =>
        facts(COUNTS.map(([, name], index) => [name, counted(counts[index] ?? -1)] as const)))),
      section('Runtime', loaded(runtime, names)),
      section('Data', loaded(() => Promise.all([activeDataService(), dataServices()]), ([active, all]) =>
        [el('p', {}, 'In use: ', el('strong', {}, active)), names(all)])),
    ],
  };
}

/** A count; −1 where nobody can tell. */
export function counted(number: number): string {
  return number < 0 ? 'unknown' : number.toLocaleString('en-US');
}

export function loaderView(): View {
  return {
    title: 'Load customers',
    elements: [
      el('p', {}, 'Makes the customers that are missing, and changes nothing else. Flights are always there.'),
      el('div', { class: 'card narrow' }, loaded(loadSize, (size) => {
        const customers = el('input', { type: 'number', required: true, min: 1, max: 10_000_000, value: size, inputmode: 'numeric' });
        return form('Load', field('Number of customers', customers), ['Load customers'], async () => done(`${await load(customers.value)}.`));
      })),
    ],
  };
}
