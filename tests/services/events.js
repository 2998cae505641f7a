// Server-sent events in Node, by better-sse. By hand: PORT=3001 node tests/services/events.js
const express = require('express');
const { createChannel, createSession } = require('better-sse');

const app = express();
const ticker = createChannel();
let tick = 0;
setInterval(() => ticker.broadcast({ number: ++tick, at: Date.now() }, 'tick'), 20);

app.get('/', (_, answer) => answer.send('events'));

// without an end
app.get('/ticks', async (request, answer) => ticker.register(await createSession(request, answer)));

// an order on its way, and then the end
app.get('/orders/:number', async (request, answer) => {
  const session = await createSession(request, answer, { keepAlive: 10 });
  const states = ['received', 'packed', 'sent'];
  const next = () => {
    const state = states.shift();
    if (!state) return answer.end();
    session.push({ number: Number(request.params.number), state }, 'state');
    setTimeout(next, 30);
  };
  next();
});

// who asks for no stream
app.get('/none', (_, answer) => answer.json({ stream: false }));

const server = app.listen(Number(process.env.PORT), '127.0.0.1', () =>
  console.log(`Events at http://127.0.0.1:${server.address().port}`));
