/** The page of the HTTP API: its own description, readable. */

import { el, type Child } from '../dom';
import { description } from './api';
import { failed } from '../notice';
import { readDescription, type Operation, type Schema } from './openapi';

const main = el('main', { id: 'main' });

/** A table that scrolls by itself where the window is narrow. */
function table(name: string, heads: string[], rows: Child[][]): HTMLElement {
  return el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': name }, el('table', {},
    el('thead', {}, el('tr', {}, heads.map((head) => el('th', { scope: 'col' }, head)))),
    el('tbody', {}, rows.map((row) => el('tr', {}, row.map((cell) => el('td', {}, cell)))))));
}

const code = (text: string) => el('code', {}, text);

function operation(it: Operation): HTMLElement {
  const name = `${it.method} ${it.path}`;
  return el('article', { class: 'card operation', id: it.id || null },
    el('h3', {}, el('span', { class: 'method' }, it.method), ' ', code(it.path)),
    el('p', {}, it.about),
    it.parameters.length > 0 && table(`Parameters of ${name}`, ['Parameter', 'In', 'Type', 'Meaning'], it.parameters.map((one) => (
      [code(one.name), one.required ? `${one.where}, required` : one.where, one.type, one.about]))),
    it.body !== '' && el('p', {}, el('b', {}, 'Body: '), it.body),
    table(`Answers of ${name}`, ['Status', 'Body', 'Meaning'], it.answers.map((one) => (
      [code(one.status), one.type, [one.about, one.headers.map((header) => el('div', { class: 'note' }, `Header ${header}`))]]))));
}

function schema(it: Schema): HTMLElement {
  return el('article', { class: 'card', id: `schema-${it.name}` },
    el('h3', {}, it.name),
    it.properties.length === 0 ? el('p', {}, it.type) : table(`Fields of ${it.name}`, ['Field', 'Required', 'Type', 'Meaning'], it.properties.map((one) => (
      [code(one.name), one.required ? 'yes' : 'no', one.type, one.about]))));
}

async function start(): Promise<void> {
  const heading = el('h1', {}, 'HTTP API');
  try {
    const it = readDescription(await description());
    main.replaceChildren(heading,
      el('p', { class: 'note' }, `${it.title} ${it.version}, from `, el('a', { href: '/openapi.json' }, '/openapi.json')),
      el('p', {}, it.about),
      el('section', { 'aria-labelledby': 'operations' }, el('h2', { id: 'operations' }, 'Operations'), it.operations.map(operation)),
      el('section', { 'aria-labelledby': 'schemas' }, el('h2', { id: 'schemas' }, 'Schemas'), it.schemas.map(schema)));
  } catch (error) {
    main.replaceChildren(heading, failed(error, () => void start()));
  }
}

document.body.append(
  el('header', {}, el('div', { class: 'row' }, el('p', { class: 'brand' }, 'News feed'), el('a', { href: '/' }, 'To the feed'))), main);
void start();
