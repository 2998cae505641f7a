// formdata of jslib.k6.io: a body in multipart/form-data, part by part.
const host = globalThis.__k6;
const quoted = (text) => String(text).replace(/\r\n|\r|\n/g, "%0D%0A").replace(/"/g, "%22");
const isBytes = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);

export class FormData {
  constructor() {
    this.boundary = `------RWWorkerFormDataBoundary${host.hex(host.random(18))}`;
    this.parts = [];
  }

  // a part: text, bytes, or what http.file() makes, of which only `data` is needed
  append(field, value) {
    if (arguments.length < 2) throw new SyntaxError("FormData.append: a name and a value are expected");
    const isFile = value !== null && typeof value === "object" && "data" in value;
    this.parts.push({ field, file: isFile ? value : { data: isBytes(value) ? value : String(value) } });
  }

  body() {
    const pieces = [];
    for (const { field, file } of this.parts) {
      const name = file.filename ? `; filename="${quoted(file.filename)}"` : "";
      pieces.push(
        `--${this.boundary}\r\nContent-Disposition: form-data; name="${quoted(field)}"${name}\r\n`,
        `Content-Type: ${file.content_type || "application/octet-stream"}\r\n\r\n`, host.bytesOf(file.data), "\r\n",
      );
    }
    pieces.push(`--${this.boundary}--\r\n`);
    return host.joined(pieces);
  }
}

export default { FormData };
