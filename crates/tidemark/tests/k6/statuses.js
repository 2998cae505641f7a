import http from 'k6/http';

export const options = { thresholds: { http_req_failed: ['rate<=0.4'], 'http_reqs{expected_response:true}': ['count>=3'] } };

http.setResponseCallback(http.expectedStatuses(200, { min: 400, max: 404 }));

export default function () {
  const base = __ENV.BASE;
  const seen = [];
  for (const status of [200, 404, 500, 204]) {
    const res = http.get(`${base}/status/${status}`);
    seen.push(`${res.status}:${res.error_code}:${res.body === null}`);
  }
  seen.push(http.get(`${base}/status/503`, { responseCallback: http.expectedStatuses(503) }).status);
  http.get(`${base}/seen?${seen.join(',')}`);
  const none = http.get(`${base}/items`, { responseType: 'none' });
  const binary = http.get(`${base}/items`, { responseType: 'binary' });
  http.get(`${base}/kinds?${none.body === null}&${binary.body.byteLength > 50}&${binary.body instanceof ArrayBuffer}`);
}
