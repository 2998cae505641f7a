// `k6/ws`: a WebSocket that the function which opens it waits for.
import { headersOf } from "tidemark:answer";
import { isNothing, open } from "tidemark:sockets";

const host = globalThis.__k6;

const GOING_AWAY = 1001;

const asError = (words) => Object.assign(new Error(words), { error: () => words });

class Socket {
  #id;
  #handlers = new Map();
  #timers = new Set();
  #pings = 0;
  isDone = false;

  constructor(id) {
    this.#id = id;
  }

  on(event, handler) {
    if (typeof handler !== "function") return;
    if (!this.#handlers.has(event)) this.#handlers.set(event, []);
    this.#handlers.get(event).push(handler);
  }

  emit(event, ...values) {
    for (const handler of this.#handlers.get(event) ?? []) handler(...values);
  }

  #say(kind, data) {
    if (this.isDone || !host.socketSay(this.#id, kind, data)) this.emit("error", asError("websocket: close sent"));
  }

  send(message) {
    this.#say("text", String(message));
  }

  sendBinary(message) {
    if (!(message instanceof ArrayBuffer)) {
      const kind = isNothing(message) ? String(message) : message.constructor?.name;
      throw new Error(`expected ArrayBuffer as argument, received: ${kind}`);
    }
    this.#say("binary", message);
  }

  ping() {
    this.#say("ping", String(this.#pings));
    this.#pings += 1;
  }

  #timer(name, call, time, isRepeated) {
    const wait = Number(time);
    if (!(wait > 0)) throw new Error(`${name} requires a >0 timeout parameter, received ${(wait || 0).toFixed(2)}`);
    if (typeof call !== "function") throw new TypeError(`${name} needs a function`);
    this.#timers.add({ at: host.now() + wait, call, every: isRepeated ? wait : 0 });
  }

  setTimeout(call, time) {
    this.#timer("setTimeout", call, time, false);
  }

  setInterval(call, time) {
    this.#timer("setInterval", call, time, true);
  }

  #first() {
    let first;
    for (const timer of this.#timers) if (first === undefined || timer.at < first.at) first = timer;
    return first;
  }

  // how long until the first timer is due, ms; below 0 without one
  get wait() {
    const first = this.#first();
    return first === undefined ? -1 : Math.max(0, first.at - host.now());
  }

  fire() {
    const first = this.#first();
    if (first === undefined) return;
    if (first.every) first.at = Math.max(first.at + first.every, host.now());
    else this.#timers.delete(first);
    first.call();
  }

  close(code) {
    this.end(code === undefined ? GOING_AWAY : Math.trunc(Number(code)) || 0, false);
  }

  // closes it once; `isBroken`: the other side is not there any more
  end(code, isBroken) {
    if (this.isDone) return;
    this.isDone = true;
    host.socketLeave(this.#id, code);
    if (isBroken) this.emit("error", asError("websocket: the connection broke"));
    this.emit("close", code);
  }
}

export function connect(...args) {
  if (args.length < 2 || args.length > 3) throw new Error("invalid number of arguments to ws.connect");
  const url = String(args[0]);
  const [params, setUp] = args.length === 3 ? args.slice(1) : [undefined, args[1]];
  if (typeof setUp !== "function") throw new Error("last argument to ws.connect must be a function");
  const asked = open(url, params, [], false);
  const [, status, head, body, words, cookies] = host.socketNext(asked.id, -1);
  asked.keep(cookies);
  const headers = host.isRehearsal ? host.anything : headersOf(head);
  if (words !== "") {
    host.socketOver(asked.id);
    if (host.setting.throw) throw new Error(words);
    if (status === 0) return { url: "", status: 0, headers: {}, body: "", error: words };
    return { url: "", status, headers, body, error: "" };
  }
  const socket = new Socket(asked.id);
  try {
    setUp(socket);
    socket.emit("open");
    while (!socket.isDone) {
      if (socket.wait === 0) socket.fire();
      if (socket.isDone) break;
      const news = host.socketNext(asked.id, socket.wait);
      if (isNothing(news)) continue;
      const [kind, first, second] = news;
      if (kind === "text") socket.emit("message", first);
      else if (kind === "binary") socket.emit("binaryMessage", first);
      else if (kind === "ping" || kind === "pong") socket.emit(kind);
      else if (kind === "close") {
        if (first !== 1000 && first !== GOING_AWAY) socket.emit("error", asError(second));
        socket.end(first, false);
      } else socket.end(GOING_AWAY, true);
    }
  } finally {
    // also where a handler threw
    try {
      socket.end(GOING_AWAY, false);
    } finally {
      host.socketOver(asked.id);
    }
  }
  return { url, status, headers, body: "", error: "" };
}

export default { connect };
