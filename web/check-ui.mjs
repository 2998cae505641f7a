// Goes through the pages of a running `tidemark ui` in a real browser.
//   node check-ui.mjs http://127.0.0.1:PORT LIVE A B SEARCH [--screenshots DIR]
// LIVE is running, A and B have ended, SEARCH is a search for a limit with a trial.
// Exit status: 0 all well, 1 something is wrong (one line each), 2 wrong use.
// The browser is /usr/bin/chromium, or what the variable CHROMIUM names.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { browse, done, listen, see, wrong } from './checking.mjs';

const VIEWS = [
  ['desktop', { width: 1280, height: 900 }, 'light'], ['desktop-dark', { width: 1280, height: 900 }, 'dark'],
  ['phone', { width: 360, height: 780 }, 'light'],
];

/** What is wrong with how a page stands there; runs in the browser. */
function look() {
  const faults = [];
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) faults.push(`is ${over} px too wide`);
  const named = (it) => (it.getAttribute('aria-label') ?? it.textContent ?? '').trim() !== '';
  for (const it of document.querySelectorAll('button, a, input')) if (!named(it)) faults.push(`${it.outerHTML} has no name`);
  if (document.querySelector('body img, body iframe, main script')) faults.push('a text became markup');
  return faults;
}

async function stand(page, what, screenshots) {
  for (const [name, viewport, colorScheme] of VIEWS) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    for (const fault of await page.evaluate(look)) wrong.push(`${what}, ${name}: ${fault}`);
    if (screenshots) await page.screenshot({ path: join(screenshots, `${what}-${name}.png`), fullPage: true });
  }
  await page.setViewportSize(VIEWS[0][1]);
}

const ready = (page) => page.locator('html[data-ready=true]').waitFor();

async function visit(browser, base, [live, a, b, search], screenshots) {
  const page = await (await browser.newContext({ viewport: VIEWS[0][1] })).newPage();
  listen(page, base);

  await page.goto(`${base}/`);
  await ready(page);
  await page.getByRole('link', { name: live }).waitFor();
  see('one that is running is told as such', (await page.locator('tr', { hasText: live }).locator('.badge').textContent()) === 'running');
  see('the runs that have ended have a verdict', (await page.locator('.badge.pass, .badge.fail, .badge.invalid').count()) >= 2);
  await stand(page, 'list', screenshots);

  await page.getByRole('link', { name: live }).click();
  await page.locator('.line polyline').first().waitFor();
  const requests = page.locator('.tile', { hasText: 'Requests' }).locator('.figure');
  const before = await requests.textContent();
  await page.waitForFunction((text) => ![...document.querySelectorAll('.tile')].some((it) => it.textContent.startsWith('Requests') && it.querySelector('.figure').textContent === text), before);
  done.push('figures go on');
  see('processes are told', (await page.locator('td', { hasText: 'driver' }).count()) > 0);
  await stand(page, 'live', screenshots);

  await page.getByRole('link', { name: 'Tidemark' }).click();
  const compare = page.getByRole('button', { name: /^Compare/ });
  await compare.waitFor();
  see('nothing is compared with nothing', await compare.isDisabled());
  await page.getByLabel(`Compare ${a}`, { exact: true }).check();
  await page.getByLabel(`Compare ${b}`, { exact: true }).check();
  await compare.click();
  await page.waitForURL(/\/compare\?/);
  see('both are compared', (await page.getByText(a, { exact: false }).count()) > 0 && (await page.getByText(b, { exact: false }).count()) > 0);
  await page.getByRole('link', { name: 'report of A' }).click();
  await page.waitForURL(`${base}/runs/${encodeURIComponent(a)}/report.html`);
  await ready(page);
  see('the report of a run has its charts', (await page.locator('.plot canvas').count()) > 0);

  await page.goto(`${base}/`);
  const row = (name) => page.locator('tr', { has: page.getByRole('link', { name, exact: true }) });
  await row(search).waitFor();
  see('a search is told with its sentence', (await row(search).locator('.badge').textContent()) === 'limit' && (await row(search).textContent()).includes('holds '));
  see('a search cannot be compared', (await row(search).locator('input').count()) === 0);
  await page.getByRole('link', { name: search, exact: true }).click();
  await page.waitForURL(`${base}/runs/${encodeURIComponent(search)}/report.html`);
  await stand(page, 'search', screenshots);
  await page.locator('td a').first().click();
  await ready(page);
  see('a trial has its report', page.url().startsWith(`${base}/runs/${encodeURIComponent(search)}/`));

  await page.goto(`${base}/`);
  await page.locator('.sub a').first().click();
  await page.waitForURL(/\/history\?scenario=/);
  see('a history has a dot for each run', (await page.locator('circle').count()) > 0);
  await stand(page, 'history', screenshots);
}

const [base, live, a, b, search, flag, dir] = process.argv.slice(2);
if (!base || !live || !a || !b || !search || (flag && (flag !== '--screenshots' || !dir))) {
  console.error('node check-ui.mjs http://127.0.0.1:PORT LIVE A B SEARCH [--screenshots DIR]');
  process.exit(2);
}
const screenshots = dir ? resolve(dir) : null;
if (screenshots) mkdirSync(screenshots, { recursive: true });
const browser = await browse();
try {
  await visit(browser, base, [live, a, b, search], screenshots);
} catch (error) {
  wrong.push(error.message);
} finally {
  await browser.close();
}
for (const fault of wrong) console.log(fault);
if (wrong.length === 0) console.log(`all well: ${done.join('; ')}`);
process.exit(wrong.length > 0 ? 1 : 0);
