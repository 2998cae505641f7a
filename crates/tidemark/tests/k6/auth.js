import http from 'k6/http';

export default function () {
  const place = __ENV.BASE.replace('http://', '');
  http.get(`http://ann:pass%20word@${place}/basic`);
  const res = http.get(`http://ann:secret@${place}/digest?a=1`, { auth: 'digest' });
  http.get(`${__ENV.BASE}/digested/${res.status}`);
  http.get(`${__ENV.BASE}/bearer`, { headers: { Authorization: 'Bearer x.y.z' } });
}
