const host = globalThis.__k6;

const written = (bytes, encoding) => {
  switch (encoding) {
    case "hex":
      return host.hex(bytes);
    case "base64":
      return host.b64encode(bytes, "std");
    case "base64url":
      return host.b64encode(bytes, "url");
    case "base64rawurl":
      return host.b64encode(bytes, "rawurl");
    case "binary":
      return bytes;
    default:
      throw new TypeError(`invalid output encoding: ${encoding}`);
  }
};

class Hasher {
  constructor(algorithm, key) {
    this.algorithm = algorithm;
    this.key = key;
    this.parts = [];
    // an unknown name is told at once
    host.digest(algorithm, new ArrayBuffer(0));
  }

  update(input) {
    this.parts.push(host.bytesOf(input));
  }

  digest(encoding) {
    const bytes = host.joined(this.parts);
    const made = this.key === undefined ? host.digest(this.algorithm, bytes) : host.hmac(this.algorithm, this.key, bytes);
    return written(made, encoding);
  }
}

export const createHash = (algorithm) => new Hasher(algorithm);
export const createHMAC = (algorithm, key) => new Hasher(algorithm, host.bytesOf(key));
export const hmac = (algorithm, key, input, encoding) =>
  written(host.hmac(algorithm, host.bytesOf(key), host.bytesOf(input)), encoding);
export const hexEncode = (input) => host.hex(host.bytesOf(input));
export const randomBytes = (size) => {
  if (!(size > 0)) throw new Error("invalid size");
  return host.random(size);
};

const of = (algorithm) => (input, encoding) => written(host.digest(algorithm, host.bytesOf(input)), encoding);
export const md4 = () => {
  throw new Error("md4 is not supported");
};
export const md5 = of("md5");
export const sha1 = of("sha1");
export const sha256 = of("sha256");
export const sha384 = of("sha384");
export const sha512 = of("sha512");
export const sha512_224 = of("sha512_224");
export const sha512_256 = of("sha512_256");
export const ripemd160 = of("ripemd160");

export default {
  createHash, createHMAC, hmac, hexEncode, randomBytes, md4, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, ripemd160,
};
