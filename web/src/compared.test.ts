import { expect, test } from 'vitest';
import { readComparison } from './compared';

test('a comparison is told from a run, and what is missing becomes empty', () => {
  expect(readComparison('__TIDEMARK_RUN__')).toBeNull();
  expect(readComparison('{"manifest":{}}')).toBeNull();
  expect(readComparison('{"comparison":{}}')).toBeNull();
  const bare = readComparison('{"comparison":{"name":"x","parts":[{"part":"equal-rate","variants":[{}],"ratios":[{}]}]}}');
  expect(bare?.parts[0]?.equal).toBe(true);
  expect(bare?.parts[0]?.variants[0]).toMatchObject({ name: '', status: 'invalid', failed: 0, system_cpu_share: null, curve: [], pages: [] });
  expect(bare?.parts[0]?.ratios[0]?.p99).toEqual({ ratio: null, low: null, high: null });
});

test('its figures are read as they stand', () => {
  const source = { comparison: { parts: [{ part: 'own-load', variants: [{ name: 'REST', verdict: { status: 'pass', reasons: ['r'] }, errors: { status: 2, check: 3 }, curve: [[50, 7]], pages: ['1-rest/report.html'] }], ratios: [{ answered_per_s: { ratio: 2, low: 1.5, high: 2.5 } }] }] } };
  const part = readComparison(JSON.stringify(source))?.parts[0];
  expect(part?.equal).toBe(false);
  expect(part?.variants[0]).toMatchObject({ name: 'REST', status: 'pass', reasons: ['r'], failed: 5, curve: [[50, 7]], pages: ['1-rest/report.html'] });
  expect(part?.ratios[0]?.answered_per_s).toEqual({ ratio: 2, low: 1.5, high: 2.5 });
});
