import http from 'k6/http';
import { check } from 'k6';

export const options = { iterations: 2 };

export default function () {
  const base = __ENV.BASE;
  const set = http.get(`${base}/set`);
  check(set, { 'a cookie is there': (r) => r.cookies.sid[0].value === 'abc' && r.cookies.sid[0].path === '/' && r.cookies.hasOwnProperty('sid') });
  http.get(`${base}/plain`);
  http.get(`${base}/deep/er`);
  http.get(`${base}/own`, { cookies: { mine: '1' } });
  http.get(`${base}/replaced`, { cookies: { sid: { value: 'new', replace: true } } });
  const jar = http.cookieJar();
  jar.set(base, 'set', 'by hand');
  const all = jar.cookiesForURL(`${base}/`);
  http.get(`${base}/jar?sid=${all.sid[0]}&n=${Object.keys(all).length}&${all.hasOwnProperty('set')}`);
  http.get(`${base}/gone`);
  http.get(`${base}/after`);
  const other = new http.CookieJar();
  other.set(base, 'other', 'jar');
  http.get(`${base}/other`, { jar: other });
  http.get(`${base}/header`, { headers: { Cookie: 'h=1' } });
}
