// `k6/experimental/csv`: tables of what `k6/experimental/fs` opens.
import { SharedArray } from "k6/data";
import { placeOf, textOf } from "k6/experimental/fs";

// the records of a text (RFC 4180); empty lines are none
function* recordsOf(text, delimiter) {
  const cut = delimiter.replace(/[\\^$.*+?()[\]{}|/-]/, "\\$&");
  const field = new RegExp(`"((?:[^"]|"")*)"(?=${cut}|\\r?\\n|$)|([^"\\r\\n${cut}]*)`, "y");
  const size = text.length;
  let [at, record] = [0, []];
  while (at < size) {
    field.lastIndex = at;
    const [whole, quoted, plain] = field.exec(text);
    at += whole.length;
    record.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    const end = text.startsWith("\r\n", at) ? 2 : 1;
    if (text[at] === delimiter && at < size) {
      at += 1;
      if (at < size) continue;
      record.push("");
    } else if (at < size && end === 1 && text[at] !== "\n") {
      throw new Error(`parse error: a quote within a field, one that does not end, or ${JSON.stringify(text[at])} behind one`);
    }
    at += end;
    if (record.length > 1 || record[0] !== "" || whole !== "") yield record;
    record = [];
  }
}

function* rowsOf(file, options) {
  const { delimiter = ",", skipFirstLine = false, fromLine = 0, toLine = Infinity, asObjects = false } = options ?? {};
  if (typeof delimiter !== "string" || delimiter.length !== 1 || '"\r\n'.includes(delimiter)) throw new Error("delimiter is one character");
  if (fromLine > toLine) throw new Error("fromLine is behind toLine");
  let [line, names, width] = [-1, null];
  for (const record of recordsOf(textOf(file), delimiter)) {
    line += 1;
    width ??= record.length;
    if (record.length !== width) throw new Error(`record ${line + 1}: wrong number of fields`);
    if (line > toLine) return;
    if (asObjects && names === null) {
      names = record;
      continue;
    }
    if (line < fromLine || (line === 0 && skipFirstLine)) continue;
    yield names === null ? record : Object.fromEntries(names.map((name, at) => [name, record[at]]));
  }
}

export const parse = async (file, options) =>
  new SharedArray(`csv:${placeOf(file)}:${JSON.stringify(options ?? {})}`, () => [...rowsOf(file, options)]);

export class Parser {
  #rows;

  constructor(file, options) {
    this.#rows = rowsOf(file, options);
  }

  async next() {
    const { done, value } = this.#rows.next();
    return { done: Boolean(done), value: done ? [] : value };
  }
}

export default { parse, Parser };
