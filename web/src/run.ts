/**
 * What a run is, as the page gets it: the types mirror the names that the recorder writes,
 * and `readRun` makes a whole value out of whatever stands in the page. Older or cut-short
 * runs lack parts; a missing part becomes empty, never an exception.
 */

import { billOf, cpuOf, type Bill, type TierCpu } from './bill';
import { list, number, numberOrNull, object, text, type Loose } from './loose';
import { scriptOf, type ScriptFigures } from './script';

export type Status = 'pass' | 'fail' | 'invalid';

/** One entry for each bin of time; null where there is nothing to say. */
export type Series = (number | null)[];

/** Counts by kind of failure. */
export type Counts = Record<string, number>;

/** Microseconds; null what is not reached, or of nothing: a request without a good answer is slower than every bound. */
export interface Latency {
  min: number | null;
  mean: number | null;
  p50: number | null;
  p90: number | null;
  /** Runs of before have none. */
  p95: number | null;
  p99: number | null;
  p999: number | null;
  max: number | null;
}

/** The good answers by themselves. */
export interface Good {
  requests: number;
  response_time_us: Latency;
  service_time_us: Latency;
}

/** The requests without a good answer, of one kind. */
export interface Failure {
  kind: string;
  count: number;
  /** Of all that were due. */
  share: number;
  /** How long after they were due; null for what was dropped. */
  known_after_us: Latency;
}

/** A part of the time of the good answers. */
export interface Part {
  /** Over all of them. */
  mean_us: number;
  /** Of how many it is known to be a part of its own. */
  count: number;
  /** Over these; null of the wait, which is what remains. */
  times_us: Latency | null;
}

export type PartName = 'wait' | 'connect' | 'handshake' | 'first_byte' | 'transfer';
/** Where the time of the good answers went; the means add up to their mean response time. */
export type Parts = Record<PartName, Part>;

/** One of the slowest requests that were answered; null what was no part of it. */
export type Slow = { label: string; due_us: number; response_time_us: number; outcome: string; status: number | null; thread: number; connection: number }
  & Record<`${PartName}_us`, number | null>;

export interface Step {
  label: string;
  requests: number;
  share: number;
  achieved_per_s: number;
  errors: Counts;
  response_time_us: Latency;
  service_time_us: Latency;
  good: Good;
  /** Where the time went; null in runs of before, and of none. */
  parts: Parts | null;
}

/** Several steps together. */
export interface Group {
  group: string;
  count: number;
  achieved_per_s: number;
  errors: Counts;
  response_time_us: Latency;
}

/** What the scenario measured itself. */
export interface OwnMetric {
  metric: string;
  /** A counter has a sum, and no distribution. */
  kind: 'histogram' | 'counter';
  unit: string;
  count: number;
  sum: number;
  /** How many numbers each second; of a counter how much it counted. */
  per_s: number;
  values: Latency;
  /** How often there was no number. */
  no_number: number;
  example: string;
}

/** A ratio of what was counted: sums of counters and labels. */
export interface Ratio {
  name: string;
  of: string[];
  per: string[];
  /** None where it was divided by 0. */
  value: number | null;
  as: 'plain' | 'percent';
}

export interface ProcessSummary {
  name: string;
  cpu_s: number;
  cpu_share: number;
  rss_bytes_max: number;
}

/** What an agent of a fleet came to. */
export interface Agent {
  agent: string;
  threads: number;
  requests_per_s: number;
  cpu_share: number;
  late_share: number;
  lag_max_us: number;
  clock_offset_us: number;
  clock_bound_us: number;
  lost: string | null;
  /** What makes it the odd one out. */
  odd: string | null;
}

export interface Driver {
  cpu_s: number;
  threads: number;
  busiest_thread_share: number;
  lag_us: Latency;
  lag_histogram: LagClass[];
  /** Requests that left a millisecond or more after they were due. */
  late: number;
  cpu_share_by_thread: number[];
  /** Ready to run without a core; null where the operating system does not say. */
  waited_share: number | null;
  core_wait_us: number | null;
  /** How late answers were read; null where the system does not tell. */
  read_lag_us: Latency | null;
  /** What held it up, a sentence each: the figures are then bounds. */
  limits: string[];
  /** Who else used the machine's cores. */
  busiest: { name: string; cores: number }[];
  /** Of a fleet. */
  agents: Agent[];
}

/** Requests that left at least `from_us` and less than `to_us` late. */
export interface LagClass {
  from_us: number;
  to_us: number;
  count: number;
}

