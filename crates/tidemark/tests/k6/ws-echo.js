import ws from 'k6/ws';
import http from 'k6/http';

const url = __ENV.BASE.replace('http', 'ws');

export default function () {
  const seen = [];
  const note = (...words) => seen.push(words.join(' '));
  const params = { headers: { 'X-Token': 't-1', 'Sec-WebSocket-Protocol': 'v2, v1' }, tags: { name: 'echo' } };
  const res = ws.connect(`${url}/ws/echo?who=a%20b`, params, (socket) => {
    note('set up', typeof socket.send);
    let ticks = 0;
    socket.on('open', () => {
      note('open');
      socket.send('one');
      socket.send('zwei: ä 😀');
    });
    socket.on('message', (text) => {
      note('message', text);
      if (!text.startsWith('zwei')) return;
      socket.sendBinary(new Uint8Array([1, 2, 255]).buffer);
    });
    socket.on('message', (text) => note('again', text));
    socket.on('binaryMessage', (data) => {
      note('binary', data instanceof ArrayBuffer, new Uint8Array(data).join());
      socket.ping();
    });
    socket.on('pong', () => {
      note('pong');
      socket.setInterval(() => {
        ticks += 1;
        if (ticks < 4) socket.send(`tick ${ticks}`);
      }, 3);
      socket.setTimeout(() => {
        note('closing');
        socket.close(4001);
        note('closed');
        socket.close(4002);
      }, 60);
    });
    socket.on('close', (code) => note('close', code));
    socket.on('error', (error) => note('error', error.error()));
  });
  note(res.status, res.url.replace(/:\d+/, ''), res.headers['Upgrade'], res.headers['Sec-Websocket-Protocol'], res.error, `[${res.body}]`);
  for (const call of [
    () => ws.connect(`${url}/ws/echo/1`),
    () => ws.connect(`${url}/ws/echo/2`, {}, 'no function'),
    () => ws.connect(`${url}/ws/echo/3`, { compression: 'brotli' }, () => {}),
    () => ws.connect(`${url}/ws/echo/4`, (socket) => socket.setTimeout(() => {}, 0)),
    () => ws.connect(`${url}/ws/echo/5`, (socket) => socket.sendBinary('text')),
    () => ws.connect(`${url}/ws/echo/6`, (socket) => { socket.on('open', () => { throw new Error('mine'); }); }),
  ]) {
    try {
      call();
      note('no error');
    } catch (error) {
      note('threw', error.message ?? error);
    }
  }
  http.post(`${__ENV.BASE}/seen`, seen.join('\n'));
}
