// What `js` steps find: made once for each driving thread, and frozen, so that no session finds what another one left.
import { canonical, headersOf, select, steps } from "tidemark:answer";
import { consoleOf, cryptoOf } from "tidemark:globals";
import hashes from "k6/crypto";
import encoding from "k6/encoding";

const host = globalThis.__k6;
host.loadSubtle();
globalThis.console = consoleOf(host);
globalThis.crypto = Object.assign(cryptoOf(host), hashes);
globalThis.encoding = encoding;
Math.random = host.randomNumber;
delete globalThis.FinalizationRegistry;

// a header is found whatever the case of its name
const anyCase = { get: (headers, name) => headers[name] ?? (typeof name === "string" ? headers[canonical(name)] : undefined) };

class Answer {
  #headers;
  #body;
  #json;
  #page;

  constructor(status) {
    this.status = status;
  }

  get headers() {
    return (this.#headers ??= new Proxy(headersOf(host.head()), anyCase));
  }

  get body() {
    return (this.#body ??= host.body());
  }

  json(path) {
    if (this.#json === undefined) {
      try {
        this.#json = { value: JSON.parse(this.body) };
      } catch (error) {
        throw new Error(`cannot parse json due to an error: ${error.message}`);
      }
    }
    return path === undefined ? this.#json.value : select(this.#json.value, steps(String(path)));
  }

  html(selector) {
    this.#page ??= host.parseHTML(this.body, "");
    return selector === undefined ? this.#page : this.#page.find(selector);
  }
}

host.answer = (status) => new Answer(status);

// assigning a property that is inherited from a frozen object throws; as accessors, such properties can be assigned
const settable = (of) => {
  for (const key of Reflect.ownKeys(of)) {
    const { value, writable, configurable, enumerable } = Object.getOwnPropertyDescriptor(of, key);
    if (!writable || !configurable) continue;
    Object.defineProperty(of, key, {
      enumerable,
      configurable,
      get: () => value,
      set(own) {
        if (this === of) throw new TypeError(`${String(key)} is frozen`);
        Object.defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
      },
    });
  }
};
const ERRORS = [Error, AggregateError, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];
for (const of of [Object, ...ERRORS]) settable(of.prototype);

// everything that a step can get at, also what has no name
const hidden = [
  function* () {}, async function () {}, async function* () {}, Answer, anyCase, [][Symbol.iterator](), ""[Symbol.iterator](),
  new Map()[Symbol.iterator](), new Set()[Symbol.iterator](), "".matchAll(/x/g), Object.getPrototypeOf(Int8Array),
  [].values().map((item) => item), Iterator.from({ next() {} }), hashes.createHash("md5"), globalThis.crypto.subtle,
  ...(host.kindsOfPages ?? []),
];
const seen = new Set();
const open = [globalThis, ...hidden];
while (open.length > 0) {
  const of = open.pop();
  if (of === null || (typeof of !== "object" && typeof of !== "function") || of === host || seen.has(of)) continue;
  seen.add(of);
  open.push(Object.getPrototypeOf(of));
  for (const key of Reflect.ownKeys(of)) {
    const { value, get, set } = Object.getOwnPropertyDescriptor(of, key);
    open.push(value, get, set);
  }
}
delete globalThis.__k6;
seen.forEach(Object.freeze);