/** Whether the measured window was steady; null where that cannot be told. */
export interface SteadyState {
  steady: boolean | null;
  reason: string;
}

export interface Ledger {
  sent: number;
  acknowledged: number;
  torn: number;
  /** Whether the run broke off, so that what was sent last is in none of these numbers. */
  broke_off: boolean;
  /** What was found; null where nobody could look. */
  verified: Verified | null;
  not_verified: string;
}

export interface Verified {
  found: number;
  lost: number;
  duplicated: number;
  unacknowledged_found: number;
  different: number;
  foreign: number;
  /** What the system itself says that it holds, where it was asked. */
  counted: number | null;
  took_s: number;
  verified_at: string;
  lost_when: { from_us: number; to_us: number; lost: number }[];
  examples: EntryExample[];
}

/** A write of which the search tells, and when it was sent. */
export interface EntryExample {
  kind: string;
  entry: string;
  sent_us: [number, number] | null;
}

/** Something that was broken on purpose. Times are microseconds since the run began. */
export interface Fault {
  fault: string;
  kind: string;
  target: string;
  /** Null where it never began. */
  begin_us: number | null;
  /** When it was undone; null where it was not. */
  healed_us: number | null;
  /** When what was started again was ready. */
  ready_us: number | null;
  error: string | null;
  /** Null where there is nothing to hold it against. */
  dip: Dip | null;
}

/** What a fault did to the load. */
export interface Dip {
  before_per_s: number;
  lowest_per_s: number;
  depth: number;
  /** Until the rate was back; null where it was not within `seen_s`. */
  length_s: number | null;
  /** The same from when the fault was undone. */
  recovery_s: number | null;
  errors: number;
  dropped: number;
  backlog_max: number;
  seen_s: number;
}

/** Something that a store did beside its work: a rewrite of its append-only file, a snapshot. */
export interface Maintenance {
  kind: string;
  store: string;
  begin_us: number;
  /** Null where it was not over when the load was. */
  end_us: number | null;
  /** The fault that asked for it; null where none did. */
  fault: string | null;
  fork_us: number | null;
  size_before_bytes: number | null;
  size_after_bytes: number | null;
  error: string | null;
  dip: Dip | null;
  latency: Bump | null;
}

/** A rise of the 99th percentile of the response time. */
export interface Bump {
  before_p99_us: number;
  /** Of a second; null where it was not reached in one. */
  highest_p99_us: number | null;
  ratio: number | null;
  /** Null where it was not back within `seen_s`. */
  length_s: number | null;
  seen_s: number;
}

/** What was due in a phase of the load. */
export interface PhaseFigures {
  name: string;
  level: string;
  measured: boolean;
  from_s: number;
  to_s: number;
  offered_per_s: number;
  achieved_per_s: number;
  /** What was due in it: what ended, and what was dropped. */
  due: number;
  failed: number;
  response_time_us: Latency;
  /** Mean cores; null where nobody looked. */
  system_cores: number | null;
  driver_cores: number | null;
}

export interface Summary {
  verdict: { status: Status; reasons: string[] };
  offered_per_s: number;
  achieved_per_s: number;
  /** What of what was offered was achieved, 0 to 1, as the objective on it has it. */
  achieved_share: number;
  /** What a reader must know before the figures. */
  warnings: string[];
  measured_s: number;
  requests: number;
  errors: Counts;
  /** Answers by status code. */
  statuses: Counts;
  dropped: number;
  /** What was due: what ended, and what was dropped. */
  due: number;
  /** Of that, what had no good answer. */
  failed: number;
  /** Steps of sessions that failed and sent no request: in none of the figures of requests. */
  failed_steps: number;
  failures: Failure[];
  /** Runs of before took their percentiles from the good answers only, and told no failures. */
  of_good_only: boolean;
  response_time_us: Latency;
  service_time_us: Latency;
  /** With the driver's own share taken out: where it differs, the truth lies between the two. */
  response_time_less_lag_us: Latency;
  good: Good;
  parts: Parts | null;
  slowest: Slow[];
  steps: Step[];
  /** By target, whose name is the label; none where all requests went to one. */
  targets: Step[];
  /** Several steps together, none of which is a request; none where the scenario has no groups. */
  groups: Group[];
  /** The phases of the load, those that are not measured included; none in runs of before. */
  phases: PhaseFigures[];
  /** What the scenario measured itself; none where it measures nothing. */
  metrics: OwnMetric[];
  /** None where the scenario asks for none. */
  ratios: Ratio[];
  processes: ProcessSummary[];
  driver: Driver;
  faults: Fault[];
  maintenance: Maintenance[];
  ledger: Ledger | null;
  run_dir: string;
  steady_state: SteadyState | null;
}

