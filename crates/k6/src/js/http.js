import { canonical, headersOf, select, steps } from "tidemark:answer";
import { CookieJar, hostOf } from "tidemark:cookies";
import { awaitAll, inTurn, promised } from "tidemark:requests";

const host = globalThis.__k6;

const isRedirect = (status) => status >= 301 && status <= 308 && status !== 304 && status !== 305 && status !== 306;
const MINE = new Set(["content-length", "connection", "transfer-encoding"]);
const escaped = (text) => encodeURIComponent(text).replace(/%20/g, "+").replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

class FileData {
  constructor(data, filename, contentType) {
    this.data = data;
    this.filename = filename === undefined ? `${Date.now()}` : String(filename);
    this.content_type = contentType === undefined ? "application/octet-stream" : String(contentType);
  }
}

export const file = (data, filename, contentType) => new FileData(data, filename, contentType);

// ---- statuses that are good

const DEFAULT_EXPECTED = { ranges: [200, 399] };
let expected = DEFAULT_EXPECTED;

export function expectedStatuses(...statuses) {
  if (statuses.length === 0) throw new Error("no arguments");
  const ranges = [];
  for (const status of statuses) {
    if (typeof status === "number") ranges.push(status, status);
    else if (status && typeof status.min === "number" && typeof status.max === "number") ranges.push(status.min, status.max);
    else throw new Error("expectedStatuses takes numbers, and objects with min and max");
  }
  return { ranges };
}

export function setResponseCallback(callback) {
  if (callback !== null && !(callback && callback.ranges)) throw new Error("unsupported callback; use http.expectedStatuses");
  expected = callback;
}

const isGood = (callback, status) => {
  if (callback === null) return null;
  const { ranges } = callback;
  for (let at = 0; at < ranges.length; at += 2) if (status >= ranges[at] && status <= ranges[at + 1]) return true;
  return false;
};

// ---- cookies

let jar = new CookieJar();
export { CookieJar };
export const cookieJar = () => jar;
host.onBegin(() => {
  if (!jar.isEmpty && !host.setting.noCookiesReset) jar = new CookieJar();
});

