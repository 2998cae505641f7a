// Opens a report in a real browser and looks whether it is whole.
//   node check.mjs path/to/report.html [--screenshots DIR]
//   node check.mjs --sample [--screenshots DIR]     the built page with runs of many kinds
// Exit status: 0 all well, 1 something is wrong (one line each), 2 wrong use.
// The browser is /usr/bin/chromium, or what the variable CHROMIUM names.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { browse } from './checking.mjs';
import { makeRun } from './sample/make.mjs';

/** Longest that a page may take to draw everything, milliseconds. */
const DRAW_LIMIT_MS = 15_000;

/** Less ink than this share of a chart's area is an empty canvas. */
const LEAST_INK = 0.004;

/** A chart with lines has at least so many pixels in their colours: one dot. */
const LEAST_DRAWN = 4;

/** The band of a fault has at least so many pixels in its colour: one edge. */
const LEAST_BAND = 100;

/** The one chart that has no axis of time. */
const WITHOUT_TIME = 'Percentiles';

/** A heat map has at least so many colours, axes and half-covered pixels included. */
const LEAST_COLOURS = 10;

/** Why a chart is not whole; null if it is. */
function flaw({ name, ink, drawn, colours }) {
  if (ink < LEAST_INK) return `chart "${name}" is blank`;
  if (drawn === null ? colours < LEAST_COLOURS : drawn < LEAST_DRAWN) return `chart "${name}" has axes but no data`;
  return null;
}

/** Whether every fault is in the table, and each chart over time shows those that happened. */
function faultsMissing({ faults, rows, charts }) {
  const wrong = rows === faults.length ? [] : [`${rows} rows for ${faults.length} faults`];
  const over = charts.filter(({ name }) => name !== WITHOUT_TIME);
  // What a store was asked for breaks nothing and has another colour.
  const breaks = ({ kind }) => kind !== 'rewrite' && kind !== 'snapshot';
  if (!faults.some((it) => it.begin_us !== null && breaks(it))) return wrong;
  wrong.push(...over.filter(({ band }) => band < LEAST_BAND).map(({ name }) => `chart "${name}" has no band for a fault`));
  wrong.push(...over.filter(({ says }) => !/ Fault [A-Z]+, /.test(says)).map(({ name }) => `chart "${name}" does not say where a fault was`));
  return wrong;
}

/** Whether every group of steps has its row, with what it came to. */
function groupsMissing({ groups, groupRows }) {
  if (groups.length !== groupRows.length) return [`${groupRows.length} rows for ${groups.length} groups`];
  return groups.filter((of, index) => !groupRows[index].startsWith(of.group)).map((of) => `group "${of.group}" has no row`);
}

/** Whether everything that the scenario measured itself, and each ratio, has its row. */
function metricsMissing({ metrics, metricRows }) {
  if (metrics.length !== metricRows.length) return [`${metricRows.length} rows for ${metrics.length} metrics and ratios of the scenario's own`];
  return metrics.filter((name, index) => !metricRows[index].startsWith(name)).map((name) => `metric "${name}" has no row`);
}

