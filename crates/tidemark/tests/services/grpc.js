// Calls of the cart (tests/services/cart.py), and what came of each: the real k6 prints the same lines.
import grpc from "k6/net/grpc";
import { check } from "k6";

const client = new grpc.Client();
client.load(["protos"], "shop/cart.proto");

export const options = { vus: 1, iterations: 1, thresholds: { grpc_req_duration: ["p(95)<5000"], checks: ["rate==1"] } };

const told = (what, answer) => {
  const { "content-type": type, "served-by": servedBy, place } = answer.headers;
  const { error, trailers, message } = answer;
  console.log(JSON.stringify({ what, status: answer.status, message, error, type, servedBy, place, trailers }));
};

export default () => {
  client.connect(__ENV.CART, { plaintext: true });
  const metadata = { user: "ann", trace: ["a", "b"].join() };
  const item = { name: "lamp", amount: 42, size: "LARGE", picture: "aGk=", marks: { a: 1 }, at: "2025-01-02T03:04:05Z", cash: true };
  const added = client.invoke("shop.Cart/Add", item, { metadata, tags: { name: "add" }, timeout: "5s" });
  added.message.leftS = 0;
  told("add", added);
  const failed = client.invoke("/shop.Cart/Fail", { code: 5, words: "no such cart: 100% – sorry" });
  failed.message = null;
  told("fail", failed);
  const late = client.invoke("shop.Cart/Wait", { after: "2s" }, { timeout: "100ms" });
  late.message = null;
  late.error.message = "";
  told("late", late);
  const health = client.healthCheck("shop.Cart");
  console.log(JSON.stringify({ what: "health", ...health, serves: health.status === grpc.HealthCheckServing }));
  const errorWith = (metadata) => client.invoke("shop.Cart/Add", {}, { metadata }).error;
  const [text, name, reserved] = [{ user: "a\r\nb: c" }, { "a b": "c" }, { te: "a", ":path": "/", spaced: " a " }].map(errorWith);
  console.log(JSON.stringify({ what: "metadata", text, name, reserved }));
  try {
    client.healthCheck("nobody");
  } catch (error) {
    console.log(JSON.stringify({ what: "nobody", threw: /code = NotFound/.test(String(error)) }));
  }
  check(added, { "status is OK": (r) => r && r.status === grpc.StatusOK, "the total": (r) => r.message.total === "42" });
  check(failed, { "status is NOT_FOUND": (r) => r.status === grpc.StatusNotFound });
  check(late, { "status is DEADLINE_EXCEEDED": (r) => r.status === grpc.StatusDeadlineExceeded });
  client.close();
};
