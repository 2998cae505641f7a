import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { newer } from './list';
import { isShown, postOf, waitMs } from './live';
import { Names } from './names';
import { FOUND_MAX, offered, outcome } from './people';
import { kept } from './signin';
import { STORY_BYTES_MAX, SUBJECT_BYTES_MAX, used, wrongName, wrongText } from './text';

describe('a text', () => {
  it('is measured in bytes, as the server does', () => {
    expect(used('ä€😀', STORY_BYTES_MAX)).toBe('9 of 15,000 bytes');
    expect(wrongText('Subject', 'ä'.repeat(500), SUBJECT_BYTES_MAX)).toBe('');
    expect(wrongText('Subject', 'ä'.repeat(501), SUBJECT_BYTES_MAX)).toBe('Subject is 2 bytes too long: 1,000 are taken.');
    expect(wrongText('Story', ' \n', STORY_BYTES_MAX)).toBe('Story is missing.');
  });
  it('a name in characters', () => {
    expect(wrongName('😀'.repeat(50))).toBe('');
    expect(wrongName('😀'.repeat(51))).toBe('The name is 1 character too long: 50 are taken.');
    expect(wrongName('  ')).toBe('A name is missing.');
  });
  it('has the bounds that the server has', () => {
    const source = readFileSync(new URL('../../../systems/store/src/feeds.rs', import.meta.url), 'utf8');
    expect(source).toContain('SUBJECT_BYTES_MAX: usize = 1_000;');
    expect(source).toContain('STORY_BYTES_MAX: usize = 15_000;');
  });
});

describe('what comes live', () => {
  const post = { from: 7, occurred: '2026-01-31', subject: 's', story: 't' };
  it('is a post, or a reason to read the feed', () => {
    expect(postOf(JSON.stringify({ ...post, from: '/participant/7', to: '/participant/1' }))).toEqual(post);
    for (const odd of ['', '{', '{}', 'null']) expect(postOf(odd)).toBeNull();
  });
  it('is new only where no post is like it', () => {
    expect(isShown([], post)).toBe(false);
    expect(isShown([{ ...post, story: 'u' }, { ...post }], post)).toBe(true);
    for (const other of [{ from: 8 }, { occurred: '2026-02-01' }, { subject: 'x' }, { story: 'x' }]) expect(isShown([{ ...post, ...other }], post)).toBe(false);
  });
  it('is asked for again ever less often', () => {
    expect([0, 1, 2, 3, 4, 50, 5000].map(waitMs)).toEqual([2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });
});

describe('a first page that is read again', () => {
  const page = (items: string, next: string | null = 'more') => ({ items: [...items], next });
  it('tells what is new in front of what is shown', () => {
    expect(newer([...'cba'], page('cba'))).toBe(0);
    expect(newer([...'cbaxyz'], page('edc'))).toBe(2);
    expect(newer([...'cbaxyz'], page('cba'))).toBe(0);
    expect(newer([...'a'], page('aa', null))).toBe(1);
    expect(newer([...'cba'], page('dcba', null))).toBe(1);
  });
  it('takes the place of what is shown where the two do not fit', () => {
    expect(newer([], page('ab'))).toBeNull();
    expect(newer([...'cba'], page('zyx'))).toBeNull();
    expect(newer([...'cba'], page('cxa'))).toBeNull();
    expect(newer([...'cba'], page('cb', null))).toBeNull();
    expect(newer([...'cb'], page('cba'))).toBeNull();
    expect(newer([...'cba'], page('', null))).toBeNull();
  });
});

describe('people', () => {
  it('are offered once, without oneself and who is a friend already', () => {
    expect(offered([5, 1, 7, 5, 2], 1, new Set([2]))).toEqual([5, 7]);
  });
  it('and it is said why there are none, or how many', () => {
    expect(outcome(0, 0)).toContain('Nobody has posted');
    expect(outcome(3, 0)).toContain('Nobody new');
    expect([outcome(1, 1), outcome(9, 2)]).toEqual(['1 person:', '2 people:']);
    expect(outcome(30, 21)).toBe(`21 people; the ${FOUND_MAX} who posted last:`);
  });
  it('have their names asked for once, and again after a failure', async () => {
    let asked = 0;
    const names = new Names(async (id) => {
      asked += 1;
      if (asked === 1) throw new Error('offline');
      return { id, name: 'Ann' };
    });
    expect(await names.of(7)).toBe('Participant 7');
    expect([await names.of(7), await names.of(7)]).toEqual(['Ann', 'Ann']);
    expect(asked).toBe(2);
  });
  it('are recalled only whole', () => {
    expect(kept('{"id":7,"name":"Ann"}')).toEqual({ id: 7, name: 'Ann' });
    for (const odd of [null, '', '{', '{"id":"7","name":"Ann"}', '{"id":7}']) expect(kept(odd)).toBeNull();
  });
});

describe.each(['newsfeed.html', 'newsfeed-docs.html', 'airline.html'])('the built page %s', (file) => {
  const html = readFileSync(new URL(`../../dist/${file}`, import.meta.url), 'utf8');
  it('allows what is in it, by hash, and nothing else', () => {
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? '';
    for (const tag of ['script', 'style']) {
      const [, text = ''] = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(html) ?? [];
      expect(text.length).toBeGreaterThan(1000);
      expect(policy).toContain(`${tag}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`);
    }
    expect(policy).not.toContain('unsafe');
  });
  it('refers to nothing outside, and writes no HTML', () => {
    expect(html.replaceAll('http://www.w3.org/', '')).not.toMatch(/https?:\/\//);
    expect(html).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|eval\(|new Function| style="| on[a-z]+="/);
  });
});