export interface Machine {
  cpu_model: string;
  cores: number;
  memory_bytes: number;
  kernel: string;
  os: string;
  open_files_limit: number;
  load_average_1m: number;
  steal_share: number;
}

export interface SyncLatency {
  path: string;
  count: number;
  p50_us: number;
  p99_us: number;
  max_us: number;
}

export interface System {
  name: string;
  url: string;
  /** What was agreed on with it, for a person. */
  spoken: string[];
  command: string[];
  settings: Record<string, string>;
  durability: string | null;
  sync_latency: SyncLatency | null;
  pinned_to: number[];
}

export interface Phase {
  name: string;
  start_us: number;
  end_us: number;
  measured: boolean;
  level: string;
}

export interface ObjectiveResult {
  objective: string;
  met: boolean;
  measured: string;
  /** Nobody asked for it: each run is judged by it where its scenario says nothing on the matter. */
  default: boolean;
  /** The driver's own fault could have changed the answer: neither met nor missed. */
  undecided: boolean;
  /** Why; empty where it is decided. */
  undecided_by: string;
}

/** What was looked for, and what was found there. */
export interface Watched {
  name: string;
  what: string;
  found: string;
}

export interface Manifest {
  format: number;
  id: string;
  scenario: string;
  description: string;
  command: string[];
  started_at: string;
  /** Text, because a 64-bit seed does not fit a JavaScript number. */
  seed: string;
  version: string;
  git_revision: string | null;
  machine: Machine;
  system: System;
  load: string;
  driver_pinned_to: number[];
  phases: Phase[];
  labels: string[];
  /** Where requests went beside the system. */
  targets: { name: string; url: string; protocol: string }[];
  /** Parts of the system that were started in instances. */
  services: { name: string; driven: boolean; instances: number; balancer: string }[];
  /** What the run did not start, and looked at all the same. */
  watched: Watched[];
  objectives: ObjectiveResult[];
  interrupted: boolean;
  /** Why it ended before its time by itself; empty where it did not. */
  cut_short: string;
  notes: string[];
  /** Null where no price file was given. */
  bill: Bill | null;
  /** Null where the run has no script that measures something itself. */
  script: ScriptFigures | null;
  summary: Summary;
}

export const PERCENTILES = ['p50', 'p90', 'p99', 'p999', 'max'] as const;
export type Percentile = (typeof PERCENTILES)[number];
export type LatencySeries = Record<Percentile, Series>;

const RUN_SERIES = [
  'offered_per_s', 'achieved_per_s', 'errors_per_s', 'dropped_per_s', 'in_flight', 'waiting', 'connections',
  'lag_p99_us', 'received_bytes_per_s', 'sent_bytes_per_s', 'encoded_bytes_per_s', 'decoded_bytes_per_s',
] as const;
export type RunSeries = Record<(typeof RUN_SERIES)[number], Series> & {
  response_time_us: LatencySeries;
  service_time_us: LatencySeries;
};

const PROCESS_SERIES = [
  'cpu_share', 'cpu_system_share', 'rss_bytes', 'threads', 'voluntary_switches', 'involuntary_switches',
  'disk_read_bytes', 'disk_written_bytes', 'net_received_bytes', 'net_sent_bytes', 'steal_share',
] as const;
/** Counters (switches, bytes) are per second, whatever the width of a bin. */
export type ProcessSeries = Record<(typeof PROCESS_SERIES)[number], Series> & { name: string };

const OWN_SERIES = ['per_s', 'p50', 'p99', 'max'] as const;
/** What the scenario measured itself, over time; of a counter only how much each second. */
export type OwnSeries = Record<(typeof OWN_SERIES)[number], Series> & Pick<OwnMetric, 'metric' | 'unit' | 'kind'>;

export interface StepSeries {
  label: string;
  achieved_per_s: Series;
  p50_us: Series;
  p99_us: Series;
}

/** Operations of one kind in figures. */
export interface OperationFigures {
  count: number;
  errors: number;
  per_s: number;
  /** Null where it is not reached: a failed operation is slower than every bound. */
  mean_us: number | null;
  median_us: number | null;
  p95_us: number | null;
  p99_us: number | null;
}

