import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = { iterations: 3 };

export default function () {
  const res = http.get(`${__ENV.BASE}/first?iter=${__ITER}&vu=${__VU}`);
  check(res, { 'status is 200': (r) => r.status === 200, 'body says so': (r) => r.body === 'fine' });
  sleep(0.01);
}
