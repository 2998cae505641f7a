import { Response } from "tidemark:response";

const host = globalThis.__k6;
const more = () => (host.more ??= host.load("tidemark:more"));
const later = (name) => (...given) => more()[name](...given);

export { Response };
export const { get, head, post, put, patch, del, options, request } = host.verbs();
export const [asyncRequest, batch, url, file, cookieJar, expectedStatuses, setResponseCallback] =
  ["asyncRequest", "batch", "url", "file", "cookieJar", "expectedStatuses", "setResponseCallback"].map(later);

// `new http.CookieJar()` is one of the rest
export class CookieJar {
  constructor() {
    return new (more().CookieJar)();
  }

  static [Symbol.hasInstance](value) {
    return value instanceof more().CookieJar;
  }
}

export const [SSL_3_0, TLS_1_0, TLS_1_1, TLS_1_2, TLS_1_3] = ["ssl3.0", "tls1.0", "tls1.1", "tls1.2", "tls1.3"];

export default {
  request, get, head, post, put, patch, del, options, asyncRequest, batch, url, file, cookieJar, CookieJar, Response, expectedStatuses,
  setResponseCallback, SSL_3_0, TLS_1_0, TLS_1_1, TLS_1_2, TLS_1_3,
};