const OPERATION_SERIES = ['per_s', 'median_us', 'p95_us', 'p99_us'] as const;
/** What the system says that it did with an entity. */
export type OperationSeries = Record<(typeof OPERATION_SERIES)[number], Series> & {
  entity: string;
  operation: string;
  measured: OperationFigures;
  /** As the driver saw the same; null where it did not. */
  driver: OperationFigures | null;
};

/** What a store says of itself over time, or a page of metrics that was watched. */
export interface StoreSeries {
  name: string;
  figures: { figure: string; values: Series }[];
}

export interface ErrorKind {
  kind: string;
  count: number;
  known_after_us: Latency;
  examples: { at_s: number; label: string; detail: string }[];
}

export interface RunEvent {
  at_s: number;
  kind: string;
  text: string;
}

/** Percentile (0 to 100) and its value in microseconds. */
export type PercentilePoint = [number, number];

/** Index into `seconds`, index of the bucket, requests. */
export type HeatCell = [number, number, number];

export interface RunPage {
  format: number;
  /** Width of a bin of time, seconds. */
  bin_s: number;
  manifest: Manifest;
  /** What the times of users who wait for answers leave out; empty of other loads. */
  closed_loop: string;
  /** Good answers that were due in the window and came after it, or the other way round. */
  good_elsewhere: string[];
  seconds: number[];
  series: RunSeries;
  steps: StepSeries[];
  percentiles: { response_time_us: PercentilePoint[]; service_time_us: PercentilePoint[] };
  /** Beside the cells, by index into `seconds`: requests without a good answer. */
  heatmap: { bounds_us: number[]; cells: HeatCell[]; failed: [at: number, requests: number][] };
  /** Empty where the system tells nothing. */
  operations: OperationSeries[];
  /** How many kinds of operations are not shown. */
  operations_left_out: number;
  processes: ProcessSeries[];
  cpu_by_tier: TierCpu[];
  /** Empty where none was asked. */
  stores: StoreSeries[];
  /** Empty where the scenario measures nothing itself. */
  own: OwnSeries[];
  errors: ErrorKind[];
  error_series: Record<string, Series>;
  events: RunEvent[];
  scenario: string;
}

const textOrNull = (value: unknown): string | null => (value === null || value === undefined ? null : text(value));
const numbers = (value: unknown): number[] => list(value).map(number);
const texts = (value: unknown): string[] => list(value).map(text);

function counts(value: unknown): Counts {
  return Object.fromEntries(Object.entries(object(value)).map(([kind, count]) => [kind, number(count)]));
}

const NO_OPERATIONS: OperationFigures = { count: 0, errors: 0, per_s: 0, mean_us: null, median_us: null, p95_us: null, p99_us: null };

/** Null where there are none. */
export function operationFiguresOf(value: unknown): OperationFigures | null {
  if (value === null || value === undefined) return null;
  const it = object(value);
  return {
    count: number(it.count), errors: number(it.errors), per_s: number(it.per_s), mean_us: numberOrNull(it.mean_us),
    median_us: numberOrNull(it.median_us), p95_us: numberOrNull(it.p95_us), p99_us: numberOrNull(it.p99_us),
  };
}

/** Exactly `length` entries, whatever was there. */
export function series(value: unknown, length: number): Series {
  const given = list(value);
  return Array.from({ length }, (_, index) => numberOrNull(given[index]));
}

export function latencyOf(value: unknown): Latency {
  const it = object(value);
  return {
    min: numberOrNull(it.min), mean: numberOrNull(it.mean), p50: numberOrNull(it.p50), p90: numberOrNull(it.p90), p95: numberOrNull(it.p95),
    p99: numberOrNull(it.p99), p999: numberOrNull(it.p999), max: numberOrNull(it.max),
  };
}

export const total = (of: Counts): number => Object.values(of).reduce((sum, value) => sum + value, 0);

/** Runs of before tell nothing of their good answers apart: their percentiles are of these. */
function goodOf(value: unknown, answered: number, response_time_us: Latency, service_time_us: Latency): Good {
  const it = object(value);
  if (answered > 0 && number(it.requests) === 0) return { requests: answered, response_time_us, service_time_us };
  return { requests: number(it.requests), response_time_us: latencyOf(it.response_time_us), service_time_us: latencyOf(it.service_time_us) };
}

const kindOf = (value: unknown): OwnMetric['kind'] => (value === 'counter' ? 'counter' : 'histogram');

export function pointsOf(value: unknown): PercentilePoint[] {
  return list(value).map((pair): PercentilePoint => [number(list(pair)[0]), number(list(pair)[1])]);
}

