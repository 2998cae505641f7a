import { get, request, Response } from "tidemark:http";

const host = globalThis.__k6;
const more = () => (host.more ??= host.load("tidemark:more"));

export { get, request, Response };
export const head = (url, params) => request("HEAD", url, null, params);
export const post = (url, body, params) => request("POST", url, body, params);
export const put = (url, body, params) => request("PUT", url, body, params);
export const patch = (url, body, params) => request("PATCH", url, body, params);
export const del = (url, body, params) => request("DELETE", url, body, params);
export const options = (url, body, params) => request("OPTIONS", url, body, params);
export const asyncRequest = (method, url, body, params) => more().asyncRequest(method, url, body, params);
export const batch = (requests) => more().batch(requests);
export const url = (parts, ...values) => more().url(parts, ...values);
export const file = (data, filename, contentType) => more().file(data, filename, contentType);
export const cookieJar = () => more().cookieJar();
export const expectedStatuses = (...statuses) => more().expectedStatuses(...statuses);
export const setResponseCallback = (callback) => more().setResponseCallback(callback);

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
