// Goes through whole trips with a running airline in a real browser: by mouse on a desktop, by keyboard, on a phone.
//   node check-airline.mjs http://127.0.0.1:PORT [--screenshots DIR]
// Exit status: 0 all well, 1 something is wrong (one line each), 2 wrong use. It changes customers and bookings.
// The browser is /usr/bin/chromium, or what the variable CHROMIUM names.

import { join } from 'node:path';
import { check, listen, look, see, tabTo, wrong } from './checking.mjs';

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

/** A tab of somebody's own, which must neither complain nor ask anybody else. */
async function tab(browser, base, who, viewport) {
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce', timezoneId: 'Pacific/Auckland' });
  const page = await context.newPage();
  listen(page, base, `${who}: `);
  await page.goto(`${base}/`);
  return page;
}

const heading = (page, name, level = 1) => page.getByRole('heading', { level, name }).waitFor();
const button = (page, name) => page.getByRole('button', { name, exact: true });
const go = async (page, name, title = name) => {
  await page.getByRole('link', { name, exact: true }).last().click();
  await heading(page, title);
};

/** In light and dark. */
async function stand(page, what, screenshots) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    const name = `${what}-${page.viewportSize().width}-${colorScheme}`;
    for (const fault of await page.evaluate(look, 'button, a, input, select')) wrong.push(`${name} ${fault}`);
    if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: 'light' });
}

