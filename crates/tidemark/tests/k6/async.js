import http from 'k6/http';
import { setTimeout } from 'k6/timers';

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

export default async function () {
  const first = await http.asyncRequest('GET', `${__ENV.BASE}/items`);
  await wait(20);
  const second = await http.asyncRequest('POST', `${__ENV.BASE}/then`, first.json().next);
  setTimeout(() => http.get(`${__ENV.BASE}/timer/${second.status}`), 10);
}
