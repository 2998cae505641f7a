// What lists the fields of a response finds.
import http from 'k6/http';

const base = __ENV.BASE;

export const options = { vus: 1, iterations: 1 };

export default function () {
  const res = http.get(`${base}/items`);
  http.post(`${base}/keys`, Object.keys(res).join());
  const { ...copy } = res;
  http.post(`${base}/copy`, [copy.status, copy.body, copy.error, copy.error_code, typeof copy.headers, typeof copy.timings].join());
  const set = { ...http.get(`${base}/set`) };
  http.post(`${base}/cookies`, [set.cookies.sid[0].value, JSON.stringify(set.body), Object.keys(set).length].join());
  const names = [];
  for (const name in res) if (typeof res[name] !== 'function') names.push(name);
  http.post(`${base}/in`, names.join());
  res.body = 'mine';
  http.post(`${base}/changed`, [res.body, Object.entries(res).find(([name]) => name === 'body')[1]].join());
}
