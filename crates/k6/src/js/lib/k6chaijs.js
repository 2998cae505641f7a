// k6chaijs of jslib.k6.io: the assertions of chai, each of which is a check of k6.
import { check, group } from "k6";
import { at, cut, kindOf, same, shown } from "tidemark:values";

const host = globalThis.__k6;

export const config = {
  truncateVariableThreshold: 100, truncateMsgThreshold: 300, truncateThreshold: 40, aggregateChecks: true, logFailures: false,
  includeStack: false, showDiff: true, useProxy: true, proxyExcludedKeys: ["then", "catch", "inspect", "toJSON"],
};

export class AssertionError extends Error {
  constructor(message, { actual, expected } = {}) {
    super(message);
    this.name = "AssertionError";
    this.actual = actual;
    this.expected = expected;
  }
}

// a value in a few words
const display = (value) => {
  const text = shown(value);
  if (config.truncateThreshold > 0 && text.length >= config.truncateThreshold) {
    const kind = kindOf(value);
    if (kind === "Array") return `[ Array(${value.length}) ]`;
    if (kind === "Object") {
      const keys = Object.keys(value);
      return `{ Object (${keys.length > 2 ? `${keys.slice(0, 2).join(", ")}, ...` : keys.join(", ")}) }`;
    }
  }
  return cut(text, config.truncateVariableThreshold);
};

