// Goes through a whole visit of a running news feed in a real browser, as two people.
//   node check-newsfeed.mjs http://127.0.0.1:PORT [--screenshots DIR]
// Exit status: 0 all well, 1 something is wrong (one line each), 2 wrong use. It adds participants and posts.
// The browser is /usr/bin/chromium, or what the variable CHROMIUM names.

import { join } from 'node:path';
import { check, listen, look, see, tabTo, wrong } from './checking.mjs';

/** Posts of a page. */
const PAGE = 20;

const VIEWS = [
  ['desktop', { width: 1280, height: 900 }, 'light'], ['desktop-dark', { width: 1280, height: 900 }, 'dark'],
  ['phone', { width: 360, height: 780 }, 'light'], ['phone-dark', { width: 360, height: 780 }, 'dark'],
];

/** Other names at each visit, so that a server can be visited twice. */
const VISIT = Date.now().toString(36);
const ANN = `Ann ${VISIT}`;
const BOB = `<img src=x onerror="throw 1">${VISIT}`;
const WORD = `storm${VISIT}`;

/** A tab of somebody's own, which must neither complain nor ask anybody else. */
async function tab(browser, base, who) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  const page = await context.newPage();
  listen(page, base, `${who}: `);
  await page.goto(`${base}/`);
  return page;
}

const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();
const go = async (page, name) => {
  await page.getByRole('navigation').getByRole('link', { name }).click();
  await heading(page, name);
};
const live = (page) => page.locator('.state[data-state=live]').waitFor();
const cards = (page) => page.locator('.rows article');
const shows = (page, text) => page.getByText(text, { exact: true }).first().waitFor();

async function signIn(page, name) {
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Create a new' }).click();
  await heading(page, 'My feed');
}

/** Everything in all views. */
async function stand(page, what, screenshots) {
  for (const [name, viewport, colorScheme] of VIEWS) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    for (const fault of await page.evaluate(look, 'button, a, input, textarea')) wrong.push(`${what} (${name}) ${fault}`);
    if (screenshots) await page.screenshot({ path: join(screenshots, `${what}-${name}.png`), fullPage: true });
  }
  await page.setViewportSize(VIEWS[0][1]);
  await page.emulateMedia({ colorScheme: 'light' });
}

async function visit(browser, base, screenshots) {
  // Ann comes with the keyboard alone.
  const ann = await tab(browser, base, 'Ann');
  await heading(ann, 'Sign in');
  await tabTo(ann, 'Your name');
  await ann.keyboard.press('Enter');
  await shows(ann, 'A name is missing.');
  await stand(ann, 'sign-in', screenshots);
  await ann.keyboard.type(ANN);
  await ann.keyboard.press('Enter');
  await shows(ann, 'There is nobody of that name yet.');
  await ann.keyboard.press('Enter');
  await heading(ann, 'My feed');
  see('the focus goes to the new screen', await ann.evaluate(() => document.activeElement?.tagName) === 'H1');
  await live(ann);
  await ann.getByText('Nothing yet.').waitFor();
  await tabTo(ann, 'My posts');
  await ann.keyboard.press('Enter');
  await heading(ann, 'My posts');

  await tabTo(ann, 'Subject');
  await ann.keyboard.press('Enter');
  await shows(ann, 'Subject is missing.');
  await ann.keyboard.type('<b>Weather</b>');
  await tabTo(ann, 'Story');
  await ann.keyboard.type(`A ${WORD} over the bay <script>throw 1</script>`);
  await tabTo(ann, 'Post');
  await ann.keyboard.press('Enter');
  await shows(ann, '✓ Posted to your friends.');
  await cards(ann).first().waitFor();
  see('texts of others stay texts', (await cards(ann).first().textContent()).includes('<b>Weather</b>'));
  await ann.getByLabel('Subject').fill('Long');
  await ann.getByLabel('Story').fill('ä'.repeat(7_501));
  await shows(ann, '15,002 of 15,000 bytes');
  await ann.getByRole('button', { name: 'Post', exact: true }).click();
  await shows(ann, 'Story is 2 bytes too long: 15,000 are taken.');
  await stand(ann, 'my-posts', screenshots);

  // Bob finds her by what she wrote.
  const bob = await tab(browser, base, 'Bob');
  await signIn(bob, BOB);
  await go(bob, 'My posts');
  await bob.getByLabel('Subject').fill('Also');
  await bob.getByLabel('Story').fill(`My own ${WORD}`);
  await bob.getByLabel('Story').press('Tab');
  await bob.getByRole('button', { name: 'Post', exact: true }).click();
  await shows(bob, '✓ Posted to your friends.');
  await go(bob, 'Find people');
  await bob.getByLabel('Keywords').fill(WORD.toUpperCase());
  await bob.getByRole('button', { name: 'Find', exact: true }).click();
  const found = bob.getByRole('list', { name: 'People found' }).getByRole('listitem');
  await found.filter({ hasText: ANN }).waitFor();
  see('nobody finds themselves', await found.count() === 1);
  await stand(bob, 'find', screenshots);
  await bob.getByRole('button', { name: `Befriend ${ANN}` }).click();
  await shows(bob, '✓ Friend');
  await bob.getByRole('button', { name: 'Find', exact: true }).click();
  await bob.getByText('Nobody new').locator('visible=true').first().waitFor();
  await go(bob, 'My friends');
  await shows(bob, ANN);
  await stand(bob, 'my-friends', screenshots);

  // What Ann posts now comes to Bob by itself.
  await go(bob, 'My feed');
  await live(bob);
  await bob.getByText('Nothing yet.').waitFor();
  await bob.evaluate(() => { window.stayed = true; });
  await ann.getByLabel('Subject').fill('Now');
  await ann.getByLabel('Story').fill('Live from the bay\nwith a second line');
  await ann.getByRole('button', { name: 'Post', exact: true }).click();
  await bob.getByRole('heading', { name: 'Now', exact: true }).waitFor();
  await bob.locator('[aria-live=polite]', { hasText: `New post from ${ANN}: Now` }).waitFor({ state: 'attached' });
  see('a live post has its poster', (await cards(bob).first().textContent()).includes(ANN));
  see('a live post is there once', await cards(bob).count() === 1);
  see('the page was not loaded again', await bob.evaluate(() => window.stayed === true));

  // More than a page.
  const me = await ann.evaluate(() => JSON.parse(sessionStorage.getItem('newsfeed-participant')).id);
  for (let number = 1; number <= 24; number += 1) {
    const answer = await ann.request.post(`${base}/participant/${me}/outbound`, { data: { subject: `No. ${number}`, story: 'One of many' } });
    if (!answer.ok()) wrong.push(`a post was answered ${answer.status()}`);
  }
  await bob.getByRole('heading', { name: 'No. 24', exact: true }).waitFor();
  see('all live posts are there once', new Set(await bob.locator('.rows h2').allTextContents()).size === await cards(bob).count());
  await bob.reload();
  await heading(bob, 'My feed');
  await live(bob);
  const subjects = async (list) => (await list.locator('.rows h2').allTextContents()).join();
  const expected = [...Array.from({ length: 24 }, (_, index) => `No. ${24 - index}`), 'Now'];
  await bob.getByRole('heading', { name: 'No. 24', exact: true }).waitFor();
  await bob.waitForFunction(() => document.querySelector('[aria-busy]') === null);
  see('the first page is the newest', await subjects(bob) === expected.slice(0, PAGE).join());
  await stand(bob, 'my-feed', screenshots);
  await bob.getByRole('button', { name: 'Show more' }).click();
  await bob.getByRole('heading', { name: 'Now', exact: true }).waitFor();
  see('the second page goes on where the first ends', await subjects(bob) === expected.join());
  see('the last page has no next', await bob.getByRole('button', { name: 'Show more' }).count() === 0);

  // What comes then, and a stream that begins anew, leave everything where it is.
  await ann.getByLabel('Subject').fill('Last');
  await ann.getByLabel('Story').fill('The end');
  await ann.getByRole('button', { name: 'Post', exact: true }).click();
  await bob.getByRole('heading', { name: 'Last', exact: true }).waitFor();
  const begun = bob.waitForResponse(/inbound\?limit=/);
  await bob.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await (await begun).finished();
  await live(bob);
  await bob.waitForFunction(() => document.querySelector('[aria-busy]') === null);
  see('what is shown stays when the feed is read again', await subjects(bob) === ['Last', ...expected].join());

  await failures(bob, screenshots);
  await again(browser, base, bob, screenshots);
  await docs(browser, base, screenshots);
}

