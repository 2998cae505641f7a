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

const tags = new Proxy({}, {
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

export const vu = of({
  idInInstance: () => globalThis.__VU,
  idInTest: () => globalThis.__VU,
  iterationInInstance: () => globalThis.__ITER,
  iterationInScenario: () => globalThis.__ITER,
  tags: () => tags,
  metrics: () => ({ tags, metadata: {} }),
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
