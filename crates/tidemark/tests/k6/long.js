import http from 'k6/http';
import { check, group } from 'k6';

// what people write: helpers, classes, closures, defaults, destructuring, spread, labels of one kind
class Api {
  constructor(base, { token = null, ...rest } = {}) {
    Object.assign(this, { base, token, rest });
  }

  headers(more = {}) {
    return { Accept: 'application/json', ...(this.token && { Authorization: `Bearer ${this.token}` }), ...more };
  }

  call(method, path, body) {
    const res = http.request(method, `${this.base}${path}`, body && JSON.stringify(body), {
      headers: this.headers(body ? { 'Content-Type': 'application/json' } : {}),
      tags: { name: `${method} ${path.replace(/\d+/g, ':id')}` },
    });
    return res.status < 400 ? [res, null] : [null, `${res.status}`];
  }
}

const steps = {
  *pages(api) {
    for (let page = 1; page <= 2; page += 1) yield api.call('GET', `/items?page=${page}`);
  },
};

export const options = { scenarios: { default: { executor: 'per-vu-iterations', vus: 1, iterations: 2 } } };

export default function () {
  const api = new Api(__ENV.BASE);
  group('log in', () => {
    const [res] = api.call('POST', '/login', { user: `u${__VU}`, when: new Date(0).toISOString() });
    api.token = res?.json()?.token ?? 'none';
  });
  const seen = new Map();
  for (const [res, error] of steps.pages(api)) {
    if (error) continue;
    for (const { id, name, price } of res.json('items')) seen.set(id, { name, price: price.toFixed(2) });
  }
  const dear = [...seen.entries()].filter(([, { price }]) => Number(price) > 5).map(([id]) => id);
  check(dear, { 'one is dear': (ids) => ids.length === 1 });
  dear.forEach((id) => api.call('PUT', `/items/${id}`, { ...seen.get(id), big: 12345678901234567890n > 1n, not: undefined }));
  const [, wrong] = api.call('GET', '/status/404');
  api.call('GET', `/told?${wrong}&${encodeURIComponent([1, [2, 3]].flat().at(-1))}&${'a-b'.replaceAll('-', '+')}`);
}
