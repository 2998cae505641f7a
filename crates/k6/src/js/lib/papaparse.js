// papaparse of jslib.k6.io: CSV read from and written to text. A parse is whole: there are no workers and no streams.

const BOM = "\ufeff";
const RECORD = "\x1e";
const UNIT = "\x1f";
const BAD_DELIMITERS = ["\r", "\n", '"', BOM];
const NUMBER = /^\s*-?(\d+\.?|\.\d+|\d+\.\d+)([eE][-+]?\d+)?\s*$/;
const DATE = /^(\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d+([+-][0-2]\d:[0-5]\d|Z))$|^(\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d([+-][0-2]\d:[0-5]\d|Z))$|^(\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d([+-][0-2]\d:[0-5]\d|Z))$/;

// ---- fields

const newlineOf = (text, quote) => {
  // within quotes it says nothing
  const head = text.slice(0, 1 << 20);
  const outside = head.split(quote).filter((_, at, all) => at % 2 === 0 || at === all.length - 1).join("");
  const returns = outside.split("\r");
  if (returns.length === 1) return "\n";
  const feeds = outside.split("\n");
  if (feeds.length > 1 && feeds[0].length < returns[0].length) return "\n";
  const pairs = returns.filter((part) => part[0] === "\n").length;
  return pairs >= returns.length / 2 ? "\r\n" : "\r";
};

// rows of texts, as far as `preview` rows
const rowsOf = (text, { delimiter, newline, quoteChar, escapeChar, comments, preview }) => {
  const rows = [];
  const errors = [];
  const note = (code, message, index) => errors.push({ type: "Quotes", code, message, row: rows.length, index });
  let row = [];
  let at = 0;
  let isCut = false;
  const end = () => {
    rows.push(row);
    row = [];
  };
  // the next place of a text, looked for again only when it has been passed
  const finder = (wanted) => {
    let found = -2;
    return () => {
      if (found !== -1 && found < at) found = text.indexOf(wanted, at);
      return found === -1 ? Infinity : found;
    };
  };
  const [nextDelimiter, nextNewline] = [finder(delimiter), finder(newline)];
  const field = () => {
    // a quoted field: up to a quote that is not doubled
    const begun = at;
    at += 1;
    for (let from = at; ; ) {
      const quote = text.indexOf(quoteChar, from);
      if (quote < 0) {
        note("MissingQuotes", "Quoted field unterminated", begun);
        const rest = text.slice(at);
        at = text.length;
        return rest;
      }
      if (escapeChar === quoteChar && text[quote + 1] === quoteChar) {
        from = quote + 2;
        continue;
      }
      if (escapeChar !== quoteChar && quote > 0 && text[quote - 1] === escapeChar) {
        from = quote + 1;
        continue;
      }
      // blanks may stand between the quote and what ends the field
      let after = quote + 1;
      while (text[after] === " ") after += 1;
      const ends = after >= text.length || text.startsWith(delimiter, after) || text.startsWith(newline, after);
      if (ends) {
        const value = text.slice(at, quote);
        at = after;
        return value.replaceAll(escapeChar + quoteChar, quoteChar);
      }
      note("InvalidQuotes", "Trailing quote on quoted field is malformed", begun);
      from = quote + 1;
    }
  };
  while (at < text.length) {
    if (row.length === 0 && comments && text.startsWith(comments, at)) {
      const next = nextNewline();
      if (next === Infinity) break;
      at = next + newline.length;
      continue;
    }
    if (quoteChar && text[at] === quoteChar) {
      row.push(field());
    } else {
      const stop = Math.min(nextDelimiter(), nextNewline(), text.length);
      row.push(text.slice(at, stop));
      at = stop;
    }
    if (at >= text.length) {
      end();
      break;
    }
    if (text.startsWith(delimiter, at)) {
      at += delimiter.length;
      // what ends with a delimiter has an empty field behind it
      if (at < text.length && !text.startsWith(newline, at)) continue;
      row.push("");
    }
    if (at >= text.length) {
      end();
      break;
    }
    at += newline.length;
    end();
    isCut = preview > 0 && rows.length >= preview;
    if (isCut) break;
    // as papaparse has it, a last line feed begins an empty row
    if (at >= text.length) {
      row.push("");
      end();
    }
  }
  return { rows, errors, isCut, cursor: at };
};

