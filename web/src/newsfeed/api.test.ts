import { afterEach, describe, expect, it, vi } from 'vitest';
import { Failure, words } from '../asked';
import { allFriends, idOf, inbound, named, pagePath, post, readPost, search } from './api';

const sent: { path: string; init: RequestInit }[] = [];

/** Answers in turn; an error is no answer. */
function answers(...all: (Response | Error)[]): void {
  sent.length = 0;
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    sent.push({ path, init });
    const next = all.shift();
    if (next instanceof Response) return next;
    throw next ?? new Error('nothing more is answered');
  });
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) => new Response(JSON.stringify(body), { status, headers });
const item = { from: '/participant/7', to: '/participant/2', occurred: '2026-01-31', subject: 's', story: '<b>t</b>' };

afterEach(() => vi.unstubAllGlobals());

describe('what is asked for', () => {
  it('is written so that no text becomes another part of the address', () => {
    expect(pagePath(7, 'inbound', null)).toBe('/participant/7/inbound?limit=20');
    expect(pagePath(7, 'friends', 'a&b=c', 5)).toBe('/participant/7/friends?limit=5&cursor=a%26b%3Dc');
  });
  it('names and keywords too', async () => {
    answers(json([]), json([]));
    await named('a&b #c+ä');
    await search('one two');
    expect(sent.map(({ path }) => path)).toEqual(['/participant?name=a%26b+%23c%2B%C3%A4', '/outbound?keywords=one+two']);
  });
  it('a post has what was written, as JSON', async () => {
    answers(json(item));
    await post(7, 's "', 'line\nline');
    expect([sent[0]?.path, sent[0]?.init.method]).toEqual(['/participant/7/outbound', 'POST']);
    expect(JSON.parse(String(sent[0]?.init.body))).toEqual({ from: '/participant/7', subject: 's "', story: 'line\nline' });
  });
});

describe('what is answered', () => {
  it('a page has its items and where the next begins', async () => {
    answers(json([item], 200, { 'next-cursor': '1f-1' }), json([]));
    expect(await inbound(2, null)).toEqual({ items: [{ from: 7, occurred: '2026-01-31', subject: 's', story: '<b>t</b>' }], next: '1f-1' });
    expect(await inbound(2, '1f-1')).toEqual({ items: [], next: null });
  });
  it('all friends are read page by page', async () => {
    answers(json([{ id: 1, from: '/participant/1', to: '/participant/2' }], 200, { 'next-cursor': '1' }), json([{ id: 2, from: '/participant/1', to: '/participant/3' }]));
    expect([...await allFriends(1)]).toEqual([2, 3]);
    expect(sent[1]?.path).toContain('cursor=1');
  });
  it('a link is a link of this server', () => {
    expect(idOf('/participant/12')).toBe(12);
    for (const odd of ['/participant/0', '/participant/01', '/participant/1/x', 'https://elsewhere/participant/1', '12', 12, null, '/participant/99999999999999999']) expect(idOf(odd)).toBeNull();
  });
  it('what is no post is a failure, never an exception of another kind', () => {
    for (const odd of [null, 7, [], {}, { ...item, from: 7 }, { ...item, subject: null }]) expect(() => readPost(odd)).toThrow(Failure);
  });
});

describe('a failure', () => {
  const failure = async (answer: Response | Error) => {
    answers(answer);
    return inbound(1, null).then(() => null, (error: unknown) => error as Failure);
  };
  it('has the words of the server', async () => {
    const busy = await failure(json({ error: 'a store is busy: try again later' }, 503));
    expect([busy?.message, busy?.status, busy?.passing]).toEqual(['A store is busy: try again later.', 503, true]);
    const missing = await failure(json({ error: 'there is no participant 1' }, 404));
    expect([missing?.message, missing?.passing]).toEqual(['There is no participant 1.', false]);
    expect(words(503, { reason: 'the system is still starting' })).toBe('The system is still starting.');
  });
  it('has others where the server has none', async () => {
    expect((await failure(new Response('<h1>Bad gateway</h1>', { status: 502 })))?.message).toBe('The server answers with status 502.');
    const offline = await failure(new TypeError('Failed to fetch'));
    expect([offline?.passing, offline?.message]).toEqual([true, expect.stringContaining('cannot be reached')]);
    expect((await failure(new Response('nonsense')))?.message).toBe("The server's answer is not a list.");
  });
});
