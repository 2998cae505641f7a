// The page of a client: its event stream, and every two seconds its instances and what breakers did. All that comes is
// put in as text.
"use strict";

const by = (id) => document.getElementById(id);
const LIST_EVERY_MS = 2000;
const EVENTS_SHOWN = 20;

/** An element with text in it. */
function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function number(value) {
  return Number(value).toLocaleString("en", { maximumFractionDigits: 1 });
}

/** Microseconds, as people read them. */
function time(us) {
  return us >= 1e6 ? `${number(us / 1e6)} s` : us >= 1000 ? `${number(us / 1000)} ms` : `${number(us)} µs`;
}

const STATES = {
  closed: ["closed: calls go through", "good"],
  half_open: ["half open: one call is tried", "warn"],
  open: ["open: calls are refused", "bad"],
};

function card(event) {
  const made = element("article", "", "card");
  const [state, look] = STATES[event.circuitBreakerState] || ["unknown", "warn"];
  made.append(element("h3", event.name), element("p", state, look));
  const window_s = event.propertyValue_metricsRollingStatisticalWindowInMilliseconds / 1000;
  const percentile = (of) => (event.requestCount ? time(event.latencyExecute_us[of]) : "–");
  const rows = [
    ["Rate", `${number(event.requestCount / window_s)} /s`],
    ["Errors", `${number(event.errorPercentage)} %`],
    ["Success", number(event.rollingCountSuccess)],
    ["Failure", number(event.rollingCountFailure)],
    ["Timeout", number(event.rollingCountTimeout)],
    ["Rejected", number(event.rollingCountThreadPoolRejected)],
    ["Short-circuited", number(event.rollingCountShortCircuited)],
    ["Under way", number(event.currentConcurrentExecutionCount)],
    ["Median", percentile("50")],
    ["90 %", percentile("90")],
    ["99 %", percentile("99")],
    ["99.5 %", percentile("99.5")],
  ];
  const list = document.createElement("dl");
  for (const [name, value] of rows) list.append(element("dt", name), element("dd", value));
  made.append(list);
  return made;
}

const cards = new Map();

function onEvent(event) {
  if (event.type !== "HystrixCommand") return;
  const made = card(event);
  const before = cards.get(event.name);
  if (before) before.replaceWith(made);
  else by("commands").append(made);
  cards.set(event.name, made);
}

function onInstances({ service, up_to_date, instances }) {
  by("service").textContent = service;
  by("list").textContent = up_to_date ? "" : "The list cannot be looked up at the moment: the last one is used.";
  const rows = instances.map((instance) => {
    const row = document.createElement("tr");
    const health = instance.healthy ? ["well", "good"] : ["passed over", "bad"];
    row.append(element("td", instance.address), element("td", ...health));
    for (const count of [instance.under_way, instance.requests, instance.failures]) {
      row.append(element("td", number(count)));
    }
    return row;
  });
  by("instances").replaceChildren(...rows);
}

function onChanges(lines) {
  const last = lines.trim().split("\n").filter(Boolean).slice(-EVENTS_SHOWN).reverse();
  const items = last.map((line) => {
    const { time_ms, command, from, to } = JSON.parse(line);
    return element("li", `${new Date(time_ms).toISOString().slice(11, 23)} ${command}: ${from} → ${to}`);
  });
  by("events").replaceChildren(...(items.length ? items : [element("li", "none has changed")]));
}

async function look() {
  try {
    const [instances, events] = await Promise.all([fetch("/mesh/instances"), fetch("/mesh/events")]);
    onInstances(await instances.json());
    onChanges(await events.text());
  } catch {
    // the stream's state says that the server is away
  }
  setTimeout(look, LIST_EVERY_MS);
}

const stream = new EventSource("/hystrix.stream");
stream.onopen = () => (by("state").textContent = "live");
stream.onerror = () => (by("state").textContent = "no connection; trying again …");
stream.onmessage = (message) => onEvent(JSON.parse(message.data));
look();
