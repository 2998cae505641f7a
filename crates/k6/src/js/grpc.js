// `k6/net/grpc`: calls of one message each, and streams, over the driver's connections.
import { hears, hearsNoMore } from "tidemark:heard";

const host = globalThis.__k6;
const { vu } = host;

// statuses from here on are codes of gRPC
const FIRST_STATUS = 10000;
// k6's number of a request that timed out
const TIMED_OUT = 1050;

export const StatusOK = 0;
export const StatusCanceled = 1;
export const StatusUnknown = 2;
export const StatusInvalidArgument = 3;
export const StatusDeadlineExceeded = 4;
export const StatusNotFound = 5;
export const StatusAlreadyExists = 6;
export const StatusPermissionDenied = 7;
export const StatusResourceExhausted = 8;
export const StatusFailedPrecondition = 9;
export const StatusAborted = 10;
export const StatusOutOfRange = 11;
export const StatusUnimplemented = 12;
export const StatusInternal = 13;
export const StatusUnavailable = 14;
export const StatusDataLoss = 15;
export const StatusUnauthenticated = 16;
export const HealthCheckUnknown = 0;
export const HealthCheckServing = 1;
export const HealthCheckNotServing = 2;
// so spelt by k6
export const HealthCheckServiceUnkown = 3;

const HEALTH = "/grpc.health.v1.Health/Check";
const SERVING_STATUSES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
// codes as errors of Go name them
const CODES = [
  "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
  "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss",
  "Unauthenticated",
];

// what grpc-go keeps of an answer for itself
const KEPT = /^(:.*|user-agent|te|grpc-(message-type|encoding|message|status|timeout))$/s;

// as k6 shows it: bytes of binary metadata as text
const shown = (name, value) => {
  if (!name.endsWith("-bin")) return value;
  try {
    return host.text(host.b64decode(value, "std"));
  } catch {
    return value;
  }
};

// metadata by name
const listsOf = (lines) => {
  const lists = Object.create(null);
  for (const line of lines.split("\n")) {
    const cut = line.indexOf(": ");
    const name = line.slice(0, cut);
    if (cut > 0 && !KEPT.test(name)) (lists[name] ??= []).push(shown(name, line.slice(cut + 2)));
  }
  return lists;
};

const wordsOf = (head) => {
  const told = /^grpc-message: (.*)$/m.exec(head)?.[1] ?? "";
  try {
    return decodeURIComponent(told);
  } catch {
    return told;
  }
};

// what grpc-go leaves out
const RESERVED = /^(:.*|content-type|user-agent|te|grpc-(message-type|encoding|message|status|timeout))$/s;
// what grpc-go sends, and HTTP/2 or gRPC keeps for itself
const OWN = /^(host|content-length|connection|keep-alive|proxy-connection|transfer-encoding|upgrade|grpc-.*)$/s;

// what a script is refused; not in a rehearsal, which knows no types
const refuse = (words) => {
  if (!host.isRehearsal) throw new Error(words);
};

// metadata as k6 takes it, by name
const metadataOf = (metadata, where) => {
  if (metadata === undefined || metadata === null) return [];
  if (typeof metadata !== "object" || Array.isArray(metadata)) refuse(`${where}: must be an object with key-value pairs`);
  const entries = Object.entries(metadata);
  for (const [name, value] of entries) {
    const isBinary = name.endsWith("-bin");
    const fits = isBinary ? value instanceof Uint8Array : typeof value === "string";
    if (!fits) refuse(`${where}: ${JSON.stringify(name)} value must be ${isBinary ? "binary" : "a string"}`);
  }
  return entries;
};

// metadata as lines, and in grpc-go's words why it cannot be sent; the driver refuses that, too
const linesOf = (metadata, where) => {
  let lines = "";
  let wrong;
  for (const [given, told] of metadataOf(metadata, `${where}: invalid metadata param`)) {
    const name = given.toLowerCase();
    if (RESERVED.test(name)) continue;
    if (OWN.test(name)) wrong ??= `header key ${JSON.stringify(name)} is the protocol's own`;
    if (!/^[0-9a-z_.-]+$/.test(name)) {
      const words = `header key ${JSON.stringify(name)} contains illegal characters not in [0-9a-z-_.]`;
      wrong ??= name === "" ? "there is an empty key in the header" : words;
    }
    // HTTP/2 forbids spaces around a value, and gRPC lets whoever sends it strip them
    const value = name.endsWith("-bin") ? host.b64encode(host.isRehearsal ? "" : told, "rawstd") : String(told).replace(/^ +| +$/g, "");
    if (/[^ -~]/.test(value)) {
      wrong ??= `header key ${JSON.stringify(name)} contains value with non-printable ASCII characters`;
    }
    // neither ends the line, and both stay what cannot be sent
    lines += `${name.replace(/[^0-9a-z_.-]|^$/g, "*")}: ${value.replace(/[\r\n]/g, "\0")}\n`;
  }
  return [lines, wrong];
};

