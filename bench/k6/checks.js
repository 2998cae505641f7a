import http from 'k6/http';
import { check, group } from 'k6';

export default function () {
  group('main', () => {
    const res = http.get(`${__ENV.BASE}/`, { headers: { Accept: 'application/json' }, tags: { name: 'main' } });
    const data = JSON.parse(`{"id": ${res.status}, "items": [{"a": 1}, {"a": 2}]}`);
    check(res, { 'status is 200': (r) => r.status === 200, 'items are there': () => data.items.length === 2 });
  });
}
