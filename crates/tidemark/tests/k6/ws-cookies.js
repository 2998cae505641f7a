import ws from 'k6/ws';
import http from 'k6/http';
import { WebSocket } from 'k6/websockets';

const url = __ENV.BASE.replace('http', 'ws');

export default function () {
  http.get(`${__ENV.BASE}/set`);
  ws.connect(`${url}/ws/cookie/a`, { headers: { Cookie: 'own=1' } }, (socket) => socket.on('open', () => socket.close()));
  http.get(`${__ENV.BASE}/after`);
  const jar = new http.CookieJar();
  jar.set(`${__ENV.BASE}/`, 'mine', 'x y');
  ws.connect(`${url}/ws/cookie/b`, { jar }, (socket) => socket.on('open', () => socket.close()));
  const socket = new WebSocket(`${url}/ws/cookie/c`, null, { jar });
  socket.onopen = () => socket.close();
  socket.onclose = () => http.get(`${__ENV.BASE}/last`);
}
