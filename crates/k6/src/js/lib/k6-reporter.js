// What scripts import from github.com/benc-uk/k6-reporter: the end of a run as a page.

import { humanizeValue } from "https://jslib.k6.io/k6-summary/0.1.0/index.js";

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>'"]/g, (c) => ENTITIES[c]);
const cells = (list, tag = "td") => `<tr>${list.map((text) => `<${tag}>${text}</${tag}>`).join("")}</tr>`;
const table = (title, head, rows) =>
  rows.length === 0 ? "" : `<h2>${title}</h2>\n<table>${cells(head, "th")}\n${rows.join("\n")}\n</table>\n`;
const mark = (isGood) => `<b class="${isGood ? "good" : "bad"}">${isGood ? "✓" : "✗"}</b>`;

// counts and shares are no times
const shown = (metric, name) => {
  const value = metric.values[name];
  if (typeof value !== "number") return escaped(value);
  return escaped(["passes", "fails", "count"].includes(name) && metric.contains !== "data" ? value : humanizeValue(value, metric));
};

const checkRows = (group) => [
  ...group.checks.map(({ name, passes, fails }) => cells([mark(fails === 0), escaped(group.path), escaped(name), passes, fails])),
  ...group.groups.flatMap(checkRows),
];

export const htmlReport = (data, given = {}) => {
  const metrics = Object.entries(data.metrics).sort(([one], [other]) => (one < other ? -1 : 1));
  const values = metrics.map(([name, metric]) =>
    cells([escaped(name), Object.keys(metric.values).map((of) => `${escaped(of)}=${shown(metric, of)}`).join(" ")]),
  );
  const thresholds = metrics.flatMap(([name, metric]) =>
    Object.entries(metric.thresholds ?? {}).map(([written, { ok }]) => cells([mark(ok), escaped(name), escaped(written)])),
  );
  const title = escaped(given?.title ?? `Load test of ${new Date().toISOString().slice(0, 16).replace("T", " ")}`);
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<style>body{font-family:sans-serif;margin:2em}td,th{text-align:left;padding:.2em 1em .2em 0}.good{color:#080}.bad{color:#b00}</style></head>
<body><h1>${title}</h1>
${table("Thresholds", ["", "metric", "threshold"], thresholds)}${table("Checks", ["", "group", "check", "passed", "failed"], checkRows(data.root_group))}${table("Metrics", ["metric", "values"], values)}</body></html>
`;
};

export default { htmlReport };