const timeoutOf = (told) => {
  if (told === undefined || told === null) return -1;
  const ms = typeof told === "number" ? told : host.duration(String(told));
  if (ms === undefined) throw new Error(`invalid timeout value: '${told}'`);
  return ms;
};

// the path of a method
const pathOf = (method) => {
  const path = method.startsWith("/") ? method : `/${method}`;
  if (!/^\/[^/]+\/[^/]+$/.test(path)) throw new Error(`method "${method}" not found in file descriptors`);
  return path;
};

const tagsOf = (tags) => (tags || vu.hasTags ? host.tags(tags) : "");

// where parameters are wrong, in k6's words
const INVOKE = "invalid GRPC's client.invoke() parameters";
const STREAM = "invalid GRPC Stream's parameters";
const CALL = ["metadata", "tags", "timeout", "discardResponseMessage"];

// the parameters of a call or a stream
const paramsOf = (params, where) => {
  const given = params ?? {};
  const unknown = Object.keys(given).find((name) => !CALL.includes(name));
  if (unknown !== undefined) refuse(`${where}: unknown param: ${JSON.stringify(unknown)}`);
  return given;
};

// what `connect` is told and does not use: it makes no connection
const UNUSED = ["timeout", "reflectMetadata", "maxReceiveSize", "maxSendSize"];

// certificates and keys that a client has itself, as PEM; null where it has none
const tlsOf = (told, wrong) => {
  if (told === null || typeof told !== "object") {
    wrong("invalid tls value, expected (optional) keys: cert, key, password, and cacerts");
    return null;
  }
  const { cacerts = [], cert = "", key = "", password = "" } = told;
  const all = Array.isArray(cacerts) ? cacerts : [cacerts];
  for (const [name, value] of [["cert", cert], ["key", key], ["password", password], ...all.map((one) => ["cacerts", one])]) {
    if (typeof value !== "string") wrong(`invalid tls ${name} value: it needs to be a ${name === "password" ? "" : "PEM formatted "}string`);
  }
  return Object.keys(told).length > 0 ? [all.map(String), String(cert), String(key), Boolean(password)] : null;
};

// what `connect` is told, checked as k6 does
const connectionOf = (params) => {
  const given = params ?? {};
  const wrong = (words) => refuse(`invalid grpc.connect() parameters: ${words}`);
  let tls = null;
  for (const [name, value] of Object.entries(given)) {
    const needs = (fits, what) => fits || wrong(`invalid ${name} value: '${String(value)}', it needs to be ${what}`);
    if (name === "plaintext" || name === "reflect") needs(typeof value === "boolean", "boolean");
    else if (name === "authority") needs(typeof value === "string", "a string");
    else if (name === "maxReceiveSize" || name === "maxSendSize") {
      needs(Number.isInteger(value), "an integer");
      needs(!(value < 0), "a positive integer");
    } else if (name === "timeout") timeoutOf(value);
    else if (name === "reflectMetadata") metadataOf(value, "invalid grpc.connect() parameters: invalid reflectMetadata param");
    else if (name === "tls") tls = tlsOf(value, wrong);
    else wrong(`unknown connect param: ${JSON.stringify(name)}`);
  }
  const { plaintext, reflect, authority } = given;
  const unused = UNUSED.filter((name) => Object.hasOwn(given, name));
  return { plaintext, reflects: reflect === true, authority: typeof authority === "string" ? authority : "", tls, unused };
};

export class Client {
  #base;
  // what it has loaded, by the host's numbers
  #loaded = [];

  load(imports, ...files) {
    this.#loaded.push(host.grpcLoad((imports ?? []).map(String), files.map(String), false));
    return [];
  }

  loadProtoset(file) {
    this.#loaded.push(host.grpcLoad([], [String(file)], true));
    return [];
  }

