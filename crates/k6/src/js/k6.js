const host = globalThis.__k6;
const durations = host.metric("group_duration", "trend", true);

export function check(value, sets, tags) {
  let all = true;
  for (const name of Object.keys(sets)) {
    const told = sets[name];
    const result = typeof told === "function" ? told(value) : told;
    if (result instanceof Promise) throw new TypeError(`check "${name}": its function is async, and a promise is always true`);
    const good = Boolean(result);
    if (!good) all = false;
    host.check(name, good, host.group, tags || host.hasVuTags ? host.tags(tags) : "");
  }
  return all || host.isRehearsal;
}

export function group(name, call) {
  name = String(name);
  if (name.includes("::")) throw new Error("the name of a group contains no ::");
  if (call && call.constructor && call.constructor.name === "AsyncFunction") {
    throw new TypeError(`group "${name}" has an async function, for which groups do not wait; call it without async`);
  }
  const outer = host.group;
  const begun = host.now();
  host.group = `${outer}::${name}`;
  try {
    return call();
  } finally {
    host.add(durations, host.now() - begun, host.group, "");
    host.group = outer;
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
