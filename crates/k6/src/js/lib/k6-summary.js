// k6-summary of jslib.k6.io: the end of a run as text for a terminal, and as JUnit XML for a CI.

const PAINT = { green: "32", red: "31", cyan: "36", faintCyan: "36;2", faint: "2" };

const width = (text) => [...text.normalize("NFKC")].length;
const short = (value, digits) => String(Number(value.toFixed(digits)));
const cut = (value, digits) => short(Math.trunc(value * 10 ** digits) / 10 ** digits, digits);

const inBytes = (bytes) => {
  if (bytes < 10) return `${bytes} B`;
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
  const power = Math.min(Math.floor(Math.log(bytes) / Math.log(1000)), units.length - 1);
  const value = Math.floor((bytes / 1000 ** power) * 10 + 0.5) / 10;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[power]}`;
};

const inTime = (ms, unit) => {
  if (unit === "s") return `${(ms / 1000).toFixed(2)}s`;
  if (unit === "ms") return `${ms.toFixed(2)}ms`;
  if (unit === "us") return `${(ms * 1000).toFixed(2)}µs`;
  if (ms === 0) return "0s";
  if (ms < 0.001) return `${Math.trunc(ms * 1e6)}ns`;
  if (ms < 1) return `${cut(ms * 1000, 2)}µs`;
  if (ms < 1000) return `${cut(ms, 2)}ms`;
  const seconds = `${cut((ms % 60_000) / 1000, ms > 60_000 ? 0 : 2)}s`;
  const minutes = Math.trunc(ms / 60_000);
  if (minutes < 1) return seconds;
  const rest = `${minutes % 60}m${seconds}`;
  return minutes < 60 ? rest : `${Math.trunc(minutes / 60)}h${rest}`;
};

export const humanizeValue = (value, metric, timeUnit) => {
  if (metric.type === "rate") return `${(Math.trunc(value * 10_000) / 100).toFixed(2)}%`;
  if (metric.contains === "data") return inBytes(value);
  if (metric.contains === "time") return inTime(value, timeUnit);
  return short(value, 6);
};

// a metric's figures, the first of which is the main one
const figures = (metric, options) => {
  const { values } = metric;
  const shown = (value) => humanizeValue(value, metric, options.summaryTimeUnit);
  switch (metric.type) {
    case "counter":
      return [shown(values.count), `${shown(values.rate)}/s`];
    case "gauge":
      return [shown(values.value), `min=${shown(values.min)}`, `max=${shown(values.max)}`];
    case "rate":
      return [shown(values.rate), `✓ ${values.passes}`, `✗ ${values.fails}`];
    case "trend":
      return options.summaryTrendStats.map((name) => {
        const value = values[name] ?? 0;
        return name === "count" ? String(value) : shown(value);
      });
    default:
      return ["[no data]"];
  }
};

const groupLines = (group, indent, paint) => {
  const lines = [];
  let inner = indent;
  if (group.name !== "") {
    lines.push(`${indent}█ ${group.name}\n`);
    inner += "  ";
  }
  for (const { name, passes, fails } of group.checks) {
    if (fails === 0) {
      lines.push(paint(`${inner}✓ ${name}`, "green"));
      continue;
    }
    const percent = Math.floor((100 * passes) / (passes + fails));
    lines.push(paint(`${inner}✗ ${name}\n${inner} ↳  ${percent}% — ✓ ${passes} / ✗ ${fails}`, "red"));
  }
  if (group.checks.length > 0) lines.push("");
  for (const below of group.groups) lines.push(...groupLines(below, inner, paint));
  return lines;
};

const byMetric = (one, other) => {
  const [a, b] = [one.name.split("{", 1)[0], other.name.split("{", 1)[0]];
  const [left, right] = a === b ? [one.name, other.name] : [a, b];
  return left < right ? -1 : left > right ? 1 : 0;
};

const metricLines = (data, options, paint) => {
  const rows = Object.keys(data.metrics).map((name) => {
    const metric = data.metrics[name];
    const brace = name.indexOf("{");
    const isPart = brace >= 0;
    const shown = isPart ? `{ ${name.slice(brace + 1, -1)} }` : name;
    return { name, metric, shown, indent: isPart ? "  " : "", figures: figures(metric, options) };
  });
  rows.sort(byMetric);
  const longest = Math.max(0, ...rows.map((row) => width(row.indent + row.shown)));
  // how wide each column is: trends have columns of their own
  const columns = { trend: [], other: [] };
  for (const { metric, figures } of rows) {
    const widths = columns[metric.type === "trend" ? "trend" : "other"];
    figures.forEach((text, at) => {
      widths[at] = Math.max(widths[at] ?? 0, width(text));
    });
  }
  const painted = (text, color, to) => paint(text, color) + " ".repeat(Math.max(0, to - width(text)));
  return rows.map(({ metric, shown, indent, figures }) => {
    let mark = " ";
    if (metric.thresholds) {
      const holds = Object.values(metric.thresholds).every((threshold) => threshold.ok);
      mark = holds ? paint("✓", "green") : paint("✗", "red");
    }
    const dots = paint(`${".".repeat(longest - width(shown) - indent.length + 3)}:`, "faint");
    let told;
    if (metric.type === "trend") {
      told = figures.map((text, at) => `${options.summaryTrendStats[at]}=${painted(text, "cyan", columns.trend[at])}`);
    } else {
      told = figures.map((text, at) => {
        const isAlone = at === 1 && figures.length === 2;
        return painted(text, at === 0 ? "cyan" : "faintCyan", isAlone ? 0 : columns.other[at]);
      });
    }
    return `${options.indent}  ${indent}${mark} ${shown}${dots} ${told.join(" ")}`;
  });
};

export const textSummary = (data, given) => {
  const options = { indent: " ", enableColors: true, summaryTimeUnit: null, summaryTrendStats: null, ...data.options, ...given };
  options.summaryTrendStats ??= ["avg", "min", "med", "max", "p(90)", "p(95)"];
  const paint = options.enableColors ? (text, color) => `\x1b[${PAINT[color]}m${text}\x1b[0m` : (text) => text;
  return [...groupLines(data.root_group, `${options.indent}    `, paint), ...metricLines(data, options, paint)].join("\n");
};

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>'"]/g, (c) => ENTITIES[c]);

const suite = (cases, name, about = "", aboutSuite = about) => {
  const fails = cases.filter((one) => !one.isGood).length;
  const counts = `tests="${cases.length}" failures="${fails}"`;
  const lines = cases.map(({ name, isGood }) =>
    isGood ? `<testcase name="${escaped(name)}" />` : `<testcase name="${escaped(name)}"><failure message="failed" /></testcase>`,
  );
  return [
    '<?xml version="1.0"?>', `<testsuites ${counts}${about}>`, `<testsuite name="${escaped(name)}" ${counts}${aboutSuite}>`, ...lines,
    "</testsuite>", "</testsuites>",
  ].join("\n");
};

export const jUnit = (data, options) => {
  const cases = [];
  for (const [name, { thresholds }] of Object.entries(data.metrics)) {
    for (const [written, { ok }] of Object.entries(thresholds ?? {})) cases.push({ name: `${name} - ${written}`, isGood: ok });
  }
  return suite(cases, options?.name || "k6 thresholds");
};

export const jUnitForChecks = (data, name) => {
  const cases = (data.root_group.checks ?? []).map((check) => ({ name: check.name, isGood: check.fails === 0 }));
  const time = ` time="${data.metrics.iteration_duration?.values.max ?? 0}"`;
  return suite(cases, name || "k6 checks", time, `${time} timestamp="${new Date().toISOString()}"`);
};

export default { textSummary, jUnit, jUnitForChecks, humanizeValue };
