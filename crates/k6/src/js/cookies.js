// Cookies, kept and sent as k6 does.
const host = globalThis.__k6;

export const hostOf = (url) => /^[a-z]+:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^:/?#]*)/i.exec(url)?.[1].toLowerCase() ?? "";
const pathOf = (url) => /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(url)?.[1] || "/";

// an object like any other, whose names are still all its own
const plain = (names) => Object.setPrototypeOf(names, Object.prototype);

const unquoted = (text) => (text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text);

export class CookieJar {
  #all = [];
  isEmpty = true;

  set(url, name, value, options = {}) {
    const given = options ?? {};
    const domain = given.domain ? String(given.domain).replace(/^\./, "").toLowerCase() : "";
    this.#put({
      name: String(name), value: String(value), host: domain || hostOf(url), isDomain: Boolean(domain),
      path: given.path || "/", secure: Boolean(given.secure), httpOnly: Boolean(given.http_only), maxAge: given.max_age ?? 0,
      expires: given.expires ? Date.parse(given.expires) : given.max_age > 0 ? Date.now() + given.max_age * 1000 : Infinity,
    });
    return true;
  }

  #put(cookie) {
    this.isEmpty = false;
    host.leavesSomething();
    host.unusual();
    const same = (other) => other.name === cookie.name && other.host === cookie.host && other.path === cookie.path;
    const at = this.#all.findIndex(same);
    if (at >= 0) this.#all[at] = cookie;
    else if (this.#all.length < 3000) this.#all.push(cookie);
  }

  // what a response sets, by its Set-Cookie lines
  take(url, lines) {
    const set = Object.create(null);
    for (const line of lines) {
      const [pair, ...attributes] = line.split(";");
      const cut = pair.indexOf("=");
      if (cut < 1) continue;
      const from = pathOf(url);
      const cookie = {
        name: pair.slice(0, cut).trim(), value: unquoted(pair.slice(cut + 1).trim()), host: hostOf(url), isDomain: false,
        path: from.slice(0, Math.max(1, from.lastIndexOf("/"))), secure: false, httpOnly: false, maxAge: 0, expires: Infinity,
      };
      const told = { domain: "", path: "", expires: 0 };
      let maxAge = null;
      for (const attribute of attributes) {
        const [key, ...rest] = attribute.split("=");
        const value = rest.join("=").trim();
        switch (key.trim().toLowerCase()) {
          case "domain":
            told.domain = value.replace(/^\./, "").toLowerCase();
            break;
          case "path":
            told.path = value;
            if (value.startsWith("/")) cookie.path = value;
            break;
          case "expires":
            told.expires = Date.parse(value);
            if (Number.isNaN(told.expires)) told.expires = 0;
            else cookie.expires = told.expires;
            break;
          case "max-age":
            if (/^-?\d+$/.test(value)) maxAge = Number(value);
            break;
          case "secure":
            cookie.secure = true;
            break;
          case "httponly":
            cookie.httpOnly = true;
            break;
          default:
        }
      }
      if (maxAge !== null) {
        cookie.maxAge = maxAge;
        cookie.expires = Date.now() + maxAge * 1000;
      }
      (set[cookie.name] ??= []).push({
        name: cookie.name, value: cookie.value, domain: told.domain, path: told.path, http_only: cookie.httpOnly,
        secure: cookie.secure, max_age: cookie.maxAge, expires: told.expires,
      });
      if (told.domain && told.domain !== cookie.host) {
        if (!cookie.host.endsWith(`.${told.domain}`)) continue;
        [cookie.host, cookie.isDomain] = [told.domain, true];
      } else if (told.domain) {
        cookie.isDomain = true;
      }
      this.#put(cookie);
    }
    return plain(set);
  }

  // those that go with a request to a URL, the longest path first
  of(url) {
    if (this.#all.length === 0) return [];
    const now = Date.now();
    this.#all = this.#all.filter((cookie) => cookie.expires > now);
    const [name, path, isSecure] = [hostOf(url), pathOf(url), /^https:/i.test(url)];
    const fits = (cookie) =>
      (name === cookie.host || (cookie.isDomain && name.endsWith(`.${cookie.host}`))) &&
      (path === cookie.path || (path.startsWith(cookie.path) && (cookie.path.endsWith("/") || path[cookie.path.length] === "/"))) &&
      (!cookie.secure || isSecure);
    return this.#all.filter(fits).sort((a, b) => b.path.length - a.path.length);
  }

  cookiesForURL(url) {
    const found = Object.create(null);
    for (const cookie of this.of(url)) (found[cookie.name] ??= []).push(cookie.value);
    return plain(found);
  }

  clear(url) {
    const gone = new Set(this.of(url));
    this.#all = this.#all.filter((cookie) => !gone.has(cookie));
  }

  delete(url, name) {
    const gone = new Set(this.of(url).filter((cookie) => cookie.name === name));
    this.#all = this.#all.filter((cookie) => !gone.has(cookie));
  }
}
