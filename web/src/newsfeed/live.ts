/** What comes into a feed while it is open. */

import { Failure } from '../asked';
import { readPost, type Post } from './api';

export type State = 'connecting' | 'live' | 'lost';

/** First and longest wait before a stream that was refused is asked for again, milliseconds. */
const AGAIN_MS = 2_000;
const AGAIN_MAX_MS = 30_000;

/** The post of an event; null where it is none, and the feed is read instead. */
export function postOf(data: string): Post | null {
  try {
    return readPost(JSON.parse(data));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Failure) return null;
    throw error;
  }
}

/** A post that is shown already may be this one, or the same text once more: only the feed itself knows. */
export function isShown(shown: readonly Post[], post: Post): boolean {
  return shown.some((it) => it.from === post.from && it.occurred === post.occurred && it.subject === post.subject && it.story === post.story);
}

/** How long to wait before the next attempt. */
export function waitMs(attempt: number): number {
  return Math.min(AGAIN_MS * 2 ** attempt, AGAIN_MAX_MS);
}

interface Listener {
  /** A post came. */
  post(post: Post): void;
  /** The stream begins, or something was missed: what there is must be read. */
  read(): void;
  state(state: State): void;
}

/** Listens until it is told to stop. A page that nobody sees does not: a browser has few connections to one server. */
export function listen(id: number, to: Listener): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let attempt = 0;

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    if (document.hidden) return;
    to.state(attempt === 0 ? 'connecting' : 'lost');
    source = new EventSource(`/participant/${id}/inbound/stream`);
    source.addEventListener('open', () => {
      attempt = 0;
      to.state('live');
      to.read();
    });
    source.addEventListener('post', (event: MessageEvent<string>) => {
      const post = postOf(event.data);
      if (post) to.post(post);
      else to.read();
    });
    source.addEventListener('reload', () => to.read());
    source.addEventListener('error', () => {
      to.state('lost');
      // The browser itself tries again where a connection broke, but not where it was refused.
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, waitMs(attempt++));
    });
  };
  document.addEventListener('visibilitychange', open);
  open();
  return () => {
    document.removeEventListener('visibilitychange', open);
    close();
  };
}
