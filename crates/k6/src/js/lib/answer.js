// What `k6/http` and `js` steps make of an answer.

export const canonical = (name) => name.replace(/[^-]+/g, (word) => word[0].toUpperCase() + word.slice(1).toLowerCase());

export const headersOf = (head) => {
  const headers = {};
  for (const line of head.split("\n")) {
    const cut = line.indexOf(":");
    if (cut < 1) continue;
    const [name, value] = [canonical(line.slice(0, cut)), line.slice(cut + 1).trim()];
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
};

// what is asked of a JSON document, in the words of gjson
export const steps = (path) => {
  const found = [];
  let word = "";
  let depth = 0;
  for (let at = 0; at < path.length; at += 1) {
    const c = path[at];
    if (c === "\\" && depth === 0) {
      at += 1;
      word += path[at] ?? "";
    } else if ((c === "." || c === "|") && depth === 0) {
      found.push(word);
      word = "";
    } else {
      if (c === "(" || c === "[") depth += 1;
      if (c === ")" || c === "]") depth -= 1;
      word += c;
    }
  }
  found.push(word);
  return found;
};

const wild = (pattern) =>
  new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")}$`);

const compare = (left, sign, right) => {
  switch (sign) {
    case "==":
    case "=":
      return left === right;
    case "!=":
      return left !== right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    case ">=":
      return left >= right;
    case "%":
      return typeof left === "string" && wild(right).test(left);
    default:
      return typeof left === "string" && !wild(right).test(left);
  }
};

export const select = (value, path) => {
  if (path.length === 0) return value;
  const [first, ...rest] = path;
  if (Array.isArray(value)) {
    if (first === "#") {
      if (rest.length === 0) return value.length;
      return value.map((item) => select(item, rest)).filter((item) => item !== undefined);
    }
    const query = /^#\(\s*([^!=<>%]*?)\s*(?:(==|=|!=|<=|<|>=|>|!%|%)\s*(.*?))?\s*\)(#?)$/.exec(first);
    if (query) {
      const [, name, sign, told, every] = query;
      let right = told;
      if (told !== undefined) {
        try {
          right = JSON.parse(told);
        } catch {
          right = told;
        }
      }
      const fits = (item) => {
        const left = name === "" ? item : select(item, steps(name));
        return sign === undefined ? left !== undefined : left !== undefined && compare(left, sign, right);
      };
      const found = value.filter(fits);
      if (every) return rest.length === 0 ? found : found.map((item) => select(item, rest)).filter((item) => item !== undefined);
      return found.length === 0 ? undefined : select(found[0], rest);
    }
    return /^\d+$/.test(first) && Number(first) < value.length ? select(value[Number(first)], rest) : undefined;
  }
  if (value === null || typeof value !== "object") return undefined;
  if (Object.hasOwn(value, first)) return select(value[first], rest);
  if (/[*?]/.test(first)) {
    const name = Object.keys(value).find((key) => wild(first).test(key));
    return name === undefined ? undefined : select(value[name], rest);
  }
  return undefined;
};
