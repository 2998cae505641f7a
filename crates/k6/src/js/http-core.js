// Requests of `k6/http` that are not as most are: the host makes those.
const host = globalThis.__k6;
const { send, replyStatus, vu } = host;

const more = () => (host.more ??= host.load("tidemark:more"));

export const DEFAULT_EXPECTED = { ranges: [200, 399] };

// statuses that are good, and the jar of cookies, once it is needed
export const state = { expected: DEFAULT_EXPECTED, jar: null };
host.onBegin(() => {
  if (state.jar !== null && !state.jar.isEmpty && !host.setting.noCookiesReset) state.jar = null;
});
const hasNoCookies = (jar) => jar === null || jar.isEmpty;

// ---- answers

const hide = (response, name, value) => Object.defineProperty(response, name, { value });

// `found`: the status, or -1 less it where the answer is not as most are
export const responseOf = (response, found, url, sent, kind, cookies) => {
  response.status = found < 0 ? -1 - found : found;
  response.url = url;
  if (sent !== null) hide(response, "_sent", sent);
  if (kind !== "text") hide(response, "_kind", kind);
  if (cookies !== undefined) response.cookies = cookies;
  if (found < 0) [response.error_code, response.error] = host.replyFailure(response);
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

  const [lines, ownCookies, hasType, hasReferer] = host.headOf(given.headers);
  let head = lines;

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
    // what the script says itself comes first, as with Go
    if (/^Authorization:/m.test(head)) basic = "";
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
  const asks = prepared(method, url, body, params);
  if (asks.user !== undefined || asks.passing.length > 0 || !hasNoCookies(asks.used)) return more().inTurn(more().exchange(asks));
  let lines = asks.head + asks.basic;
  if (asks.ownCookies) lines += `Cookie: ${asks.ownCookies}\n`;
  const reply = send(asks.method, asks.url, asks.sent, lines, asks.group, asks.extra);
  const found = replyStatus(reply);
  if (found < 0) return more().inTurn(more().exchange(asks, reply));
  return responseOf(reply, found, asks.url, asks.sent, asks.kind, undefined);
};

// what goes on with an answer that is not as most are: cookies, a redirect, an error
export const answered = (method, url, body, params, reply) => more().inTurn(more().exchange(prepared(method, url, body, params), reply));