  connect(address, params) {
    if (typeof address !== "string" || address === "") throw new Error("invalid address: it is empty");
    const { plaintext, reflects, authority, tls, unused } = connectionOf(params);
    this.#base = `${plaintext ? "grpc" : "grpcs"}://${authority || address}`;
    const isElsewhere = authority !== "" && authority !== address;
    if (host.isRehearsal) {
      host.grpcConnects(this.#base, reflects ? [] : this.#loaded, isElsewhere ? address : null, plaintext ? null : tls);
    }
    if (unused.length > 0) host.grpcIgnores(unused);
    return true;
  }

  // where a client is connected to
  static baseOf(client) {
    if (client.#base === undefined) throw new Error("no gRPC connection, you must call connect first");
    return client.#base;
  }

  invoke(method, message, params) {
    const base = Client.baseOf(this);
    if (message === undefined || message === null) throw new Error("request cannot be nil");
    const path = pathOf(String(method));
    const given = paramsOf(params, INVOKE);
    const extra = [
      timeoutOf(given.timeout), given.tags?.name, Boolean(given.discardResponseMessage), undefined, tagsOf(given.tags),
    ];
    const [lines, wrong] = linesOf(given.metadata, INVOKE);
    const reply = host.send("POST", base + path, JSON.stringify(message), lines, vu.group, extra);
    if (host.isRehearsal) {
      const { anything } = host;
      return { status: StatusOK, message: anything, headers: anything, trailers: anything, error: null };
    }
    const found = -1 - host.replyStatus(reply);
    if (found < FIRST_STATUS) {
      const [failure, told] = host.replyFailure(reply);
      const unsent = wrong === undefined ? StatusUnavailable : StatusInternal;
      const code = failure === TIMED_OUT ? StatusDeadlineExceeded : unsent;
      const words = wrong ?? told;
      return { status: code, message: null, headers: {}, trailers: {}, error: { code, message: words, details: [] } };
    }
    const status = found - FIRST_STATUS;
    const head = host.replyHead(reply);
    const cut = head.startsWith("\n") ? 0 : head.indexOf("\n\n") + 1;
    const [headers, trailers] = [head.slice(0, cut), head.slice(cut)].map(listsOf);
    const text = host.replyText(reply);
    const error = status === StatusOK ? null : { code: status, message: wordsOf(head), details: [] };
    return { status, message: text === "" ? null : JSON.parse(text), headers, trailers, error };
  }

  async asyncInvoke(...given) {
    return this.invoke(...given);
  }

  healthCheck(service) {
    const { status, message, error } = this.invoke(HEALTH, { service: service ?? "" });
    if (host.isRehearsal) return { status: HealthCheckServing };
    if (error !== null) throw new Error(`rpc error: code = ${CODES[status]} desc = ${error.message}`);
    // a message has no field that is 0
    return { status: SERVING_STATUSES.indexOf(message.status ?? "UNKNOWN") };
  }

  close() {
    this.#base = undefined;
  }
}

const EVENTS = ["data", "error", "end"];

export class Stream {
  #id;
  #listeners = new Map(EVENTS.map((event) => [event, []]));
  #isOver = false;
  #hasEnded = false;
  #timer;

  constructor(client, method, params) {
    if (!(client instanceof Client)) throw new Error("invalid gRPC Stream's client: a Client is expected");
    const path = pathOf(String(method));
    const given = paramsOf(params, STREAM);
    const extra = [vu.group, given.tags?.name, tagsOf(given.tags)];
    this.#id = host.streamOpen(Client.baseOf(client) + path, linesOf(given.metadata, STREAM)[0], extra);
    hears(this.#id, this);
    const timeout = timeoutOf(given.timeout);
    if (timeout > 0) {
      this.#timer = setTimeout(() => {
        host.socketLeave(this.#id, 0);
        this.#end(StatusDeadlineExceeded, "context deadline exceeded");
      }, timeout);
    }
  }

  on(event, listener) {
    if (!EVENTS.includes(event)) {
      host.log("warning", `can't register ${event} event handler: unknown GRPC stream's event type: ${event}`);
      return;
    }
    if (typeof listener !== "function") throw new Error("a listener of a gRPC stream's event is a function");
    this.#listeners.get(event).push(listener);
  }

  write(message) {
    if (this.#isOver || this.#hasEnded) return;
    if (message === undefined || message === null) {
      host.log("warning", "can't send empty message");
      return;
    }
    host.socketSay(this.#id, "text", JSON.stringify(message));
  }

  end() {
    if (this.#isOver || this.#hasEnded) return;
    this.#hasEnded = true;
    host.socketClose(this.#id, 0, "");
  }

  #tell(event, value = {}) {
    const told = { ts: Math.floor(Date.now() / 1000) };
    for (const listener of this.#listeners.get(event)) listener(value, told);
  }

  #end(code, message) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    hearsNoMore(this.#id);
    host.socketOver(this.#id);
    if (code !== StatusOK) {
      if (this.#listeners.get("error").length === 0) {
        host.log("warning", `no handlers for error registered, but an error happened: ${message}`);
      }
      this.#tell("error", { code, details: [], message });
    }
    this.#tell("end");
  }

  // what came: its kind, and up to two values
  hear(kind, first, second, third) {
    if (this.#isOver) return;
    if (kind === "text") this.#tell("data", JSON.parse(first));
    else if (kind === "close") this.#end(first, third);
    else this.#end(second === TIMED_OUT ? StatusDeadlineExceeded : StatusUnavailable, first || "the connection broke");
  }
}

export default {
  Client,
  Stream,
  StatusOK,
  StatusCanceled,
  StatusUnknown,
  StatusInvalidArgument,
  StatusDeadlineExceeded,
  StatusNotFound,
  StatusAlreadyExists,
  StatusPermissionDenied,
  StatusResourceExhausted,
  StatusFailedPrecondition,
  StatusAborted,
  StatusOutOfRange,
  StatusUnimplemented,
  StatusInternal,
  StatusUnavailable,
  StatusDataLoss,
  StatusUnauthenticated,
  HealthCheckUnknown,
  HealthCheckServing,
  HealthCheckNotServing,
  HealthCheckServiceUnkown,
};
