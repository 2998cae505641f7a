const host = globalThis.__k6;

const of = (make) =>
  Object.defineProperties({}, Object.fromEntries(Object.keys(make).map((name) => [name, { get: make[name], enumerable: true }])));

export const scenario = of({
  name: () => host.info().scenario,
  executor: () => host.info().executor,
  startTime: () => host.info().startTime,
  progress: () => host.info().progress,
  iterationInInstance: () => host.info().iterationInScenario,
  iterationInTest: () => host.info().iterationInScenario,
});

export const instance = of({
  iterationsCompleted: () => host.info().iterationsCompleted,
  iterationsInterrupted: () => host.info().iterationsInterrupted,
  vusActive: () => host.info().vusActive,
  vusInitialized: () => host.info().vus,
  currentTestRunDuration: () => host.now(),
});

const own = {};
const tags = new Proxy(own, {
  set(target, name, value) {
    if (!["string", "number", "boolean"].includes(typeof value)) {
      throw new TypeError(`invalid value for the tag '${String(name)}': a string, a number or a boolean is expected`);
    }
    target[name] = String(value);
    host.vu.tags[name] = target[name];
    host.vu.hasTags = true;
    host.unusual();
    return true;
  },
  deleteProperty(target, name) {
    delete target[name];
    delete host.vu.tags[name];
    return true;
  },
});

// those of the options, by scenario
const given = {};
// with what k6 itself says
const told = () => {
  const { scenario } = host.info();
  if (!(scenario in given)) {
    const { tags, scenarios } = JSON.parse(host.options());
    const all = Object.entries({ ...tags, ...scenarios?.[scenario]?.tags });
    given[scenario] = Object.fromEntries(all.map(([name, value]) => [name, String(value)]));
  }
  Object.assign(own, given[scenario], { group: host.vu.group }, scenario && { scenario }, host.vu.tags);
  return tags;
};

export const vu = of({
  idInInstance: () => globalThis.__VU,
  idInTest: () => globalThis.__VU,
  iterationInInstance: () => globalThis.__ITER,
  iterationInScenario: () => globalThis.__ITER,
  tags: told,
  metrics: () => ({ tags: told(), metadata: {} }),
});

export const test = {
  abort(words) {
    host.abort(words === undefined ? "test aborted" : String(words));
  },
  fail(words) {
    host.failTest(words === undefined ? "test failed" : String(words));
  },
  get options() {
    return JSON.parse(host.options());
  },
};

export default { scenario, instance, vu, test };
