const host = globalThis.__k6;

const KINDS = ["std", "rawstd", "url", "rawurl"];
const kind = (name) => (KINDS.includes(name) ? name : "std");

export function b64encode(input, encoding) {
  return host.b64encode(host.bytesOf(input), kind(encoding));
}

export function b64decode(input, encoding, format) {
  const bytes = host.b64decode(String(input), kind(encoding));
  return format === "s" ? host.text(bytes) : bytes;
}

export default { b64encode, b64decode };
