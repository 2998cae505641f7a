// What is sent of headers whose names differ only in case, and of texts with half a surrogate pair.
import http from 'k6/http';

const base = __ENV.BASE;

export const options = { vus: 1, iterations: 1 };

export default function () {
  http.get(`${base}/last`, { headers: { 'x-token': 'first', 'X-Token': 'last', 'X-TOKEN': 'very last' } });
  http.post(`${base}/more`, { a: 'b' }, { headers: { 'x-token': 1, 'X-Token': 2, 'content-type': 'text/a', 'Content-Type': 'text/b' } });
  http.get(`${base}/cookies`, { headers: { cookie: 'a=1', Cookie: 'b=2' }, responseType: 'binary' });
  http.get(`${base}/agent`, { headers: { 'X-Name': null, 'x-data': undefined } });
  http.post(`${base}/text`, 'a\ud800b\udc00', { headers: { 'X-Data': 'c\ud800' }, tags: { half: '\udfff' } });
  http.post(`${base}/form`, { name: 'a\ud83d', 'n\udc00': '\ud83d\ude00' });
  http.post(`${base}/json`, JSON.stringify({ half: '\ud800' }));
}
