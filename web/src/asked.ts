/** Requests of a system's page to its own server. */

/** Longest wait for an answer, milliseconds. */
const PATIENCE_MS = 20_000;

/** Why there is no answer, in words for a person. */
export class Failure extends Error {
  constructor(message: string, readonly status: number, readonly passing: boolean) {
    super(message);
  }
}

const UNREACHABLE = 'The server cannot be reached. See whether it runs and whether you are online, then try again.';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The words of the server in a refusal, or others where it has none. */
export function words(status: number, body: unknown): string {
  const said = isObject(body) && typeof body['error'] === 'string' ? body['error'] : isObject(body) && typeof body['reason'] === 'string' ? body['reason'] : '';
  if (said === '') return `The server answers with status ${status}.`;
  const sentence = said.charAt(0).toUpperCase() + said.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

/** An answer that is none of a refusal: as text, and as JSON where it is that. */
export interface Answered { text: string; body: unknown; headers: Headers }

export async function asked(path: string, init: RequestInit = {}, patienceMs = PATIENCE_MS): Promise<Answered> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, { ...init, cache: 'no-store', signal: AbortSignal.timeout(patienceMs) });
    text = await response.text();
  } catch {
    throw new Failure(UNREACHABLE, 0, true);
  }
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // The status says enough, or what is missing is.
  }
  if (!response.ok) throw new Failure(words(response.status, body), response.status, response.status >= 500);
  return { text, body, headers: response.headers };
}
