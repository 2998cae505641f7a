import ws from 'k6/ws';
import http from 'k6/http';

const url = __ENV.BASE.replace('http', 'ws');

export default function () {
  const seen = [];
  for (const path of ['drop', 'reset', 'broken']) {
    const res = ws.connect(`${url}/ws/${path}`, {}, (socket) => {
      socket.on('open', () => socket.send('go'));
      socket.on('close', (code) => seen.push(`${path}: close ${code}`));
      socket.on('error', () => seen.push(`${path}: error`));
    });
    seen.push(`${path}: ${res.status}`);
  }
  http.post(`${__ENV.BASE}/seen`, seen.join('\n'));
}
