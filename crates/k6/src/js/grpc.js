// `k6/net/grpc`: calls of one message each, over the driver's connections.

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

// metadata by name; what the protocol itself has is left out
const listsOf = (lines) => {
  const lists = {};
  for (const line of lines.split("\n")) {
    const cut = line.indexOf(": ");
    const name = line.slice(0, cut);
    if (cut > 0 && !name.startsWith("grpc-")) (lists[name] ??= []).push(line.slice(cut + 2));
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

// metadata as lines, and in grpc-go's words why it cannot be sent; the driver refuses that, too
const linesOf = (metadata) => {
  let lines = "";
  let wrong;
  for (const [given, values] of Object.entries(metadata ?? {})) {
    const name = given.toLowerCase();
    if (RESERVED.test(name)) continue;
    const isBinary = name.endsWith("-bin");
    if (!/^[0-9a-z_.-]+$/.test(name)) {
      const words = `header key ${JSON.stringify(name)} contains illegal characters not in [0-9a-z-_.]`;
      wrong ??= name === "" ? "there is an empty key in the header" : words;
    }
    for (let value of Array.isArray(values) ? values : [values]) {
      // HTTP/2 forbids spaces around a value, and gRPC lets whoever sends it strip them
      value = isBinary ? host.b64encode(value, "rawstd") : String(value).replace(/^ +| +$/g, "");
      if (/[^ -~]/.test(value)) {
        wrong ??= `header key ${JSON.stringify(name)} contains value with non-printable ASCII characters`;
      }
      // neither ends the line, and both stay what cannot be sent
      lines += `${name.replace(/[^0-9a-z_.-]|^$/g, "*")}: ${value.replace(/[\r\n]/g, "\0")}\n`;
    }
  }
  return [lines, wrong];
};

const timeoutOf = (told) => {
  if (told === undefined || told === null) return -1;
  const ms = typeof told === "number" ? told : host.duration(String(told));
  if (ms === undefined) throw new Error(`invalid timeout value: '${told}'`);
  return ms;
};

export class Client {
  #base;

  load(imports, ...files) {
    host.grpcLoad((imports ?? []).map(String), files.map(String), false);
    return [];
  }

  loadProtoset(file) {
    host.grpcLoad([], [String(file)], true);
    return [];
  }

  connect(address, params) {
    if (typeof address !== "string" || address === "") throw new Error("invalid address: it is empty");
    this.#base = `${params?.plaintext ? "grpc" : "grpcs"}://${address}`;
    return true;
  }

  invoke(method, message, params) {
    if (this.#base === undefined) throw new Error("no gRPC connection, you must call connect first");
    if (message === undefined || message === null) throw new Error("request cannot be nil");
    method = String(method);
    const path = method.startsWith("/") ? method : `/${method}`;
    if (!/^\/[^/]+\/[^/]+$/.test(path)) throw new Error(`method "${method}" not found in file descriptors`);
    const given = params ?? {};
    const name = given.tags?.name;
    const tags = given.tags || vu.hasTags ? host.tags(given.tags) : "";
    const extra = [timeoutOf(given.timeout), name, Boolean(given.discardResponseMessage), undefined, tags];
    const [lines, wrong] = linesOf(given.metadata);
    const reply = host.send("POST", this.#base + path, JSON.stringify(message), lines, vu.group, extra);
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

export class Stream {
  constructor() {
    throw new Error("grpc.Stream is not supported; write the stream as steps of a scenario: grpc open, grpc send, grpc close");
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
