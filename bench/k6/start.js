import http from 'k6/http';

// each user is begun, and makes one request
export const options = { scenarios: { all: { executor: 'per-vu-iterations', vus: 10000, iterations: 1, maxDuration: '2m' } } };

export default function () {
  http.get(`${__ENV.BASE}/`);
}
