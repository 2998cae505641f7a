import http from 'k6/http';

export default function () {
  const base = __ENV.BASE;
  const list = http.batch([
    ['GET', `${base}/batch/1`, null, { tags: { name: 'one' } }],
    ['POST', `${base}/batch/2`, { a: '1' }],
    { method: 'PUT', url: `${base}/batch/3`, body: 'x', params: { headers: { 'X-Name': 'n' } } },
    `${base}/batch/4`,
  ]);
  const named = http.batch({ page: `${base}/batch/5`, other: { method: 'DELETE', url: `${base}/batch/6` } });
  http.get(`${base}/after?${list.map((res) => res.status).join(',')}&${named.page.status}&${named.other.status}`);
}
