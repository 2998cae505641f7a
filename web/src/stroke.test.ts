import { expect, it } from 'vitest';
import { dashes, strokeOf, STROKES } from './stroke';

/** Most variants of a comparison. */
const VARIANTS_MAX = 24;

it('no two of a comparison’s lines look the same', () => {
  const looks = Array.from({ length: VARIANTS_MAX }, (_, index) => JSON.stringify(strokeOf(index)));
  expect(new Set(looks).size).toBe(VARIANTS_MAX);
  expect(STROKES).toBeGreaterThanOrEqual(VARIANTS_MAX);
  expect(strokeOf(0)).toEqual({ colour: 'c1' });
  expect(strokeOf(8).colour).toBe('c1');
});

it('a swatch has the dashes of its line', () => {
  expect(dashes([8, 4])).toBe('repeating-linear-gradient(to right,var(--swatch) 0px 8px,transparent 8px 12px)');
});
