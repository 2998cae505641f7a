// What a script finds in a run without a network: answers of which every field is there.
const host = globalThis.__k6;

// something of which every field is there
const anything = (depth) =>
  new Proxy(function () {}, {
    get(target, key) {
      if (key === Symbol.toPrimitive) return (hint) => (hint === "number" ? 1 : "1");
      if (key === Symbol.iterator) return function* () { if (depth < 4) yield anything(depth + 1); };
      if (key === "toString" || key === "toJSON") return () => "1";
      if (key === "length") return 1;
      if (key === "then") return undefined;
      if (key in Array.prototype && typeof Array.prototype[key] === "function") {
        return (...values) => Array.prototype[key].apply(depth < 4 ? [anything(depth + 1)] : [], values);
      }
      return depth < 12 ? anything(depth + 1) : undefined;
    },
    apply: () => anything(depth + 1),
    has: () => true,
    ownKeys: () => ["prototype"],
  });
host.anything = anything(0);
const parse = JSON.parse;
JSON.parse = (text, ...more) => (text === host.rehearsalBody ? host.anything : parse(text, ...more));
