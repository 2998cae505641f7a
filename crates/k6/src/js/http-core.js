// Requests and answers of `k6/http`: what most scripts need of it. The rest is loaded when a script first comes to it.
const host = globalThis.__k6;
const { send, replyStatus, vu } = host;

const answers = () => (host.answers ??= host.load("tidemark:answer"));
const more = () => (host.more ??= host.load("tidemark:more"));

// headers that the driver writes
const MINE = new Set(["content-length", "connection", "transfer-encoding"]);

export const DEFAULT_EXPECTED = { ranges: [200, 399] };

// statuses that are good, and the jar of cookies, once it is needed
export const state = { expected: DEFAULT_EXPECTED, jar: null };
host.onBegin(() => {
  if (state.jar !== null && !state.jar.isEmpty && !host.setting.noCookiesReset) state.jar = null;
});
const hasNoCookies = (jar) => jar === null || jar.isEmpty;

// ---- answers

export class Response {
  constructor(reply, status, url) {
    this._reply = reply;
    this.status = status;
    this.url = url;
  }

  get request() {
    const [method, url, body, lines] = this._asked ?? ["GET", this.url, null, host.setting.agent];
    return more().asked(method, url, body, lines);
  }

  get status_text() {
    return more().statusText(this.status);
  }

  get proto() {
    return this.status === 0 ? "" : "HTTP/1.1";
  }

  get headers() {
    if (host.isRehearsal) return host.anything;
    return (this._headers ??= answers().headersOf(host.replyHead(this._reply)));
  }

  get cookies() {
    if (host.isRehearsal) return host.anything;
    return (this._cookies ??= {});
  }

  get body() {
    if (this._body !== undefined) return this._body;
    if (this._kind === "none" || this.status === 0) this._body = null;
    else this._body = this._kind === "binary" ? host.replyBytes(this._reply) : host.replyText(this._reply);
    return this._body;
  }

  get timings() {
    if (this._timings !== undefined) return this._timings;
    // sending is not measured apart: it is in waiting
    const [duration, blocked, connecting, tls_handshaking, receiving] = host.replyTimes(this._reply);
    const waiting = Math.max(0, duration - receiving);
    return (this._timings = { duration, blocked, looking_up: 0, connecting, tls_handshaking, sending: 0, waiting, receiving });
  }

  get remote_ip() {
    return more().hostOf(this.url);
  }

