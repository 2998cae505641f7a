// http-instrumentation-tempo of jslib.k6.io: each request says of which trace it is.

import http from "k6/http";

const host = globalThis.__k6;
const random = (bytes) => host.hex(host.random(bytes));

// where each function takes its parameters
const AT = { get: 1, head: 1, post: 2, put: 2, patch: 2, del: 2, options: 2, request: 3, asyncRequest: 3 };
const plain = { ...http };

const headersOf = ({ propagator = "w3c", sampling = 1, baggage }) => {
  const isSampled = Math.random() < sampling ? 1 : 0;
  const headers =
    propagator === "jaeger"
      ? { "Uber-Trace-Id": `${random(16)}:${random(8)}:0:${isSampled}` }
      : { Traceparent: `00-${random(16)}-${random(8)}-0${isSampled}` };
  if (baggage) headers.Baggage = Object.entries(baggage).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join(", ");
  return headers;
};

const traced = (given) => {
  const options = given ?? {};
  if (![undefined, "w3c", "jaeger"].includes(options.propagator)) throw new Error(`unknown propagator: ${options.propagator}`);
  const functions = Object.entries(AT).map(([name, at]) => [name, (...values) => {
    const params = values[at] ?? {};
    values[at] = { ...params, headers: { ...headersOf(options), ...params.headers } };
    return plain[name](...values);
  }]);
  return Object.fromEntries(functions);
};

export class Client {
  constructor(options) {
    Object.assign(this, traced(options));
  }
}

export const instrumentHTTP = (options) => void Object.assign(http, traced(options));

export default { Client, instrumentHTTP };