function latencySeries(value: unknown, length: number): LatencySeries {
  const it = object(value);
  return {
    p50: series(it.p50, length), p90: series(it.p90, length), p99: series(it.p99, length),
    p999: series(it.p999, length), max: series(it.max, length),
  };
}

function readStep(value: unknown): Step {
  const it = object(value);
  const [requests, errors] = [number(it.requests), counts(it.errors)];
  const [response_time_us, service_time_us] = [latencyOf(it.response_time_us), latencyOf(it.service_time_us)];
  return {
    label: text(it.label), requests, share: number(it.share), achieved_per_s: number(it.achieved_per_s), errors,
    response_time_us, service_time_us, good: goodOf(it.good, requests - total(errors), response_time_us, service_time_us),
    parts: partsOf(it.parts),
  };
}

const there = (value: unknown): boolean => value !== null && value !== undefined;

function partsOf(value: unknown): Parts | null {
  if (!there(value)) return null;
  const it = object(value);
  const part = (key: PartName): Part => {
    const of = object(it[key]);
    return { mean_us: number(of.mean_us), count: number(of.count), times_us: there(of.times_us) ? latencyOf(of.times_us) : null };
  };
  return { wait: part('wait'), connect: part('connect'), handshake: part('handshake'), first_byte: part('first_byte'), transfer: part('transfer') };
}

function readSlow(value: unknown): Slow {
  const it = object(value);
  return {
    label: text(it.label), due_us: number(it.due_us), response_time_us: number(it.response_time_us), outcome: text(it.outcome), status: numberOrNull(it.status),
    thread: number(it.thread), connection: number(it.connection), wait_us: number(it.wait_us), connect_us: numberOrNull(it.connect_us),
    handshake_us: numberOrNull(it.handshake_us), first_byte_us: number(it.first_byte_us), transfer_us: number(it.transfer_us),
  };
}

function readLedger(value: unknown): Ledger | null {
  if (value === null || value === undefined) return null;
  const it = object(value);
  return {
    sent: number(it.sent), acknowledged: number(it.acknowledged), torn: number(it.torn), broke_off: it.broke_off === true,
    verified: typeof it.lost === 'number' ? readVerified(it) : null,
    not_verified: text(it.not_verified),
  };
}

function readVerified(it: Loose): Verified {
  return {
    found: number(it.found), lost: number(it.lost), duplicated: number(it.duplicated),
    unacknowledged_found: number(it.unacknowledged_found), different: number(it.different), foreign: number(it.foreign),
    counted: typeof it.counted === 'number' ? it.counted : null,
    took_s: number(it.took_s), verified_at: text(it.verified_at),
    lost_when: list(it.lost_when).map(object).map((when) => ({ from_us: number(when.from_us), to_us: number(when.to_us), lost: number(when.lost) })),
    examples: list(it.examples).map(object).map((example) => {
      const sent = list(example.sent_us);
      return { kind: text(example.kind), entry: text(example.entry), sent_us: sent.length === 2 ? [number(sent[0]), number(sent[1])] : null };
    }),
  };
}

function readFault(value: unknown): Fault {
  const it = object(value);
  return {
    fault: text(it.fault), kind: text(it.kind), target: text(it.target),
    begin_us: numberOrNull(it.begin_us), healed_us: numberOrNull(it.healed_us), ready_us: numberOrNull(it.ready_us),
    error: textOrNull(it.error), dip: readDip(it.dip),
  };
}

function readDip(value: unknown): Dip | null {
  if (value === null || value === undefined) return null;
  const dip = object(value);
  return {
    before_per_s: number(dip.before_per_s), lowest_per_s: number(dip.lowest_per_s), depth: number(dip.depth),
    length_s: numberOrNull(dip.length_s), recovery_s: numberOrNull(dip.recovery_s), errors: number(dip.errors),
    dropped: number(dip.dropped), backlog_max: number(dip.backlog_max), seen_s: number(dip.seen_s),
  };
}

function readMaintenance(value: unknown): Maintenance {
  const it = object(value);
  const bump = it.latency === null || it.latency === undefined ? null : object(it.latency);
  return {
    kind: text(it.kind), store: text(it.store), begin_us: number(it.begin_us), end_us: numberOrNull(it.end_us), fault: textOrNull(it.fault),
    fork_us: numberOrNull(it.fork_us), size_before_bytes: numberOrNull(it.size_before_bytes), size_after_bytes: numberOrNull(it.size_after_bytes),
    error: textOrNull(it.error), dip: readDip(it.dip),
    latency: bump && {
      before_p99_us: number(bump.before_p99_us), highest_p99_us: numberOrNull(bump.highest_p99_us), ratio: numberOrNull(bump.ratio),
      length_s: numberOrNull(bump.length_s), seen_s: number(bump.seen_s),
    },
  };
}

