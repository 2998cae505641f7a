// `k6/websockets`: WebSockets as in a browser, several at once.
import { headersOf } from "tidemark:answer";
import { hears, hearsNoMore } from "tidemark:heard";
import { isNothing, open } from "tidemark:sockets";

const host = globalThis.__k6;

const [CONNECTING, OPEN, CLOSING, CLOSED] = [0, 1, 2, 3];
const EVENTS = ["open", "message", "error", "close", "ping", "pong"];
const REASON_BYTES = 123;

export class Blob {
  #bytes;

  constructor(parts = [], options = {}) {
    const bytes = (part) => (part instanceof Blob ? part.#bytes : part);
    this.#bytes = host.joined([...(parts ?? [])].map(bytes));
    this.type = isNothing(options?.type) ? "" : String(options.type);
  }

  static bytesOf = (blob) => blob.#bytes;

  get size() {
    return this.#bytes.byteLength;
  }

  async arrayBuffer() {
    return this.#bytes.slice(0);
  }

  async bytes() {
    return new Uint8Array(this.#bytes.slice(0));
  }

  async text() {
    return host.text(this.#bytes);
  }

  slice(from, to, type) {
    return new Blob([this.#bytes.slice(from ?? 0, to ?? this.size)], { type: type ?? "" });
  }

  toString() {
    return "[object Blob]";
  }
}

export class WebSocket {
  #id;
  #asked;
  #state = CONNECTING;
  #buffered = 0;
  #binaryType = "blob";
  #protocol = "";
  #listeners = new Map();
  #on = new Map();
  #pings = 0;
  #closing;
  #extensions = [];

  constructor(url, protocols, params) {
    if (isNothing(url)) throw new Error("WebSocket requires a url");
    const text = String(url);
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1].toLowerCase() ?? "";
    if (scheme !== "ws" && scheme !== "wss" && !text.startsWith("/")) {
      throw new Error(`WebSocket requires url with scheme ws or wss, but got "${scheme}"`);
    }
    const fragment = text.indexOf("#");
    if (fragment >= 0 && fragment < text.length - 1) {
      throw new Error(`WebSocket requires no url fragment, but got "${text.slice(fragment + 1)}"`);
    }
    const offered = typeof protocols === "string" ? [protocols] : Array.isArray(protocols) ? protocols.map(String) : [];
    Object.defineProperty(this, "url", { value: text, enumerable: true });
    this.#asked = open(text, params, offered, true);
    this.#id = this.#asked.id;
    hears(this.#id, this);
  }

  get readyState() {
    return this.#state;
  }

  get bufferedAmount() {
    return this.#buffered;
  }

  get protocol() {
    return this.#protocol;
  }

  get extensions() {
    return this.#extensions;
  }

  get binaryType() {
    return this.#binaryType;
  }

  set binaryType(kind) {
    if (kind !== "blob" && kind !== "arraybuffer") {
      throw new Error(`unknown binaryType ${kind}, the supported ones are "blob" and "arraybuffer"`);
    }
    this.#binaryType = kind;
  }

  addEventListener(event, handler) {
    if (typeof handler !== "function") throw new Error(`handler for event type "${event}" isn't a callable function`);
    if (!EVENTS.includes(event)) {
      host.log("warning", `can't add event handler: unknown event type: ${event}`);
      return;
    }
    if (!this.#listeners.has(event)) this.#listeners.set(event, []);
    this.#listeners.get(event).push(handler);
  }

  static {
    for (const event of EVENTS) {
      Object.defineProperty(WebSocket.prototype, `on${event}`, {
        get() {
          return this.#on.get(event) ?? null;
        },
        set(handler) {
          if (isNothing(handler)) this.#on.delete(event);
          else if (typeof handler !== "function") throw new Error(`a value for 'on${event}' should be callable`);
          else this.#on.set(event, handler);
        },
      });
    }
  }

  #emit(type, more) {
    const event = { type, target: this, timestamp: Date.now(), ...more };
    const on = this.#on.get(type);
    if (on !== undefined) on(event);
    for (const handler of this.#listeners.get(type) ?? []) handler(event);
  }

  #needOpen() {
    if (this.#state !== OPEN) throw new Error("InvalidStateError");
  }

  send(message) {
    this.#needOpen();
    let data = message;
    if (message instanceof Blob) data = Blob.bytesOf(message);
    else if (ArrayBuffer.isView(message)) data = host.bytesOf(message);
    else if (typeof message !== "string" && !(message instanceof ArrayBuffer)) {
      throw new Error(`unsupported send type ${isNothing(message) ? message : message.constructor?.name ?? typeof message}`);
    }
    const size = typeof data === "string" ? host.bytesOf(data).byteLength : data.byteLength;
    this.#buffered += size;
    host.socketSay(this.#id, typeof data === "string" ? "text" : "binary", data);
    Promise.resolve().then(() => {
      this.#buffered -= size;
    });
  }

  ping() {
    this.#needOpen();
    host.socketSay(this.#id, "ping", String(this.#pings));
    this.#pings += 1;
  }

  close(code, reason) {
    if (this.#state === CLOSING || this.#state === CLOSED) return;
    const given = isNothing(code) ? 0 : Math.trunc(Number(code)) || 0;
    if (given !== 0 && given !== 1000 && !(given >= 3000 && given <= 4999)) {
      throw new Error(
        `InvalidAccessError: Failed to execute 'close' on 'WebSocket': The close code must be either 1000, or between 3000 and 4999. ${given} is neither`,
      );
    }
    const words = isNothing(reason) ? "" : String(reason);
    if (host.bytesOf(words).byteLength > REASON_BYTES) {
      throw new Error("SyntaxError: Failed to execute 'close' on 'WebSocket': The message must not be greater than 123 bytes");
    }
    const wasOpen = this.#state === OPEN;
    this.#state = CLOSING;
    this.#closing = [given || 1000, words];
    if (wasOpen) host.socketClose(this.#id, ...this.#closing);
  }

  #end(error, code, reason) {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    hearsNoMore(this.#id);
    host.socketOver(this.#id);
    if (error !== "") this.#emit("error", { error });
    const told = code ?? this.#closing?.[0];
    this.#emit("close", told === undefined ? { reason } : { code: told, reason });
  }

  // to those who listen; an exception of theirs closes it
  #tell(type, more) {
    try {
      this.#emit(type, more);
    } catch (error) {
      host.socketLeave(this.#id, 1001);
      this.#end(String(error), undefined, "");
      throw error;
    }
  }

  // what came: its kind, and up to five values
  hear(kind, first, second, third, fourth, fifth) {
    switch (kind) {
      case "open":
        this.#asked.keep(fifth);
        if (fourth !== "") {
          this.#end(fourth, undefined, "");
          break;
        }
        this.#protocol = headersOf(second)["Sec-Websocket-Protocol"] ?? "";
        if (this.#state === CLOSING) host.socketClose(this.#id, ...this.#closing);
        if (this.#state !== CONNECTING) break;
        this.#state = OPEN;
        this.#tell("open");
        break;
      case "text":
        if (this.#state === OPEN) this.#tell("message", { data: first, origin: this.url });
        break;
      case "binary": {
        if (this.#state !== OPEN) break;
        const data = this.#binaryType === "blob" ? new Blob([first]) : first;
        this.#tell("message", { data, origin: this.url });
        break;
      }
      case "close":
        this.#end(first === 1000 || first === 1001 ? "" : second, first, third);
        break;
      case "broken":
        this.#end(first, undefined, "");
        break;
      default:
        if (this.#state !== CLOSED) this.#emit(kind);
    }
  }
}

export default { WebSocket, Blob };
