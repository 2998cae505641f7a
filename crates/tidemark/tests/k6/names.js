import http from 'k6/http';

export const options = {
  vus: 1,
  iterations: 3,
  userAgent: 'mine/1.0',
  thresholds: { 'http_reqs{name:http://x/${}}': ['count<1'], 'http_req_duration{name:user}': ['max<60000'] },
};

export default function () {
  http.get(http.url`${__ENV.BASE}/users/${__ITER}`);
  http.get(`${__ENV.BASE}/users/${__ITER}/orders/f47ac10b-58cc-4372-a567-0e02b2c3d479`);
  http.get(`${__ENV.BASE}/users/${__ITER}`, { tags: { name: 'user' }, headers: { 'X-Data': 'ü' } });
}
