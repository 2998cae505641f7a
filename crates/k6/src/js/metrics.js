const host = globalThis.__k6;
const { vu } = host;

class Metric {
  constructor(name, kind, isTime) {
    this.name = name;
    this.id = host.metric(String(name), kind, Boolean(isTime));
  }

  add(value, tags) {
    const number = Number(value);
    if (value === null || value === undefined || Number.isNaN(number)) {
      host.log("warning", `'${value}' is an invalid value for metric '${this.name}', a number or a boolean value is expected`);
      return false;
    }
    host.add(this.id, number, tags || vu.hasTags ? host.tags(tags) : "");
    return true;
  }
}

export class Counter extends Metric {
  constructor(name, isTime) {
    super(name, "counter", isTime);
  }
}

export class Gauge extends Metric {
  constructor(name, isTime) {
    super(name, "gauge", isTime);
  }
}

export class Rate extends Metric {
  constructor(name, isTime) {
    super(name, "rate", isTime);
  }
}

export class Trend extends Metric {
  constructor(name, isTime) {
    super(name, "trend", isTime);
  }
}

export default { Counter, Gauge, Rate, Trend };
