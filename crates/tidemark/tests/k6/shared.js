import http from 'k6/http';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { scenario, vu } from 'k6/execution';
import { base, users } from './lib/users.js';

const words = new SharedArray('words', () => open('./words.txt').trim().split('\n').map((word) => ({ word })));

export const options = { scenarios: { all: { executor: 'shared-iterations', vus: 1, iterations: 3, exec: 'visit', env: { PART: 'shop' } } } };

export function visit() {
  const at = scenario.iterationInTest;
  const { word } = words[at % words.length];
  const seen = [word, words.length, words.map((w) => w.word.length).join('-'), exec.scenario.name, exec.scenario.executor, vu.idInTest];
  http.get(`${base}/${__ENV.PART}/${users[at % users.length]}?${seen.join('&')}`);
}
