// What every script finds without an import. `__k6` is the host: functions in Rust.
import { consoleOf, cryptoOf } from "tidemark:globals";

(() => {
  const host = globalThis.__k6;
  globalThis.console = consoleOf(host);
  globalThis.crypto = cryptoOf(host);

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

  if (host.isRehearsal) {
    // something of which every field is there
    const anything = (depth) =>
      new Proxy(function () {}, {
        get(target, key) {
          if (key === Symbol.toPrimitive) return (hint) => (hint === "number" ? 1 : "1");
          if (key === Symbol.iterator) return function* () { if (depth < 4) yield anything(depth + 1); };
          if (key === "toString" || key === "toJSON") return () => "1";
          if (key === "length") return 1;
          if (key === "then") return undefined;
          if (key in Array.prototype && typeof Array.prototype[key] === "function") {
            return (...values) => Array.prototype[key].apply(depth < 4 ? [anything(depth + 1)] : [], values);
          }
          return depth < 12 ? anything(depth + 1) : undefined;
        },
        apply: () => anything(depth + 1),
        has: () => true,
        ownKeys: () => ["prototype"],
      });
    host.anything = anything(0);
    const parse = JSON.parse;
    JSON.parse = (text, ...more) => (text === host.rehearsalBody ? host.anything : parse(text, ...more));
  }

  // `require` of a file that was written for it; what it names has been imported
  host.requireFrom = (known) => (name) => {
    if (!Object.hasOwn(known, name)) throw new Error(`require("${name}"): only a name in quotes is found, at any place of the file`);
    return known[name].__commonjs ?? known[name];
  };
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
  };

  // what an iteration begins with
  const begins = [];
  host.onBegin = (call) => void begins.push(call);
  host.begin = () => {
    if (timers.size > 0) timers.clear();
    host.group = "";
    for (const call of begins) call();
  };
  host.group = "";
  // tags of the user's own, by `exec.vu.tags` or `exec.vu.metrics.tags`
  host.vuTags = {};
  host.tags = (own) => {
    let flat = "";
    for (const tags of [host.vuTags, own]) {
      if (tags) for (const name in tags) flat += `${name}\0${tags[name]}\0`;
    }
    return flat;
  };
})();