// as Go writes it
const asCookie = (value) => {
  const plain = value.replace(/[^\x20-\x7e]|["\\;]/g, "");
  return /[ ,]/.test(plain) ? `"${plain}"` : plain;
};

// ---- answers

[host.asCookie, host.headersOf] = [asCookie, headersOf];

const REASONS = {
  200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
  303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
  401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 410: "Gone",
  422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
  503: "Service Unavailable", 504: "Gateway Timeout",
};

// entries of an answer that is good and sets no cookie
const PLAIN = 8;

export class Response {
  // raw: [status, head, body, duration, blocked, connecting, TLS, receiving, code, error, set-cookie]; of a good answer
  // without cookies only the first
  constructor(raw, asked, kind, cookies) {
    this._raw = raw;
    this._asked = asked;
    this._kind = kind;
    this._cookies = cookies;
    this._body = undefined;
    this._json = undefined;
    this.status = raw[0];
    this.url = asked[1];
    this.error_code = raw.length > PLAIN ? raw[8] : 0;
    this.error = raw.length > PLAIN ? raw[9] : "";
  }

  get request() {
    const [method, url, body, lines] = this._asked;
    const headers = {};
    for (const line of lines.split("\n")) {
      const cut = line.indexOf(":");
      if (cut > 0) (headers[canonical(line.slice(0, cut))] ??= []).push(line.slice(cut + 2));
    }
    return { method, url, body: body ?? "", headers, cookies: NONE };
  }

  get status_text() {
    return this.status === 0 ? "" : `${this.status} ${REASONS[this.status] ?? ""}`.trim();
  }

  get proto() {
    return this.status === 0 ? "" : "HTTP/1.1";
  }

  get headers() {
    if (host.isRehearsal) return host.anything;
    return (this._headers ??= headersOf(this._raw[1]));
  }

  get cookies() {
    if (host.isRehearsal) return host.anything;
    return (this._cookies ??= {});
  }

  get body() {
    if (this._body !== undefined) return this._body;
    if (this._kind === "none" || this.status === 0) this._body = null;
    else this._body = this._kind === "binary" ? this._raw[2] : host.text(this._raw[2]);
    return this._body;
  }

  set body(value) {
    this._body = value;
  }

  get timings() {
    // sending is not measured apart: it is in waiting
    const [, , , duration, blocked, connecting, tls_handshaking, receiving] = this._raw;
    return {
      duration, blocked, looking_up: 0, connecting, tls_handshaking, sending: 0, waiting: Math.max(0, duration - receiving), receiving,
    };
  }

  get remote_ip() {
    return hostOf(this.url);
  }

  get remote_port() {
    const port = /^[a-z]+:\/\/[^/?#]*:(\d+)/i.exec(this.url);
    return port ? Number(port[1]) : /^https/i.test(this.url) ? 443 : 80;
  }

  json(selector) {
    if (host.isRehearsal) return host.anything;
    if (this._json === undefined) {
      const text = this._kind === "binary" ? host.text(this._raw[2]) : this.body;
      if (text === null) throw new Error("the body is null so we can't transform it to JSON - this likely was because of a request error getting the response");
      try {
        this._json = { value: JSON.parse(text) };
      } catch (error) {
        throw new Error(`cannot parse json due to an error: ${error.message}`);
      }
    }
    return selector === undefined ? this._json.value : select(this._json.value, steps(String(selector)));
  }

  html(selector) {
    const found = host.parseHTML(this.body ?? "", this.url);
    return selector === undefined ? found : found.find(selector);
  }

  submitForm(given = {}) {
    // where it leads is written on a page that a rehearsal has not
    if (host.isRehearsal) return this;
    const { formSelector = "form", submitSelector = '[type="submit"]', fields = {}, params = {} } = given ?? {};
    const form = this.html(formSelector);
    if (form.size() === 0) throw new Error(`no form found for selector '${formSelector}' in response '${this.url}'`);
    const method = (form.attr("method") ?? "GET").toUpperCase();
    const values = form.serializeObject();
    const submit = form.find(submitSelector);
    const name = submit.attr("name");
    if (name !== undefined && name !== "") values[name] = submit.val() ?? "";
    Object.assign(values, fields);
    const action = host.resolve(this.url, form.attr("action") ?? "");
    if (method !== "GET") return request(method, action, values, params);
    const query = formOf(values);
    return request("GET", query === "" ? action : `${action.split("?")[0]}?${query}`, null, params);
  }

  clickLink(given = {}) {
    // where it leads is written on a page that a rehearsal has not
    if (host.isRehearsal) return this;
    const { selector = "a[href]", params = {} } = given ?? {};
    const link = this.html(selector);
    if (link.size() === 0) throw new Error(`no element found for selector '${selector}' in response '${this.url}'`);
    const href = link.attr("href");
    if (href === undefined) throw new Error(`no valid href attribute value found on element '${selector}' in response '${this.url}'`);
    return request("GET", host.resolve(this.url, href), null, params);
  }

  toJSON() {
    const { url, status, status_text, proto, headers, cookies, body, timings, error, error_code, remote_ip, remote_port } = this;
    return { remote_ip, remote_port, url, status, status_text, proto, headers, cookies, body, timings, error, error_code, request: this.request };
  }
}

// ---- requests

const formOf = (values) => {
  const parts = [];
  for (const name of Object.keys(values).sort()) {
    for (const value of Array.isArray(values[name]) ? values[name] : [values[name]]) {
      parts.push(`${escaped(name)}=${escaped(value === null || value === undefined ? "<nil>" : String(value))}`);
    }
  }
  return parts.join("&");
};

const quoted = (text) => text.replace(/\\/g, "\\\\").replace(/"/g, '\\"');

const multipartOf = (values) => {
  const boundary = host.hex(host.random(30));
  const parts = [];
  for (const name of Object.keys(values)) {
    const value = values[name];
    let head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"`;
    if (value instanceof FileData) {
      head += `; filename="${quoted(value.filename)}"\r\nContent-Type: ${value.content_type}`;
    }
    parts.push(host.bytesOf(`${head}\r\n\r\n`), host.bytesOf(value instanceof FileData ? value.data : String(value)), host.bytesOf("\r\n"));
  }
  parts.push(host.bytesOf(`--${boundary}--\r\n`));
  return [host.joined(parts), `multipart/form-data; boundary=${boundary}`];
};

const timeoutOf = (told) => {
  if (told === undefined || told === null) return -1;
  if (typeof told === "number") return told;
  const ms = host.duration(String(told));
  if (ms === undefined) throw new Error(`invalid timeout '${told}': use milliseconds, or text such as '10s'`);
  return ms;
};

const digestOf = (challenge, method, path, user, password) => {
  const part = (name) => new RegExp(`${name}=(?:"([^"]*)"|([^,\\s]*))`, "i").exec(challenge)?.slice(1).find((text) => text !== undefined);
  const md5 = (text) => host.hex(host.digest("md5", host.bytesOf(text)));
  const [realm, nonce, opaque] = [part("realm") ?? "", part("nonce") ?? "", part("opaque")];
  const qop = (part("qop") ?? "").split(",").map((word) => word.trim()).includes("auth");
  const [ha1, ha2] = [md5(`${user}:${realm}:${password}`), md5(`${method}:${path}`)];
  const cnonce = host.hex(host.random(8));
  const response = qop ? md5(`${ha1}:${nonce}:00000001:${cnonce}:auth:${ha2}`) : md5(`${ha1}:${nonce}:${ha2}`);
  let said = `Digest username="${user}", realm="${realm}", nonce="${nonce}", uri="${path}", response="${response}", algorithm=MD5`;
  if (qop) said += `, qop=auth, nc=00000001, cnonce="${cnonce}"`;
  if (opaque !== undefined) said += `, opaque="${opaque}"`;
  return said;
};

const NONE = Object.freeze({});

// What a request with its redirects asks for, one after the other: it yields what `host.send` takes, and is handed the answer.
// `first` is the answer that there is already to the first one.
function* exchange(method, url, body, params, first) {
  const { group } = host;
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
    else if (ArrayBuffer.isView(body)) sent = host.bytesOf(body);
    else if (typeof body === "object") {
      if (Object.values(body).some((value) => value instanceof FileData)) {
        const [bytes, type] = multipartOf(body);
        sent = bytes;
        if (!hasType) head += `Content-Type: ${type}\n`;
      } else {
        sent = formOf(body);
        if (!hasType) head += "Content-Type: application/x-www-form-urlencoded\n";
      }
    } else sent = String(body);
  }
  if (given.compression) {
    if (sent !== null) {
      const kinds = String(given.compression).split(",").map((kind) => kind.trim());
      for (const kind of kinds) sent = host.compressed(kind, host.bytesOf(sent));
      head += `Content-Encoding: ${kinds.join(", ")}\n`;
    }
  }

  // who asks
  let user;
  let basic = "";
  const credentials = url.includes("@") ? /^([a-z]+:\/\/)([^/?#@]*)@/i.exec(url) : null;
  if (credentials) {
    url = credentials[1] + url.slice(credentials[0].length);
    const [login, ...password] = credentials[2].split(":");
    user = [decodeURIComponent(login), decodeURIComponent(password.join(":"))];
    basic = `Authorization: Basic ${host.b64encode(host.bytesOf(user.join(":")), "std")}\n`;
  }

  const kind = given.responseType ?? (setting.discardResponseBodies ? "none" : "text");
  if (kind !== "text" && kind !== "binary" && kind !== "none") throw new Error(`unknown responseType '${kind}': text, binary or none`);
  const callback = given.responseCallback === undefined ? expected : given.responseCallback;
  const ranges = callback === null ? null : callback === DEFAULT_EXPECTED ? undefined : callback.ranges;
  const flatTags = tags || host.hasVuTags ? host.tags(tags) : "";
  const timeout = timeoutOf(given.timeout);
  const most = given.redirects ?? setting.maxRedirects;
  const used = given.jar instanceof CookieJar ? given.jar : jar;
  const passing = [];
  if (given.cookies) {
    for (const key of Object.keys(given.cookies)) {
      const cookie = given.cookies[key];
      const [value, replace] = cookie !== null && typeof cookie === "object" ? [cookie.value, cookie.replace] : [cookie, false];
      passing.push([key, String(value), Boolean(replace)]);
    }
  }
  // as k6 does, the first request of a digest has it, too
  let authorization = basic;
  const isPlain = timeout < 0 && name === undefined && kind !== "none" && ranges === undefined && flatTags === "";
  const extra = isPlain ? null : [timeout, name, kind === "none", ranges, flatTags];

  for (let hops = 0; ; ) {
    let cookie = ownCookies ?? "";
    const kept = used.of(url);
    if (kept.length > 0 || passing.length > 0) {
      const replaced = new Set(passing.filter((one) => one[2]).map((one) => one[0]));
      const pairs = kept.filter((one) => !replaced.has(one.name)).map((one) => `${one.name}=${asCookie(one.value)}`);
      pairs.unshift(...passing.map((one) => `${one[0]}=${asCookie(one[1])}`));
      cookie = [...(cookie ? [cookie] : []), ...pairs].join("; ");
    }
    const lines = cookie === "" ? head + authorization : `${head}${authorization}Cookie: ${cookie}\n`;
    // that the server asks who it is belongs to a digest
    const isAsking = user !== undefined && given.auth === "digest" && authorization === basic;
    const told = isAsking ? [timeout, name, kind === "none", [200, 399, 401, 401], flatTags] : extra;
    const raw = first ?? (yield [method, url, sent, lines, group, told]);
    first = undefined;
    let cookies;
    if (raw.length > PLAIN && raw[10] !== "") cookies = used.take(url, raw[10].split("\n"));
    const response = new Response(raw, [method, url, sent, lines], kind, cookies);
    if (raw[0] === 0) {
      if (given.throw ?? setting.throw) throw new Error(raw[9]);
      host.log("warning", `Request Failed: ${raw[9]}`);
      return response;
    }
    if (raw[0] === 401 && isAsking) {
      const challenge = response.headers["Www-Authenticate"] ?? "";
      if (/^digest/i.test(challenge)) {
        const path = url.replace(/^[a-z]+:\/\/[^/?#]*/i, "") || "/";
        authorization = `Authorization: ${digestOf(challenge, method, path, user[0], user[1])}\n`;
        continue;
      }
    }
    const location = isRedirect(raw[0]) ? response.headers.Location : undefined;
    if (!location || most === 0) return response;
    if (hops >= most) {
      if (most > 0) host.log("warning", `Possible redirect loop, ${raw[0]} response returned last, URL: ${url}`);
      return response;
    }
    hops += 1;
    const from = url;
    try {
      url = host.resolve(url, location);
    } catch (error) {
      return new Response([0, "", new ArrayBuffer(0), 0, 0, 0, 0, 0, 1000, String(error.message), ""], [method, url, sent, lines], kind, undefined);
    }
    if (!hasReferer) {
      head = head.replace(/^Referer: .*\n/gm, "");
      if (!/^https:/i.test(from) || /^https:/i.test(url)) head += `Referer: ${from.split("#")[0]}\n`;
    }
    // a host of the script's own is for where it asked, and for paths there
    if (/^([a-z][-+.a-z0-9]*:)?\/\//i.test(location)) head = head.replace(/^host: .*\n/gim, "");
    // what the script says of itself is for the host that it asked
    ownCookies = undefined;
    if (hostOf(url) !== hostOf(from)) {
      head = head.replace(/^(authorization|www-authenticate|cookie2?): .*\n/gim, "");
      authorization = "";
      basic = "";
    }
    if (raw[0] !== 307 && raw[0] !== 308) {
      if (method !== "HEAD") method = "GET";
      sent = null;
      head = head.replace(/^content-(type|encoding): .*\n/gim, "");
    }
  }
}

const request = (...of) => inTurn(exchange(...of));
export const get = (url, params) => {
  if (params !== undefined || typeof url !== "string" || url.includes("@") || !jar.isEmpty || host.hasVuTags) {
    return request("GET", url, null, params);
  }
  const { setting } = host;
  if (expected !== DEFAULT_EXPECTED || setting.discardResponseBodies) return request("GET", url, null, params);
  // nothing but the URL: as most requests are
  const { agent } = setting;
  const raw = host.send("GET", url, null, agent, host.group, null);
  if (raw.length > PLAIN || isRedirect(raw[0])) return request("GET", url, null, NONE, raw);
  return new Response(raw, ["GET", url, null, agent], "text", undefined);
};
const asked = (method, url, body, params) => request(method, url, body, params);
export { asked as request };
export const head = (url, params) => request("HEAD", url, null, params);
export const post = (url, body, params) => request("POST", url, body, params);
export const put = (url, body, params) => request("PUT", url, body, params);
export const patch = (url, body, params) => request("PATCH", url, body, params);
export const del = (url, body, params) => request("DELETE", url, body, params);
export const options = (url, body, params) => request("OPTIONS", url, body, params);
export const asyncRequest = (method, url, body, params) => promised(exchange(method, url, body, params));

export function batch(requests) {
  if (requests === null || typeof requests !== "object") throw new TypeError("batch takes an array or an object of requests");
  const names = Object.keys(requests);
  const asks = (told) => {
    if (typeof told === "string" || (told && "__url" in told)) return ["GET", told, null];
    if (Array.isArray(told)) return told;
    const method = String(told.method ?? "GET").toUpperCase();
    return [method, told.url, method === "GET" || method === "HEAD" ? null : told.body, told.params];
  };
  const responses = awaitAll(names.map((name) => exchange(...asks(requests[name]))), host.setting);
  return Array.isArray(requests) ? responses : Object.fromEntries(names.map((name, at) => [name, responses[at]]));
}

export const url = (parts, ...values) => {
  let [whole, name] = [parts[0], parts[0]];
  values.forEach((value, at) => {
    whole += String(value) + parts[at + 1];
    name += `\${}${parts[at + 1]}`;
  });
  return { __url: whole, __name: name, toString: () => whole };
};

export const [SSL_3_0, TLS_1_0, TLS_1_1, TLS_1_2, TLS_1_3] = ["ssl3.0", "tls1.0", "tls1.1", "tls1.2", "tls1.3"];

export default {
  request: asked, get, head, post, put, patch, del, options, asyncRequest, batch, url, file, cookieJar, CookieJar, Response, expectedStatuses,
  setResponseCallback, SSL_3_0, TLS_1_0, TLS_1_1, TLS_1_2, TLS_1_3,
};
