/** JSON whose form is not known, read: what is missing or something else is empty, never an exception. Pure. */

export type Loose = Record<string, unknown>;

export const object = (value: unknown): Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
/** A number or a truth value becomes its text. */
export const text = (value: unknown): string =>
  typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
export const numberOrNull = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
export const number = (value: unknown): number => numberOrNull(value) ?? 0;