function readSteadyState(value: unknown): SteadyState | null {
  if (value === null || value === undefined) return null;
  const it = object(value);
  return { steady: typeof it.steady === 'boolean' ? it.steady : null, reason: text(it.reason) };
}

function readSummary(value: unknown): Summary {
  const it = object(value);
  const verdict = object(it.verdict);
  const driver = object(it.driver);
  const status = verdict.status;
  // A run whose verdict cannot be read has not shown anything.
  const known = status === 'pass' || status === 'fail' || status === 'invalid';
  const [requests, dropped, errors] = [number(it.requests), number(it.dropped), counts(it.errors)];
  const [response_time_us, service_time_us] = [latencyOf(it.response_time_us), latencyOf(it.service_time_us)];
  // Whoever reads and writes a run of before may have put a zero where there was nothing.
  const [told, counted] = [number(it.failed), total(errors) + dropped];
  return {
    verdict: known
      ? { status, reasons: texts(verdict.reasons) }
      : { status: 'invalid', reasons: ['the run holds no verdict', ...texts(verdict.reasons)] },
    offered_per_s: number(it.offered_per_s), achieved_per_s: number(it.achieved_per_s),
    achieved_share: typeof it.achieved_share === 'number' ? it.achieved_share : number(it.achieved_per_s) / (number(it.offered_per_s) || Infinity),
    warnings: texts(it.warnings),
    measured_s: number(it.measured_s), requests, errors, statuses: counts(it.statuses), dropped, due: requests + dropped,
    failed: told > 0 ? told : counted, failed_steps: number(it.failed_steps), of_good_only: told === 0 && counted > 0,
    failures: list(it.failures).map((entry) => {
      const failure = object(entry);
      return { kind: text(failure.kind), count: number(failure.count), share: number(failure.share), known_after_us: latencyOf(failure.known_after_us) };
    }),
    response_time_us, service_time_us, response_time_less_lag_us: latencyOf(it.response_time_less_lag_us),
    good: goodOf(it.good, requests - total(errors), response_time_us, service_time_us), steps: list(it.steps).map(readStep),
    parts: partsOf(it.parts), slowest: list(it.slowest).map(readSlow),
    targets: list(it.targets).map((entry) => ({ ...readStep(entry), label: text(object(entry).target) })),
    groups: list(it.groups).map((entry) => {
      const of = object(entry);
      return {
        group: text(of.group), count: number(of.count), achieved_per_s: number(of.achieved_per_s), errors: counts(of.errors),
        response_time_us: latencyOf(of.response_time_us),
      };
    }),
    phases: list(it.phases).map((entry) => {
      const of = object(entry);
      const cores = (name: string): number | null => {
        const process = list(of.processes).map(object).find((process) => process.name === name);
        return process ? number(process.cpu_share) : null;
      };
      return {
        name: text(of.name), level: text(of.level), measured: of.measured === true, from_s: number(of.from_s), to_s: number(of.to_s),
        offered_per_s: number(of.offered_per_s), achieved_per_s: number(of.achieved_per_s), due: number(of.requests) + number(of.dropped),
        failed: number(of.failed), response_time_us: latencyOf(of.response_time_us), system_cores: cores('system'), driver_cores: cores('driver'),
      };
    }),
    metrics: list(it.metrics).map((entry) => {
      const of = object(entry);
      return {
        metric: text(of.metric), kind: kindOf(of.kind), unit: text(of.unit), count: number(of.count), sum: number(of.sum), per_s: number(of.per_s),
        values: latencyOf(of.values), no_number: number(of.no_number), example: text(of.example),
      };
    }),
    ratios: list(it.ratios).map((entry) => {
      const of = object(entry);
      return { name: text(of.name), of: texts(of.of), per: texts(of.per), value: numberOrNull(of.value), as: of.as === 'percent' ? 'percent' : 'plain' };
    }),
    processes: list(it.processes).map((entry) => {
      const process = object(entry);
      return {
        name: text(process.name), cpu_s: number(process.cpu_s), cpu_share: number(process.cpu_share),
        rss_bytes_max: number(process.rss_bytes_max),
      };
    }),
    driver: {
      cpu_s: number(driver.cpu_s), threads: number(driver.threads),
      busiest_thread_share: number(driver.busiest_thread_share), lag_us: latencyOf(driver.lag_us),
      lag_histogram: list(driver.lag_histogram).map((entry) => {
        const one = object(entry);
        return { from_us: number(one.from_us), to_us: number(one.to_us), count: number(one.count) };
      }),
      late: number(driver.late), cpu_share_by_thread: numbers(driver.cpu_share_by_thread),
      waited_share: numberOrNull(driver.waited_share), core_wait_us: numberOrNull(driver.core_wait_us),
      read_lag_us: driver.read_lag_us === null || driver.read_lag_us === undefined ? null : latencyOf(driver.read_lag_us),
      limits: texts(driver.limits),
      busiest: list(driver.busiest).map((entry) => ({ name: text(object(entry).name), cores: number(object(entry).cores) })),
      agents: list(driver.agents).map((entry) => {
        const one = object(entry);
        return {
          agent: text(one.agent), threads: number(one.threads), requests_per_s: number(one.requests_per_s),
          cpu_share: number(one.cpu_share), late_share: number(one.late_share), lag_max_us: number(one.lag_max_us),
          clock_offset_us: number(one.clock_offset_us), clock_bound_us: number(one.clock_bound_us),
          lost: textOrNull(one.lost), odd: textOrNull(one.odd),
        };
      }),
    },
    faults: list(it.faults).map(readFault), maintenance: list(it.maintenance).map(readMaintenance), ledger: readLedger(it.ledger), run_dir: text(it.run_dir), steady_state: readSteadyState(it.steady_state),
  };
}

