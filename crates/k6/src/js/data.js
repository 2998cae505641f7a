const host = globalThis.__k6;

const frozen = (value) => {
  if (value !== null && typeof value === "object") Object.values(value).forEach(frozen);
  return Object.freeze(value);
};

export class SharedArray {
  constructor(name, make) {
    if (typeof name !== "string" || name === "") throw new Error("empty name provided to SharedArray's constructor");
    if (typeof make !== "function") throw new TypeError("a function is expected as the second argument of SharedArray's constructor");
    const id = host.shared(name, () => {
      const made = make();
      if (!Array.isArray(made)) throw new TypeError("only arrays can be made into SharedArray");
      return made.map((item) => JSON.stringify(item === undefined ? null : item));
    });
    const length = host.sharedLength(id);
    const at = (index) => (index >= 0 && index < length ? frozen(JSON.parse(host.sharedItem(id, index))) : undefined);
    const refuse = () => {
      throw new TypeError("SharedArray is immutable");
    };
    return new Proxy([], {
      get(target, key, self) {
        if (key === "length") return length;
        if (typeof key === "string" && /^\d+$/.test(key)) return at(Number(key));
        if (key === Symbol.iterator) {
          return function* () {
            for (let index = 0; index < length; index += 1) yield at(index);
          };
        }
        return Reflect.get(target, key, self);
      },
      has: (target, key) => (typeof key === "string" && /^\d+$/.test(key) ? Number(key) < length : key in target),
      set: refuse,
      deleteProperty: refuse,
      defineProperty: refuse,
    });
  }
}

export default { SharedArray };