/** Signs in as `user`, whose bookings are all those of this trip. */
async function trip(browser, base, user, viewport, screenshots) {
  const page = await tab(browser, base, user, viewport);
  await heading(page, 'Welcome to the airline');
  await stand(page, 'home', screenshots);

  // Who goes on is asked to sign in, and is then where they wanted to go.
  await page.getByRole('navigation').getByRole('link', { name: 'Flights' }).click();
  await heading(page, 'Sign in');
  await stand(page, 'sign-in', screenshots);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill('wrong');
  page.expectFailures = true;
  await button(page.locator('main'), 'Sign in').click();
  await page.getByText('Wrong user or password.').waitFor();
  await stand(page, 'sign-in-refused', screenshots);
  page.expectFailures = false;
  await page.getByLabel('Password').fill('password');
  await page.getByLabel('Password').press('Enter');
  await heading(page, 'Flights');
  see('the focus goes to the new page', await page.evaluate(() => document.activeElement?.tagName) === 'H1');
  const session = (await page.context().cookies()).find(({ name }) => name === 'sessionid');
  see('the session is hidden from scripts and from other sites', session.httpOnly && session.sameSite === 'Lax');
  see('and scripts see who it is alone', !(await page.evaluate(() => document.cookie)).includes('sessionid'));

  // Both ways.
  await page.getByLabel('From').selectOption('CDG');
  await page.getByLabel('To', { exact: true }).selectOption('SVO');
  await button(page, 'Find flights').click();
  await heading(page, 'Choose your flights', 2);
  see('a flight each way is found', await page.getByRole('radio').count() === 2);
  see('by their numbers', /AA280[^]*AA241/.test(await page.locator('.legs').innerText()));
  await stand(page, 'found', screenshots);
  await button(page, 'Book these flights').click();
  await page.getByText('Both flights are booked.').locator('visible=true').first().waitFor();
  see('both have a number', await page.locator('.numbers code').count() === 2);
  await stand(page, 'booked', screenshots);

  // One way, on a day of all.
  await page.getByLabel('To', { exact: true }).selectOption('NRT');
  await page.getByLabel('One way').check();
  see('nobody is asked for a way back', await page.getByLabel('Return').isHidden());
  await button(page, 'Browse all days').click();
  await heading(page, 'Choose your flights', 2);
  see('every day has a flight', await page.getByRole('radio').count() === 30);
  await stand(page, 'browsed', screenshots);
  await page.getByRole('radio').nth(2).check();
  const chosen = await page.locator('.flight').nth(2).locator('.what > span').first().innerText();
  await button(page, 'Book this flight').click();
  await page.getByText('The flight is booked.').locator('visible=true').first().waitFor();

  // No way back, nothing at all, and what is no trip.
  await page.getByLabel('From').selectOption('AMS');
  await page.getByLabel('One way').uncheck();
  await button(page, 'Find flights').click();
  await page.getByText('The airline does not fly from Tokyo to Amsterdam. Only the flight out is booked.').waitFor();
  await page.getByLabel('Leave').fill('2099-01-01');
  await button(page, 'Find flights').click();
  await page.getByText('Nothing leaves on that day.').locator('visible=true').first().waitFor();
  see('the way back follows the way out', await page.getByLabel('Return').inputValue() === '2099-01-01');
  await page.getByLabel('From').selectOption('NRT');
  await button(page, 'Find flights').click();
  see('one cannot fly to where one is', !(await page.getByLabel('To', { exact: true }).evaluate((it) => it.validity.valid)));

  await go(page, 'My bookings');
  const rows = page.getByRole('list', { name: 'Bookings' }).getByRole('listitem');
  await rows.nth(2).waitFor();
  see('all are listed', await rows.count() === 3);
  await rows.first().getByText(chosen).waitFor();
  see('the newest first, with its days', /Paris → Tokyo/.test(await rows.first().innerText()));
  await rows.filter({ hasText: 'Moscow → Paris' }).getByText(/\d\d:\d\d – \d\d:\d\d/).waitFor();
  await stand(page, 'my-bookings', screenshots);
  await button(page, 'Cancel Moscow → Paris').click();
  await stand(page, 'cancelling', screenshots);
  await button(page, 'Keep it').click();
  see('what is kept stays', await rows.count() === 3);
  await button(page, 'Cancel Moscow → Paris').click();
  await button(page, 'Cancel this booking').click();
  await page.getByText('2 bookings.').waitFor();
  await page.reload();
  await rows.nth(1).waitFor();
  see('what is cancelled is gone', await rows.count() === 2 && await rows.filter({ hasText: 'Moscow → Paris' }).count() === 0);

  await go(page, 'Profile');
  await page.getByText('1,000,000 miles').waitFor();
  await stand(page, 'profile', screenshots);
  const street = `<b>1</b> "Quay" ${viewport.width}`;
  await page.getByLabel('Street', { exact: true }).fill(street);
  await page.getByLabel('Kind of telephone').selectOption('MOBILE');
  await page.getByLabel('Password, to confirm').fill('wrong');
  page.expectFailures = true;
  await button(page, 'Update profile').click();
  await page.getByText('Wrong password.').waitFor();
  page.expectFailures = false;
  await page.getByLabel('Password, to confirm').fill('password');
  await button(page, 'Update profile').click();
  await page.getByText('✓ The profile is updated.').waitFor();
  see('the password is not kept', await page.getByLabel('Password, to confirm').inputValue() === '');
  await page.reload();
  await page.getByText('1,000,000 miles').waitFor();
  see('the profile is changed', await page.getByLabel('Street', { exact: true }).inputValue() === street
    && await page.getByLabel('Kind of telephone').inputValue() === 'MOBILE');

  await foreign(page, base);
  await go(page, 'Configuration');
  await page.getByText('394').waitFor();
  await page.getByText('11,820').waitFor();
  await page.getByText('In use:').waitFor();
  see('the session has not ended', /^Sessions\n1$/m.test(await page.locator('main').innerText()));
  await stand(page, 'configuration', screenshots);
  await go(page, 'Load customers');
  await page.getByLabel('Number of customers').fill('250');
  await page.getByRole('main').getByRole('button', { name: 'Load customers' }).click();
  await page.getByText('✓ Loaded flights and 250 customers').waitFor();
  await stand(page, 'loader', screenshots);

  await failures(page, user, screenshots);
  await button(page, 'Sign out').click();
  await heading(page, 'Sign in');
  see('who signs out is out', (await page.context().cookies()).every(({ name, value }) => name !== 'sessionid' || value === ''));
  await page.context().close();
}

