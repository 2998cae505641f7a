// Accounts on Express: cookies, redirects, signatures. By hand: PORT=3000 node tests/services/account.js
const crypto = require('node:crypto');
const express = require('express');
const compression = require('compression');
const cookies = require('cookie-parser');

const KEY = 'a key of this test';
const app = express();
app.use(compression({ threshold: 100 }));
app.use(cookies());
const sessions = new Map();

app.get('/', (_, answer) => answer.send('accounts'));

app.post('/login', express.urlencoded({ extended: false }), (request, answer) => {
  const sid = crypto.randomUUID();
  sessions.set(sid, request.body.user);
  answer.cookie('sid', sid, { path: '/account', httpOnly: true, sameSite: 'lax' });
  answer.cookie('seen', 'yes', { maxAge: 3_600_000 });
  // one that is over when it comes, and one for https only
  answer.cookie('gone', 'yes', { expires: new Date(0) });
  answer.cookie('secret', 'yes', { secure: true });
  answer.redirect('account/home');
});
app.get('/account/home', (request, answer) => {
  const user = sessions.get(request.cookies.sid);
  if (!user) return answer.status(401).send('who are you?');
  answer.json({ user, cookies: Object.keys(request.cookies).sort() });
});
app.get('/cookies', (request, answer) => answer.json(request.cookies));
app.post('/account/logout', (request, answer) => {
  sessions.delete(request.cookies.sid);
  answer.clearCookie('sid', { path: '/account' });
  answer.redirect(303, '../cookies');
});

// a chain of redirects, each relative to the last
app.get('/chain/:left', (request, answer) => {
  const left = Number(request.params.left);
  left > 0 ? answer.redirect(`./${left - 1}`) : answer.send('the end');
});
// any method, to any place with any status
app.all('/to', (request, answer) => answer.redirect(Number(request.query.status), request.query.url));
app.all('/seen', express.text({ type: () => true }), (request, answer) =>
  answer.json({ method: request.method, body: request.body ?? '', type: request.get('content-type') ?? '',
    authorization: request.get('authorization') ?? '', encodings: request.get('accept-encoding') ?? '' }));

// signed as webhooks are: the hexadecimal HMAC of the body
const hmac = (text, form) => crypto.createHmac('sha256', KEY).update(text).digest(form);
const raw = express.raw({ type: () => true });
app.post('/hook', raw, (request, answer) => {
  const right = `sha256=${hmac(request.body, 'hex')}` === request.get('x-hub-signature-256');
  answer.status(right ? 204 : 403).end();
});
// signed as requests to a cloud are: method, path, date and the body's digest, in base64
app.put('/signed/:name', raw, (request, answer) => {
  const date = request.get('x-date') ?? '';
  const digest = crypto.createHash('sha256').update(request.body).digest('hex');
  const text = `${request.method}\n${request.originalUrl}\n${date}\n${digest}`;
  const fresh = Math.abs(Date.now() - Number(date)) < 60_000;
  const right = request.get('authorization') === `HMAC ${hmac(text, 'base64')}`;
  answer.status(right && fresh ? 200 : 403).send(text);
});
// a token of one's own, as JSON Web Tokens are
app.get('/token', (request, answer) => {
  const [head, body, signature] = (request.get('authorization') ?? '').replace('Bearer ', '').split('.');
  if (hmac(`${head}.${body}`, 'base64url') !== signature) return answer.status(401).end();
  answer.json(JSON.parse(Buffer.from(body, 'base64url').toString()));
});

// an encoding that nobody knows
app.get('/odd', (_, answer) => answer.set('Content-Encoding', 'rot13').end('uryyb'));
app.get('/long', (_, answer) => answer.type('text').send('a line that is there again\n'.repeat(1000)));

const server = app.listen(Number(process.env.PORT), '127.0.0.1', () =>
  console.log(`Accounts at http://127.0.0.1:${server.address().port}`));
