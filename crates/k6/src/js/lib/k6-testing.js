// k6-testing of jslib.k6.io: expectations of values. One that fails ends the test; a soft one fails it, and goes on.
import exec from "k6/execution";
import { at, cut, same, shown } from "tidemark:values";

const host = globalThis.__k6;
const SHOWN_MAX = 1000;

export class AssertionFailedError extends Error {
  constructor(message) {
    super(message);
    this.name = "AssertionFailedError";
  }
}

const fail = (config, message) => {
  if (host.isRehearsal) return;
  if (!config.soft) exec.test.abort(message);
  else if (config.softMode === "throw") throw new AssertionFailedError(message);
  else exec.test.fail(message);
};

const items = (value, what) => {
  if (Array.isArray(value) || value instanceof Set) return [...value];
  throw new Error(`${what} is only supported for arrays and sets`);
};

const MATCHERS = {
  toBe: (value, wanted) => Object.is(value, wanted),
  toBeCloseTo: (value, wanted, digits = 2) => value === wanted || Math.abs(wanted - value) < 10 ** -digits / 2,
  toBeDefined: (value) => value !== undefined,
  toBeFalsy: (value) => !value,
  toBeGreaterThan: (value, bound) => value > bound,
  toBeGreaterThanOrEqual: (value, bound) => value >= bound,
  toBeInstanceOf: (value, kind) => value instanceof kind,
  toBeLessThan: (value, bound) => value < bound,
  toBeLessThanOrEqual: (value, bound) => value <= bound,
  toBeNaN: (value) => Number.isNaN(value),
  toBeNull: (value) => value === null,
  toBeTruthy: (value) => Boolean(value),
  toBeUndefined: (value) => value === undefined,
  toContain: (value, wanted) => (typeof value === "string" ? value.includes(wanted) : items(value, "toContain").includes(wanted)),
  toContainEqual: (value, wanted) => items(value, "toContainEqual").some((item) => same(item, wanted)),
  toEqual: (value, wanted) => same(value, wanted),
  toHaveLength: (value, length) => value?.length === length,
  toHaveProperty: (value, path, ...wanted) => {
    if (value === null || typeof value !== "object") throw new Error("toHaveProperty is only supported for objects");
    const found = at(value, path);
    return found.isThere && (wanted.length === 0 || same(found.value, wanted[0]));
  },
  toMatch: (value, pattern) => (typeof pattern === "string" ? String(value).includes(pattern) : pattern.test(value)),
};

// what scripts add by `expect.extend`
const extended = {};

const expectation = (value, config, message, isNegated) => {
  const made = {
    get not() {
      return expectation(value, config, message, !isNegated);
    },
  };
  const add = (name, holds) => {
    made[name] = (...wanted) => {
      const { passed, told } = host.isRehearsal ? { passed: !isNegated } : holds(value, wanted);
      if (passed !== isNegated) return;
      const call = `expect(received)${isNegated ? ".not" : ""}.${name}(${wanted.length > 0 ? "expected" : ""})`;
      const expected = wanted.map((one) => shown(one)).join(", ");
      const lines = [message ?? call, ...(message ? [call] : [])];
      if (told) lines.push(told);
      else lines.push(...(wanted.length > 0 ? [`Expected: ${isNegated ? "not " : ""}${expected}`] : []), `Received: ${shown(value)}`);
      fail(config, lines.map((line) => cut(line, SHOWN_MAX)).join("\n"));
    };
  };
  for (const name of Object.keys(MATCHERS)) add(name, (received, wanted) => ({ passed: Boolean(MATCHERS[name](received, ...wanted)) }));
  for (const name of Object.keys(extended)) {
    add(name, (received, wanted) => {
      const { pass, passed = pass, message: words } = extended[name].call({ isNegated, isNot: isNegated }, received, ...wanted);
      return { passed: Boolean(passed), told: typeof words === "function" ? words() : words };
    });
  }
  return made;
};

const make = (config) =>
  Object.assign((value, message) => expectation(value, config, message, false), {
    soft: (value, message) => expectation(value, { ...config, soft: true }, message, false),
    configure: (given) => make({ ...config, ...given }),
    extend: (name, matcher) => Object.assign(extended, typeof name === "string" ? { [name]: matcher.match ?? matcher } : name),
    get config() {
      return { ...config };
    },
  });

export const expect = make({ soft: false, softMode: "fail", timeout: 5000, interval: 100, colorize: true, display: "pretty" });
export default { expect, AssertionFailedError };
