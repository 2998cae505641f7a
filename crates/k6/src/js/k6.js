const host = globalThis.__k6;
const { check: toldCheck, vu } = host;
const AsyncFunction = (async () => {}).constructor;
const durations = host.metric("group_duration", "trend", true);

export function check(value, sets, tags) {
  let all = true;
  for (const name of Object.keys(sets)) {
    const told = sets[name];
    const result = typeof told === "function" ? told(value) : told;
    if (result instanceof Promise) throw new TypeError(`check "${name}": its function is async, and a promise is always true`);
    const good = Boolean(result);
    if (!good) all = false;
    toldCheck(name, good, vu.group, tags || vu.hasTags ? host.tags(tags) : "");
  }
  return all || host.isRehearsal;
}

export function group(name, call) {
  name = String(name);
  if (name.includes("::")) throw new Error("the name of a group contains no ::");
  if (call instanceof AsyncFunction) {
    throw new TypeError(`group "${name}" has an async function, for which groups do not wait; call it without async`);
  }
  const outer = vu.group;
  const begun = host.now();
  vu.group = `${outer}::${name}`;
  try {
    return call();
  } finally {
    host.add(durations, host.now() - begun, vu.group, "");
    vu.group = outer;
  }
}

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
