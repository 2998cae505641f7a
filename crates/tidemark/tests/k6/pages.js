import http from 'k6/http';
import { parseHTML } from 'k6/html';

export default function () {
  const base = __ENV.BASE;
  const page = http.get(`${base}/page`);
  const doc = parseHTML(page.body);
  const items = doc.find('li').map((at, item) => `${at}:${item.text()}`);
  http.get(`${base}/told?${doc.find('#t').text()}&${doc.find('li').size()}&${doc.find('input[name=id]').attr('value')}&${items.length}`);
  http.get(`${base}/form?${page.html('form').serialize()}`);
  page.submitForm({ fields: { note: 'changed' } });
  page.clickLink({ selector: 'a.next' });
}
