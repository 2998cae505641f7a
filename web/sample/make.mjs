// Makes sample/run.json: a run that could have been, with everything that the page must show.
//   node sample/make.mjs [--seconds 90] [--out FILE]
// The same arguments give the same file, byte for byte.

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const option = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
};

/** Small seedable generator (mulberry32). */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const LABELS = [
  { label: 'Login', share: 0.115, us: 1900 }, { label: 'QueryFlight', share: 0.461, us: 820 },
  { label: 'List Bookings', share: 0.092, us: 1100 }, { label: 'View Profile Information', share: 0.115, us: 640 },
  { label: 'Update Customer', share: 0.023, us: 2600 }, { label: 'BookFlight', share: 0.057, us: 2900 },
  { label: 'Cancel Booking', share: 0.042, us: 2700 }, { label: 'logout', share: 0.095, us: 600 },
];
const KEYS = ['p50', 'p90', 'p99', 'p999', 'max'];
const SCENARIO = `# yaml-language-server: $schema=./schema.json
name: airline
description: >
  The airline's web and mobile traffic: users log in, look for flights,
  book one in three times, and log out.
system:
  start: airline
  settings: { durability: synced, customers: 10000 }
load:
  model: open
  arrivals: poisson
  phases:
    - warm-up: 10s at 2k/s
    - ramp: 5s from 2k/s to 10k/s
    - hold: 75s at 10k/s
objectives:
  - p99 < 50ms
  - errors < 0.1%
  - lost = 0
session:
  - POST /rest/api/login:
      label: Login
      form: { login: "uid\${user}@email.com", password: password }
      check: { status: 200, body: "logged in" }
  - sometimes: { every: [3rd, 7th, 11th] }
    steps:
      - POST /rest/api/flights/queryflights: { label: QueryFlight }
# a line that must stay text: <script>alert("no")</script> & <b>bold</b>
`;

/**
 * A run of so many seconds that freezes for a second two thirds through. `failing`: 'some' have no good answer, 'many'
 * (in the last third one in five), 'none', or 'all'.
 */
