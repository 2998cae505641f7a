import ws from 'k6/ws';
import { WebSocket } from 'k6/websockets';
import { check, group } from 'k6';

const url = __ENV.BASE.replace('http', 'ws');

export const options = {
  iterations: 2,
  thresholds: {
    ws_sessions: ['count==6'],
    'ws_sessions{name:std}': ['count==2'],
    'ws_sessions{group:::room}': ['count==2'],
    'ws_sessions{status:101}': ['count==4'],
    'ws_sessions{subproto:v1}': ['count==2'],
    'ws_msgs_sent{kind:own}': ['count==4'],
    ws_msgs_received: ['count==6'],
    ws_connecting: ['max<10000'],
    'ws_session_duration{kind:own}': ['max<10000', 'min>0'],
    ws_ping: ['max<10000', 'min>0'],
    checks: ['rate==1'],
  },
};

export default function () {
  group('room', () => {
    const res = ws.connect(`${url}/ws/echo`, { tags: { kind: 'own' } }, (socket) => {
      socket.on('open', () => { socket.send('a'); socket.sendBinary(new ArrayBuffer(2)); });
      socket.on('binaryMessage', () => socket.ping());
      socket.on('pong', () => socket.close());
    });
    check(res, { 'is a WebSocket': (r) => r && r.status === 101 });
  });
  ws.connect(`${url}/ws/deny`, {}, () => {});
  const socket = new WebSocket(`${url}/ws/echo`, 'v1', { tags: { name: 'std' } });
  socket.onopen = () => { socket.send('b'); socket.ping(); };
  socket.onpong = () => socket.close();
}

export function handleSummary(data) {
  const told = {};
  for (const name of Object.keys(data.metrics).filter((name) => name.startsWith('ws_')).sort()) {
    const { type, contains, values } = data.metrics[name];
    told[name] = `${type} ${contains} ${values.count ?? ''}`.trim();
  }
  return { stdout: `told: ${JSON.stringify(told)}\n` };
}
