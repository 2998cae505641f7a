// Globals that scripts and `js` steps have in common.

const words = (value) => {
  if (value === null || typeof value !== "object") return String(value);
  if (value instanceof Error) return value.stack ? `${value.name}: ${value.message}\n${value.stack}` : String(value);
  try {
    return JSON.stringify(value);
  } catch (error) {
    return String(value);
  }
};

export const consoleOf = (host) => {
  const level = (name) => (...values) => host.log(name, values.map(words).join(" "));
  return {
    log: level("info"), info: level("info"), warn: level("warning"), error: level("error"), debug: level("debug"),
    trace: level("debug"), table: level("info"),
  };
};

export const cryptoOf = (host) => ({
  get subtle() {
    if (!host.subtle) host.loadSubtle();
    return host.subtle;
  },
  getRandomValues(array) {
    if (!ArrayBuffer.isView(array)) throw new TypeError("getRandomValues needs a typed array");
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(new Uint8Array(host.random(array.byteLength)));
    return array;
  },
  randomUUID() {
    const bytes = new Uint8Array(host.random(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
});
