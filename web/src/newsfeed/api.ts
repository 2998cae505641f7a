/** The news feed over HTTP. What comes is read, not believed. */

import { asked, Failure, isObject } from '../asked';

/** Things of a list that are shown at once. */
export const PAGE = 20;
/** Friends that are read at once where all are needed. */
const FRIENDS_AT_ONCE = 1_000;

export interface Participant { id: number; name: string }
export interface Post { from: number; occurred: string; subject: string; story: string }
export interface Page<T> { items: T[]; next: string | null }

async function ask<T>(path: string, read: (body: unknown, headers: Headers) => T, send?: unknown): Promise<T> {
  const init: RequestInit = send === undefined ? {} : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(send) };
  const { body, headers } = await asked(path, init);
  return read(body, headers);
}

/** The number in a link such as `/participant/7`. */
export function idOf(link: unknown): number | null {
  const digits = typeof link === 'string' ? /^\/participant\/([1-9][0-9]{0,15})$/.exec(link)?.[1] : undefined;
  const id = Number(digits);
  return digits !== undefined && Number.isSafeInteger(id) ? id : null;
}

function odd(what: string): Failure {
  return new Failure(`The server's answer is not ${what}.`, 200, true);
}

export function readParticipant(body: unknown): Participant {
  if (!isObject(body) || !Number.isSafeInteger(body['id']) || typeof body['name'] !== 'string') throw odd('a participant');
  return { id: body['id'] as number, name: body['name'] };
}

export function readPost(body: unknown): Post {
  if (!isObject(body)) throw odd('a post');
  const from = idOf(body['from']);
  const [occurred, subject, story] = [body['occurred'], body['subject'], body['story']];
  if (from === null || typeof occurred !== 'string' || typeof subject !== 'string' || typeof story !== 'string') throw odd('a post');
  return { from, occurred, subject, story };
}

function list<T>(read: (item: unknown) => T) {
  return (body: unknown): T[] => {
    if (!Array.isArray(body)) throw odd('a list');
    return body.map(read);
  };
}

function page<T>(read: (item: unknown) => T) {
  return (body: unknown, headers: Headers): Page<T> => ({ items: list(read)(body), next: headers.get('next-cursor') });
}

function needId(link: unknown): number {
  return idOf(link) ?? (() => { throw odd('a link'); })();
}

const friendOf = (body: unknown) => needId(isObject(body) ? body['to'] : null);

/** Where a page of a list is. */
export function pagePath(id: number, of: string, cursor: string | null, limit = PAGE): string {
  const query = new URLSearchParams({ limit: String(limit) });
  if (cursor !== null) query.set('cursor', cursor);
  return `/participant/${id}/${of}?${query}`;
}

export const participant = (id: number) => ask(`/participant/${id}`, readParticipant);
export const named = (name: string) => ask(`/participant?${new URLSearchParams({ name })}`, list(readParticipant));
export const create = (name: string) => ask('/participant', readParticipant, { name });
export const inbound = (id: number, cursor: string | null) => ask(pagePath(id, 'inbound', cursor), page(readPost));
export const outbound = (id: number, cursor: string | null) => ask(pagePath(id, 'outbound', cursor), page(readPost));
export const friends = (id: number, cursor: string | null) => ask(pagePath(id, 'friends', cursor), page(friendOf));
export const befriend = (from: number, to: number) => ask(`/participant/${from}/friends`, () => undefined, { from: `/participant/${from}`, to: `/participant/${to}` });
export const post = (id: number, subject: string, story: string) => ask(`/participant/${id}/outbound`, readPost, { from: `/participant/${id}`, subject, story });
export const search = (keywords: string) => ask(`/outbound?${new URLSearchParams({ keywords })}`, list(needId));
export const description = () => ask('/openapi.json', (body) => body);

/** Every friend; the server bounds how many there are. */
export async function allFriends(id: number): Promise<Set<number>> {
  const all = new Set<number>();
  let cursor: string | null = null;
  do {
    const some: Page<number> = await ask(pagePath(id, 'friends', cursor, FRIENDS_AT_ONCE), page(friendOf));
    for (const friend of some.items) all.add(friend);
    cursor = some.next;
  } while (cursor !== null);
  return all;
}
