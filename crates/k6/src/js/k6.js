const host = globalThis.__k6;

export const { check, inGroup: group } = host;

export function sleep(seconds) {
  host.sleep(Number(seconds) || 0);
}

export function fail(words) {
  if (host.isRehearsal) return;
  throw new Error(words === undefined ? "fail() was called" : String(words));
}

export function randomSeed(seed) {
  host.seed(Number(seed) || 0);
  Math.random = host.randomNumber;
}

export default { check, group, sleep, fail, randomSeed };
