import { prefix } from './names.js';

export const base = __ENV.BASE;
export const users = ['ann', 'bob'].map((name) => prefix + name);
