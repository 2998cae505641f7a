export type Item = { id: number; name: string; price: number };

export function add(a: number, b: number): number {
  return a + b;
}