const VIEWS = [
  { name: 'desktop', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'dark', viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  { name: 'phone', viewport: { width: 360, height: 780 }, colorScheme: 'light', deviceScaleFactor: 2, hasTouch: true },
  { name: 'phone-dark', viewport: { width: 360, height: 780 }, colorScheme: 'dark', deviceScaleFactor: 2, hasTouch: true },
];

/** What is seen in the page itself; runs in the browser. */
function look() {
  // Reading a chart's own canvas back would slow it down, and the browser would say so.
  const scratch = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const pixels = (canvas) => {
    Object.assign(scratch.canvas, { width: canvas.width, height: canvas.height });
    scratch.drawImage(canvas, 0, 0);
    return scratch.getImageData(0, 0, canvas.width, canvas.height).data;
  };
  const rgb = (style, name) => style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
  const fault = rgb(getComputedStyle(document.documentElement), '--fault');
  const charts = [...document.querySelectorAll('.plot')].map((plot) => {
    const figure = plot.closest('figure');
    const name = figure.querySelector('h3')?.textContent ?? '?';
    const says = plot.getAttribute('aria-label');
    const canvas = plot.querySelector('canvas');
    if (!canvas || canvas.width === 0 || canvas.height === 0) return { name, ink: 0, drawn: 0, band: 0, says, colours: 0 };
    // The colours of the lines that the legend says are shown.
    const lines = [...figure.querySelectorAll('.legend button[aria-pressed=true] .swatch')]
      .map((swatch) => rgb(getComputedStyle(swatch), '--swatch'));
    const data = pixels(canvas);
    const colours = new Set();
    let [ink, drawn, band] = [0, 0, 0];
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] === 0) continue;
      ink += 1;
      if (colours.size < 100) colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
      if (data[at + 3] > 200 && lines.some((line) => line.every((part, channel) => Math.abs(part - data[at + channel]) < 12))) drawn += 1;
      if (data[at + 3] > 200 && fault.every((part, channel) => Math.abs(part - data[at + channel]) < 4)) band += 1;
    }
    return { name, ink: ink / (canvas.width * canvas.height), drawn: lines.length === 0 ? null : drawn, band, says, colours: colours.size };
  });
  const wide = [...document.querySelectorAll('main *')].filter((element) =>
    !element.closest('.scroll, pre, .plot, .unseen') && element.getBoundingClientRect().right > innerWidth + 1).slice(0, 3);
  return {
    ready: document.documentElement.dataset.ready === 'true',
    charts,
    overflow: document.documentElement.scrollWidth - innerWidth,
    wide: wide.map((element) => `${element.tagName.toLowerCase()}.${element.className}`),
    verdict: document.querySelector('.verdict strong')?.textContent ?? '',
    bold: document.querySelectorAll('main script, main iframe, main img').length,
    headings: [...document.querySelectorAll('h1, h2, h3')].map((heading) => Number(heading.tagName[1])),
    faults: JSON.parse(document.getElementById('run').textContent).manifest?.summary?.faults ?? [],
    rows: document.querySelector('#faults')?.parentElement.querySelectorAll('table.faults tbody tr').length ?? 0,
    groups: JSON.parse(document.getElementById('run').textContent).manifest?.summary?.groups ?? [],
    metrics: (({ metrics = [], ratios = [] }) => [...ratios.map((of) => of.name), ...metrics.map((of) => of.metric)])(
      JSON.parse(document.getElementById('run').textContent).manifest?.summary ?? {},
    ),
    metricRows: [...document.querySelectorAll('table.own tbody tr')].map((row) => row.textContent),
    groupRows: [...document.querySelectorAll('table.groups tbody tr')].map((row) => row.textContent),
    unnamed: [...document.querySelectorAll('.plot, button, .scroll')].filter((element) => !(element.getAttribute('aria-label') ?? element.textContent).trim()).length,
  };
}

