/** Light or dark: the reader's system says, unless the reader does. */

import { el } from './dom';

export type Theme = 'light' | 'dark';
type Wish = 'auto' | Theme;

const KEY = 'tidemark-theme';
const WISHES: readonly Wish[] = ['auto', 'light', 'dark'];
const dark = window.matchMedia('(prefers-color-scheme: dark)');

let wish: Wish = 'auto';
let printing = false;
let colours: CSSStyleDeclaration | null = null;
const listeners: (() => void)[] = [];

/** The theme that is shown now. Paper is always light. */
export function theme(): Theme {
  if (printing) return 'light';
  if (wish !== 'auto') return wish;
  return dark.matches ? 'dark' : 'light';
}

/** The value of a colour of the style sheet, for what is drawn on a canvas. */
export function colour(name: string): string {
  colours ??= getComputedStyle(document.documentElement);
  return colours.getPropertyValue(`--${name}`).trim() || '#888';
}

/** Calls back after every change of colours. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

function apply(): void {
  document.documentElement.dataset['theme'] = theme();
  colours = null;
  for (const listener of listeners) listener();
}

/** While printing, the page is light. */
export function setPrinting(now: boolean): void {
  printing = now;
  apply();
}

/** Takes up the reader's last choice and follows the system. */
export function startTheme(): void {
  try {
    const kept = localStorage.getItem(KEY) as Wish | null;
    if (kept && WISHES.includes(kept)) wish = kept;
  } catch {
    // A page without storage simply forgets.
  }
  dark.addEventListener('change', apply);
  apply();
}

/** The button that goes through automatic, light and dark. */
export function themeButton(): HTMLElement {
  const names: Record<Wish, [icon: string, name: string]> = { auto: ['◐', 'Auto'], light: ['☀', 'Light'], dark: ['☾', 'Dark'] };
  const button = el('button', { type: 'button', class: 'quiet', title: 'Colours: automatic, light or dark' });
  const show = () => {
    const [icon, name] = names[wish];
    button.replaceChildren(icon, el('span', { class: 'long' }, ` ${name}`));
    button.setAttribute('aria-label', `Colours: ${name}`);
  };
  show();
  button.addEventListener('click', () => {
    wish = WISHES[(WISHES.indexOf(wish) + 1) % WISHES.length] ?? 'auto';
    show();
    try {
      localStorage.setItem(KEY, wish);
    } catch {
      // As above.
    }
    apply();
  });
  return button;
}
