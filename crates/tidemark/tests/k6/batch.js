import http from 'k6/http';

export const options = { batchPerHost: 4 };

export default function () {
  const base = __ENV.BASE;
  // the server answers four at once: others of this host wait for their places
  const list = http.batch([
    ['GET', `${base}/together/4/a1`, null, { tags: { name: 'one' } }],
    ['POST', `${base}/together/4/a2`, { a: '1' }],
    { method: 'PUT', url: `${base}/together/4/a3`, body: 'x', params: { headers: { 'X-Name': 'n' } } },
    `${base}/together/4/a4`,
    http.url`${base}/together/4/b${1}`,
    { method: 'get', url: `${base}/together/4/b2`, body: 'not sent' },
    { url: `${base}/together/4/b3`, params: { responseType: 'none' } },
    ['DELETE', `${base}/together/4/b4`],
  ]);
  const told = list.map((res) => res.body || res.status).join(',');
  http.post(`${base}/list`, told);
  const named = http.batch({ page: `${base}/together/2/c1`, other: { method: 'DELETE', url: `${base}/together/2/c2` } });
  http.get(`${base}/after?${Object.keys(named).sort()}&${named.page.body}&${named.other.status}`);
  // each host has places of its own
  const elsewhere = base.replace('127.0.0.1', 'localhost');
  const both = http.batch([1, 2, 3].flatMap((nth) => [`${base}/together/6/d${nth}`, `${elsewhere}/together/6/e${nth}`]));
  http.get(`${base}/both?${both.map((res) => res.status)}`);
  http.get(`${base}/none?${http.batch([]).length}`);
}
