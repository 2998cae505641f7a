// What every script finds without an import. `__k6` is the host: functions in Rust.
(() => {
  const host = globalThis.__k6;
  // made when a script first asks for them
  for (const [name, make] of [["console", "consoleOf"], ["crypto", "cryptoOf"]]) {
    const is = (value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })[name];
    Object.defineProperty(globalThis, name, { get: () => is(host.load("tidemark:globals")[make](host)), set: is, configurable: true });
  }
  Object.defineProperty(globalThis, "global", { value: globalThis, writable: true, configurable: true });
  Object.defineProperty(globalThis, "__ITER", { get: () => host.iteration(), configurable: true });

  // the group that it is in, and tags of its own, by `exec.vu.tags` or `exec.vu.metrics.tags`
  const vu = { get group() { return host.group(); }, hasTags: false, tags: {} };
  host.vu = vu;

  // timers of the user's own loop
  const timers = new Map();
  let lastTimer = 0;
  const add = (call, delay, values, every) => {
    if (typeof call !== "function") throw new TypeError("a timer needs a function");
    const id = ++lastTimer;
    const wait = Math.max(0, Number(delay) || 0);
    host.timersAre(true);
    timers.set(id, { at: host.now() + wait, call, values, every: every ? Math.max(wait, 1) : 0 });
    return id;
  };
  host.defer = (call) => void add(call, 0, [], false);
  globalThis.setTimeout = (call, delay, ...values) => add(call, delay, values, false);
  globalThis.setInterval = (call, delay, ...values) => add(call, delay, values, true);
  globalThis.clearTimeout = globalThis.clearInterval = (id) => void timers.delete(id);
  // the first timer: how long until it is due; null if there is none
  host.timerDue = () => {
    let first = null;
    for (const timer of timers.values()) if (first === null || timer.at < first) first = timer.at;
    host.timersAre(first !== null);
    return first === null ? null : Math.max(0, first - host.now());
  };
  host.fireTimer = () => {
    let first = null;
    for (const [id, timer] of timers) if (first === null || timer.at < first[1].at) first = [id, timer];
    if (first === null) return;
    const [id, timer] = first;
    if (timer.every) timer.at += timer.every;
    else timers.delete(id);
    timer.call(...timer.values);
  };

  if (host.isRehearsal) host.load("tidemark:rehearsal");

  // `require` of a file that was written for it; what it names has been imported
  host.requireFrom = (known) => (name) => {
    if (!Object.hasOwn(known, name)) throw new Error(`require("${name}"): only a name in quotes is found, at any place of the file`);
    return known[name].__commonjs ?? known[name];
  };
  // half of a surrogate pair by itself is none
  const { toWellFormed } = String.prototype;
  host.wellFormed = (text) => toWellFormed.call(text);
  globalThis.open = (path, mode) => host.open(String(path), mode === "b");
  host.setting = { agent: "", noCookiesReset: false, maxRedirects: 10, throw: false, discardResponseBodies: false, batch: 20, batchPerHost: 6 };
  host.configure = (options) => {
    const told = (name, otherwise) => (options[name] === undefined || options[name] === null ? otherwise : options[name]);
    host.setting = {
      agent: told("userAgent", host.userAgent) === "" ? "" : `User-Agent: ${told("userAgent", host.userAgent)}\n`,
      noCookiesReset: Boolean(options.noCookiesReset),
      maxRedirects: Number(told("maxRedirects", 10)),
      throw: Boolean(options.throw),
      batch: Math.max(1, Number(told("batch", 20)) || 1),
      batchPerHost: Number(told("batchPerHost", 6)) || 0,
      discardResponseBodies: Boolean(options.discardResponseBodies),
    };
    host.agentIs(host.setting.agent);
    if (host.setting.discardResponseBodies) host.unusual();
  };

  // what an iteration begins with, where the one before it left something
  const begins = [];
  host.onBegin = (call) => void begins.push(call);
  host.begin = () => {
    if (timers.size > 0) timers.clear();
    for (const call of begins) call();
  };
  host.tags = (own) => {
    let flat = "";
    for (const tags of [vu.tags, own]) {
      if (tags) for (const name in tags) flat += `${name}\0${tags[name]}\0`;
    }
    return flat;
  };
})();
