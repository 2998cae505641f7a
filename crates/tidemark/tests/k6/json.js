import http from 'k6/http';

export default function () {
  const res = http.get(`${__ENV.BASE}/items`);
  const told = [
    res.json('items.#'),
    res.json('items.0.name'),
    res.json('items.#.id').join('-'),
    res.json('items.#(name=="ink").price'),
    res.json('items.#(price>2)#.name').join('-'),
    String(res.json('items.9')),
    res.json('next'),
    res.headers['Content-Type'],
    res.status_text,
  ];
  for (const word of told) http.get(`${__ENV.BASE}/told?${encodeURIComponent(word)}`);
  for (const item of res.json().items) http.get(`${__ENV.BASE}/items/${item.id}`);
}
