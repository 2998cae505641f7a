/** What may be written, and how the page words what it has to say. */

/** Longest name, in characters; the server's own bound, as the next two. */
export const NAME_CHARS_MAX = 50;
/** Longest subject, in bytes. */
export const SUBJECT_BYTES_MAX = 1_000;
/** Longest story, in bytes. */
export const STORY_BYTES_MAX = 15_000;

const encoder = new TextEncoder();

/** Length of a text as UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** 15000 as 15,000. */
export function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** `1 post`, `2 posts`. */
export function many(number: number, one: string): string {
  return `${count(number)} ${one}${number === 1 ? '' : 's'}`;
}

/** How much of a bound is used. */
export function used(text: string, max: number): string {
  return `${count(byteLength(text))} of ${count(max)} bytes`;
}

/** Why a text cannot be sent; empty if it can. */
export function wrongText(name: string, text: string, max: number): string {
  if (text.trim() === '') return `${name} is missing.`;
  const over = byteLength(text) - max;
  return over > 0 ? `${name} is ${many(over, 'byte')} too long: ${count(max)} are taken.` : '';
}

/** Why a name cannot be taken; empty if it can. */
export function wrongName(name: string): string {
  if (name.trim() === '') return 'A name is missing.';
  const over = [...name].length - NAME_CHARS_MAX;
  return over > 0 ? `The name is ${many(over, 'character')} too long: ${NAME_CHARS_MAX} are taken.` : '';
}
