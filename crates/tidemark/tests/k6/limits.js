import http from 'k6/http';

export const options = { batch: 3, batchPerHost: 0 };

export default function () {
  const all = [];
  for (let nth = 1; nth <= 6; nth += 1) all.push(`${__ENV.BASE}/together/3/${nth}`);
  http.get(`${__ENV.BASE}/after?${http.batch(all).map((res) => res.status)}`);
}
