/** How the page words days, times and prices. Days of flights are days in UTC, so all times are. Pure. */

const DAY_MS = 86_400_000;

const UTC = { timeZone: 'UTC' } as const;
const DAY = new Intl.DateTimeFormat('en-GB', { ...UTC, weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' });
const TIME = new Intl.DateTimeFormat('en-GB', { ...UTC, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** A moment that a date can be; years beyond four digits are none. */
function isDate(at_ms: number): boolean {
  return Number.isFinite(at_ms) && Math.abs(at_ms) < 8e15;
}

/** `Sat 28 Nov 2026`. */
export function day(at_ms: number): string {
  return isDate(at_ms) ? DAY.format(at_ms).replace(',', '') : 'unknown';
}

/** `Sat 28 Nov 2026, 09:30`. */
export function moment(at_ms: number): string {
  return isDate(at_ms) ? `${day(at_ms)}, ${TIME.format(at_ms)}` : 'unknown';
}

/** When a flight leaves and arrives; the second day only where it is another. */
export function times(departs_ms: number, arrives_ms: number): string {
  const arrives = day(departs_ms) === day(arrives_ms) && isDate(arrives_ms) ? TIME.format(arrives_ms) : moment(arrives_ms);
  return `${moment(departs_ms)} – ${arrives}`;
}

/** The day `days` after that of a moment, as a field for dates has it: `2026-11-28`. */
export function dayField(at_ms: number, days: number): string {
  return new Date(at_ms + days * DAY_MS).toISOString().slice(0, 10);
}

/** `$1,200`. */
export function price(dollars: number): string {
  return `$${dollars.toLocaleString('en-US')}`;
}

/** `1 mile`, `1,533 miles`. */
export function many(number: number, one: string): string {
  return `${number.toLocaleString('en-US')} ${one}${number === 1 ? '' : 's'}`;
}

/** Why two flights are no trip; empty if they are. */
export function wrongTrip(out: { departs_ms: number }, back: { departs_ms: number } | null): string {
  return back !== null && back.departs_ms < out.departs_ms ? 'The flight back leaves before the flight out. Choose a later one.' : '';
}

const USER = 'loggedinuser';

/** Who is logged in, as a cookie says that the page itself sets: the session's own is hidden from scripts. */
export function userIn(cookies: string): string | null {
  const own = cookies.split(';').map((pair) => pair.trim().split('=')).find(([name]) => name === USER);
  try {
    return decodeURIComponent(own?.[1] ?? '') || null;
  } catch {
    return null;
  }
}

/** The cookie that says so; with nobody, the one that takes it away. */
export function userCookie(user: string | null): string {
  return `${USER}=${encodeURIComponent(user ?? '')}; Path=/; SameSite=Lax${user === null ? '; Max-Age=0' : ''}`;
}