function readSystem(value: unknown): System {
  const it = object(value);
  const sync = it.sync_latency === null || it.sync_latency === undefined ? null : object(it.sync_latency);
  return {
    name: text(it.name), url: text(it.url), spoken: texts(it.spoken), command: texts(it.command),
    settings: Object.fromEntries(Object.entries(object(it.settings)).map(([key, setting]) => [key, text(setting)])),
    durability: textOrNull(it.durability),
    sync_latency: sync && {
      path: text(sync.path), count: number(sync.count), p50_us: number(sync.p50_us),
      p99_us: number(sync.p99_us), max_us: number(sync.max_us),
    },
    pinned_to: numbers(it.pinned_to),
  };
}

function readManifest(value: unknown, source: string): Manifest {
  const it = object(value);
  const machine = object(it.machine);
  return {
    format: number(it.format), id: text(it.id), scenario: text(it.scenario), description: text(it.description),
    command: texts(it.command), started_at: text(it.started_at),
    // A quote inside a JSON string is escaped, so this cannot match within one.
    seed: /"seed"\s*:\s*(\d+)/.exec(source)?.[1] ?? text(it.seed),
    version: text(it.version), git_revision: textOrNull(it.git_revision),
    machine: {
      cpu_model: text(machine.cpu_model), cores: number(machine.cores), memory_bytes: number(machine.memory_bytes),
      kernel: text(machine.kernel), os: text(machine.os), open_files_limit: number(machine.open_files_limit),
      load_average_1m: number(machine.load_average_1m), steal_share: number(machine.steal_share),
    },
    system: readSystem(it.system), load: text(it.load), driver_pinned_to: numbers(it.driver_pinned_to),
    phases: list(it.phases).map((entry) => {
      const phase = object(entry);
      return {
        name: text(phase.name), start_us: number(phase.start_us), end_us: number(phase.end_us),
        measured: phase.measured === true, level: text(phase.level),
      };
    }),
    labels: texts(it.labels),
    targets: list(it.targets).map((entry) => {
      const target = object(entry);
      return { name: text(target.name), url: text(target.url), protocol: text(target.protocol) };
    }),
    services: list(it.services).map((entry) => {
      const service = object(entry);
      return { name: text(service.name), driven: service.driven === true, instances: list(service.addresses).length, balancer: text(service.balancer) };
    }),
    watched: list(it.watched).map((entry) => {
      const watched = object(entry);
      return { name: text(watched.name), what: text(watched.what), found: text(watched.found) };
    }),
    objectives: list(it.objectives).map((entry) => {
      const objective = object(entry);
      return {
        objective: text(objective.objective), met: objective.met === true, measured: text(objective.measured),
        default: objective.default === true, undecided: objective.undecided === true, undecided_by: text(objective.undecided_by),
      };
    }),
    interrupted: it.interrupted === true, cut_short: text(it.cut_short), notes: texts(it.notes), bill: billOf(it.bill), script: scriptOf(it.script),
    summary: completed(readSummary(it.summary), it.interrupted === true),
  };
}