export function makeRun(seconds = 90, seed = 7, failing = 'some') {
  const random = generator(seed);
  const gauss = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const around = (value, spread) => Math.max(0, Math.round(value * (1 + spread * gauss())));
  const warm = Math.min(10, Math.floor(seconds / 6));
  const ramp = Math.min(5, Math.floor(seconds / 12));
  const freeze = seconds >= 20 ? Math.floor(seconds * 0.66) : -1;
  const rewrite = seconds >= 40 ? Math.floor(seconds * 0.4) : -1;
  const offered = (s) => (s < warm ? 2000 : s < warm + ramp ? 2000 + (8000 * (s - warm + 0.5)) / ramp : 10000);

  const bounds = [];
  for (let us = 100; us < 4e6; us *= 10 ** (1 / 16)) bounds.push(Math.round(us));
  const run = {
    format: 1, seconds: [], series: {}, steps: LABELS.map(({ label }) => ({ label, achieved_per_s: [], p50_us: [], p99_us: [] })),
    heatmap: { bounds_us: bounds, cells: [], failed: [] }, error_series: { status: [], timeout: [] },
  };
  for (const name of ['offered_per_s', 'achieved_per_s', 'errors_per_s', 'dropped_per_s', 'in_flight', 'waiting', 'connections', 'lag_p99_us', 'received_bytes_per_s', 'sent_bytes_per_s']) run.series[name] = [];
  for (const name of ['response_time_us', 'service_time_us']) run.series[name] = Object.fromEntries(KEYS.map((key) => [key, []]));

  const sorted = { response: [], service: [] };
  const total = { offered: 0, good: 0, status: 0, timeout: 0, dropped: 0 };
  for (let s = 0; s < seconds; s += 1) {
    run.seconds.push(s);
    const due = around(offered(s), 0.01);
    const frozen = s === freeze;
    const after = s === freeze + 1;
    const slow = s >= rewrite && s < rewrite + 6 && rewrite > 0 ? 2.2 : 1;
    const cold = s < 4 ? 3.2 - 0.6 * s : 1;
    const ended = frozen ? 0 : after ? Math.round(due * 1.93) : around(due, 0.006);
    const some = failing === 'none' ? 0 : 1;
    const status = failing === 'all' ? ended : some * (frozen ? 0 : slow > 1 ? around(14, 0.4) : random() < 0.15 ? 1 : 0);
    const timeout = failing === 'all' ? 0 : failing === 'many' && s >= seconds * 0.62 ? Math.round(ended * (0.1 + 0.2 * random())) : some * (after ? 41 : 0);
    const dropped = some * (after ? 120 : 0);
    const failed = status + timeout + dropped;
    const done = ended - status - timeout;
    if (failed > 0) run.heatmap.failed.push([s, failed]);
    const measured = s >= warm + ramp;
    if (measured) {
      total.offered += due; total.good += done; total.status += status; total.timeout += timeout; total.dropped += dropped;
    }
    const sample = { response: [], service: [] };
    for (let i = 0; i < (done > 0 ? 500 : 0); i += 1) {
      const label = LABELS[Math.floor(random() * LABELS.length)];
      let service = label.us * 0.8 * cold * slow * Math.exp(0.42 * gauss() + (random() < 0.012 ? 1.5 + random() : 0) + (random() < 0.0015 ? 2.2 : 0));
      if (after && random() < 0.006) service += 1e6;
      const wait = after && random() < 0.5 ? random() * 1e6 : 25 + 30 * random();
      sample.service.push(Math.round(service));
      sample.response.push(Math.round(service + wait));
    }
    for (const kind of ['response', 'service']) {
      const values = sample[kind].sort((a, b) => a - b);
      // Of all that ended or were given up: beyond the good answers nothing is reached.
      const part = done + failed > 0 ? done / (done + failed) : 0;
      const at = (p) => (values.length && p <= part ? values[Math.min(values.length - 1, Math.floor((p / part) * values.length))] : null);
      const out = run.series[`${kind}_time_us`];
      [0.5, 0.9, 0.99, 0.998].forEach((p, index) => out[KEYS[index]].push(at(p)));
      out.max.push(values.length && failed === 0 ? Math.round(values.at(-1) * (1.05 + random())) : null);
      if (measured) sorted[kind].push(...values);
    }
    const cells = new Map();
    for (const us of sample.response) {
      const bucket = bounds.findLastIndex((bound) => bound <= us);
      if (bucket >= 0) cells.set(bucket, (cells.get(bucket) ?? 0) + done / 500);
    }
    for (const [bucket, requests] of [...cells].sort((a, b) => a[0] - b[0])) run.heatmap.cells.push([s, bucket, Math.max(1, Math.round(requests))]);

    const put = (name, value) => run.series[name].push(value);
    put('offered_per_s', due); put('achieved_per_s', done); put('errors_per_s', status + timeout); put('dropped_per_s', dropped);
    put('in_flight', frozen ? 256 : around(9 * slow * (due / 10000), 0.3)); put('waiting', frozen ? due - 256 : 0);
    put('connections', s < 1 ? 180 : 256); put('lag_p99_us', around(46, 0.15) + (after ? 900 : 0));
    put('received_bytes_per_s', done * 812); put('sent_bytes_per_s', done * 341);
    run.error_series.status.push(status); run.error_series.timeout.push(timeout);
    LABELS.forEach(({ share, us }, index) => {
      const step = run.steps[index];
      step.achieved_per_s.push(frozen ? 0 : around(done * share, 0.03));
      step.p50_us.push(frozen ? null : around(us * slow * cold, 0.04));
      step.p99_us.push(frozen ? null : around(us * slow * cold * 3.4 * (after ? 60 : 1), 0.12));
    });
  }

  const requests = total.good + total.status + total.timeout;
  const due = requests + total.dropped;
  const failed = due - total.good;
  const part = due > 0 ? total.good / due : 0;
  // Of the good answers, and of so large a share of all.
  const latency = (values, factor = 1, part = 1) => {
    const at = (p) => (values.length && p <= part ? Math.round(values[Math.min(values.length - 1, Math.floor((p / part) * values.length))] * factor) : null);
    const mean = values.length && part === 1 ? (values.reduce((sum, value) => sum + value, 0) / values.length) * factor : null;
    return { min: values.length ? Math.round(values[0] * factor) : null, mean, p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), p999: at(0.999), max: at(1) };
  };
  for (const values of Object.values(sorted)) values.sort((a, b) => a - b);
  const curve = (values) => {
    const points = [];
    for (let tail = 1; tail > 1 / Math.max(1, values.length); tail *= 0.86) points.push([100 * part * (1 - tail), values[Math.floor((1 - tail) * values.length)] ?? 0]);
    return values.length ? [...points, [100 * part, values.at(-1)]] : [];
  };
  run.percentiles = { response_time_us: curve(sorted.response), service_time_us: curve(sorted.service) };

  const process = (name, cpu, rss) => {
    const out = { name };
    const fill = (key, value) => { out[key] = run.seconds.map((s) => Math.round(value(s, offered(s) / 10000) * 1000) / 1000); };
    const frozen = (s) => (name === 'system' && s === freeze ? 0.02 : 1);
    fill('cpu_share', (s, load) => cpu * (0.1 + 0.9 * load) * (1 + 0.03 * gauss()) * frozen(s));
    fill('cpu_system_share', (s, load) => cpu * 0.45 * (0.1 + 0.9 * load) * (1 + 0.03 * gauss()) * frozen(s));
    fill('rss_bytes', (s) => Math.round(rss * (1 + 0.5 * (1 - Math.exp(-s / 30)))));
    fill('threads', () => (name === 'driver' ? 3 : 6));
    fill('voluntary_switches', (s, load) => around(9000 * cpu * load * frozen(s), 0.06));
    fill('involuntary_switches', (s, load) => around(70 * cpu * load, 0.3));
    fill('disk_read_bytes', () => 0);
    fill('disk_written_bytes', (s, load) => (name === 'driver' ? 0 : around(5.4e6 * load * frozen(s) + (s >= rewrite && s < rewrite + 6 ? 3.1e7 : 0), 0.1)));
    fill('net_received_bytes', (s, load) => (name === 'machine' ? around(1.15e7 * load, 0.02) : 0));
    fill('net_sent_bytes', (s, load) => (name === 'machine' ? around(1.15e7 * load, 0.02) : 0));
    fill('steal_share', () => (name === 'machine' ? Math.max(0, 0.02 + 0.02 * gauss()) : 0));
    return out;
  };
  run.processes = [process('system', 1.72, 1.4e8), process('driver', 0.81, 4.1e7), process('machine', 2.71, 2.6e9)];

  const measured_s = Math.max(1, seconds - warm - ramp);
  const none = latency([]);
  const errors = Object.fromEntries(Object.entries({ status: total.status, timeout: total.timeout }).filter(([, value]) => value > 0));
  const response = latency(sorted.response, 1, part);
  const ms = (us) => (us === null ? `not reached: ${((100 * failed) / due).toFixed(2)}% had no good answer` : `${(us / 1000).toFixed(1)}ms`);
  const share = due > 0 ? failed / due : 0;
  const objectives = [
    { objective: 'p99 < 50ms', met: response.p99 !== null && response.p99 < 50_000, measured: ms(response.p99) },
    { objective: 'lost = 0', met: true, measured: '0' },
    { objective: 'errors < 0.1%', met: share < 0.001, measured: `${(100 * share).toFixed(3)}%`, default: true },
    { objective: 'achieved > 99% of offered', met: total.good > 0.99 * total.offered, measured: `${((100 * total.good) / Math.max(1, total.offered)).toFixed(1)}%`, default: true },
  ];
  const missed = objectives.filter((it) => !it.met).map((it) => `${it.objective} missed: ${it.measured}`);
  const knownAfter = { status: { ...none, min: 610, mean: 900.5, p50: 850, p90: 1400, p95: 1500, p99: 2100, p999: 2500, max: 2500 }, timeout: { ...none, min: 1_000_010, mean: 1_000_447, p50: 1_000_447, p90: 1_000_500, p95: 1_000_510, p99: 1_000_900, p999: 1_001_210, max: 1_001_210 } };
  run.errors = Object.entries(errors).map(([kind, count]) => ({
    kind, count, known_after_us: knownAfter[kind],
    examples: kind === 'status'
      ? [0, 1, 2].map((i) => ({ at_s: Math.max(0, rewrite) + 0.213 * (i + 1), label: i === 1 ? 'BookFlight' : 'Login', detail: '503 Service Unavailable: <html><body><h1>overloaded & "busy"</h1></body></html>' }))
      : [{ at_s: freeze + 1.02, label: 'QueryFlight', detail: 'no whole answer within 1s (received 0 bytes)' }],
  }));
  if (total.dropped > 0) run.errors.push({ kind: 'dropped', count: total.dropped, known_after_us: none, examples: [] });
  run.events = [
    { at_s: -2.31, kind: 'started', text: 'system started: tidemark serve airline, process 4711' },
    { at_s: -1.204, kind: 'ready', text: 'system answers on /health after 1.1 s; 10,000 customers loaded' },
    { at_s: 0, kind: 'phase', text: 'warm-up begins' },
    { at_s: warm, kind: 'phase', text: 'ramp begins' },
    { at_s: warm + ramp, kind: 'phase', text: 'hold begins: the measured window' },
    ...(rewrite > 0 ? [{ at_s: rewrite + 0.1, kind: 'bound', text: 'the store rewrites its log' }] : []),
    ...(freeze > 0 ? [{ at_s: freeze + 0.02, kind: 'fault', text: 'system frozen for 1 s (SIGSTOP)' }, { at_s: freeze + 1.02, kind: 'ready', text: 'system runs again (SIGCONT)' }] : []),
    { at_s: seconds, kind: 'stopped', text: 'system stopped after finishing what was in flight' },
  ];
  run.scenario = SCENARIO;
  const summary = {
    verdict: { status: missed.length > 0 ? 'fail' : 'pass', reasons: missed },
    offered_per_s: total.offered / measured_s, achieved_per_s: total.good / measured_s, measured_s, requests,
    errors, dropped: total.dropped, failed,
    failures: run.errors.map(({ kind, count, known_after_us }) => ({ kind, count, share: count / due, known_after_us })).sort((a, b) => b.count - a.count),
    response_time_us: response, service_time_us: latency(sorted.service, 1, part), response_time_less_lag_us: latency(sorted.response, 1, part),
    good: { requests: total.good, response_time_us: latency(sorted.response), service_time_us: latency(sorted.service) },
    steps: LABELS.map(({ label, share, us }, index) => {
      const errors = failing === 'all' ? { status: Math.round(requests * share) }
        : index === 0 && total.status > 1 ? { status: total.status - 1 } : index === 5 && total.status > 1 ? { status: 1 } : index === 1 && total.timeout ? { timeout: total.timeout } : {};
      const of = Math.round(requests * share);
      const good = of - Object.values(errors).reduce((sum, value) => sum + value, 0);
      return {
        label, requests: of, share, achieved_per_s: good / measured_s, errors,
        response_time_us: latency(sorted.response, us / 1100, of > 0 ? good / of : 0), service_time_us: latency(sorted.service, us / 1100, of > 0 ? good / of : 0),
        good: { requests: good, response_time_us: latency(sorted.response, us / 1100), service_time_us: latency(sorted.service, us / 1100) },
      };
    }),
    processes: [{ name: 'system', cpu_s: 1.71 * measured_s, cpu_share: 1.71, rss_bytes_max: 2.1e8 }, { name: 'driver', cpu_s: 0.81 * measured_s, cpu_share: 0.81, rss_bytes_max: 6.1e7 }],
    driver: { cpu_s: 0.81 * measured_s, threads: 2, busiest_thread_share: 0.42, lag_us: { min: 1, mean: 18.2, p50: 14, p90: 31, p95: 38, p99: 47, p999: 260, max: 1210 },
      lag_histogram: [[5, 10, 90_000], [10, 20, 520_000], [20, 50, 120_000], [50, 100, 2_400], [100, 200, 800], [200, 500, 160], [500, 1000, 12], [1000, 2000, 3]].map(([from_us, to_us, count]) => ({ from_us, to_us, count })),
      late: 3, cpu_share_by_thread: [0.42, 0.39], wanted_share: 0.45, waited_share: 0.021, core_wait_us: 14.2, steal_share: 0,
      read_lag_us: { min: 0, mean: 11.9, p50: 9, p90: 22, p95: 29, p99: 51, p999: 190, max: 640 }, busiest: [{ name: 'airline', cores: 1.71 }, { name: 'java', cores: 0.12 }] },
    steady_state: { steady: false, reason: 'the median response time rose from about 820us to 1.1ms, by 224us a minute, over the 75 s measured; a longer or a later run gives other figures', p50_us_each_minute: 224 },
    ledger: {
      sent: 74225, acknowledged: 74210, found: 74210, lost: 0, duplicated: 0, unacknowledged_found: 3, different: 0, foreign: 0, counted: 74213,
      took_s: 0.84, verified_at: '2026-01-31T14:06:51Z', lost_when: [], torn: 0,
      examples: [{ kind: 'unacknowledged_found', entry: '0000000000041377', sent_us: [61_000_000, 62_000_000] }],
    },
    faults: freeze > 0 ? [{
      fault: 'freeze system for 1s', kind: 'freeze', target: 'system', begin_us: freeze * 1e6 + 20_000, healed_us: freeze * 1e6 + 1_020_000,
      dip: { before_per_s: 9998.2, lowest_per_s: 0, depth: 1, length_s: 1, recovery_s: 0, errors: 0, dropped: 0, backlog_max: 10_044, seen_s: seconds - freeze - 0.02 },
    }] : [],
    run_dir: 'runs/2026-01-31T14-05-09Z-airline',
  };
  run.manifest = {
    format: 1, id: '2026-01-31T14-05-09Z-airline', scenario: 'airline',
    description: 'The airline’s web and mobile traffic: users log in, look for flights, book one in three times, and log out.',
    command: ['tidemark', 'run', 'airline', '--rate', '10k/s', '--for', `${seconds}s`, '--set', 'customers=10000', '--pin', 'driver=2,3', '--pin', 'system=0,1'],
    started_at: '2026-01-31T14:05:09.120Z', seed: 42, version: '0.1.0', git_revision: '8a117a1c0ffee',
    machine: { cpu_model: 'AMD EPYC 9R14', cores: 4, memory_bytes: 16_515_072_000, kernel: 'Linux 6.1.0', os: 'Debian GNU/Linux 12 (bookworm)', open_files_limit: 65536, load_average_1m: 0.31, steal_share: 0.021 },
    system: {
      name: 'airline', url: 'http://127.0.0.1:34117', command: ['tidemark', 'serve', 'airline', '--listen', '127.0.0.1:0', '--durability', 'synced'],
      settings: { customers: '10000', days: '30', durability: 'synced' }, durability: 'synced',
      sync_latency: { path: 'runs/2026-01-31T14-05-09Z-airline/data', count: 180, p50_us: 412, p99_us: 2210, max_us: 9120 }, pinned_to: [0, 1],
    },
    load: 'open, Poisson arrivals', driver_pinned_to: [2, 3],
    phases: [
      { name: 'warm-up', start_us: 0, end_us: warm * 1e6, measured: false, level: '2k/s' },
      { name: 'ramp', start_us: warm * 1e6, end_us: (warm + ramp) * 1e6, measured: false, level: '2k/s to 10k/s' },
      { name: 'hold', start_us: (warm + ramp) * 1e6, end_us: seconds * 1e6, measured: true, level: '10k/s' },
    ].filter((phase) => phase.end_us > phase.start_us),
    labels: LABELS.map(({ label }) => label),
    objectives,
    error_examples: [], interrupted: false, notes: [], summary,
  };
  const operations = operationsOf(seconds, warm + ramp, freeze, offered, failing, run.manifest);
  return { format: 1, bin_s: 1, manifest: run.manifest, ...run, operations, operations_left_out: 0 };
}

