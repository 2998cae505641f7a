import { describe, expect, it } from 'vitest';
import { bands, bandsIn, cells, inWords, letter, places } from './faults';
import { readRun, type Fault } from './run';

const read = (faults: unknown): Fault[] => readRun(JSON.stringify({ manifest: { summary: { faults } } })).manifest.summary.faults;

const DIP = { before_per_s: 1000, lowest_per_s: 0, depth: 1, length_s: 3.5, recovery_s: 1.5, errors: 12, dropped: 3456, backlog_max: 50, seen_s: 20 };
const KILL = { fault: 'kill system, restart after 2s', kind: 'kill', target: 'system', begin_us: 12e6, healed_us: 14e6, ready_us: 14.25e6, dip: DIP };
const one = (changed: object): Fault => {
  const [fault] = read([{ ...KILL, ...changed }]);
  if (!fault) throw new Error('no fault');
  return fault;
};

describe('reading faults', () => {
  it('keeps what is unknown apart from zero', () => {
    const [first, second] = read([{ ...KILL, dip: { ...DIP, length_s: null, recovery_s: null } }, 'x']);
    expect([first?.begin_us, first?.dip?.length_s, first?.dip?.recovery_s, first?.error]).toEqual([12e6, null, null, null]);
    expect(second).toEqual({ fault: '', kind: '', target: '', begin_us: null, healed_us: null, ready_us: null, error: null, dip: null });
  });

  it.each([undefined, null, {}, 3])('finds none in %s', (faults) => expect(read(faults)).toEqual([]));
});

describe('bands', () => {
  it('reach from the begin until what was started again was ready', () => {
    const [band] = bands([one({})], 30);
    expect(band).toMatchObject({ letter: 'A', from_s: 12, to_s: 14.25, healed: true });
    expect(band?.names).toEqual(['A kill system, restart after 2s', 'A kill system', 'A']);
  });

  it('reach to the moment at which it goes on where nothing is started', () => {
    expect(bands([one({ kind: 'freeze', ready_us: null })], 30)[0]).toMatchObject({ to_s: 14, healed: true });
    expect(cells(one({ kind: 'freeze', ready_us: null }))).toMatchObject({ until: 'until 14.00\u202fs', started: '' });
  });

  it('reach to the end where nothing was undone before it', () => {
    expect(bands([one({ ready_us: null }), one({ ready_us: 31e6 })], 30).map((it) => [it.to_s, it.healed])).toEqual([[30, false], [30, false]]);
  });

  it('leave out what never began, and keep the letters of the table', () => {
    const all = bands([one({ begin_us: null }), one({ begin_us: 20e6, ready_us: 21e6 }), one({}), one({ begin_us: 30e6 })], 30);
    expect(all.map((it) => [it.letter, it.from_s])).toEqual([['C', 12], ['B', 20]]);
  });

  it('have a letter as their shortest name, whatever they are called', () => {
    expect(bands([one({ fault: '', kind: '', target: '' })], 30)[0]?.names).toEqual(['A']);
    expect([0, 25, 26, 51, 52, 702].map(letter)).toEqual(['A', 'Z', 'AA', 'AZ', 'BA', 'AAA']);
  });

  it('are found by the seconds that they touch', () => {
    const all = bands([one({}), one({ begin_us: 15e6, ready_us: 15e6 })], 30);
    const at = (from: number, to: number) => bandsIn(all, from, to).map((it) => it.letter).join('');
    expect([at(11, 12), at(12, 13), at(14, 15), at(15, 16), at(16, 17)]).toEqual(['', 'A', 'A', 'B', '']);
  });

  it('are told in words', () => {
    expect(inWords(bands([one({}), one({ fault: 'stop system', begin_us: 20e6, healed_us: null, ready_us: null })], 30)))
      .toBe('Fault A, kill system, restart after 2s, 12\u202fs to 14.3\u202fs. Fault B, stop system, 20\u202fs to the end.');
    expect(inWords([])).toBe('');
  });
});

