/** A list that is read page by page. */

import { el, type Child } from '../dom';
import type { Page } from './api';
import { failed, nothing, say } from '../notice';
import { count } from './text';

/** Things that a list shows before it begins with its first page again instead of growing by what is new. */
const SHOWN_MAX = 500;

/** How many things of a first page are new in front of those that are shown; null where the two do not fit together. */
export function newer<T>(shown: readonly T[], { items, next }: Page<T>): number | null {
  const texts = [items, shown].map((all) => all.slice(0, items.length).map((item) => JSON.stringify(item)));
  const [now, before] = texts as [string[], string[]];
  for (let fresh = 0; fresh < now.length; fresh += 1) {
    const known = now.length - fresh;
    // The whole list is a first page that has no next.
    const reaches = next === null ? shown.length === known : shown.length >= known;
    if (reaches && now.slice(fresh).every((text, index) => text === before[index])) return fresh;
  }
  return null;
}

interface Options<T> {
  /** The name of the list. */
  name: string;
  load: (cursor: string | null) => Promise<Page<T>>;
  show: (item: T) => Child;
  empty: Child;
}

export class PagedList<T> {
  readonly element: HTMLElement;
  /** Newest first, as shown. */
  items: T[] = [];
  private readonly rows: HTMLElement;
  private readonly foot = el('div', { class: 'foot' });
  private readonly more = el('button', { type: 'button', class: 'plain', onclick: () => void this.readMore() }, 'Show more');
  private next: string | null = null;
  private loaded = false;
  private busy = false;
  /** What was asked for meanwhile. */
  private stale = false;
  private wanted = false;

  constructor(private readonly options: Options<T>) {
    this.rows = el('ul', { class: 'rows', 'aria-label': options.name });
    this.element = el('div', { class: 'list' }, this.rows, this.foot);
    this.foot.append(el('p', { class: 'note' }, 'Loading…'));
  }

  /** Whether what is shown is being read again. */
  get reading(): boolean {
    return this.busy;
  }

  /** Reads the first page; once more if it is asked to meanwhile, so that nothing is missed. */
  async read(): Promise<void> {
    if (this.busy) {
      this.stale = true;
      return;
    }
    do {
      this.stale = false;
      await this.fetch(null, () => void this.read());
    } while (this.stale);
    if (this.wanted) await this.readMore();
  }

  private async readMore(): Promise<void> {
    this.wanted = this.busy;
    if (this.busy || this.next === null) return;
    await this.fetch(this.next, () => void this.readMore());
    this.wanted = false;
    if (this.stale) await this.read();
  }

  /** Puts something new in front. */
  prepend(item: T): void {
    if (!this.loaded || this.items.length >= SHOWN_MAX) {
      void this.read();
      return;
    }
    this.items.unshift(item);
    this.rows.prepend(this.row(item));
    if (this.items.length === 1) this.finish();
  }

  private row(item: T): HTMLElement {
    return el('li', { tabindex: -1 }, this.options.show(item));
  }

  private async fetch(cursor: string | null, again: () => void): Promise<void> {
    this.busy = true;
    this.rows.setAttribute('aria-busy', 'true');
    try {
      const { items, next } = await this.options.load(cursor);
      this.loaded = true;
      const fresh = cursor === null ? newer(this.items, { items, next }) : null;
      if (fresh !== null && this.items.length + fresh <= SHOWN_MAX) {
        // Nobody loses their place: what is shown stays.
        this.items.unshift(...items.slice(0, fresh));
        this.rows.prepend(...items.slice(0, fresh).map((item) => this.row(item)));
        if (this.items.length === items.length) this.next = next;
        this.finish();
        return;
      }
      const rows = items.map((item) => this.row(item));
      if (cursor === null) {
        this.items = items;
        this.rows.replaceChildren(...rows);
      } else {
        this.items.push(...items);
        this.rows.append(...rows);
        rows[0]?.focus();
        say(`${count(items.length)} more`);
      }
      this.next = next;
      this.finish();
    } catch (error) {
      this.foot.replaceChildren(failed(error, again));
    } finally {
      this.busy = false;
      this.rows.removeAttribute('aria-busy');
    }
  }

  private finish(): void {
    if (this.items.length === 0) this.foot.replaceChildren(nothing(this.options.empty));
    else if (this.next === null) this.foot.replaceChildren();
    // Put in anew it would lose the focus.
    else if (this.foot.firstChild !== this.more) this.foot.replaceChildren(this.more);
  }
}
