import http from 'k6/http';

export const options = { iterations: 2 };

export default function () {
  const res = http.get(`${__ENV.BASE}/status/404`);
  http.get(`${__ENV.BASE}/seen/${res.status}/${res.error_code}`);
  if (__ITER === 0) undefined.x;
  http.get(`${__ENV.BASE}/second-only`);
}
