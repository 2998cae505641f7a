// Values compared and shown, for the libraries that assert.

const NESTED_MAX = 100;

export const kindOf = (value) => {
  if (value === null) return "null";
  const kind = typeof value;
  return kind === "object" ? (value[Symbol.toStringTag] ?? Object.prototype.toString.call(value).slice(8, -1)) : kind;
};

// whether two values are the same in all that they hold
export const same = (left, right, depth = 0) => {
  if (Object.is(left, right)) return true;
  if (left === 0 && right === 0) return depth > 0 || Object.is(left, right);
  if (left === null || right === null || typeof left !== "object" || typeof right !== "object") return false;
  if (depth > NESTED_MAX) throw new RangeError(`values nested deeper than ${NESTED_MAX} are not compared`);
  if (kindOf(left) !== kindOf(right)) return false;
  if (left instanceof Date) return Object.is(left.getTime(), right.getTime());
  if (left instanceof RegExp) return String(left) === String(right);
  if (left instanceof Error) return left.name === right.name && left.message === right.message;
  if (left instanceof ArrayBuffer) return same(new Uint8Array(left), new Uint8Array(right), depth);
  if (ArrayBuffer.isView(left)) return left.length === right.length && [...left].every((item, at) => Object.is(item, right[at]));
  const within = (a, b) => same(a, b, depth + 1);
  if (left instanceof Set) return left.size === right.size && [...left].every((item) => right.has(item) || [...right].some((other) => within(item, other)));
  if (left instanceof Map) return left.size === right.size && [...left].every(([key, value]) => right.has(key) && within(value, right.get(key)));
  if (Array.isArray(left)) return left.length === right.length && left.every((item, at) => within(item, right[at]));
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && within(left[key], right[key]));
};

// a value in words
export const shown = (value, depth = 0) => {
  switch (typeof value) {
    case "string":
      return `'${value.replace(/\\/g, "\\\\").replace(/'/g, "\\'").replace(/\n/g, "\\n").replace(/\r/g, "\\r")}'`;
    case "function":
      return value.name ? `[Function ${value.name}]` : "[Function]";
    case "bigint":
      return `${value}n`;
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "object":
      break;
    default:
      return String(value);
  }
  if (value === null) return "null";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return `[${value.name}: ${value.message}]`;
  const isList = Array.isArray(value) || ArrayBuffer.isView(value);
  if (depth > 3) return isList ? "[Array]" : "[Object]";
  if (isList) return value.length === 0 ? "[]" : `[ ${listed(value, (item) => shown(item, depth + 1))} ]`;
  if (value instanceof Set) return `Set{${listed(value, (item) => shown(item, depth + 1))}}`;
  if (value instanceof Map) return `Map{${listed(value, ([key, item]) => `${shown(key)} => ${shown(item, depth + 1)}`)}}`;
  const keys = Object.keys(value);
  const name = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : shown(key));
  const kind = value.constructor?.name ?? "Object";
  const prefix = kind === "Object" ? "" : `${kind}`;
  return keys.length === 0 ? `${prefix}{}` : `${prefix}{ ${listed(keys, (key) => `${name(key)}: ${shown(value[key], depth + 1)}`)} }`;
};

// as many as anybody reads
const listed = (items, words) => {
  const told = [];
  for (const item of items) {
    if (told.length === 50) {
      told.push("…");
      break;
    }
    told.push(words(item));
  }
  return told.join(", ");
};

export const cut = (text, length) => (text.length > length ? `${text.slice(0, length)}...` : text);

// what stands at a path such as a.b[0].c: whether it is there, and its value
export const at = (value, path) => {
  const steps = String(path).match(/\\.|[^.[\]\\]+/g) ?? [];
  let found = value;
  for (const step of steps) {
    const key = step.replace(/^\\/, "");
    if (found === null || found === undefined || !(key in Object(found))) return { isThere: false, value: undefined };
    found = found[key];
  }
  return { isThere: true, value: found };
};