describe('names above the bands', () => {
  const width = (text: string) => text.length * 10;
  const put = (spots: [from: number, ...names: string[]][], right = 300) =>
    places(spots.map(([from, ...names]) => ({ from, names })), 0, right, 10, width).map((it) => [it.x, it.text]);

  it('are as long as there is room for', () => {
    expect(put([[50, 'A long name', 'A short', 'A']])).toEqual([[50, 'A long name']]);
    expect(put([[50, 'A long name', 'A short', 'A'], [140, 'B']])).toEqual([[50, 'A short'], [140, 'B']]);
    expect(put([[50, 'A long name', 'A short', 'A'], [80, 'B']])).toEqual([[50, 'A'], [80, 'B']]);
  });

  it('stay within the plot', () => {
    expect(put([[280, 'A long name', 'A']])).toEqual([[190, 'A long name']]);
    expect(put([[-40, 'A long name', 'A']])).toEqual([[0, 'A long name']]);
    expect(put([[50, 'A']], 5)).toEqual([]);
  });

  it('never lie on each other', () => {
    expect(put([[50, 'A x', 'A'], [50, 'B x', 'B'], [55, 'C x', 'C']])).toEqual([[50, 'A'], [70, 'B'], [90, 'C x']]);
    const many = Array.from({ length: 60 }, (_, index): [number, string, string] => [index * 5, `${letter(index)} name`, letter(index)]);
    const all = put(many);
    expect(all.length).toBeGreaterThan(5);
    for (const [index, [x, text]] of all.entries()) {
      expect(Number(x) + width(String(text))).toBeLessThanOrEqual(Number(all[index + 1]?.[0] ?? 310) - 10);
    }
  });
});

describe('the table of dips', () => {
  it('says how deep, how long, and what it cost', () => {
    expect(cells(one({}))).toEqual({
      at: '12.00\u202fs', until: 'until 14.25\u202fs', started: 'started again at 14.00\u202fs', depth: '100\u202f%', rates: '0/s of 1.00k/s', length: '3.5\u202fs', lasting: false,
      recovery: '1.5\u202fs', errors: '12', dropped: '3,456', backlog: '50',
    });
  });

  it('calls nothing lasting that was back all the time', () => {
    const shown = cells(one({ dip: { ...DIP, depth: 0.0016, length_s: null, recovery_s: null } }));
    expect(shown).toMatchObject({ length: 'never below 90\u202f%', lasting: false });
  });

  it('says plainly what did not come back', () => {
    const shown = cells(one({ healed_us: null, ready_us: null, dip: { ...DIP, length_s: null, recovery_s: null } }));
    expect(shown).toMatchObject({ until: 'not put right', length: 'not back within 20\u202fs', lasting: true, recovery: '–' });
  });

  it('decides nothing of what was put right too late to be seen', () => {
    const dip = { ...DIP, length_s: null, recovery_s: null };
    expect(cells(one({ ready_us: 30_000_000, dip }))).toMatchObject({ length: 'not known: seen for only 2\u202fs after it was put right', lasting: false });
    expect(cells(one({ ready_us: 29_000_000, dip }))).toMatchObject({ length: 'not back within 20\u202fs', lasting: true });
  });

  it('makes no dip of what nobody felt', () => {
    expect(cells(one({ dip: { ...DIP, depth: 0.0001, lowest_per_s: 1000, length_s: 0 } }))).toMatchObject({ depth: 'no dip', rates: 'of 1.00k/s', length: '0\u202fs' });
  });

  it('says nothing of what never began or has nothing to be held against', () => {
    expect(cells(one({ begin_us: null }))).toMatchObject({ at: 'never', until: '', depth: '–', errors: '–' });
    expect(cells(one({ dip: null }))).toMatchObject({ at: '12.00\u202fs', depth: '–', length: '–', lasting: false, backlog: '–' });
  });
});
