import http from 'k6/http';
import { check, group, fail } from 'k6';
import { Counter, Gauge, Rate, Trend } from 'k6/metrics';

const bought = new Counter('bought');
const level = new Gauge('level');
const good = new Rate('good');
const size = new Trend('size');

export const options = {
  iterations: 4,
  thresholds: {
    bought: ['count==4'],
    level: ['value<10'],
    good: ['rate>=0.5'],
    size: ['avg<100', 'p(90)<=4', 'max==4'],
    'checks{group:::shop::cart}': ['rate==1'],
    'http_reqs{name:item}': ['count==4'],
    http_req_failed: ['rate<0.01'],
  },
};

export default function () {
  group('shop', () => {
    group('cart', () => {
      const res = http.get(`${__ENV.BASE}/cart/${__ITER}`, { tags: { name: 'item' } });
      const ok = check(res, { ok: (r) => r.status === 200 });
      http.get(`${__ENV.BASE}/checked?${ok}`);
      size.add(res.body.length);
    });
  });
  bought.add(1);
  level.add(__ITER);
  good.add(__ITER % 2 === 0);
  if (!check(__ITER, { 'is small': (n) => n < 3 })) fail('too large');
  http.get(`${__ENV.BASE}/not-after-fail`);
}
