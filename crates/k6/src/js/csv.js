// `k6/experimental/csv`: tables of what `k6/experimental/fs` opens.
import { SharedArray } from "k6/data";
import { placeOf, textOf } from "k6/experimental/fs";

// the records of a text as Go's encoding/csv reads them (RFC 4180); a bad one is told, and the next one read after it
class Records {
  #text;
  #delimiter;
  #at = 0;
  #line = 0;
  #width = null;

  constructor(text, delimiter) {
    this.#text = text;
    this.#delimiter = delimiter;
  }

  // with its end, which is \n; nothing behind the last
  #nextLine() {
    if (this.#at >= this.#text.length) return "";
    const end = this.#text.indexOf("\n", this.#at) + 1 || this.#text.length;
    const line = this.#text.slice(this.#at, end);
    this.#at = end;
    this.#line += 1;
    return line.replace(/\r(\n?)$/, "$1");
  }

  #wrong(begun, at, words) {
    const place = `parse error on line ${this.#line}, column ${at + 1}: ${words}`;
    return new Error(begun === this.#line ? place : `record on line ${begun}; ${place}`);
  }

  // null at the end
  next() {
    let line;
    do line = this.#nextLine();
    while (line === "\n");
    if (line === "") return null;
    const begun = this.#line;
    const record = [];
    for (let at = 0; ; ) {
      if (line[at] !== '"') {
        const cut = line.indexOf(this.#delimiter, at);
        const field = cut < 0 ? line.slice(at).replace(/\n$/, "") : line.slice(at, cut);
        const quote = field.indexOf('"');
        if (quote >= 0) throw this.#wrong(begun, at + quote, 'bare " in non-quoted field');
        record.push(field);
        if (cut < 0) break;
        at = cut + 1;
        continue;
      }
      let field = "";
      for (at += 1; ; ) {
        const quote = line.indexOf('"', at);
        if (quote < 0) {
          field += line.slice(at);
          const { length } = line;
          [line, at] = [this.#nextLine(), 0];
          if (line === "") throw this.#wrong(begun, length, 'extraneous or missing " in quoted-field');
          continue;
        }
        field += line.slice(at, quote);
        at = quote + 1;
        if (line[at] !== '"') break;
        field += '"';
        at += 1;
      }
      record.push(field);
      if (at === line.length || line[at] === "\n") break;
      if (line[at] !== this.#delimiter) throw this.#wrong(begun, at - 1, 'extraneous or missing " in quoted-field');
      at += 1;
    }
    this.#width ??= record.length;
    if (record.length !== this.#width) throw new Error(`record on line ${begun}: wrong number of fields`);
    return record;
  }
}

const whole = (value) => (value === undefined ? undefined : Math.trunc(Number(value)) || 0);

// rows as the options ask for them
class Rows {
  #records;
  #line = 0;
  #last;
  #names = null;

  constructor(file, options) {
    const { delimiter = ",", skipFirstLine = false, asObjects = false, ...lines } = options ?? {};
    const [fromLine, toLine] = [whole(lines.fromLine), whole(lines.toLine)];
    const refused = (what, why) => new Error(`failed to ${what}; reason: ${why}`);
    const none = "create a new parser";
    if (typeof delimiter !== "string" || delimiter.length !== 1 || '"\r\n'.includes(delimiter)) {
      throw refused("interpret the provided Parser options", "delimiter must be a single character");
    }
    if (fromLine >= toLine) {
      throw refused("interpret the provided Parser options", "fromLine must be less than or equal to toLine");
    }
    if (asObjects && skipFirstLine) throw refused(none, "the 'header' option cannot be enabled when 'skipFirstLine' is true");
    if (asObjects && fromLine > 0) {
      throw refused(none, "the 'header' option cannot be enabled when 'fromLine' is set to a value greater than 0");
    }
    for (const [name, line] of [["fromLine", fromLine], ["toLine", toLine]]) {
      if (line < 0) throw refused(none, `the '${name}' option must be greater than or equal to 0; got ${line}`);
    }
    this.#records = new Records(textOf(file), delimiter);
    this.#last = toLine;
    const passed = (what) => {
      try {
        const record = this.#records.next();
        if (record === null) throw new Error("EOF");
        this.#line += 1;
        return record;
      } catch (error) {
        throw refused(none, refused(what, error.message).message);
      }
    };
    if (asObjects) this.#names = passed("read the first line");
    if (skipFirstLine && !(fromLine > 0)) passed("skip the first line");
    while (this.#line < fromLine) passed(`skip lines until line ${fromLine}`);
  }

  // null at the end; as in k6, line 0 is no end
  next() {
    if (this.#last > 0 && this.#line > this.#last) return null;
    const record = this.#records.next();
    if (record === null) return null;
    this.#line += 1;
    return this.#names === null ? record : Object.fromEntries(this.#names.map((name, at) => [name, record[at]]));
  }
}

export const parse = async (file, options) =>
  new SharedArray(`csv:${placeOf(file)}:${JSON.stringify(options ?? {})}`, () => {
    const [rows, all] = [new Rows(file, options), []];
    for (let row = rows.next(); row !== null; row = rows.next()) all.push(row);
    return all;
  });

export class Parser {
  #rows;

  constructor(file, options) {
    this.#rows = new Rows(file, options);
  }

  async next() {
    const value = this.#rows.next();
    return { done: value === null, value: value ?? [] };
  }
}

export default { parse, Parser };