const isEmptyRow = (row, kind) => (kind === "greedy" ? row.join("").trim() === "" : row.length === 1 && row[0].length === 0);

const guessDelimiter = (text, settings, candidates) => {
  let best;
  let leastDelta;
  let most = 0;
  for (const delimiter of candidates ?? [",", "\t", "|", ";", RECORD, UNIT]) {
    const { rows } = rowsOf(text, { ...settings, delimiter, preview: 10 });
    let [delta, sum, counted, last] = [0, 0, 0, undefined];
    for (const row of rows) {
      if (settings.skipEmptyLines && isEmptyRow(row, settings.skipEmptyLines)) continue;
      counted += 1;
      sum += row.length;
      if (last === undefined) last = row.length;
      else if (row.length > 0) {
        delta += Math.abs(row.length - last);
        last = row.length;
      }
    }
    const average = counted > 0 ? sum / counted : 0;
    if ((leastDelta === undefined || delta <= leastDelta) && average > 1.99 && average > most) {
      [leastDelta, best, most] = [delta, delimiter, average];
    }
  }
  return best;
};

const typed = (value) => {
  if (value === "true" || value === "TRUE") return true;
  if (value === "false" || value === "FALSE") return false;
  if (NUMBER.test(value)) {
    const number = Number(value);
    if (Math.abs(number) < 2 ** 53) return number;
  }
  if (DATE.test(value)) return new Date(value);
  return value === "" ? null : value;
};

// ---- text to rows

export const parse = (input, config = {}) => {
  if (typeof input !== "string") throw new TypeError("papaparse reads text here: open() the file in the init context, and give it what it returned");
  const given = config ?? {};
  let text = input.startsWith(BOM) ? input.slice(1) : input;
  if (typeof given.beforeFirstChunk === "function") text = given.beforeFirstChunk(text) ?? text;
  const quoteChar = given.quoteChar === undefined || given.quoteChar === null ? '"' : given.quoteChar;
  const settings = {
    quoteChar,
    escapeChar: given.escapeChar ?? quoteChar,
    comments: given.comments === true ? "#" : typeof given.comments === "string" ? given.comments : false,
    newline: ["\n", "\r", "\r\n"].includes(given.newline) ? given.newline : newlineOf(text, quoteChar),
    skipEmptyLines: given.skipEmptyLines,
    preview: given.preview ? Number(given.preview) + (given.header ? 1 : 0) : 0,
  };
  const errors = [];
  let { delimiter } = given;
  if (typeof delimiter === "function") delimiter = delimiter(text);
  if (typeof delimiter !== "string" || delimiter === "" || BAD_DELIMITERS.includes(delimiter)) {
    delimiter = guessDelimiter(text, settings, given.delimitersToGuess);
    if (delimiter === undefined) {
      errors.push({ type: "Delimiter", code: "UndetectableDelimiter", message: "Unable to auto-detect delimiting character; defaulted to ','" });
      delimiter = ",";
    }
  }
  const read = rowsOf(text, { ...settings, delimiter });
  errors.push(...read.errors);
  let { rows } = read;
  const { skipEmptyLines } = settings;
  if (skipEmptyLines) rows = rows.filter((row) => !isEmptyRow(row, skipEmptyLines));

  const meta = { delimiter, linebreak: settings.newline, aborted: false, truncated: read.isCut, cursor: read.cursor };
  let names;
  if (given.header) {
    names = (rows.shift() ?? []).map((name, at) => (typeof given.transformHeader === "function" ? given.transformHeader(name, at) : name));
    meta.fields = names;
  }
  const turns = typeof given.transform === "function" ? given.transform : (value) => value;
  const { dynamicTyping } = given;
  const isTyped = (field) => {
    if (typeof dynamicTyping === "function") return dynamicTyping(field);
    return dynamicTyping === true || Boolean(dynamicTyping && (dynamicTyping[field] || dynamicTyping["*"]));
  };
  const valueOf = (text, field) => {
    const turned = turns(text, field);
    return dynamicTyping && typeof turned === "string" && isTyped(field) ? typed(turned) : turned;
  };
  const plain = !dynamicTyping && typeof given.transform !== "function";
  const data = rows.map((row, number) => {
    if (!names) return plain ? row : row.map(valueOf);
    const made = {};
    row.forEach((text, at) => {
      const field = at < names.length ? names[at] : "__parsed_extra";
      const value = valueOf(text, field);
      if (at < names.length) made[field] = value;
      else (made.__parsed_extra ??= []).push(value);
    });
    if (row.length !== names.length) {
      const isMore = row.length > names.length;
      errors.push({
        type: "FieldMismatch", code: isMore ? "TooManyFields" : "TooFewFields",
        message: `Too ${isMore ? "many" : "few"} fields: expected ${names.length} fields but parsed ${row.length}`, row: number,
      });
    }
    return made;
  });
  const results = { data, errors, meta };
  if (typeof given.step === "function") {
    let isAborted = false;
    const parser = { abort: () => { isAborted = true; }, pause() {}, resume() {} };
    for (const row of data) {
      given.step({ data: row, errors: [], meta }, parser);
      if (isAborted) break;
    }
    meta.aborted = isAborted;
    results.data = [];
  }
  if (typeof given.complete === "function") given.complete(results);
  return results;
};