/** Entity, operation, how many for each request, median in microseconds. */
const OPERATIONS = [
  ['Booking', 'delete', 0.042, 1900], ['Booking', 'load', 0.092, 310], ['Booking', 'store', 0.057, 2100], ['Customer', 'load', 0.23, 240],
  ['Customer', 'store', 0.023, 1800], ['Flight', 'search', 0.461, 410], ['Login', 'request', 0.115, 1400], ['Session', 'load', 0.82, 92], ['Session', 'store', 0.115, 980],
];

/** What the system says that it did. */
function operationsOf(seconds, from, freeze, offered, failing, manifest) {
  const random = generator(11);
  return OPERATIONS.map(([entity, operation, share, us]) => {
    const series = { per_s: [], median_us: [], p95_us: [], p99_us: [] };
    for (let s = 0; s < seconds; s += 1) {
      const still = s === freeze;
      const slow = (freeze >= 0 && s === freeze + 1 ? 6 : 1) * (1 + 0.15 * random());
      series.per_s.push(still ? 0 : Math.round(offered(s) * share));
      series.median_us.push(still ? null : Math.round(us * slow));
      series.p95_us.push(still ? null : Math.round(us * slow * 2.6));
      series.p99_us.push(still ? null : Math.round(us * slow * 4.4));
    }
    const count = series.per_s.slice(from).reduce((sum, value) => sum + value, 0);
    const figures = (factor, errors) => ({
      count, errors, per_s: count / Math.max(1, seconds - from), mean_us: errors > 0 ? null : us * 1.3 * factor, median_us: Math.round(us * 1.07 * factor), p95_us: Math.round(us * 2.8 * factor), p99_us: Math.round(us * 5 * factor),
    });
    const seen = manifest.labels.includes(entity);
    return { entity, operation, measured: figures(1, failing !== 'none' && operation === 'store' ? 3 : 0), driver: seen ? figures(1.4, 0) : null, ...series };
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const out = option('out', fileURLToPath(new URL('./run.json', import.meta.url)));
  writeFileSync(out, `${JSON.stringify(makeRun(Number(option('seconds', 90))))}\n`);
}
