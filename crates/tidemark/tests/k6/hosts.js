// hosts that are reached elsewhere, that are blocked, and that a header names; where a redirect came from
import http from 'k6/http';
import { check } from 'k6';

const port = __ENV.BASE.split(':')[2];
export const options = {
  iterations: 1,
  hosts: { 'shop.test': '127.0.0.1', '*.cdn.test': `127.0.0.1:${port}` },
  blockHostnames: ['ads.test', '*.tracker.test'],
};

export default function () {
  http.get(`http://shop.test:${port}/cart`);
  http.get('http://eu.cdn.test/logo.png');
  http.get(`${__ENV.BASE}/virtual`, { headers: { Host: 'other.test' } });
  http.get(`${__ENV.BASE}/to/302/2`);
  http.post(`${__ENV.BASE}/to/307/1`, 'kept', { headers: { Referer: 'http://own.test/' } });
  const blocked = http.get(`http://ads.test:${port}/pixel`);
  http.get(`${__ENV.BASE}/seen?status=${blocked.status}&code=${blocked.error_code}`);
  const { timings } = http.get(`${__ENV.BASE}/`);
  check(timings, {
    'parts are parts': (t) => t.waiting > 0 && t.receiving >= 0 && t.blocked >= t.connecting,
    'they add up': (t) => Math.abs(t.sending + t.waiting + t.receiving - t.duration) < 0.01,
  });
}
