// Shows a service's /hystrix.stream in the Hystrix dashboard of others' making, in a real browser.
//   node check-hystrix.mjs http://127.0.0.1:PORT DASHBOARD [--screenshots DIR]
// DASHBOARD has these unpacked: org.springframework.cloud:spring-cloud-netflix-hystrix-dashboard:2.2.10.RELEASE,
// org.webjars:jquery:3.5.1, org.webjars:d3js:3.4.11. Its page and scripts are served as they are; what its Java would do is
// here: four places of the template filled in, and the stream passed on.
// Prints `closed` once the dashboard shows closed circuits with traffic, reads a line, and ends when it shows an open one.
// Exit status: 0 all well, 1 something is wrong, 2 wrong use. The browser is /usr/bin/chromium, or what CHROMIUM names.

import { createReadStream, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const BROWSER = process.env.CHROMIUM ?? '/usr/bin/chromium';
const PATIENCE_MS = 60_000;
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.png': 'image/png' };

const [base, dashboard, flag, screenshots] = process.argv.slice(2);
if (!base || !dashboard || (flag && (flag !== '--screenshots' || !screenshots))) {
  console.error('usage: check-hystrix.mjs http://127.0.0.1:PORT DASHBOARD [--screenshots DIR]');
  process.exit(2);
}

const page = readFileSync(join(dashboard, 'templates/hystrix/monitor.ftlh'), 'utf8')
  .replace(/^<#import.*\n/, '')
  .replaceAll('${basePath}', '/hystrix/')
  .replaceAll('${contextPath}', '')
  .replaceAll(/<@spring\.url '([^']*)'\/>/g, '$1');

function file(path) {
  const inside = normalize(path).replace(/^(\.\.\/)+/, '');
  return join(dashboard, inside.startsWith('/webjars/') ? 'META-INF/resources' : 'static', inside);
}

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://127.0.0.1');
  if (url.pathname === '/hystrix/monitor') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(page);
  } else if (url.pathname === '/proxy.stream') {
    const stream = get(url.searchParams.get('origin'), (from) => {
      response.writeHead(from.statusCode, { 'content-type': from.headers['content-type'] });
      from.pipe(response);
    });
    stream.on('error', () => response.destroy());
    response.on('close', () => stream.destroy());
  } else if (existsSync(file(url.pathname))) {
    response.writeHead(200, { 'content-type': TYPES[extname(url.pathname)] ?? 'text/plain' });
    createReadStream(file(url.pathname)).pipe(response);
  } else {
    response.writeHead(404).end();
  }
});

/** What the dashboard shows of a command: runs in the browser. */
function circuit(name) {
  const shown = [...document.querySelectorAll('#dependencies .monitor')].find((it) => it.textContent.includes(name));
  const text = shown?.querySelector('.circuitStatus')?.textContent.trim().replaceAll(/\s+/g, ' ');
  const rate = Number(shown?.querySelector('.ratePerSecond')?.textContent.replaceAll(',', ''));
  return { text, rate };
}

await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu', '--no-first-run'] });
let status = 0;
try {
  const tab = await browser.newPage({ viewport: { width: 1100, height: 700 } });
  tab.on('pageerror', (error) => { status = 1; console.error(`exception: ${error.message}`); });
  const stream = encodeURIComponent(`${base}/hystrix.stream`);
  await tab.goto(`http://127.0.0.1:${server.address().port}/hystrix/monitor?stream=${stream}`);
  const until = async (what, state) => {
    const begun = Date.now();
    for (;;) {
      const shown = await tab.evaluate(circuit, 'ValidateTokenCommand');
      if (shown.text === `Circuit ${state}` && (state === 'Open' || shown.rate > 0)) break;
      if (Date.now() - begun > PATIENCE_MS) throw new Error(`${what}: it shows ${JSON.stringify(shown)}`);
      await tab.waitForTimeout(200);
    }
    const pool = await tab.textContent('#dependencyThreadPools');
    if (!pool.includes('AcmeAirPool')) throw new Error(`no pool is shown: ${pool}`);
    if (screenshots) {
      mkdirSync(screenshots, { recursive: true });
      await tab.screenshot({ path: join(screenshots, `hystrix-${state}.png`) });
    }
  };
  await until('with the other service there', 'Closed');
  console.log('closed');
  await new Promise((read) => process.stdin.once('data', read));
  await until('with the other service dead', 'Open');
  console.log('open');
} catch (error) {
  console.error(error.message);
  status = 1;
}
await browser.close();
process.exit(status);
