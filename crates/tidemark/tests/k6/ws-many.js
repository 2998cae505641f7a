import http from 'k6/http';
import { WebSocket } from 'k6/experimental/websockets';
import { setTimeout, setInterval, clearInterval } from 'k6/timers';

const url = __ENV.BASE.replace('http', 'ws');

export default function () {
  const seen = [];
  const open = new Set();
  const go = (path, more = () => {}) => {
    const socket = new WebSocket(`${url}/ws/${path}`);
    const note = (...words) => seen.push(`${path}: ${words.join(' ')}`);
    let count = 0;
    open.add(socket);
    socket.onopen = () => note('open');
    socket.addEventListener('message', () => { count += 1; });
    socket.onping = () => note('ping');
    socket.onerror = () => note('error');
    socket.onclose = (event) => {
      note(`${count} messages, close`, event.code, `[${event.reason}]`);
      open.delete(socket);
      if (open.size > 0) return;
      seen.sort();
      http.post(`${__ENV.BASE}/seen`, seen.join('\n'));
    };
    more(socket, note);
    return socket;
  };
  const speaks = (socket) => socket.addEventListener('open', () => socket.send('go'));
  go('push/20');
  go('ping');
  go('early/1000');
  go('early/1001');
  go('close/1000', speaks);
  go('close/1011', speaks);
  go('drop', speaks);
  go('reset', speaks);
  go('broken', speaks);
  go('deny');
  go('silent', (socket) => socket.addEventListener('open', () => socket.close()));
  go('echo/a', (socket, note) => {
    let sent = 0;
    socket.addEventListener('open', () => {
      const timer = setInterval(() => {
        socket.send(`number ${sent}`);
        sent += 1;
        if (sent < 4) return;
        clearInterval(timer);
        setTimeout(() => socket.close(1000, 'enough'), 50);
      }, 5);
    });
    socket.addEventListener('message', (event) => note(event.data));
  });
  setTimeout(() => http.get(`${__ENV.BASE}/meanwhile`), 1);
}