/** A run of which a part is missing is no pass, whatever the rest of it came to; runs of before did not know. */
function completed(summary: Summary, interrupted: boolean): Summary {
  const { status, reasons } = summary.verdict;
  if (!interrupted || status !== 'pass') return summary;
  return { ...summary, verdict: { status: 'invalid', reasons: ['incomplete: stopped by the user; these are the figures of what was measured until then', ...reasons] } };
}

/** Reads the JSON in the page. Throws an error that a person understands if there is none. */
export function readRun(source: string): RunPage {
  let parsed: unknown;
  try {
    parsed = JSON.parse(source);
  } catch {
    throw new Error(
      source.trim().startsWith('__')
        ? 'This is the empty page: no run has been put into it.'
        : 'The run in this page is not readable JSON; the file may have been cut short.',
    );
  }
  const it = object(parsed);
  const seconds = numbers(it.seconds);
  const length = seconds.length;
  const given = object(it.series);
  const percentiles = object(it.percentiles);
  const heatmap = object(it.heatmap);
  const bounds = numbers(heatmap.bounds_us);
  const named = <K extends string>(keys: readonly K[], from: Loose) =>
    Object.fromEntries(keys.map((key) => [key, series(from[key], length)])) as Record<K, Series>;

  return {
    format: number(it.format),
    bin_s: number(it.bin_s) > 0 ? number(it.bin_s) : 1,
    manifest: readManifest(it.manifest, source),
    closed_loop: text(it.closed_loop),
    good_elsewhere: texts(it.good_elsewhere),
    seconds,
    series: {
      ...named(RUN_SERIES, given),
      response_time_us: latencySeries(given.response_time_us, length),
      service_time_us: latencySeries(given.service_time_us, length),
    },
    steps: list(it.steps).map((entry) => {
      const step = object(entry);
      return { label: text(step.label), ...named(['achieved_per_s', 'p50_us', 'p99_us'] as const, step) };
    }),
    percentiles: {
      response_time_us: pointsOf(percentiles.response_time_us),
      service_time_us: pointsOf(percentiles.service_time_us),
    },
    heatmap: {
      bounds_us: bounds,
      cells: list(heatmap.cells)
        .map((cell): HeatCell => [number(list(cell)[0]), number(list(cell)[1]), number(list(cell)[2])])
        .filter(([at, bucket, count]) => at >= 0 && at < length && bucket >= 0 && bucket < bounds.length && count > 0),
      failed: list(heatmap.failed)
        .map((one): [number, number] => [number(list(one)[0]), number(list(one)[1])])
        .filter(([at, count]) => at >= 0 && at < length && count > 0),
    },
    operations: list(it.operations).map(object).map((of) => ({
      entity: text(of.entity), operation: text(of.operation), measured: operationFiguresOf(of.measured) ?? NO_OPERATIONS, driver: operationFiguresOf(of.driver),
      ...named(OPERATION_SERIES, of),
    })),
    operations_left_out: number(it.operations_left_out),
    processes: list(it.processes).map((entry) => {
      const process = object(entry);
      return { name: text(process.name), ...named(PROCESS_SERIES, process) };
    }),
    cpu_by_tier: cpuOf(it.cpu_by_tier),
    stores: list(it.stores).map(object).map((store) => ({
      name: text(store.name), figures: list(store.figures).map(object).map((of) => ({ figure: text(of.figure), values: series(of.values, length) })),
    })),
    own: list(it.own).map(object).map((of) => ({
      metric: text(of.metric), unit: text(of.unit), kind: kindOf(of.kind), ...named(OWN_SERIES, of),
    })),
    errors: list(it.errors).map((entry) => {
      const error = object(entry);
      return {
        kind: text(error.kind), count: number(error.count), known_after_us: latencyOf(error.known_after_us),
        examples: list(error.examples).map((value) => {
          const example = object(value);
          return { at_s: number(example.at_s), label: text(example.label), detail: text(example.detail) };
        }),
      };
    }),
    error_series: Object.fromEntries(
      Object.entries(object(it.error_series)).map(([kind, value]) => [kind, series(value, length)]),
    ),
    events: list(it.events).map((entry) => {
      const event = object(entry);
      return { at_s: number(event.at_s), kind: text(event.kind), text: text(event.text) };
    }),
    scenario: text(it.scenario),
  };
}
