import http from 'k6/http';
import { check } from 'k6';
import { Trend } from 'k6/metrics';

const size = new Trend('size');

export const options = { iterations: 3, summaryTrendStats: ['avg', 'p(99)', 'count'], thresholds: { size: ['avg<5'] } };

export default function () {
  size.add(__ITER + 1);
  check(http.get(`${__ENV.BASE}/summary`), { fine: (r) => r.body === 'fine' });
}

export function handleSummary(data) {
  const { size, iterations, checks, http_reqs } = data.metrics;
  const told = [size.values.avg, size.values.count, size.thresholds['avg<5'].ok, iterations.values.count, checks.values.passes, http_reqs.type];
  return { stdout: `told: ${told.join(' ')} ${data.root_group.checks[0].name}\n`, [__ENV.OUT || 'summary.json']: JSON.stringify(data.metrics.size.values) };
}
