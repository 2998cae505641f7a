// url of jslib.k6.io: URL and URLSearchParams as browsers have them.
const host = globalThis.__k6;
let paramsOf;
let renew;
let setPart;

export class URLSearchParams {
  #pairs = [];
  #changed = () => {};

  constructor(init = "") {
    if (init === null || typeof init !== "object") {
      this.#read(String(init).replace(/^\?/, ""));
    } else if (typeof init[Symbol.iterator] === "function") {
      for (const pair of init) {
        const [name, value, ...more] = pair;
        if (value === undefined || more.length > 0) throw new TypeError("a name and a value are expected in each pair");
        this.#pairs.push([String(name), String(value)]);
      }
    } else {
      for (const name of Object.keys(init)) this.#pairs.push([name, String(init[name])]);
    }
  }

  #read(text) {
    const flat = host.formPairs(text);
    this.#pairs = [];
    for (let at = 0; at < flat.length; at += 2) this.#pairs.push([flat[at], flat[at + 1]]);
  }

  static {
    // the parameters of a URL, which hears of it when they change
    paramsOf = (search, changed) => {
      const params = new URLSearchParams(search);
      params.#changed = changed;
      return params;
    };
    renew = (params, search) => params.#read(search.replace(/^\?/, ""));
  }

  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
    this.#changed();
  }

  delete(name, value) {
    const gone = (pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value));
    this.#pairs = this.#pairs.filter((pair) => !gone(pair));
    this.#changed();
  }

  get(name) {
    return this.#pairs.find((pair) => pair[0] === String(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#pairs.filter((pair) => pair[0] === String(name)).map((pair) => pair[1]);
  }

  has(name, value) {
    return this.#pairs.some((pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value)));
  }

  set(name, value) {
    const first = this.#pairs.find((pair) => pair[0] === String(name));
    if (first === undefined) {
      this.append(name, value);
      return;
    }
    first[1] = String(value);
    this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== String(name));
    this.#changed();
  }

  sort() {
    this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    this.#changed();
  }

  forEach(call, self) {
    for (const [name, value] of this) call.call(self, value, name, this);
  }

  *entries() {
    for (const [name, value] of this.#pairs) yield [name, value];
  }

  *keys() {
    for (const [name] of this.#pairs) yield name;
  }

  *values() {
    for (const [, value] of this.#pairs) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get size() {
    return this.#pairs.length;
  }

  toString() {
    return host.formText(this.#pairs.flat());
  }
}

export class URL {
  #href;
  #params;

  constructor(url, base) {
    try {
      this.#href = host.urlOf(String(url), base === undefined ? undefined : String(base));
    } catch (error) {
      throw new TypeError(error.message);
    }
  }

  static canParse(url, base) {
    try {
      return Boolean(new URL(url, base));
    } catch {
      return false;
    }
  }

  get href() {
    return this.#href;
  }

  set href(value) {
    this.#href = new URL(value).href;
    if (this.#params) renew(this.#params, this.search);
  }

  static {
    setPart = (url, name, value) => {
      url.#href = host.urlWith(url.#href, name, String(value));
      if (name === "search" && url.#params) renew(url.#params, url.search);
    };
  }

  get searchParams() {
    this.#params ??= paramsOf(this.search, () => {
      this.#href = host.urlWith(this.#href, "search", this.#params.toString());
    });
    return this.#params;
  }

  toString() {
    return this.#href;
  }

  toJSON() {
    return this.#href;
  }
}

for (const name of ["origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]) {
  const set = name === "origin" ? undefined : function (value) { setPart(this, name, value); };
  Object.defineProperty(URL.prototype, name, { get() { return host.urlPart(this.href, name); }, set, enumerable: true, configurable: true });
}

export default { URL, URLSearchParams };
