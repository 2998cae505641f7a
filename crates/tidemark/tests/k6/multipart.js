import http from 'k6/http';

const data = open('./words.txt');
const bytes = open('words.txt', 'b');

export default function () {
  http.post(`${__ENV.BASE}/upload`, { field: 'value', file: http.file(data, 'words.txt', 'text/plain') });
  http.post(`${__ENV.BASE}/upload`, { file: http.file(bytes, 'a.bin') });
  http.post(`${__ENV.BASE}/raw`, bytes, { headers: { 'Content-Type': 'application/octet-stream' } });
  http.post(`${__ENV.BASE}/length`, String(bytes.byteLength));
}
