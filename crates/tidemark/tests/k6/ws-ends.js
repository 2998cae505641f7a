import ws from 'k6/ws';
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.BASE.replace('http', 'ws');

export const options = { thresholds: { checks: ['rate>0.5'] } };

export default function () {
  const seen = [];
  const go = (path, more = () => {}) => {
    const note = (...words) => seen.push(`${path}: ${words.join(' ')}`);
    const res = ws.connect(`${url}/ws/${path}`, null, (socket) => {
      let count = 0;
      socket.on('open', () => note('open'));
      socket.on('message', () => { count += 1; });
      socket.on('ping', () => note('ping'));
      socket.on('close', (code) => note(`${count} messages, close`, code));
      socket.on('error', () => note('error'));
      more(socket);
    });
    note(res.status, typeof res.body, res.headers ? res.headers['X-Why'] : 'no headers');
    return res;
  };
  const speaks = (socket) => socket.on('open', () => socket.send('go'));
  go('push/5');
  go('ping');
  go('early/1000');
  go('early/1001');
  go('close/1000', speaks);
  go('close/1011', speaks);
  go('close/3999', speaks);
  go('silent/1', (socket) => socket.on('open', () => socket.close()));
  go('silent/2', (socket) => socket.close(1000));
  const res = go('deny');
  check(res, { 'is denied': (r) => r.status === 403, 'has a body': (r) => r.body === 'not for you' });
  http.post(`${__ENV.BASE}/seen`, seen.join('\n'));
}
