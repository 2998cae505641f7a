// Streams of the cart (tests/services/cart.py), and what came of each: the real k6 prints the same lines.
import grpc from "k6/net/grpc";

const client = new grpc.Client();
client.load([], "cart.proto");
// the same names, and other fields: of another server
const other = new grpc.Client();
other.load([], "other.proto");

export const options = {
  vus: 1,
  iterations: 1,
  thresholds: { grpc_streams: ["count==6"], grpc_streams_msgs_sent: ["count==11"], grpc_streams_msgs_received: ["count==9"] },
};

const begun = (what, of, method, hear = () => {}, params = {}) => {
  const said = [];
  const stream = new grpc.Stream(of, method, { metadata: { user: "ann" }, ...params });
  stream.on("data", (message) => {
    said.push(message.name ?? message.total ?? message.text ?? message.words);
    hear(stream, message);
  });
  stream.on("error", (error) => said.push({ code: error.code, message: error.message }));
  stream.on("end", () => console.log(JSON.stringify({ what, said })));
  return stream;
};

const threw = (what, does) => {
  try {
    does();
  } catch (error) {
    console.log(JSON.stringify({ what, threw: true }));
  }
};

export default () => {
  client.connect(__ENV.CART, { plaintext: true });
  other.connect(__ENV.CART.replace("127.0.0.1", "localhost"), { plaintext: true });
  const watch = begun("watch", client, "shop.Cart/Watch");
  watch.write({ count: 3 });
  watch.end();
  const fill = begun("fill", client, "/shop.Cart/Fill", undefined, { tags: { name: "fill" } });
  for (const amount of [1, 2, 39]) fill.write({ amount });
  fill.end();
  // each message is the answer to the one before
  const chat = begun("chat", client, "shop.Cart/Chat", (stream, message) => {
    if (message.text === "aaa") return stream.end();
    return stream.write({ text: `${message.text}a` });
  });
  chat.write({ text: "a" });
  const stops = begun("stops", client, "shop.Cart/Chat");
  stops.write({ text: "b" });
  stops.write({ text: "stop" });
  const renamed = begun("renamed", other, "shop.Cart/Chat", (stream) => stream.end());
  renamed.write({ words: "c" });
  const late = begun("late", client, "shop.Cart/Watch", undefined, { timeout: "200ms" });
  late.write({ count: 1, after: "3s" });
  late.end();
  threw("no method", () => new grpc.Stream(client, "shop.Cart/Nothing"));
};
