import http from 'k6/http';
import { check, group } from 'k6';
import { setTimeout } from 'k6/timers';

// what it sends has no order: the test sorts it
export const options = { iterations: 2 };

const base = __ENV.BASE;
const signIn = base.replace('://', '://bob:secret@');

export default async function () {
  const order = [];
  Promise.resolve().then(() => order.push('job'));
  const held = http.asyncRequest('GET', `${base}/hold`).then(() => order.push('held'));
  const first = await Promise.race([held, http.asyncRequest('GET', `${base}/items`)]);
  setTimeout(() => {
    // the loop stands still meanwhile, and the answer waits
    http.get(`${base}/release`);
    order.push('released');
  }, 1);
  await held;
  const all = await Promise.all(['a', 'b', 'c'].map((name) => http.asyncRequest('POST', `${base}/together/3/${name}`, name)));
  http.get(`${base}/order?${order}&${first.json('items.0.name')}&${all.map((res) => res.body)}`);

  // redirects, cookies and digests, each for itself
  http.batch([`${base}/set`, { url: `${base}/plain`, params: { cookies: { own: 'x' } } }]);
  group('inner', () => {
    const list = http.batch([
      `${base}/to/302/3`,
      ['POST', `${base}/to/307/2`, 'kept'],
      ['GET', `${signIn}/digest`, null, { auth: 'digest' }],
      ['GET', `${base}/to/301/4`, null, { redirects: 1 }],
      ['GET', `${base}/status/404`, null, { responseCallback: http.expectedStatuses(404) }],
    ]);
    http.get(`${base}/list?${list.map((res) => res.status)}`);
  });
  const redirected = await http.asyncRequest('GET', `${base}/to/303/2`);
  check(redirected, { 'is at the end': (res) => res.url.endsWith('/end?x=1') });
  http.get(`${base}/redirected?${redirected.status}`);

  // nobody waits for these but the iteration
  http.asyncRequest('PUT', `${base}/unawaited`, 'x').then(async (res) => {
    const nested = await http.asyncRequest('GET', `${base}/nested/${res.status}`);
    setTimeout(() => http.get(`${base}/last/${nested.status}`), 1);
  });
}
