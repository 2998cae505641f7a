import http, { RefinedResponse, ResponseType } from 'k6/http';
import { check } from 'k6';
import { Options } from 'k6/options';
import { add, type Item } from './lib/typed.ts';

interface Answer<T> {
  items: T[];
  next?: string;
}

export const options: Options = { iterations: 2 };

const get = <T>(path: string): T => {
  const res: RefinedResponse<ResponseType | undefined> = http.get(`${__ENV.BASE}${path}`);
  check(res, { fine: (r): boolean => r.status === 200 });
  return res.json() as unknown as T;
};

export default function (): void {
  const { items } = get<Answer<Item>>('/items');
  const sum = items.map((item: Item) => item.price).reduce(add, 0);
  http.get(`${__ENV.BASE}/sum/${sum!}`);
}
