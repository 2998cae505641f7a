// What `k6/ws` and `k6/websockets` have in common: the handshake's request.
import { asCookie, cookieJar, CookieJar } from "tidemark:more";

const host = globalThis.__k6;
const { vu } = host;

// headers that the handshake has already
const MINE = new Set(["upgrade", "connection", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"]);

export const isNothing = (value) => value === null || value === undefined;

let hasWarned = false;

// how a WebSocket is asked for: its number, and the jar that its cookies are kept in
export function open(url, params, offered, isStandard) {
  let [head, ownCookies] = host.headOf(null);
  let tags;
  let jar = cookieJar();
  const protocols = [...offered];
  for (const key of isNothing(params) ? [] : Object.keys(params)) {
    const told = params[key];
    switch (key) {
      case "headers": {
        const own = {};
        for (const name of isNothing(told) ? [] : Object.keys(told)) {
          const lower = name.toLowerCase();
          if (MINE.has(lower) || (lower === "sec-websocket-protocol" && offered.length > 0)) {
            throw new Error(`websocket: duplicate header not allowed: ${name}`);
          }
          if (lower === "sec-websocket-protocol") protocols.push(...String(told[name]).split(",").map((one) => one.trim()));
          else own[name] = told[name];
        }
        [head, ownCookies] = host.headOf(own);
        break;
      }
      case "tags":
        if (!isNothing(told) && typeof told !== "object") throw new Error("invalid tags: an object is expected");
        tags = told;
        break;
      case "jar":
        if (told instanceof CookieJar) jar = told;
        break;
      case "compression": {
        const kind = String(told).trim();
        if (kind === "" && !isStandard) break;
        if (kind !== "deflate") throw new Error(`unsupported compression algorithm '${kind}', supported algorithm is 'deflate'`);
        if (!hasWarned) host.log("warning", "compression of WebSockets is not supported: messages go as they are");
        hasWarned = true;
        break;
      }
      default:
        if (isStandard) throw new Error(`unknown WebSocket's option ${key}`);
    }
  }
  const asked = url.replace(/^ws/i, "http");
  const kept = jar.of(asked).map((one) => `${one.name}=${asCookie(one.value)}`);
  const cookie = ownCookies ?? kept.join("; ");
  if (cookie !== "") head += `Cookie: ${cookie}\n`;
  const name = tags?.name === undefined ? undefined : String(tags.name);
  const flatTags = tags || vu.hasTags ? host.tags(tags) : "";
  const id = host.socketOpen(asked, url, head, protocols.filter((one) => one !== "").join(", "), [vu.group, name, flatTags, isStandard]);
  return { id, keep: (cookies) => cookies && jar.take(asked, cookies.split("\n")) };
}