  get remote_port() {
    const port = /^[a-z]+:\/\/[^/?#]*:(\d+)/i.exec(this.url);
    return port ? Number(port[1]) : /^https/i.test(this.url) ? 443 : 80;
  }

  json(selector) {
    if (host.isRehearsal) return host.anything;
    if (this._json === undefined) {
      const text = this._kind === "binary" ? host.replyText(this._reply) : this.body;
      if (text === null) throw new Error("the body is null so we can't transform it to JSON - this likely was because of a request error getting the response");
      try {
        this._json = { value: JSON.parse(text) };
      } catch (error) {
        throw new Error(`cannot parse json due to an error: ${error.message}`);
      }
    }
    if (selector === undefined) return this._json.value;
    const { select, steps } = answers();
    return select(this._json.value, steps(String(selector)));
  }

  html(selector) {
    const found = host.parseHTML(this.body ?? "", this.url);
    return selector === undefined ? found : found.find(selector);
  }

  submitForm(given) {
    return more().submitForm(this, given ?? {});
  }

  clickLink(given) {
    return more().clickLink(this, given ?? {});
  }

  toJSON() {
    const { url, status, status_text, proto, headers, cookies, body, timings, error, error_code, remote_ip, remote_port } = this;
    return { remote_ip, remote_port, url, status, status_text, proto, headers, cookies, body, timings, error, error_code, request: this.request };
  }
}

// what an answer has that is as most are; on the object itself stands what differs
const USUAL = { error: "", error_code: 0, _asked: undefined, _kind: "text", _cookies: undefined, _body: undefined, _json: undefined, _timings: undefined };
for (const name of Object.keys(USUAL)) Object.defineProperty(Response.prototype, name, { value: USUAL[name], writable: true });
// a script may set what is made only when it is looked at
for (const name of ["request", "status_text", "proto", "headers", "cookies", "body", "timings", "remote_ip", "remote_port"]) {
  const { get } = Object.getOwnPropertyDescriptor(Response.prototype, name);
  const set = function (value) {
    Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
  };
  Object.defineProperty(Response.prototype, name, { get, set, enumerable: true, configurable: true });
}

// `found`: the status, or -1 less it where the answer is not as most are
export const responseOf = (reply, found, asked, kind, cookies) => {
  const response = new Response(reply, found < 0 ? -1 - found : found, asked[1]);
  response._asked = asked;
  if (kind !== "text") response._kind = kind;
  if (cookies !== undefined) response._cookies = cookies;
  if (found < 0) [response.error_code, response.error] = host.replyFailure(reply);
  return response;
};

// ---- requests

const timeoutOf = (told) => {
  if (told === undefined || told === null) return -1;
  if (typeof told === "number") return told;
  const ms = host.duration(String(told));
  if (ms === undefined) throw new Error(`invalid timeout '${told}': use milliseconds, or text such as '10s'`);
  return ms;
};

const NONE = Object.freeze({});
const NONE_PASS = Object.freeze([]);

// what a request asks for
export const prepared = (method, url, body, params) => {
  const { group } = vu;
  method = String(method);
  let name;
  if (url !== null && typeof url === "object" && "__url" in url) {
    name = url.__name;
    url = url.__url;
  }
  url = String(url);
  const given = params ?? NONE;
  if (typeof given !== "object") throw new TypeError("the parameters of a request are an object");
  const setting = host.setting;
  const { tags } = given;
  if (tags && tags.name !== undefined) name = String(tags.name);

  // the head
  let head = "";
  let hasType = false;
  let hasAgent = false;
  let hasReferer = false;
  let ownCookies;
  const { headers } = given;
  if (headers) {
    for (const key of Object.keys(headers)) {
      const lower = key.toLowerCase();
      if (MINE.has(lower)) continue;
      const value = String(headers[key]);
      if (lower === "host" && value === "") continue;
      if (value.includes("\n") || key.includes("\n")) throw new Error(`invalid header ${key}`);
      if (lower === "cookie") {
        ownCookies = value;
        continue;
      }
      if (lower === "content-type") hasType = true;
      if (lower === "user-agent") hasAgent = true;
      if (lower === "referer") hasReferer = true;
      head += `${key}: ${value}\n`;
    }
  }
  if (!hasAgent) head += setting.agent;

  // the body
  let sent = null;
  if (body !== null && body !== undefined) {
    if (typeof body === "string" || body instanceof ArrayBuffer) sent = body;
    else if (ArrayBuffer.isView(body)) sent = more().bytesOf(body);
    else if (typeof body === "object") {
      const [bytes, type] = more().bodyOf(body);
      sent = bytes;
      if (!hasType) head += `Content-Type: ${type}\n`;
    } else sent = String(body);
  }
  if (given.compression) {
    if (sent !== null) {
      const [bytes, kinds] = more().compressed(sent, String(given.compression));
      sent = bytes;
      head += `Content-Encoding: ${kinds}\n`;
    }
  }

  // who asks
  let user;
  let basic = "";
  const credentials = url.includes("@") ? /^([a-z]+:\/\/)([^/?#@]*)@/i.exec(url) : null;
  if (credentials) {
    url = credentials[1] + url.slice(credentials[0].length);
    [user, basic] = more().credentialsOf(credentials[2]);
  }

  const kind = given.responseType ?? (setting.discardResponseBodies ? "none" : "text");
  if (kind !== "text" && kind !== "binary" && kind !== "none") throw new Error(`unknown responseType '${kind}': text, binary or none`);
  const callback = given.responseCallback === undefined ? state.expected : given.responseCallback;
  const ranges = callback === null ? null : callback === DEFAULT_EXPECTED ? undefined : callback.ranges;
  const flatTags = tags || vu.hasTags ? host.tags(tags) : "";
  const timeout = timeoutOf(given.timeout);
  const used = given.jar ? more().jarOf(given.jar) : state.jar;
  const passing = given.cookies ? more().passingOf(given.cookies) : NONE_PASS;
  const isPlain = timeout < 0 && name === undefined && kind !== "none" && ranges === undefined && flatTags === "";
  const extra = isPlain ? null : [timeout, name, kind === "none", ranges, flatTags];
  return { method, url, sent, head, basic, group, extra, kind, used, passing, ownCookies, user, given, hasReferer };
};

export const request = (method, url, body, params) => {
  const ask = prepared(method, url, body, params);
  if (ask.user !== undefined || ask.passing.length > 0 || !hasNoCookies(ask.used)) return more().inTurn(more().exchange(ask));
  let lines = ask.head + ask.basic;
  if (ask.ownCookies) lines += `Cookie: ${ask.ownCookies}\n`;
  const reply = send(ask.method, ask.url, ask.sent, lines, ask.group, ask.extra);
  const found = replyStatus(reply);
  if (found < 0) return more().inTurn(more().exchange(ask, reply));
  return responseOf(reply, found, [ask.method, ask.url, ask.sent, lines], ask.kind, undefined);
};

export const get = (url, params) => {
  const { expected, jar } = state;
  if (params !== undefined || typeof url !== "string" || expected !== DEFAULT_EXPECTED || vu.hasTags || !hasNoCookies(jar)) {
    return request("GET", url, null, params);
  }
  const { agent, discardResponseBodies } = host.setting;
  if (discardResponseBodies || url.includes("@")) return request("GET", url, null, params);
  // nothing but the URL: as most requests are
  const reply = send("GET", url, null, agent, vu.group, null);
  const found = replyStatus(reply);
  if (found < 0) return more().inTurn(more().exchange(prepared("GET", url, null, params), reply));
  return new Response(reply, found, url);
};