/** A server that refuses or is gone is told of in words, and the way back works. */
async function failures(page, screenshots) {
  page.expectFailures = true;
  const friends = /\/participant\/\d+\/friends/;
  await page.route(friends, (route) => route.fulfill({ status: 503, contentType: 'application/json', body: '{"error":"a store does not work; <i>see</i> the log"}' }));
  await go(page, 'My friends');
  await shows(page, 'A store does not work; <i>see</i> the log.');
  await page.unroute(friends);
  await page.route(friends, (route) => route.abort());
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('The server cannot be reached.').waitFor();
  await stand(page, 'offline', screenshots);
  await page.unroute(friends);
  await page.getByRole('button', { name: 'Try again' }).click();
  await shows(page, ANN);
  see('a failure goes away', await page.locator('.failure').count() === 0);

  // A stream that is refused at first is asked for again.
  let refused = 0;
  await page.route(/\/inbound\/stream/, (route) => ((refused += 1) === 1 ? route.fulfill({ status: 503, body: '' }) : route.continue()));
  await go(page, 'My feed');
  await page.locator('.state[data-state=lost]').waitFor();
  await live(page);
  see('a refused stream is asked for again', refused >= 2);
  await page.unroute(/\/inbound\/stream/);
  page.expectFailures = false;
}

/** Who is there already comes back by name; who is not the same any more signs in anew. */
async function again(browser, base, bob, screenshots) {
  const ann = await tab(browser, base, 'Ann again');
  await ann.getByLabel('Your name').fill(ANN);
  await ann.getByRole('button', { name: 'Sign in' }).click();
  await ann.getByRole('button', { name: `Go on as ${ANN}` }).waitFor();
  await stand(ann, 'who', screenshots);
  await ann.getByRole('button', { name: `Go on as ${ANN}` }).click();
  await heading(ann, 'My feed');
  await go(ann, 'My friends');
  await shows(ann, BOB);
  await ann.getByRole('button', { name: 'Sign out' }).click();
  await heading(ann, 'Sign in');
  await bob.evaluate(() => sessionStorage.setItem('newsfeed-participant', '{"id":1,"name":"somebody else"}'));
  await bob.reload();
  await heading(bob, 'Sign in');
}

async function docs(browser, base, screenshots) {
  const page = await tab(browser, base, 'docs');
  await page.goto(`${base}/docs`);
  await page.getByRole('heading', { name: 'Schemas' }).waitFor();
  const document = await (await page.request.get(`${base}/openapi.json`)).json();
  const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));
  const shown = await page.locator('.operation h3').allTextContents();
  see('every operation is described', shown.sort().join() === operations.sort().join());
  const schemas = await page.locator('[id^="schema-"] h3').allTextContents();
  see('every schema is described', schemas.sort().join() === Object.keys(document.components.schemas).sort().join());
  await stand(page, 'docs', screenshots);
}

process.exitCode = await check('check-newsfeed.mjs', visit);
