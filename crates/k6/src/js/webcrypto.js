// The part of WebCrypto that is there: digests, HMAC, PBKDF2, and keys for these. Loaded when `crypto.subtle` is first asked for.
(() => {
  const host = globalThis.__k6;
  const DIGESTS = { "SHA-1": ["sha1", 64], "SHA-256": ["sha256", 64], "SHA-384": ["sha384", 128], "SHA-512": ["sha512", 128] };

  const failed = (name, message) => Object.assign(new Error(message), { name });
  const nameOf = (algorithm) => String(typeof algorithm === "string" ? algorithm : algorithm?.name).toUpperCase();
  const digestOf = (algorithm) => {
    const name = nameOf(algorithm);
    if (!Object.hasOwn(DIGESTS, name)) throw failed("NotSupportedError", `${name} is not supported: ${Object.keys(DIGESTS).join(", ")} are`);
    return name;
  };
  const needsHMAC = (algorithm) => {
    const name = nameOf(algorithm);
    if (name !== "HMAC") throw failed("NotSupportedError", `${name} is not supported: of keys, those of HMAC and PBKDF2 are`);
  };
  const bytesOf = (data) => {
    if (!(data instanceof ArrayBuffer || ArrayBuffer.isView(data))) throw new TypeError("an ArrayBuffer or a typed array is expected");
    return host.bytesOf(data);
  };

  const secrets = new WeakMap();

  class CryptoKey {
    constructor(bytes, algorithm, extractable, usages) {
      this.type = "secret";
      this.extractable = Boolean(extractable);
      this.algorithm = algorithm;
      this.usages = [...usages];
      secrets.set(this, bytes);
    }
  }

  const secretOf = (key, usage) => {
    if (!(key instanceof CryptoKey)) throw new TypeError("a CryptoKey is expected");
    if (!key.usages.includes(usage)) throw failed("InvalidAccessError", `the key is not for ${usage}`);
    return secrets.get(key);
  };
  const needsUsages = (name, usages, ...fit) => {
    if (usages.length > 0 && usages.every((usage) => fit.includes(usage))) return;
    throw failed("SyntaxError", `the usages of a key of ${name} are ${fit.join(" and ")}`);
  };
  const make = (bytes, hash, extractable, usages) => {
    if (bytes.byteLength === 0) throw failed("DataError", "the key is empty");
    needsUsages("HMAC", usages, "sign", "verify");
    const algorithm = { name: "HMAC", hash: { name: hash }, length: bytes.byteLength * 8 };
    return new CryptoKey(bytes, algorithm, extractable, usages);
  };
  const signed = (key, usage, data) => {
    const secret = secretOf(key, usage);
    return host.hmac(DIGESTS[key.algorithm.hash.name][0], secret, bytesOf(data));
  };
  const passwordOf = (format, data, extractable, usages) => {
    if (format !== "raw") throw failed("NotSupportedError", `keys of PBKDF2 in ${format} are not supported: raw is`);
    if (extractable) throw failed("SyntaxError", "a key of PBKDF2 is not extractable");
    needsUsages("PBKDF2", usages, "deriveBits", "deriveKey");
    return new CryptoKey(bytesOf(data), { name: "PBKDF2" }, false, usages);
  };
  const derived = (algorithm, key, usage, bits) => {
    const name = nameOf(algorithm);
    if (name !== "PBKDF2") throw failed("NotSupportedError", `${name} is not supported: PBKDF2 is`);
    const secret = secretOf(key, usage);
    if (!(algorithm.iterations >= 1)) throw failed("OperationError", "iterations is a number above 0");
    if (!(bits > 0) || bits % 8 !== 0) throw failed("OperationError", "the length is a multiple of 8 bits");
    return host.derived(DIGESTS[digestOf(algorithm.hash)][0], secret, bytesOf(algorithm.salt), algorithm.iterations, bits / 8);
  };

  const subtle = {
    async digest(algorithm, data) {
      return host.digest(DIGESTS[digestOf(algorithm)][0], bytesOf(data));
    },
    async importKey(format, data, algorithm, extractable, usages) {
      if (nameOf(algorithm) === "PBKDF2") return passwordOf(format, data, extractable, usages);
      needsHMAC(algorithm);
      const hash = digestOf(algorithm.hash);
      if (format === "raw") return make(bytesOf(data), hash, extractable, usages);
      if (format !== "jwk") throw failed("NotSupportedError", `keys in ${format} are not supported: raw and jwk are`);
      if (data?.kty !== "oct" || typeof data.k !== "string") throw failed("DataError", "a key of HMAC in jwk has kty \"oct\" and k");
      return make(host.b64decode(data.k, "rawurl"), hash, extractable, usages);
    },
    async exportKey(format, key) {
      if (!(key instanceof CryptoKey)) throw new TypeError("a CryptoKey is expected");
      if (!key.extractable) throw failed("InvalidAccessError", "the key is not extractable");
      const bytes = secrets.get(key);
      if (format === "raw") return bytes.slice(0);
      if (format !== "jwk") throw failed("NotSupportedError", `keys in ${format} are not supported: raw and jwk are`);
      const alg = `HS${key.algorithm.hash.name.slice(4)}`;
      return { kty: "oct", k: host.b64encode(bytes, "rawurl"), alg, ext: true, key_ops: [...key.usages] };
    },
    async generateKey(algorithm, extractable, usages) {
      needsHMAC(algorithm);
      const hash = digestOf(algorithm.hash);
      const bits = algorithm.length ?? DIGESTS[hash][1] * 8;
      if (!(bits > 0) || bits % 8 !== 0) throw failed("OperationError", "the length of a key is a multiple of 8 bits");
      return make(host.random(bits / 8), hash, extractable, usages);
    },
    async sign(algorithm, key, data) {
      needsHMAC(algorithm);
      return signed(key, "sign", data);
    },
    async deriveBits(algorithm, key, bits) {
      return derived(algorithm, key, "deriveBits", bits);
    },
    async deriveKey(algorithm, key, made, extractable, usages) {
      needsHMAC(made);
      const hash = digestOf(made.hash);
      return make(derived(algorithm, key, "deriveKey", made.length ?? DIGESTS[hash][1] * 8), hash, extractable, usages);
    },
    async verify(algorithm, key, signature, data) {
      needsHMAC(algorithm);
      const [wanted, given] = [new Uint8Array(signed(key, "verify", data)), new Uint8Array(bytesOf(signature))];
      let differs = wanted.length ^ given.length;
      for (let at = 0; at < wanted.length; at += 1) differs |= wanted[at] ^ given[at];
      return differs === 0;
    },
  };
  for (const name of ["encrypt", "decrypt", "wrapKey", "unwrapKey"]) {
    subtle[name] = async () => {
      throw failed("NotSupportedError", `crypto.subtle.${name} is not supported: digests, HMAC and PBKDF2 are`);
    };
  }
  host.subtle = subtle;
  globalThis.CryptoKey = CryptoKey;
})();
