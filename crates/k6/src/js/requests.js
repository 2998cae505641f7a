// How exchanges are carried out: one after another, as promises, or several at once. An exchange is a generator that yields
// what `host.send` takes, is handed the answer, and returns the response.
import { hostOf } from "tidemark:cookies";

const host = globalThis.__k6;

export const inTurn = (exchange) => {
  let step = exchange.next();
  while (!step.done) step = exchange.next(host.send(...step.value));
  return step.value;
};

// what goes on with answers that arrive, by their numbers
const waiting = new Map();
host.onBegin(() => waiting.clear());
host.arrived = (id, raw) => {
  const goesOn = waiting.get(id);
  waiting.delete(id);
  goesOn?.(raw);
};

// Goes on with an exchange beside others, from a step of it.
const beside = (exchange, step, goes, done, failed) => {
  const goOn = (raw) => {
    try {
      send(exchange.next(raw));
    } catch (error) {
      failed(error);
    }
  };
  const send = (next) => {
    if (next.done) done(next.value);
    else goes.set(host.sendBeside(...next.value), goOn);
  };
  try {
    send(step);
  } catch (error) {
    failed(error);
  }
};

export const promised = (exchange) =>
  new Promise((done, failed) => beside(exchange, exchange.next(), waiting, done, failed));

// Carries all out at once, as k6 does: `batch` of them are begun at most, of which `batchPerHost` of each host are sent.
export const awaitAll = (exchanges, { batch, batchPerHost }) => {
  // all are made ready before the first leaves
  const steps = exchanges.map((exchange) => exchange.next());
  const responses = new Array(exchanges.length);
  const [own, ready, hosts] = [new Map(), [], new Map()];
  let [begun, working, left] = [0, 0, exchanges.length];
  let failure = null;
  const over = (place) => {
    working -= 1;
    left -= 1;
    const { held } = place;
    if (held.length > 0) ready.push(held.shift());
    else place.sent -= 1;
  };
  const begin = () => {
    const at = begun;
    begun += 1;
    working += 1;
    const name = hostOf(steps[at].value[1]);
    if (!hosts.has(name)) hosts.set(name, { sent: 0, held: [] });
    const place = hosts.get(name);
    if (batchPerHost > 0 && place.sent >= batchPerHost) return place.held.push([at, place]);
    place.sent += 1;
    return ready.push([at, place]);
  };
  const leave = ([at, place]) => {
    const done = (response) => {
      responses[at] = response;
      over(place);
    };
    const failed = (error) => {
      failure ??= { error };
      over(place);
    };
    beside(exchanges[at], steps[at], own, done, failed);
  };
  while (left > 0) {
    while (begun < exchanges.length && working < batch) begin();
    if (ready.length > 0) {
      leave(ready.shift());
      continue;
    }
    const [id, raw] = host.awaitBeside();
    const goesOn = own.get(id);
    own.delete(id);
    // what others wait for has its turn in the event loop
    if (goesOn) goesOn(raw);
    else host.defer(() => host.arrived(id, raw));
  }
  if (failure) throw failure.error;
  return responses;
};
