// httpx of jslib.k6.io: requests of a session, which share an address, headers and tags.
import http from "k6/http";

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
const capital = (method) => method[0] + method.slice(1).toLowerCase();

const merged = (one, other) => ({
  ...one, ...other, headers: { ...one?.headers, ...other?.headers }, tags: { ...one?.tags, ...other?.tags },
});

export class Request {
  constructor(method, url, params) {
    const { body = null, ...rest } = params ?? {};
    [this.method, this.url, this.body, this.params] = [method, url, body, rest];
  }

  addHeader(name, value) {
    this.params = merged(this.params, { headers: { [name]: value } });
    return this;
  }

  addTag(name, value) {
    this.params = merged(this.params, { tags: { [name]: value } });
    return this;
  }
}

const kind = (method) => class extends Request {
  constructor(url, params) {
    super(method, url, params);
  }
};
export const Get = kind("GET");
export const Head = kind("HEAD");
export const Post = kind("POST");
export const Put = kind("PUT");
export const Delete = kind("DELETE");
export const Connect = kind("CONNECT");
export const Options = kind("OPTIONS");
export const Trace = kind("TRACE");
export const Patch = kind("PATCH");

export class Httpx {
  constructor(given = {}) {
    const { baseURL = "", errorMetric = null, errorMetricCondition, headers, tags, ...params } = given;
    this.baseURL = baseURL;
    this.errorMetric = errorMetric;
    this.errorMetricCondition = errorMetricCondition ?? ((response) => response.status >= 200 && response.status <= 399);
    this.k6params = merged(params, { headers, tags });
    this.lastRequest = { responseObject: null, responseChainDuration: null };
  }

  get lastRequestChainDuration() {
    return this.lastRequest.responseChainDuration;
  }

  setBaseUrl(url) {
    this.baseURL = url;
  }

  addHeaders(headers) {
    Object.assign(this.k6params.headers, headers);
  }

  addHeader(name, value) {
    this.k6params.headers[name] = value;
  }

  clearHeader(name) {
    delete this.k6params.headers[name];
  }

  addTags(tags) {
    Object.assign(this.k6params.tags, tags);
  }

  addTag(name, value) {
    this.k6params.tags[name] = value;
  }

  clearTag(name) {
    delete this.k6params.tags[name];
  }

  // the address and the parameters of a request
  #of(method, url, params) {
    if (!METHODS.includes(method)) throw new Error(`Invalid method: ${method}. Expected one of ${METHODS}`);
    const all = merged(this.k6params, params);
    if (url !== null && typeof url === "object" && "__url" in url) {
      all.tags.name ??= String(url.__url).startsWith("http") ? url.__name : this.baseURL + url.__name;
      url = url.__url;
    }
    return [String(url).startsWith("http") ? url : this.baseURL + url, all];
  }

  #measured(params, send) {
    const begun = Date.now();
    const response = send();
    const { errorMetric } = this;
    if (errorMetric && !Array.isArray(response)) errorMetric.add(!(params.expect ?? this.errorMetricCondition)(response));
    this.lastRequest = { responseObject: response, responseChainDuration: Date.now() - begun };
    return response;
  }

  request(method, url, body, params) {
    const [whole, all] = this.#of(method, url, params);
    return this.#measured(all, () => http.request(method, whole, body, all));
  }

  async asyncRequest(method, url, body, params) {
    const [whole, all] = this.#of(method, url, params);
    return http.asyncRequest(method, whole, body, all);
  }

  execute(request) {
    return this.request(request.method, request.url, request.body, request.params);
  }

  batch(requests, shared) {
    const whole = requests.map((told) => {
      const [method, url, body, params] = Array.isArray(told) ? told : [told.method, told.url, told.body, told.params];
      const [place, all] = this.#of(method, url, merged(shared, params));
      return [method, place, body ?? null, all];
    });
    return this.#measured({}, () => http.batch(whole));
  }
}

for (const method of METHODS) {
  Httpx.prototype[method.toLowerCase()] = function (url, body, params) {
    return this.request(method, url, body, params);
  };
  Httpx.prototype[`async${capital(method)}`] = function (url, body, params) {
    return this.asyncRequest(method, url, body, params);
  };
}

export default { Httpx, Request, Get, Head, Post, Put, Delete, Connect, Options, Trace, Patch };
