/** Elements without a framework. Strings always become text nodes: nothing of a run is ever parsed as HTML. */

export type Child = Node | string | null | undefined | false | readonly Child[];

type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (typeof child === 'string') parent.append(child);
    else if (child instanceof Node) parent.append(child);
    else append(parent, child);
  }
}

function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** An HTML element; attributes that are functions listen (`onclick`). */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, attributes);
  append(element, children);
  return element;
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  set(element, attributes);
  append(element, children);
  return element;
}

/** A list of terms and what they are; entries without a value are left out. */
export function facts(entries: readonly (readonly [term: string, value: Child])[]): HTMLElement {
  return el('dl', { class: 'facts' }, entries
    .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
    .map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))));
}

/** A choice among few, as a row of buttons. */
export function choice<T extends string>(name: string, options: readonly (readonly [T, string])[], first: T, pick: (value: T) => void): HTMLElement {
  const buttons = options.map(([value, shown]) =>
    el('button', {
      type: 'button', 'aria-pressed': String(value === first),
      onclick: (event) => {
        for (const button of buttons) button.setAttribute('aria-pressed', String(button === event.currentTarget));
        pick(value);
      },
    }, shown));
  return el('div', { class: 'choice', role: 'group', 'aria-label': name }, buttons);
}

/** A button that copies a text and says so. */
export function copyButton(text: string, what: string): HTMLElement {
  const button = el('button', { type: 'button', class: 'quiet', 'aria-label': `Copy ${what}` }, 'Copy');
  button.addEventListener('click', async () => {
    button.textContent = (await copy(text)) ? 'Copied' : 'Not possible here';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  return button;
}

/** The clipboard, or the old way where the page has no right to it (a file is no secure origin everywhere). */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el('textarea', { style: 'position:fixed;opacity:0' });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}
