import http from 'k6/http';

// what it sends has no order: the test sorts it
export const options = { iterations: 2 };

export default async function () {
  const base = __ENV.BASE;
  const broken = `${base}/broken`;
  try {
    await http.asyncRequest('POST', broken, 'a', { throw: true });
  } catch (error) {
    http.get(`${base}/caught`);
  }
  const quiet = await http.asyncRequest('POST', broken, 'b');
  http.get(`${base}/quiet?${quiet.status}`);
  try {
    http.batch([['POST', broken, 'c', { throw: true }]]);
  } catch (error) {
    http.get(`${base}/threw`);
  }
  const [failed, fine] = http.batch([['POST', `${base}/broken`, 'd'], `${base}/fine`]);
  http.get(`${base}/both?${failed.status}&${fine.status}`);
  // a promise that nobody looks at ends the iteration
  setTimeout(() => http.get(`${base}/never`), 50);
  Promise.reject(new Error('unseen'));
}
