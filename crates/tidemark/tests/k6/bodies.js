import http from 'k6/http';

export default () => {
  const url = `${__ENV.BASE}/bodies`;
  http.post(url);
  http.post(url, 'plain text');
  http.post(url, { b: 'two words', a: 1, 'ü&': 'ä=b', list: ['x', [2, true]], none: null, of: { z: 1, a: [{}, null] } });
  http.post(url, JSON.stringify({ a: [1, 2, { b: null }] }), { headers: { 'Content-Type': 'application/json', Accept: '*/*' } });
  http.put(url, 'put', { headers: { 'X-Name': 'a b' } });
  http.patch(url, '{}');
  http.del(url);
  http.del(url, 'with a body');
  http.options(url);
  http.head(url);
  http.request('get', url);
  http.request('POST', url, new Uint8Array([104, 105]).buffer);
  http.post(url, 'empty type', { headers: { 'Content-Type': 'text/csv' } });
};
