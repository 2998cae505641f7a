// What requests return: the reply of the host, which makes what is in it when a script looks at it.
const host = globalThis.__k6;

const answers = () => (host.answers ??= host.load("tidemark:answer"));
const more = () => (host.more ??= host.load("tidemark:more"));

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
    return (this._headers ??= answers().headersOf(host.replyHead(this)));
  }

  get cookies() {
    if (host.isRehearsal) return host.anything;
    return (this._cookies ??= {});
  }

  get body() {
    if (this._body !== undefined) return this._body;
    if (this._kind === "none" || this.status === 0) this._body = null;
    else this._body = this._kind === "binary" ? host.replyBytes(this) : host.replyText(this);
    return this._body;
  }

  get timings() {
    if (this._timings !== undefined) return this._timings;
    // sending is not measured apart: it is in waiting
    const [duration, blocked, connecting, tls_handshaking, receiving] = host.replyTimes(this);
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
      const text = this._kind === "binary" ? host.replyText(this) : this.body;
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
const USUAL = { error: "", error_code: 0, _sent: null, _kind: "text", _cookies: undefined, _body: undefined, _json: undefined, _timings: undefined };
for (const name of Object.keys(USUAL)) Object.defineProperty(Response.prototype, name, { value: USUAL[name], writable: true });
// a script may set what is made only when it is looked at
for (const name of ["request", "status_text", "proto", "headers", "cookies", "body", "timings", "remote_ip", "remote_port"]) {
  const { get } = Object.getOwnPropertyDescriptor(Response.prototype, name);
  const set = function (value) {
    Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
  };
  Object.defineProperty(Response.prototype, name, { get, set, enumerable: true, configurable: true });
}
Object.setPrototypeOf(host.replies, Response.prototype);
