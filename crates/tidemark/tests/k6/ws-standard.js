import http from 'k6/http';
import { Blob, WebSocket } from 'k6/websockets';

const url = __ENV.BASE.replace('http', 'ws');

export default function () {
  const seen = [];
  const note = (...words) => seen.push(words.join(' '));
  const attempt = (name, call) => {
    try {
      call();
      note(name, 'no error');
    } catch (error) {
      note(name, 'threw', String(error.message ?? error).replace(/^GoError: /, ''));
    }
  };
  attempt('no url', () => new WebSocket());
  attempt('http', () => new WebSocket('http://127.0.0.1/'));
  attempt('fragment', () => new WebSocket(`${url}/ws/echo#a`));
  attempt('option', () => new WebSocket(`${url}/ws/echo`, null, { wrong: 1 }));
  const socket = new WebSocket(`${url}/ws/echo?a=1`, ['v2', 'v1'], { headers: { 'X-Token': 't-2' }, tags: { name: 'std' } });
  note(socket.readyState, socket.bufferedAmount, socket.binaryType, `[${socket.protocol}]`, socket.url.replace(/:\d+/, ''));
  attempt('early', () => socket.send('x'));
  socket.onopen = (event) => {
    note(event.type, event.target === socket, typeof event.timestamp, socket.readyState, socket.protocol);
    socket.send('text');
    note(socket.bufferedAmount);
    socket.send(new Uint8Array([1, 2, 3]).buffer);
    socket.send(new Uint8Array([9, 8, 7, 6]).subarray(1, 3));
    socket.send(new Uint16Array([258]));
    try { socket.send(1); } catch { note('a number is refused'); }
    attempt('binaryType', () => { socket.binaryType = 'other'; });
  };
  let count = 0;
  socket.onmessage = async (event) => {
    count += 1;
    if (count === 1) note('text', event.data, event.type, event.origin.replace(/:\d+/, ''));
    if (count === 2) {
      note('blob', typeof event.data.slice, event.data.size, await event.data.text() === '\x01\x02\x03');
      socket.binaryType = 'arraybuffer';
    }
    if (count === 3) note('buffer', event.data instanceof ArrayBuffer || event.data instanceof Blob);
    if (count === 4) {
      const blob = new Blob(['bl', new Uint8Array([111, 98])], { type: 'x/y' });
      note('made', blob.size, blob.type, await blob.text(), await blob.slice(1, 3).text());
      note('last', event.data instanceof ArrayBuffer || event.data instanceof Blob);
      socket.ping();
    }
  };
  socket.addEventListener('message', () => { if (count === 1) note('listener'); });
  socket.addEventListener('pong', (event) => {
    note(event.type);
    attempt('code', () => socket.close(1001));
    attempt('reason', () => socket.close(1000, 'x'.repeat(124)));
    socket.close(3001, 'good bye');
    note(socket.readyState);
    attempt('closing', () => socket.send('x'));
    socket.close(3002);
  });
  socket.onerror = (event) => note(event.type, event.error);
  socket.onclose = (event) => {
    note(event.type, event.code, `[${event.reason}]`, socket.readyState);
    http.post(`${__ENV.BASE}/seen`, seen.join('\n'));
  };
}
