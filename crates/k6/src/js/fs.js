// `k6/experimental/fs`: files whose bytes all users share.
const host = globalThis.__k6;

export const SeekMode = Object.freeze({ Start: 0, Current: 1, End: 2 });

class File {
  #path;
  #size;
  #at = 0;

  constructor(name, path, size) {
    this.path = name;
    this.#path = path;
    this.#size = size;
  }

  async stat() {
    return { name: this.path.split("/").pop(), size: this.#size };
  }

  async read(into) {
    if (!(into instanceof Uint8Array)) throw new TypeError("read() takes a Uint8Array");
    if (this.#at >= this.#size) return null;
    const bytes = new Uint8Array(host.fileRead(this.#path, this.#at, into.length));
    into.set(bytes);
    this.#at += bytes.length;
    return bytes.length;
  }

  async seek(offset, whence) {
    // as in k6, the end is the last byte
    const from = [0, this.#at, this.#size - 1][whence];
    if (!Number.isInteger(offset) || from === undefined) throw new TypeError("seek() takes a whole number and a SeekMode");
    if (from + offset < 0 || from + offset > this.#size) throw new Error("seek() leads out of the file");
    this.#at = from + offset;
    return this.#at;
  }

  // what is left of it, as text
  static textOf(file) {
    return host.text(host.fileRead(file.#path, file.#at, file.#size));
  }

  // what tells apart what is left of files
  static placeOf(file) {
    return `${file.#path}:${file.#at}`;
  }
}

export const { textOf, placeOf } = File;

export const open = async (path) => new File(String(path), ...host.fileOpen(String(path)));

export default { open, SeekMode };
