// What scripts seldom need of `k6/http`: forms, files, credentials, cookies, redirects, requests at once.
import { canonical } from "tidemark:answer";
import { CookieJar, hostOf } from "tidemark:cookies";
import { prepared, request, responseOf, state } from "tidemark:http";
import { awaitAll, inTurn, promised } from "tidemark:requests";

const host = globalThis.__k6;
const { replyStatus } = host;

export { CookieJar, hostOf, inTurn };

const isRedirect = (status) => status >= 301 && status <= 308 && status !== 304 && status !== 305 && status !== 306;
const escaped = (text) => encodeURIComponent(host.wellFormed(text)).replace(/%20/g, "+").replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

class FileData {
  constructor(data, filename, contentType) {
    this.data = data;
    this.filename = filename === undefined ? `${Date.now()}` : String(filename);
    this.content_type = contentType === undefined ? "application/octet-stream" : String(contentType);
  }
}

export const file = (data, filename, contentType) => new FileData(data, filename, contentType);

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
  state.expected = callback;
  host.unusual();
}

// ---- cookies

export const cookieJar = () => (state.jar ??= new CookieJar());
export const jarOf = (given) => (given instanceof CookieJar ? given : state.jar);

// as Go writes it
export const asCookie = (value) => {
  const plain = value.replace(/[^\x20-\x7e]|["\\;]/g, "");
  return /[ ,]/.test(plain) ? `"${plain}"` : plain;
};

// cookies that a request brings along
export const passingOf = (cookies) =>
  Object.keys(cookies).map((key) => {
    const cookie = cookies[key];
    const [value, replace] = cookie !== null && typeof cookie === "object" ? [cookie.value, cookie.replace] : [cookie, false];
    return [key, String(value), Boolean(replace)];
  });

// ---- answers

// as Go names them
const REASONS = {
  100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information",
  204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 300: "Multiple Choices",
  301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
  400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
  406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
  411: "Length Required", 412: "Precondition Failed", 413: "Request Entity Too Large", 414: "Request URI Too Long",
  415: "Unsupported Media Type", 416: "Requested Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a teapot",
  421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early",
  426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
  451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
  503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
  511: "Network Authentication Required",
};

export const statusText = (status) => (status === 0 ? "" : `${status} ${REASONS[status] ?? ""}`.trim());

// the request, as an answer shows it
export const asked = (method, url, body, lines) => {
  const headers = {};
  for (const line of lines.split("\n")) {
    const cut = line.indexOf(":");
    if (cut > 0) (headers[canonical(line.slice(0, cut))] ??= []).push(line.slice(cut + 2));
  }
  return { method, url, body: body ?? "", headers, cookies: {} };
};

export const submitForm = (response, given) => {
  // where it leads is written on a page that a rehearsal has not
  if (host.isRehearsal) return response;
  const { formSelector = "form", submitSelector = '[type="submit"]', fields = {}, params = {} } = given;
  const form = response.html(formSelector);
  if (form.size() === 0) throw new Error(`no form found for selector '${formSelector}' in response '${response.url}'`);
  const method = (form.attr("method") ?? "GET").toUpperCase();
  const values = form.serializeObject();
  const submit = form.find(submitSelector);
  const name = submit.attr("name");
  if (name !== undefined && name !== "") values[name] = submit.val() ?? "";
  Object.assign(values, fields);
  const action = host.resolve(response.url, form.attr("action") ?? "");
  if (method !== "GET") return request(method, action, values, params);
  const query = formOf(values);
  return request("GET", query === "" ? action : `${action.split("?")[0]}?${query}`, null, params);
};

export const clickLink = (response, given) => {
  // where it leads is written on a page that a rehearsal has not
  if (host.isRehearsal) return response;
  const { selector = "a[href]", params = {} } = given;
  const link = response.html(selector);
  if (link.size() === 0) throw new Error(`no element found for selector '${selector}' in response '${response.url}'`);
  const href = link.attr("href");
  if (href === undefined) throw new Error(`no valid href attribute value found on element '${selector}' in response '${response.url}'`);
  return request("GET", host.resolve(response.url, href), null, params);
};

// ---- requests

// as Go prints it
const printed = (value) => {
  if (value === null || value === undefined) return "<nil>";
  if (typeof value !== "object" || value instanceof Date) return String(value);
  if (Array.isArray(value)) return `[${value.map(printed).join(" ")}]`;
  return `map[${Object.keys(value).sort().map((name) => `${name}:${printed(value[name])}`).join(" ")}]`;
};

const formOf = (values) => {
  const parts = [];
  for (const name of Object.keys(values).sort()) {
    for (const value of Array.isArray(values[name]) ? values[name] : [values[name]]) {
      parts.push(`${escaped(name)}=${escaped(printed(value))}`);
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
    parts.push(host.bytesOf(`${head}\r\n\r\n`), host.bytesOf(value instanceof FileData ? value.data : printed(value)), host.bytesOf("\r\n"));
  }
  parts.push(host.bytesOf(`--${boundary}--\r\n`));
  return [host.joined(parts), `multipart/form-data; boundary=${boundary}`];
};

// the bytes of a body that is an object, and their type
export const bodyOf = (body) => {
  if (Object.values(body).some((value) => value instanceof FileData)) return multipartOf(body);
  return [formOf(body), "application/x-www-form-urlencoded"];
};

export const { bytesOf } = host;

export const compressed = (body, told) => {
  const kinds = told.split(",").map((kind) => kind.trim());
  let bytes = body;
  for (const kind of kinds) bytes = host.compressed(kind, bytesOf(bytes));
  return [bytes, kinds.join(", ")];
};

// a user and password in a URL, and the line of a head with them
export const credentialsOf = (text) => {
  const [login, ...password] = text.split(":");
  const user = [decodeURIComponent(login), decodeURIComponent(password.join(":"))];
  return [user, `Authorization: Basic ${host.b64encode(host.bytesOf(user.join(":")), "std")}\n`];
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

// the lines of a request's head
const linesOf = (head, authorization, { url, used, passing, ownCookies }) => {
  let cookie = ownCookies ?? "";
  if (passing.length > 0 || (used && !used.isEmpty)) {
    const kept = used ? used.of(url) : [];
    const replaced = new Set(passing.filter((one) => one[2]).map((one) => one[0]));
    const pairs = kept.filter((one) => !replaced.has(one.name)).map((one) => `${one.name}=${asCookie(one.value)}`);
    pairs.unshift(...passing.map((one) => `${one[0]}=${asCookie(one[1])}`));
    cookie = [...(cookie ? [cookie] : []), ...pairs].join("; ");
  }
  return cookie === "" ? head + authorization : `${head}${authorization}Cookie: ${cookie}\n`;
};

// A request with its redirects, one after the other: it yields what `host.send` takes, and is handed the answer. `first` is
// the answer that there is already to the first one.
export function* exchange(ask, first) {
  const { group, extra, kind, used, user, given, hasReferer } = ask;
  const { setting } = host;
  let { method, url, sent, head } = ask;
  const most = given.redirects ?? setting.maxRedirects;
  let { ownCookies, basic } = ask;
  // as k6 does, the first request of a digest has it, too
  let authorization = basic;

  let began;
  for (let hops = 0; ; ) {
    const lines = linesOf(head, authorization, { url, used: used ?? state.jar, passing: ask.passing, ownCookies });
    began ??= [method, url, sent, lines];
    // that the server asks who it is belongs to a digest
    const isAsking = user !== undefined && given.auth === "digest" && authorization === basic;
    const told = isAsking ? askingOf(extra) : extra;
    const reply = first ?? (yield [method, url, sent, lines, group, told]);
    first = undefined;
    const found = replyStatus(reply);
    let cookies;
    if (found < 0) {
      const set = host.replyCookies(reply);
      if (set !== "") cookies = (used ?? cookieJar()).take(url, set.split("\n"));
    }
    const response = responseOf(reply, found, url, sent, kind, cookies);
    const { status } = response;
    if (status === 0) {
      if (given.throw ?? setting.throw) throw new Error(response.error);
      host.log("warning", `Request Failed: ${response.error}`);
      return response;
    }
    if (status === 401 && isAsking) {
      const challenge = response.headers["Www-Authenticate"] ?? "";
      if (/^digest/i.test(challenge)) {
        const path = url.replace(/^[a-z]+:\/\/[^/?#]*/i, "") || "/";
        authorization = `Authorization: ${digestOf(challenge, method, path, user[0], user[1])}\n`;
        continue;
      }
    }
    // as in k6, the request that an answer shows is the first
    if (hops > 0) response.request = asked(...began);
    const location = isRedirect(status) ? response.headers.Location : undefined;
    if (!location || most === 0) return response;
    if (hops >= most) {
      if (most > 0) host.log("warning", `Possible redirect loop, ${status} response returned last, URL: ${url}`);
      return response;
    }
    hops += 1;
    const from = url;
    try {
      url = host.resolve(url, location);
    } catch (error) {
      const none = host.failed(1000, String(error.message), method, lines);
      return responseOf(none, replyStatus(none), url, sent, kind, undefined);
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
    if (status !== 307 && status !== 308) {
      if (method !== "HEAD") method = "GET";
      sent = null;
      head = head.replace(/^content-(type|encoding): .*\n/gim, "");
    }
  }
}

// settings of a request to which 401 is a good answer
const askingOf = (extra) => {
  const [timeout, name, isNone, , tags] = extra ?? [-1, undefined, false, undefined, ""];
  return [timeout, name, isNone, [200, 399, 401, 401], tags];
};

function* exchangeOf(...of) {
  return yield* exchange(prepared(...of));
}

export const asyncRequest = (method, url, body, params) => promised(exchangeOf(method, url, body, params));

export function batch(requests) {
  if (requests === null || typeof requests !== "object") throw new TypeError("batch takes an array or an object of requests");
  const names = Object.keys(requests);
  const asks = (told) => {
    if (typeof told === "string" || (told && "__url" in told)) return ["GET", told, null];
    if (Array.isArray(told)) return told;
    const method = String(told.method ?? "GET").toUpperCase();
    return [method, told.url, method === "GET" || method === "HEAD" ? null : told.body, told.params];
  };
  const responses = awaitAll(names.map((name) => exchangeOf(...asks(requests[name]))), host.setting);
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