// ---- rows to text

export const unparse = (input, config = {}) => {
  const given = config ?? {};
  const delimiter = typeof given.delimiter === "string" && !BAD_DELIMITERS.includes(given.delimiter) ? given.delimiter : ",";
  const newline = given.newline ?? "\r\n";
  const quote = given.quoteChar ?? '"';
  const escape = given.escapeChar ?? quote;
  const { quotes = false, skipEmptyLines = false, header = true } = given;
  const field = (value, at, isHeader) => {
    if (value === undefined || value === null) return "";
    const text = value instanceof Date ? JSON.stringify(value).slice(1, 25) : String(value);
    const asked = typeof quotes === "function" ? quotes(value, at) : Array.isArray(quotes) ? quotes[at] : quotes;
    const needs =
      (asked && !(isHeader && Array.isArray(quotes) && !quotes[at])) || text.includes(delimiter) || text.includes(quote) ||
      /[\r\n\ufeff]/.test(text) || text.startsWith(" ") || text.endsWith(" ");
    return needs ? quote + text.replaceAll(quote, escape + quote) + quote : text;
  };
  let told = typeof input === "string" ? JSON.parse(input) : input;
  let names;
  if (!Array.isArray(told)) {
    if (told === null || typeof told !== "object") throw new Error("Unable to serialize unrecognized input");
    names = told.fields ?? told.meta?.fields;
    told = typeof told.data === "string" ? JSON.parse(told.data) : (told.data ?? []);
    if (!Array.isArray(told)) told = [told];
    if (!Array.isArray(told[0]) && typeof told[0] !== "object") told = [told];
  }
  if (Array.isArray(input) && told.length > 0 && !Array.isArray(told[0])) {
    names = Array.isArray(given.columns) && given.columns.length > 0 ? given.columns : Object.keys(told[0] ?? {});
  }
  if (told.length > 0 && !Array.isArray(told[0]) && typeof told[0] !== "object") throw new Error("Unable to serialize unrecognized input");
  let csv = "";
  if (names && names.length > 0 && header) {
    csv += names.map((name, at) => field(name, at, true)).join(delimiter);
    if (told.length > 0) csv += newline;
  }
  told.forEach((row, number) => {
    const values = Array.isArray(row) ? row : (names ?? []).map((name) => row[name]);
    if (skipEmptyLines) {
      const texts = values.map((value) => (value === null || value === undefined ? "" : String(value)));
      if (skipEmptyLines === "greedy" ? texts.join("").trim() === "" : texts.every((text) => text.length === 0)) return;
    }
    csv += values.map((value, at) => field(value, at, false)).join(delimiter);
    if (number < told.length - 1) csv += newline;
  });
  return csv;
};

export default { parse, unparse, RECORD_SEP: RECORD, UNIT_SEP: UNIT, BYTE_ORDER_MARK: BOM, BAD_DELIMITERS };