async function checkView(browser, file, view, screenshots, least) {
  const wrong = [];
  const context = await browser.newContext({ ...view, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) wrong.push(`console ${message.type()}: ${message.text()}`); });
  page.on('pageerror', (error) => wrong.push(`exception: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    if (url !== pathToFileURL(file).href && !/^(data|blob):/.test(url)) wrong.push(`asks for ${url}`);
  });
  await page.goto(pathToFileURL(file).href, { waitUntil: 'load' });
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'true', null, { timeout: DRAW_LIMIT_MS }).catch(() => wrong.push('was never drawn'));
  await page.waitForTimeout(50);

  const seen = await page.evaluate(look);
  if (!/^(Pass|Fail|Invalid)$/.test(seen.verdict)) wrong.push(`the verdict reads "${seen.verdict}"`);
  if (seen.charts.length < least) wrong.push(`${seen.charts.length} charts, expected at least ${least}`);
  wrong.push(...seen.charts.map(flaw).filter(Boolean));
  wrong.push(...faultsMissing(seen));
  wrong.push(...groupsMissing(seen));
  wrong.push(...metricsMissing(seen));
  if (seen.overflow > 0) wrong.push(`is ${seen.overflow} px wider than the window: ${seen.wide.join(', ')}`);
  if (seen.bold > 0) wrong.push('a string of the run became markup');
  if (seen.unnamed > 0) wrong.push(`${seen.unnamed} controls or charts without a name`);
  if (seen.headings.some((level, index) => index > 0 && level > seen.headings[index - 1] + 1)) wrong.push('a heading level is skipped');

  if (seen.charts.length > 0) wrong.push(...await checkUse(page));
  if (screenshots) {
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(screenshots, `${basename(file, '.html')}-${view.name}.png`), fullPage: true });
    if (view.name === 'desktop') await page.pdf({ path: join(screenshots, `${basename(file, '.html')}.pdf`), format: 'A4', margin: { top: '12mm', bottom: '12mm', left: '13mm', right: '13mm' } });
  }
  await context.close();
  return { wrong, charts: seen.charts.length };
}

/** Cursor, zoom, sorting and theme do what they should. */
async function checkUse(page) {
  const wrong = [];
  const readouts = () => page.locator('.note.live').count();
  const plots = page.locator('.plot');
  await plots.first().focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForTimeout(30);
  if ((await readouts()) < Math.min(2, await plots.count())) wrong.push('the cursor is not shown in the other charts');
  await page.keyboard.press('Escape');

  // Every choice once, and back to the first: what is drawn then must be as whole as before.
  for (const choice of await page.locator('.choice').all()) {
    const buttons = await choice.locator('button').all();
    for (const button of [...buttons.slice(1), buttons[0]]) await button.click();
    if (!(await buttons[0].evaluate((button) => button === document.activeElement))) wrong.push('a choice loses the focus');
  }
  await page.waitForTimeout(30);
  wrong.push(...(await page.evaluate(look)).charts.map(flaw).filter(Boolean).map((it) => `after a choice: ${it}`));

  const sorter = page.locator('table.labels thead button').nth(1);
  if (await sorter.count()) {
    await sorter.click();
    if ((await page.locator('table.labels th[aria-sort=descending]').count()) !== 1) wrong.push('the table by label does not sort');
    await sorter.click();
    await sorter.click();
  }
  const over = page.locator('.plot .u-over').first();
  const bins = await page.evaluate(() => JSON.parse(document.getElementById('run').textContent).seconds.length);
  if (bins >= 20 && (await over.count())) {
    await over.scrollIntoViewIfNeeded();
    const box = await over.boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
    await page.mouse.up();
    if (!(await page.locator('.chip').isVisible())) wrong.push('dragging does not zoom');
    else await page.locator('.chip button').click();
    if (await page.locator('.chip').isVisible()) wrong.push('the zoom cannot be taken back');
    await page.mouse.move(0, 0);
  }
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const button = page.locator('header .tools button').last();
  const before = await theme();
  const shown = new Set();
  for (let press = 0; press < 3; press += 1) {
    await button.click();
    shown.add(await theme());
  }
  if (shown.size !== 2) wrong.push('the theme does not change');
  if ((await theme()) !== before) wrong.push('the theme does not come back');
  await page.evaluate(() => document.activeElement?.blur());
  return wrong;
}

/** The built page with a run in it, as the Rust side makes it. */
function fill(page, run, file) {
  const json = JSON.stringify(run).replaceAll('<', '\\u003c').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
  writeFileSync(file, page.replace('__TIDEMARK_RUN__', () => json));
  return file;
}

/** Runs of many kinds: the usual, the short, the long, the broken, the hostile. */
function samples(dir) {
  const page = readFileSync(fileURLToPath(new URL('./dist/report.html', import.meta.url)), 'utf8');
  const hostile = makeRun(30);
  const nasty = '</script><img src=x onerror="throw 1"><!-- ${nasty} \u2028';
  Object.assign(hostile.manifest, { scenario: nasty, description: nasty, id: nasty, command: [nasty], notes: [nasty] });
  hostile.manifest.summary.verdict = { status: 'invalid', reasons: [nasty, 'driver-bound: the busiest driving thread was on a CPU 99.8 % of the time'] };
  hostile.manifest.summary.steps[0].label = nasty.repeat(3);
  Object.assign(hostile.operations[0], { entity: nasty.repeat(2), operation: nasty });
  hostile.operations_left_out = 7;
  hostile.errors = [{ kind: nasty, count: 2, examples: [{ at_s: 1, label: nasty, detail: nasty }] }];
  hostile.events[5] = { at_s: 12, kind: nasty, text: nasty };
  hostile.scenario = nasty;
  hostile.bin_s = 5;
  hostile.seconds = hostile.seconds.map((second) => second * 5);

  hostile.manifest.summary.faults = [
    { fault: nasty.repeat(2), kind: nasty, target: nasty, begin_us: 12_000_000, healed_us: null, error: nasty, dip: null },
    { fault: nasty, kind: 'kill', target: 'system', begin_us: null, healed_us: null, error: nasty, dip: null },
  ];
  hostile.manifest.summary.ledger = { sent: 3, acknowledged: 2, torn: 1, not_verified: nasty.repeat(3) };

  const lossy = makeRun(60);
  Object.assign(lossy.manifest.summary, {
    verdict: { status: 'fail', reasons: ['lost: 1234 of 74210 acknowledged writes are gone', 'miscounted: the system counts 80000, but showed 72989'] },
    ledger: {
      sent: 74225, acknowledged: 74210, found: 72976, lost: 1234, duplicated: 8, unacknowledged_found: 3, different: 1, foreign: 2, counted: 80000,
      took_s: 0.84, verified_at: '2026-01-31T14:06:51Z', torn: 1,
      lost_when: [[30, 31, 800], [31, 32.2, 434]].map(([from, to, lost]) => ({ from_us: from * 1e6, to_us: to * 1e6, lost })),
      examples: ['lost', 'duplicated', 'different', 'unacknowledged_found'].map((kind, index) => (
        { kind, entry: `000000000004137${index}`, ...(index < 3 && { sent_us: [30_000_000, 31_000_000] }) })),
    },
  });
  // Close together, one in another, one that was never undone, one that never came.
  const broken = makeRun(90);
  const dip = { before_per_s: 9998.2, lowest_per_s: 4170, depth: 0.583, length_s: 4.5, recovery_s: 1.25, errors: 1234, dropped: 56_789, backlog_max: 104_211, seen_s: 11.5 };
  broken.manifest.summary.faults = [
    ['kill cassandra.2, restart after 5s', 'kill', 'cassandra.2', 20.31, 25.31, dip],
    ['slow the link to 100 Mbit/s, 250ms later each way, for 4s', 'slow', 'link', 22.5, 26.5, { ...dip, length_s: null, recovery_s: null }],
    ['freeze system for 1s', 'freeze', 'system', 59.02, 60.02, { ...dip, lowest_per_s: 9998.2, depth: 0, length_s: 0, recovery_s: 0, errors: 0, dropped: 0 }],
    ['cut the link for 100ms', 'cut', 'link', 62, 62.1, null],
    ['stop system', 'stop', 'system', 86.4, null, { ...dip, length_s: null, recovery_s: null, seen_s: 3.6 }],
    ['kill system, restart after 2s', 'kill', 'system', null, null, null],
  ].map(([fault, kind, target, begin, healed, of]) => ({
    fault, kind, target, begin_us: begin && begin * 1e6, healed_us: healed && healed * 1e6, ...(kind === 'kill' && healed && { ready_us: healed * 1e6 + 812_000 }),
    ...(begin === null && { error: 'the run was over before it was due' }), dip: of,
  }));
  // Many failures, and a driver that was held up.
  const limited = makeRun(90, 7, 'many');
  const limit = 'requests left late by the driver’s own fault, 99 % of the lag is up to 12.3ms of 61ms (java used 1.2 cores); give it cores of its own (--pin), more --threads, or less load';
  limited.manifest.summary.driver.limits = ['its busiest thread was on a CPU for 99 % of the time; give it more --threads or cores', limit];
  limited.manifest.summary.verdict.reasons.push(`driver-bound: errors < 0.1% is not decided: 7 % as measured, 0 % with the driver's own share taken out; ${limit}`);
  const undecided = limited.manifest.objectives.find((it) => it.default);
  Object.assign(undecided, { met: false, undecided: true, measured: `${undecided.measured} as measured, 0% with the driver's own share taken out` });
  const part = (mean_us, count) => ({ mean_us, count, times_us: { min: 1, mean: mean_us, p50: mean_us, p90: mean_us * 2, p95: mean_us * 2, p99: mean_us * 3, p999: mean_us * 4, max: mean_us * 9 } });
  const parts = { wait: { mean_us: 120, count: 900 }, connect: part(300, 40), handshake: part(900, 40), first_byte: part(2400, 900), transfer: part(1100, 12) };
  limited.manifest.summary.parts = parts;
  limited.manifest.summary.steps.forEach((step) => { step.parts = parts; });
  limited.manifest.summary.slowest = [
    { label: limited.manifest.summary.steps[0].label, due_us: 31_000_000, response_time_us: 1_900_000, wait_us: 3, connect_us: 900, handshake_us: 2_000, first_byte_us: 1_800_000, transfer_us: 97_097, outcome: 'status', status: 503, thread: 1, connection: 17 },
    { label: 'Any', due_us: 2_000_000, response_time_us: 900_000, wait_us: 0, first_byte_us: 900_000, transfer_us: 0, outcome: 'ok', thread: 0, connection: 2 },
  ];
  limited.manifest.summary.metrics = [
    { metric: 'cart_items', kind: 'histogram', count: 41_200, sum: 123_456, per_s: 457.8, values: { min: 0, mean: 3, p50: 3, p90: 5, p95: 6, p99: 9, p999: 14, max: 20 }, no_number: 3, example: '${n}: it has no value' },
    { metric: 'spent_on_everything_that_was_in_any_of_the_carts', kind: 'counter', unit: 'EUR', count: 7, sum: 0.35, per_s: 0.004, no_number: 0 },
  ];
  const wave = limited.seconds.map((second) => 3 + Math.round(2 * Math.sin(second / 9)));
  limited.own = [
    { metric: 'cart_items', kind: 'histogram', unit: '', per_s: wave, p50: wave, p99: wave.map((it) => it * 3), max: wave.map((it) => it * 4) },
    { metric: 'spent_on_everything_that_was_in_any_of_the_carts', kind: 'counter', unit: 'EUR', per_s: wave.map((it) => it / 1000) },
  ];
  limited.manifest.summary.groups = [
    { group: 'READ-MODIFY-WRITE', count: 41_200, achieved_per_s: 457.8, errors: {}, response_time_us: { p50: 1_540, p90: 3_100, p99: 12_300, p999: 40_000, max: 71_000 } },
    { group: 'A purchase, from the cart to the last confirmation of it', count: 120, achieved_per_s: 1.2, errors: { timeout: 9, unfinished: 3 }, response_time_us: { p50: 2_000_000, p90: 9_000_000, p99: null, p999: null, max: null } },
  ];
  limited.manifest.summary.errors.variable = 3;
  limited.manifest.summary.errors.unfinished = 41;
  limited.manifest.interrupted = true;
  limited.manifest.summary.response_time_less_lag_us.p50 -= 300;

  // A run of before: percentiles of the good answers, and no word of the others.
  const before = makeRun(60);
  const { summary } = before.manifest;
  for (const of of [summary, ...summary.steps]) {
    Object.assign(of, { response_time_us: of.good.response_time_us, service_time_us: of.good.service_time_us });
    for (const key of ['good', 'failed', 'failures', 'response_time_less_lag_us']) delete of[key];
  }
  before.errors = before.errors.filter((it) => it.kind !== 'dropped').map(({ known_after_us, ...it }) => it);
  delete before.heatmap.failed;
  delete before.operations;
  delete before.operations_left_out;
  delete summary.driver.read_lag_us;
  delete summary.driver.busiest;
  for (const of of before.manifest.objectives) delete of.default;

  const silent = makeRun(25);
  for (const series of Object.values(silent.series)) {
    for (const key of Object.keys(series)) series[key] = Array.isArray(series[key]) ? series[key].map(() => null) : null;
  }
  return [
    [fill(page, makeRun(90), join(dir, 'sample.html')), 15],
    [fill(page, makeRun(90, 7, 'none'), join(dir, 'no-failures.html')), 14],
    [fill(page, limited, join(dir, 'many-failures.html')), 15],
    [fill(page, makeRun(30, 7, 'all'), join(dir, 'all-failed.html')), 11],
    [fill(page, before, join(dir, 'before.html')), 13],
    [fill(page, makeRun(1), join(dir, 'one-second.html')), 9],
    [fill(page, makeRun(2000), join(dir, 'long.html')), 15],
    [fill(page, hostile, join(dir, 'hostile.html')), 11],
    [fill(page, lossy, join(dir, 'lossy.html')), 15],
    [fill(page, broken, join(dir, 'faults.html')), 15],
    [fill(page, silent, join(dir, 'silent.html')), 0],
    [fill(page, {}, join(dir, 'nothing.html')), 0],
    [fill(page, { manifest: null, seconds: [0], series: null, steps: {}, heatmap: [], processes: null, errors: 'x', events: null }, join(dir, 'broken.html')), 0],
  ];
}

async function main() {
  const args = process.argv.slice(2);
  const at = args.indexOf('--screenshots');
  const screenshots = at >= 0 ? resolve(args.splice(at, 2)[1] ?? '.') : null;
  if (args.length !== 1) {
    console.error('usage: node check.mjs REPORT.html [--screenshots DIR] | node check.mjs --sample [--screenshots DIR]');
    return 2;
  }
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-page-'));
  const files = args[0] === '--sample' ? samples(dir) : [[resolve(args[0]), 4]];
  const browser = await browse();
  let failures = 0;
  try {
    for (const [file, least] of files) {
      for (const view of VIEWS) {
        const { wrong, charts } = await checkView(browser, file, view, screenshots, least);
        failures += wrong.length;
        console.log(`${wrong.length === 0 ? 'ok  ' : 'FAIL'} ${basename(file)} ${view.name}: ${charts} charts`);
        for (const line of wrong) console.log(`     ${line}`);
      }
    }
  } finally {
    await browser.close();
    rmSync(dir, { recursive: true, force: true });
  }
  return failures === 0 ? 0 : 1;
}

process.exitCode = await main();
