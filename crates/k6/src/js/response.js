// What requests return: the reply of the host, which makes what is in it when a script looks at it.
const host = globalThis.__k6;

const answers = () => (host.answers ??= host.load("tidemark:answer"));
const more = () => (host.more ??= host.load("tidemark:more"));

// what is made only once, where nothing that lists fields finds it
const [HEADERS, BODY, JSON_VALUE, TIMINGS] = ["headers", "body", "json", "timings"].map((name) => Symbol(name));

export class Response {
  get request() {
    const [method, lines] = host.replyAsked(this);
    return more().asked(method, this.url, this._sent, lines);
  }

  get status_text() {
    return more().statusText(this.status);
  }

  get proto() {
    return this.status === 0 ? "" : "HTTP/1.1";
  }

  get headers() {
    if (host.isRehearsal) return host.anything;
    return (this[HEADERS] ??= answers().headersOf(host.replyHead(this)));
  }

  get cookies() {
    if (host.isRehearsal) return host.anything;
    return (this.cookies = {});
  }

  get body() {
    if (this[BODY] !== undefined) return this[BODY];
    if (this._kind === "none" || [0, 204, 304].includes(this.status)) this[BODY] = null;
    else this[BODY] = this._kind === "binary" ? host.replyBytes(this) : host.replyText(this);
    return this[BODY];
  }

  get timings() {
    if (this[TIMINGS] !== undefined) return this[TIMINGS];
    // sending is not measured apart: it is in waiting
    const [duration, blocked, connecting, tls_handshaking, receiving] = host.replyTimes(this);
    const waiting = Math.max(0, duration - receiving);
    return (this[TIMINGS] = { duration, blocked, looking_up: 0, connecting, tls_handshaking, sending: 0, waiting, receiving });
  }

  get tls_version() {
    return host.replyTls(this)[0];
  }

  get tls_cipher_suite() {
    return host.replyTls(this)[1];
  }

  get ocsp() {
    const status = this.tls_version === "" ? "" : "unknown";
    return { produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: "", status };
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
    if (this[JSON_VALUE] === undefined) {
      const text = this._kind === "binary" ? host.replyText(this) : this.body;
      if (text === null) throw new Error("the body is null so we can't transform it to JSON - this likely was because of a request error getting the response");
      try {
        this[JSON_VALUE] = { value: JSON.parse(text) };
      } catch (error) {
        throw new Error(`cannot parse json due to an error: ${error.message}`);
      }
    }
    if (selector === undefined) return this[JSON_VALUE].value;
    const { select, steps } = answers();
    return select(this[JSON_VALUE].value, steps(String(selector)));
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
    return Object.fromEntries(FIELDS.map((name) => [name, this[name]]));
  }
}

// k6's fields, in its order; and its methods, which are fields there, too
const FIELDS = [
  "remote_ip", "remote_port", "url", "status", "status_text", "proto", "headers", "cookies", "body", "timings", "tls_version",
  "tls_cipher_suite", "ocsp", "error", "error_code", "request",
];
const METHODS = ["clickLink", "html", "json", "submitForm"];
// what an answer has that is as most are; on the object itself stands what differs
const USUAL = { url: "", status: 0, error: "", error_code: 0 };
for (const name of Object.keys(USUAL)) {
  Object.defineProperty(Response.prototype, name, { value: USUAL[name], writable: true, enumerable: true, configurable: true });
}
for (const [name, value] of [["_sent", null], ["_kind", "text"], ...[HEADERS, BODY, JSON_VALUE, TIMINGS].map((key) => [key])]) {
  Object.defineProperty(Response.prototype, name, { value, writable: true });
}
// a script may set what is made only when it is looked at
for (const name of FIELDS) {
  const { get } = Object.getOwnPropertyDescriptor(Response.prototype, name);
  if (get === undefined) continue;
  const set = function (value) {
    Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
  };
  Object.defineProperty(Response.prototype, name, { get, set, enumerable: true, configurable: true });
}
const own = (name) => ({ ...Object.getOwnPropertyDescriptor(Response.prototype, name), enumerable: true });
const OWN = Object.fromEntries([...FIELDS, ...METHODS].map((name) => [name, own(name)]));
// an answer whose fields a script may list has them itself; others inherit them, which takes less time
host.withFields = (reply) => Object.defineProperties(reply, OWN);
Object.setPrototypeOf(host.replies, Response.prototype);
