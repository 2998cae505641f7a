import { describe, expect, it } from 'vitest';
import { atSecond, clock, coreList, count, cores, digits, duration, moment, nines, NOTHING, plain, quantity, rate, share, shellLine, size, span, tick } from './format';

/** The narrow gap before a unit is hard to see in an expectation. */
const spaced = (text: string) => text.replaceAll('\u202f', ' ');

describe('digits', () => {
  it('shows three significant ones and no exponent', () => {
    expect([0, 0.0123456, 1.2, 12.34, 123.4, 1234.5].map(digits)).toEqual(['0', '0.0123', '1.20', '12.3', '123', '1230']);
  });
  it('rounds before it chooses the decimals', () => {
    expect(digits(9.996)).toBe('10.0');
    expect(digits(99.96)).toBe('100');
  });
  it('does not print what is no number', () => {
    expect(digits(NaN)).toBe(NOTHING);
    expect(digits(Infinity)).toBe(NOTHING);
  });
  it('drops zeros that say nothing on axes', () => {
    expect([0.5, 1, 2.5, 100].map(plain)).toEqual(['0.5', '1', '2.5', '100']);
  });
});

describe('duration', () => {
  it('chooses the unit', () => {
    expect([0, 7, 999, 1000, 12_345, 1_234_567, 75_000_000].map((us) => spaced(duration(us))))
      .toEqual(['0 µs', '7 µs', '999 µs', '1.00 ms', '12.3 ms', '1.23 s', '75.0 s']);
  });
  it('goes to the next unit where rounding reaches it', () => {
    expect(spaced(duration(999.7))).toBe('1.00 ms');
    expect(spaced(duration(999_700))).toBe('1.00 s');
  });
  it('keeps parts of a microsecond and says nothing of null', () => {
    expect(spaced(duration(0.25))).toBe('0.250 µs');
    expect(duration(null)).toBe(NOTHING);
  });
});

describe('quantities', () => {
  it('are short', () => {
    expect([0, 7, 12.5, 999, 4998, 12_345, 1_230_000].map(quantity)).toEqual(['0', '7', '12.5', '999', '5.00k', '12.3k', '1.23M']);
    expect(rate(4998)).toBe('5.00k/s');
    expect(rate(24_000)).toBe('24.0k/s');
    expect(rate(null)).toBe(NOTHING);
  });
  it('in full have groups', () => {
    expect([0, 999, 1000, 31_145_914].map(count)).toEqual(['0', '999', '1,000', '31,145,914']);
  });
  it('of bytes are binary', () => {
    expect([0, 1023, 1024, 1_572_864, 16_515_072_000].map((bytes) => spaced(size(bytes)))).toEqual(['0 B', '1023 B', '1.00 KiB', '1.50 MiB', '15.4 GiB']);
  });
  it('on axes are plain', () => {
    expect([tick.duration(5000), tick.size(2 ** 21), tick.quantity(20_000)].map(spaced)).toEqual(['5 ms', '2 MiB', '20k']);
  });
  it('of cores have two decimals', () => {
    expect([0, 1.714].map(cores)).toEqual(['0', '1.71']);
  });
});

describe('share', () => {
  it('never shows something as nothing, nor all but something as all', () => {
    expect(spaced(share(0))).toBe('0 %');
    expect(spaced(share(1e-9))).toBe('< 0.001 %');
    expect(spaced(share(1))).toBe('100 %');
    expect(spaced(share(0.99999))).toBe('99.999 %');
    expect(spaced(share(0.9999))).toBe('99.99 %');
    expect(spaced(share(0.115))).toBe('11.5 %');
  });
});

describe('times', () => {
  it('on the clock', () => {
    expect([spaced(clock(42)), spaced(clock(119.5)), clock(125), clock(3725), clock(30, true)]).toEqual(['42 s', '120 s', '2:05', '1:02:05', '0:30']);
  });
  it('in length', () => {
    expect([75, 125, 180, 3600, 5400].map((s) => spaced(span(s)))).toEqual(['75 s', '2 min 5 s', '3 min', '1 h', '1 h 30 min']);
  });
  it('of events', () => {
    expect(spaced(atSecond(-2.31))).toBe('−2.31 s');
    expect(spaced(atSecond(-0.001))).toBe('0.00 s');
  });
  it('of the calendar', () => {
    expect(moment('2026-01-31T14:05:09.120Z')).toBe('2026-01-31 14:05:09 UTC');
    expect(moment('yesterday')).toBe('yesterday');
  });
});

describe('names', () => {
  it('of percentiles by their nines', () => {
    expect([0, 1, 2, 3, 5].map((n) => spaced(nines(n)))).toEqual(['0 %', '90 %', '99 %', '99.9 %', '99.999 %']);
  });
  it('of cores, runs joined', () => {
    expect(coreList([3, 0, 1, 2, 6])).toBe('0–3, 6');
    expect(coreList([])).toBe('');
  });
  it('of commands, quoted for a shell', () => {
    expect(shellLine(['tidemark', 'run', 'a b', "it's", '--rate=20k/s'])).toBe(`tidemark run 'a b' 'it'\\''s' --rate=20k/s`);
  });
});
