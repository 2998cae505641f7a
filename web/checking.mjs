// What the checks of pages in a real browser share. The browser is /usr/bin/chromium, or what the variable CHROMIUM names.

import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { chromium } from 'playwright-core';

/** Longest that one step may take, milliseconds: a bound for what hangs. */
export const PATIENCE_MS = 60_000;
/** Keys until what is looked for has the focus. */
const TABS_MAX = 60;

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'];

export const browse = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: ARGS });

/** What does not hold, and what does. */
export const [wrong, done] = [[], []];

export function see(what, holds) {
  if (holds) done.push(what);
  else wrong.push(what);
}

/** Tells whatever a page complains of, but for failures that are expected, and whom else it asks. */
export function listen(page, base, who = '') {
  page.setDefaultTimeout(PATIENCE_MS);
  page.expectFailures = false;
  page.on('console', (it) => { if (['error', 'warning'].includes(it.type()) && !page.expectFailures) wrong.push(`${who}console ${it.type()}: ${it.text()}`); });
  page.on('pageerror', (error) => wrong.push(`${who}exception: ${error.message}`));
  page.on('request', (it) => { if (!it.url().startsWith(`${base}/`) && !/^(data|blob):/.test(it.url())) wrong.push(`${who}asks for ${it.url()}`); });
}

/** What is wrong with how a page with these controls stands there; runs in the browser. */
export function look(controls) {
  const faults = [];
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) faults.push(`is ${over} px too wide`);
  const named = (it) => (it.getAttribute('aria-label') ?? it.textContent ?? '').trim() !== '' || (it.labels?.length ?? 0) > 0;
  for (const it of document.querySelectorAll(controls)) if (!named(it)) faults.push(`${it.outerHTML} has no name`);
  const levels = [...document.querySelectorAll('h1, h2, h3')].map((it) => Number(it.tagName[1]));
  if (levels[0] !== 1 || levels.some((level, index) => index > 0 && level > levels[index - 1] + 1)) faults.push(`headings are ${levels}`);
  if (document.querySelector('body img, body iframe, main script, main b b')) faults.push('a text became markup');
  const small = [...document.querySelectorAll('button, nav a')].filter((it) => it.getBoundingClientRect().height < 30);
  if (small.length > 0) faults.push(`${small.length} controls are too small for a finger`);
  return faults;
}

/** Goes to a control by the keyboard alone. */
export async function tabTo(page, name) {
  for (let key = 0; key < TABS_MAX; key += 1) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const it = document.activeElement;
      return { name: it?.getAttribute('aria-label') ?? it?.labels?.[0]?.textContent ?? it?.textContent ?? '', outlined: it !== null && getComputedStyle(it).outlineStyle !== 'none' };
    });
    if (at.name.trim() !== name) continue;
    see(`the focus is seen on "${name}"`, at.outlined);
    return;
  }
  wrong.push(`"${name}" is not reached with the tab key`);
}

/** Goes through pages as the command line says, and returns the exit status of `program`. */
export async function check(program, go) {
  const args = process.argv.slice(2);
  const at = args.indexOf('--screenshots');
  const screenshots = at >= 0 ? resolve(args.splice(at, 2)[1] ?? '.') : null;
  if (args.length !== 1) {
    console.error(`usage: node ${program} http://127.0.0.1:PORT [--screenshots DIR]`);
    return 2;
  }
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  const browser = await browse();
  try {
    await go(browser, args[0].replace(/\/$/, ''), screenshots);
  } catch (error) {
    wrong.push(`it broke off: ${error instanceof Error ? error.message : error}`);
  } finally {
    await browser.close();
  }
  for (const line of done) console.log(`ok   ${line}`);
  for (const line of wrong) console.log(`FAIL ${line}`);
  return wrong.length === 0 ? 0 : 1;
}