// Every assertion ends here. In its words `#{this}`, `#{exp}` and `#{act}` stand for values, which the check's name leaves out:
// the name is the same in every iteration.
const assertThat = (self, holds, words, negated, expected, actual = self.flags.object) => {
  const { flags } = self;
  const good = flags.not ? !holds : Boolean(holds);
  let text = (flags.not ? negated : words).replace("but ", "");
  if (flags.anonymize) text = flags.anonymize(text);
  text = text.replace(/#\{exp\}/g, () => display(expected));
  let full = text.replace(/#\{this\}/g, () => display(flags.object)).replace(/#\{act\}/g, () => display(actual));
  if (flags.message && !config.aggregateChecks) full = `${flags.message}: ${full}`;
  const name = text.replace(/#\{this\}/g, () => flags.message || "${this}").replace(/#\{act\}/g, () => "${actual}");
  check(null, { [cut(config.aggregateChecks ? name : full, config.truncateMsgThreshold)]: good });
  if (good || host.isRehearsal) return;
  full = cut(full, config.truncateMsgThreshold);
  if (config.logFailures) console.warn(full);
  throw new AssertionError(full, { actual, expected });
};

// what must hold before the assertion makes sense: a check of its own, as in chai
const needs = (self, holds, told, object = self.flags.object) =>
  assertThat({ flags: { object, message: self.flags.message } }, holds, `expected #{this} to ${told}`, "");
const needsLength = (self, object) => {
  if (!(object instanceof Map || object instanceof Set)) needs(self, "length" in Object(object ?? {}), "have property 'length'");
};

const misused = (self, words) => {
  if (host.isRehearsal) return;
  throw new AssertionError(`${self.flags.message ? `${self.flags.message}: ` : ""}${words}`);
};

export class Assertion {
  constructor(object, message) {
    this.flags = { object, message };
    return new Proxy(this, {
      get(target, key, self) {
        if (typeof key === "string" && !(key in target) && !config.proxyExcludedKeys.includes(key)) {
          throw new Error(`Invalid Chai property: ${key}`);
        }
        return Reflect.get(target, key, self);
      },
    });
  }

  assert(holds, words, negated = words, expected = undefined, actual = undefined) {
    assertThat(this, holds, words, negated, expected, actual);
    return this;
  }
}

const define = (name, get) => Object.defineProperty(Assertion.prototype, name, { get, configurable: true });
const words = (names, note) => names.forEach((name) => define(name, function () { note?.(this.flags); return this; }));
const properties = (names, does) => names.forEach((name) => define(name, function () { does(this, this.flags.object); return this; }));
const methods = (names, does) => names.forEach((name) => {
  Assertion.prototype[name] = function (...values) {
    return does(this, this.flags.object, ...values) ?? this;
  };
});
// words that can be called, too, such as `an` and `lengthOf`
const both = (names, does, note) => names.forEach((name) => define(name, function () {
  note?.(this.flags);
  const call = (...values) => does(this, this.flags.object, ...values) ?? this;
  delete call.length;
  delete call.name;
  return Object.setPrototypeOf(call, this);
}));

words(["to", "be", "been", "is", "and", "has", "have", "with", "that", "which", "at", "of", "same", "but", "does", "still", "also"]);
for (const flag of ["not", "deep", "nested", "own", "ordered"]) words([flag], (flags) => { flags[flag] = true; });
words(["any"], (flags) => { [flags.any, flags.all] = [true, false]; });
words(["all"], (flags) => { [flags.any, flags.all] = [false, true]; });

const property = (names, test, told) => properties(names, (self, object) =>
  assertThat(self, test(object), `expected #{this} to ${told}`, `expected #{this} not to ${told}`));
properties(["ok"], (self, object) => assertThat(self, object, "expected #{this} to be truthy", "expected #{this} to be falsy"));
property(["true"], (value) => value === true, "be true");
property(["false"], (value) => value === false, "be false");
property(["null"], (value) => value === null, "be null");
property(["undefined"], (value) => value === undefined, "be undefined");
property(["NaN"], Number.isNaN, "be NaN");
property(["finite"], Number.isFinite, "be a finite number");
property(["frozen"], Object.isFrozen, "be frozen");
property(["sealed"], Object.isSealed, "be sealed");
properties(["exist", "exists"], (self, object) =>
  assertThat(self, object !== null && object !== undefined, "expected #{this} to exist", "expected #{this} to not exist"));
properties(["empty"], (self, object) => {
  let count;
  if (typeof object === "string" || Array.isArray(object)) count = object.length;
  else if (object instanceof Map || object instanceof Set) count = object.size;
  else if (object !== null && typeof object === "object") count = Object.keys(object).length;
  else misused(self, `.empty was passed non-string primitive ${shown(object)}`);
  assertThat(self, count === 0, "expected #{this} to be empty", "expected #{this} not to be empty");
});

both(["a", "an"], (self, object, type, message) => {
  if (message) self.flags.message = message;
  const article = /^[aeiou]/i.test(type) ? "an" : "a";
  const told = `be ${article} ${String(type).toLowerCase()}`;
  assertThat(self, kindOf(object).toLowerCase() === String(type).toLowerCase(), `expected #{this} to ${told}`, `expected #{this} not to ${told}`);
});

const compares = (names, sign, told, negatedTold, test) => methods(names, (self, object, bound, message) => {
  if (message) self.flags.message = message;
  if (self.flags.isLength) {
    needsLength(self, object);
    const length = object?.length ?? object?.size;
    assertThat(
      self, test(length, bound), `expected #{this} to have a length ${told} #{exp} got #{act}`,
      sign === "<" || sign === ">" ? `expected #{this} to not have a length ${told} #{exp}` : `expected #{this} to have a length ${negatedTold} #{exp}`,
      bound, length,
    );
    return;
  }
  const isNumber = (value) => typeof value === "number" || value instanceof Date || typeof value === "bigint";
  if (!isNumber(object)) misused(self, `expected ${display(object)} to be a number or a date`);
  if (!isNumber(bound)) misused(self, `the argument to ${names[0]} must be a number`);
  assertThat(self, test(object, bound), `expected #{this} to be ${told} #{exp}`, `expected #{this} to be ${negatedTold} #{exp}`, bound);
});
compares(["above", "gt", "greaterThan"], ">", "above", "at most", (a, b) => a > b);
compares(["least", "gte", "greaterThanOrEqual"], ">=", "at least", "below", (a, b) => a >= b);
compares(["below", "lt", "lessThan"], "<", "below", "at least", (a, b) => a < b);
compares(["most", "lte", "lessThanOrEqual"], "<=", "at most", "above", (a, b) => a <= b);
methods(["within"], (self, object, least, most, message) => {
  if (message) self.flags.message = message;
  if (self.flags.isLength) needsLength(self, object);
  const value = self.flags.isLength ? (object?.length ?? object?.size) : object;
  const told = `${self.flags.isLength ? "have a length" : "be"} within ${shown(least)}..${shown(most)}`;
  assertThat(self, value >= least && value <= most, `expected #{this} to ${told}`, `expected #{this} to not ${told}`);
});
methods(["closeTo", "approximately"], (self, object, wanted, delta, message) => {
  if (message) self.flags.message = message;
  needs(self, typeof object === "number", "be a number");
  const told = `be close to ${wanted} +/- ${delta}`;
  assertThat(self, Math.abs(object - wanted) <= delta, `expected #{this} to ${told}`, `expected #{this} not to ${told}`);
});

const deepEqual = (self, object, wanted) =>
  assertThat(self, same(object, wanted), "expected #{this} to deeply equal #{exp}", "expected #{this} to not deeply equal #{exp}", wanted);
methods(["equal", "equals", "eq"], (self, object, wanted, message) => {
  if (message) self.flags.message = message;
  if (self.flags.deep) deepEqual(self, object, wanted);
  else assertThat(self, object === wanted, "expected #{this} to equal #{exp}", "expected #{this} to not equal #{exp}", wanted);
});
methods(["eql", "eqls"], (self, object, wanted, message) => {
  if (message) self.flags.message = message;
  deepEqual(self, object, wanted);
});

const equals = (flags) => (flags.deep ? same : (a, b) => a === b || (a !== a && b !== b));
both(["include", "includes", "contain", "contains"], (self, object, wanted, message) => {
  const { flags } = self;
  if (message) flags.message = message;
  const equal = equals(flags);
  let holds;
  if (typeof object === "string") holds = object.includes(wanted);
  else if (Array.isArray(object) || ArrayBuffer.isView(object)) holds = [...object].some((item) => equal(item, wanted));
  else if (object instanceof Set) holds = [...object].some((item) => equal(item, wanted));
  else if (object instanceof Map) holds = [...object.values()].some((item) => equal(item, wanted));
  else if (wanted === null || typeof wanted !== "object") {
    misused(self, `the given combination of arguments (${kindOf(object).toLowerCase()} and ${kindOf(wanted).toLowerCase()}) is invalid for include`);
    return undefined;
  } else {
    // of an object, some properties
    const keys = Object.keys(wanted);
    const part = () => Object.assign(new Assertion(object, flags.message), { flags: { ...flags, object } });
    if (!flags.not || keys.length === 1) {
      keys.forEach((key) => part().property(key, wanted[key]));
      return undefined;
    }
    holds = keys.every((key) => {
      const found = flags.nested ? at(object, key) : { isThere: key in Object(object ?? {}), value: object?.[key] };
      return found.isThere && equal(found.value, wanted[key]);
    });
  }
  const deep = flags.deep ? "deep " : "";
  assertThat(self, holds, `expected #{this} to ${deep}include ${display(wanted)}`, `expected #{this} to not ${deep}include ${display(wanted)}`, wanted);
  return undefined;
}, (flags) => { flags.contains = true; });

methods(["property"], (self, object, name, ...more) => {
  const { flags } = self;
  const [wanted, message] = more;
  if (message) flags.message = message;
  if (object === null || object === undefined) misused(self, "Target cannot be null or undefined.");
  const found = flags.nested ? at(object, name)
    : { isThere: flags.own ? Object.hasOwn(Object(object), name) : object !== null && object !== undefined && name in Object(object), value: object?.[name] };
  const told = `${flags.deep ? "deep " : ""}${flags.own ? "own " : ""}${flags.nested ? "nested " : ""}property ${shown(name)}`;
  if (more.length === 0 || !flags.not) {
    assertThat(self, found.isThere, `expected #{this} to have ${told}`, `expected #{this} to not have ${told}`);
  }
  if (more.length > 0) {
    assertThat(
      self, found.isThere && equals(flags)(found.value, wanted), `expected #{this} to have ${told} of #{exp}, got #{act}`,
      `expected #{this} to not have ${told} of #{act}`, wanted, found.value,
    );
  }
  flags.object = found.value;
});
methods(["ownProperty", "haveOwnProperty"], (self, _, ...values) => {
  self.flags.own = true;
  self.property(...values);
});

both(["length", "lengthOf"], (self, object, wanted, message) => {
  if (message) self.flags.message = message;
  needsLength(self, object);
  const isSized = object instanceof Map || object instanceof Set;
  const length = isSized ? object.size : object?.length;
  const told = isSized ? "size" : "length";
  assertThat(
    self, length === wanted, `expected #{this} to have a ${told} of #{exp} got #{act}`, `expected #{this} to not have a ${told} of #{act}`,
    wanted, length,
  );
}, (flags) => { flags.isLength = true; });

methods(["match", "matches"], (self, object, pattern, message) => {
  if (message) self.flags.message = message;
  assertThat(self, pattern.exec(object) !== null, `expected #{this} to match ${pattern}`, `expected #{this} not to match ${pattern}`);
});
methods(["string"], (self, object, text, message) => {
  if (message) self.flags.message = message;
  needs(self, typeof object === "string", "be a string");
  assertThat(self, String(object).includes(text), `expected #{this} to contain ${shown(text)}`, `expected #{this} to not contain ${shown(text)}`);
});

methods(["keys", "key"], (self, object, ...told) => {
  const { flags } = self;
  const [first] = told;
  const wanted = (Array.isArray(first) ? first : first !== null && typeof first === "object" ? Object.keys(first) : told).map((key) => (typeof key === "number" ? String(key) : key));
  if (wanted.length === 0) misused(self, "keys required");
  const there = object instanceof Map || object instanceof Set ? [...object.keys()].map((key) => (typeof key === "number" ? String(key) : key)) : Object.keys(object ?? {});
  const has = (key) => there.some((known) => same(known, key));
  let holds;
  if (flags.any) holds = wanted.some(has);
  else holds = wanted.every(has) && (flags.contains || wanted.length === there.length);
  const list = wanted.map((key) => shown(key));
  const names = list.length > 1 ? `${list.slice(0, -1).join(", ")}, ${flags.any ? "or" : "and"} ${list.at(-1)}` : list[0];
  const words = `${flags.contains && !flags.any ? "contain" : "have"} ${list.length > 1 ? "keys" : "key"} ${names}`;
  assertThat(self, holds, `expected #{this} to ${words}`, `expected #{this} to not ${words}`, wanted, there);
});

methods(["members"], (self, object, wanted, message) => {
  const { flags } = self;
  if (message) flags.message = message;
  needs(self, Array.isArray(object), "be an array");
  needs(self, Array.isArray(wanted), "be an array", wanted);
  const equal = equals(flags);
  const left = [...(wanted ?? [])];
  const items = [...(object ?? [])];
  let holds;
  if (flags.ordered) {
    holds = (flags.contains || items.length === left.length) && left.every((item, at) => at < items.length && equal(items[at], item));
  } else {
    holds = flags.contains || items.length === left.length;
    for (const item of left) {
      const found = items.findIndex((other) => equal(other, item));
      if (found < 0) holds = false;
      else if (!flags.contains) items.splice(found, 1);
    }
  }
  const kind = flags.ordered ? "ordered members" : "members";
  const [told, negated] = flags.contains
    ? [`be a superset of #{exp}`, `not be a superset of #{exp}`]
    : [`have the same ${kind} as #{exp}`, `not have the same ${kind} as #{exp}`];
  assertThat(self, holds, `expected #{this} to ${told}`, `expected #{this} to ${negated}`, wanted);
});
methods(["oneOf"], (self, object, list, message) => {
  if (message) self.flags.message = message;
  needs(self, Array.isArray(list), "be an array", list);
  const equal = equals(self.flags);
  const { contains } = self.flags;
  const holds = contains ? list.some((item) => object.includes(item)) : list.some((item) => equal(object, item));
  const told = contains ? "contain one of" : self.flags.deep ? "deeply equal one of" : "be one of";
  assertThat(self, holds, `expected #{this} to ${told} #{exp}`, `expected #{this} to not ${told} #{exp}`, list);
});
methods(["instanceof", "instanceOf"], (self, object, kind, message) => {
  if (message) self.flags.message = message;
  const told = `be an instance of ${kind.name || "an unnamed constructor"}`;
  assertThat(self, object instanceof kind, `expected #{this} to ${told}`, `expected #{this} to not ${told}`);
});
methods(["satisfy", "satisfies"], (self, object, test, message) => {
  if (message) self.flags.message = message;
  assertThat(self, test(object), `expected #{this} to satisfy ${shown(test)}`, `expected #{this} to not satisfy ${shown(test)}`);
});
methods(["respondTo", "respondsTo"], (self, object, name, message) => {
  if (message) self.flags.message = message;
  const owner = typeof object === "function" ? object.prototype : object;
  assertThat(self, typeof owner?.[name] === "function", `expected #{this} to respond to ${shown(name)}`, `expected #{this} to not respond to ${shown(name)}`);
});
methods(["throw", "throws", "Throw"], (self, call, kind, text, message) => {
  const { flags } = self;
  if (message) flags.message = message;
  needs(self, typeof call === "function", "be a function");
  let thrown;
  let threw = false;
  try {
    call();
  } catch (error) {
    [thrown, threw] = [error, true];
  }
  const hasKind = typeof kind === "function" || kind instanceof Error;
  const wanted = hasKind ? text : kind;
  const isKind = typeof kind === "function" ? thrown instanceof kind : !hasKind || thrown === kind;
  const said = threw ? String(thrown?.message ?? thrown) : "";
  const isSaid = wanted === undefined || (wanted instanceof RegExp ? wanted.test(said) : said.includes(wanted));
  const what = !hasKind ? "an error" : typeof kind === "function" ? kind.name : shown(kind);
  const plain = !hasKind && wanted === undefined;
  if (!threw || plain || (flags.not ? !(isKind && isSaid) : isKind && isSaid)) {
    const holds = flags.not ? threw && isKind && isSaid : threw;
    assertThat(self, holds, `expected #{this} to throw ${what}`, `expected #{this} to not throw ${what} but #{act} was thrown`, kind, thrown);
  } else if (!isKind) {
    assertThat(self, false, "expected #{this} to throw #{exp} but #{act} was thrown", "", kind, thrown);
  } else {
    const sign = wanted instanceof RegExp ? "matching" : "including";
    assertThat(
      self, isSaid, `expected #{this} to throw error ${sign} #{exp} but got #{act}`, `expected #{this} to throw error not ${sign} #{exp}`,
      wanted, said,
    );
  }
  flags.object = thrown;
});

// ---- what k6chaijs adds

methods(["anonymize"], (self, _, change = (text) => text.replace(/#\{this\}/g, "<anonymized>")) => {
  self.flags.anonymize = change;
});
methods(["status"], (self, response, wanted) => {
  assertThat(self, response?.status === wanted, "has status #{exp}", "does not have status #{exp}", wanted, response?.status);
});
methods(["validJsonBody"], (self, response) => {
  let holds = true;
  try {
    response.json("__a_name_that_is_not_there__");
  } catch {
    holds = false;
  }
  assertThat(self, holds, "has valid json body", "does not have a valid json body");
});

export const expect = (object, message) => new Assertion(object, message);
expect.fail = (message = "expect.fail()") => {
  check(null, { [cut(String(message), config.truncateMsgThreshold)]: false });
  if (!host.isRehearsal) throw new AssertionError(String(message));
};

export const assert = (holds, message = "the assertion holds") => {
  assertThat(new Assertion(holds), holds, message, message);
};

// `value.should` on every object
export const should = () => {
  Object.defineProperty(Object.prototype, "should", {
    get() {
      return new Assertion(this instanceof String || this instanceof Number || this instanceof Boolean ? this.valueOf() : this);
    },
    set(value) {
      Object.defineProperty(this, "should", { value, enumerable: true, configurable: true, writable: true });
    },
    configurable: true,
  });
};

export const handleUnexpectedException = (error, name) => {
  console.error(`Exception raised in test "${name}". Failing the test and continuing. \n${error}`);
  check(null, { [`Exception raised "${error}"`]: false });
};

export const describe = (name, call) => {
  let isGood = true;
  group(name, () => {
    try {
      call();
    } catch (error) {
      if (error?.name !== "AssertionError") handleUnexpectedException(error, name);
      isGood = false;
    }
  });
  return isGood;
};

export const chai = { config, expect, assert, should, Assertion, AssertionError, describe };
export default chai;
