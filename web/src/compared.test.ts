import { expect, test } from 'vitest';
import { readComparison } from './compared';

test('a comparison is told from a run, and what is missing becomes empty', () => {
  expect(readComparison('__TIDEMARK_RUN__')).toBeNull();
  expect(readComparison('{"manifest":{}}')).toBeNull();
  expect(readComparison('{"comparison":{}}')).toBeNull();
  const bare = readComparison('{"comparison":{"name":"x","parts":[{"part":"equal-rate","variants":[{}],"ratios":[{}]}]}}');
  expect(bare?.parts[0]?.load).toBe('equal-rate');
  expect(bare?.parts[0]?.variants[0]).toMatchObject({ name: '', status: 'invalid', failed: 0, system_cpu_share: null, curve: [], pages: [] });
  expect(bare?.parts[0]?.ratios[0]?.p99).toEqual({ ratio: null, low: null, high: null, difference: null, says: '' });
  expect(bare?.parts[0]?.ratios[0]?.no_claim).toBe('');
  expect(bare?.parts[0]?.variants[0]?.response_time_us.p99).toBeNull();
});

test('its figures are read as they stand', () => {
  const source = { comparison: { parts: [{ part: 'own-load', variants: [{ name: 'REST', verdict: { status: 'pass', reasons: ['r'] }, errors: { status: 2, check: 3 }, curve: [[50, 7]], pages: ['1-rest/report.html'] }], ratios: [{ answered_per_s: { ratio: 2, low: 1.5, high: 2.5 } }] }] } };
  const part = readComparison(JSON.stringify(source))?.parts[0];
  expect(part?.load).toBe('own');
  expect(part?.variants[0]).toMatchObject({ name: 'REST', status: 'pass', reasons: ['r'], failed: 5, curve: [[50, 7]], pages: ['1-rest/report.html'] });
  expect(part?.ratios[0]?.answered_per_s).toEqual({ ratio: 2, low: 1.5, high: 2.5, difference: true, says: '' });
});

test('what is claimed is as it was told, and what was dropped failed too', () => {
  const ratios = { answered_per_s: { ratio: 1.01, low: 1.005, high: 1.02, difference: false }, p50: { ratio: 1.2, low: null, high: null, difference: null }, no_claim: 'needs 3 rounds, has 1' };
  const source = { comparison: { parts: [{ variants: [{ requests: 90, dropped: 10, errors: { timeout: 5 }, response_time_us: { p50: 7, p99: null } }], ratios: [ratios] }] } };
  const part = readComparison(JSON.stringify(source))?.parts[0];
  expect(part?.variants[0]).toMatchObject({ due: 100, failed: 15, dropped: 10 });
  expect(part?.variants[0]?.response_time_us).toMatchObject({ p50: 7, p99: null });
  expect(part?.ratios[0]?.answered_per_s.difference).toBe(false);
  expect(part?.ratios[0]?.p50.difference).toBeNull();
  expect(part?.ratios[0]?.no_claim).toBe('needs 3 rounds, has 1');
});

test('each side has its bill where there are prices', () => {
  const read = (bills: unknown) => readComparison(JSON.stringify({ comparison: { parts: [], bills } }))?.bills;
  expect(read(undefined)).toEqual([]);
  expect(read([{ name: 'REST', bill: { currency: 'USD', tiers: [{ tier: 'web' }] } }, { name: 'without' }])).toMatchObject([{ name: 'REST', bill: { currency: 'USD', tiers: [{ tier: 'web' }] } }]);
});

test('a comparison leads to nothing but pages beside it', () => {
  const pages = ['1-a/report.html', '/runs/a%3Ab/report.html', 'javascript:alert(1)//report.html', ' JavaScript:x/report.html', '//elsewhere/report.html', '\\\\elsewhere/report.html', 'data:text/html,x'];
  const read = readComparison(JSON.stringify({ comparison: { parts: [{ variants: [{ pages }] }] } }));
  expect(read?.parts[0]?.variants[0]?.pages).toEqual(pages.slice(0, 2));
});
