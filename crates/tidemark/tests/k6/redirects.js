import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const base = __ENV.BASE;
  for (const status of [301, 302, 303, 307, 308]) {
    const res = http.post(`${base}/to/${status}/1`, { a: 'b' });
    check(res, { followed: (r) => r.status === 200 && r.url === `${base}/end?x=1` });
  }
  const none = http.get(`${base}/to/302/1`, { redirects: 0 });
  const { request } = http.post(`${base}/to/302/1`, { a: 'b' });
  http.get(`${base}/seen/${none.status}/${none.headers.Location.slice(1, 4)}/${request.method}/${request.body}`);
  const two = http.get(`${base}/to/302/9`, { redirects: 2 });
  http.get(`${base}/seen/${two.status}${two.request.url.slice(base.length)}`);
}
