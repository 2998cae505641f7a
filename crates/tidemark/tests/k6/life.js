import http from 'k6/http';

export const options = { iterations: 2 };

let rounds = 0;

export function setup() {
  const res = http.post(`${__ENV.BASE}/login`, { user: 'a' });
  return { token: res.json('token'), id: res.json().user.id, tag: res.json('user.tags.1'), n: res.json('user.tags.#') };
}

export default function (data) {
  rounds += 1;
  http.get(`${__ENV.BASE}/me/${data.id}/${data.tag}/${data.n}?round=${rounds}`, { headers: { 'X-Token': data.token } });
  data.id += 1;
}

export function teardown(data) {
  http.del(`${__ENV.BASE}/me/${data.id}`, null, { headers: { 'X-Token': data.token } });
}