/** A server that refuses or is gone is told of in words, and a session that has ended as well. */
async function failures(page, user, screenshots) {
  page.expectFailures = true;
  const list = /\/bookings\/byuser\//;
  await page.route(list, (route) => route.fulfill({ status: 503, contentType: 'application/json', body: '{"reason":"the store <i>does</i> not work"}' }));
  await go(page, 'My bookings');
  await page.getByText('The store <i>does</i> not work.').waitFor();
  await page.unroute(list);
  await page.route(list, (route) => route.abort());
  await button(page, 'Try again').click();
  await page.getByText('The server cannot be reached.').waitFor();
  await stand(page, 'offline', screenshots);
  await page.unroute(list);
  await button(page, 'Try again').click();
  await page.getByRole('list', { name: 'Bookings' }).waitFor();
  // Ended elsewhere: the page finds out with the next request, of which none is under way.
  await page.waitForFunction(() => [...document.querySelectorAll('main li p')].every((it) => it.textContent !== '…'));
  await page.evaluate(() => fetch('rest/api/login/logout'));
  await page.getByRole('link', { name: 'Profile' }).click();
  await page.getByText('Your session has ended.').waitFor();
  await page.getByLabel('User').fill(user);
  await button(page.locator('main'), 'Sign in').click();
  await heading(page, 'Profile');
  page.expectFailures = false;
}

/** A page of another site can neither end the session nor post with it. */
async function foreign(page, base) {
  const other = await page.context().newPage();
  const html = `<form method="post" action="${base}/rest/api/bookings/cancelbooking"><input name="number" value="1"></form><a href="${base}/rest/api/login/logout">out</a>`;
  await other.route('http://other.test/', (route) => route.fulfill({ contentType: 'text/html', body: html }));
  for (const act of ['document.forms[0].submit()', 'document.links[0].click()']) {
    await other.goto('http://other.test/');
    const answer = other.waitForResponse((it) => it.url().startsWith(`${base}/rest/`));
    await other.evaluate(act);
    const answered = await answer;
    see(`${act} of another site is refused`, answered.status() === 403 && /another site/.test(await answered.text()));
  }
  await other.close();
}

/** The same with the keyboard alone, in the other folder. */
async function keys(browser, base, screenshots) {
  const page = await tab(browser, base, 'keyboard', DESKTOP);
  await page.goto(`${base}/acmeair-webapp`);
  await heading(page, 'Welcome to the airline');
  await tabTo(page, 'Skip to the content');
  await tabTo(page, 'Flights');
  await page.keyboard.press('Enter');
  await heading(page, 'Sign in');
  see('links stay in the folder', page.url() === `${base}/acmeair-webapp/flights.html`);
  await tabTo(page, 'User');
  await page.keyboard.press('Enter');
  await heading(page, 'Flights');
  await tabTo(page, 'From');
  await page.keyboard.type('London');
  await tabTo(page, 'To');
  await page.keyboard.type('Sydney');
  await tabTo(page, 'Find flights');
  await page.keyboard.press('Enter');
  await heading(page, 'Choose your flights', 2);
  await stand(page, 'keyboard', screenshots);
  await tabTo(page, 'Book these flights');
  await page.keyboard.press('Enter');
  await heading(page, 'Booked', 2);
  await tabTo(page, 'See my bookings');
  await page.keyboard.press('Enter');
  await heading(page, 'My bookings');
  await tabTo(page, 'Cancel Sydney → London');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByText('1 booking.').waitFor();
  see('the focus goes on to the next', await page.evaluate(() => document.activeElement?.getAttribute('aria-label')) === 'Cancel London → Sydney');
  await page.context().close();
}

process.exitCode = await check('check-airline.mjs', async (browser, base, screenshots) => {
  await trip(browser, base, 'uid1@email.com', DESKTOP, screenshots);
  await trip(browser, base, 'uid2@email.com', PHONE, screenshots);
  await keys(browser, base, screenshots);
});
