import http from 'k6/http';

export default function () {
  const text = JSON.stringify({ words: 'again and '.repeat(1000) });
  http.post(`${__ENV.BASE}/gzip`, text, { compression: 'gzip' });
  http.post(`${__ENV.BASE}/deflate`, text, { compression: 'deflate', headers: { 'Content-Type': 'application/json' } });
}
