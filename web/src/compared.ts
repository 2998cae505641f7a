/** What a comparison is, as the page gets it; a missing part becomes empty, as in a run. */

import { billOf, type Bill } from './bill';
import { list, number, object, text } from './loose';
import {
  latencyOf, operationFiguresOf, pointsOf, series,
  type Latency, type OperationFigures, type PercentilePoint, type Series, type Status,
} from './run';

export interface Ratio {
  ratio: number | null;
  low: number | null;
  high: number | null;
  /** Whether there is a difference; null where nothing is claimed. */
  difference: boolean | null;
  /** The claim in a word or two; empty where there is none. */
  says: string;
}

export interface StoreFigures {
  cpu_us_per_request: number;
  cpu_share: number;
  rss_bytes_max: number;
}

export interface Variant {
  name: string;
  rounds: number;
  status: Status;
  reasons: string[];
  answered_per_s: number;
  offered_per_s: number;
  requests: number;
  /** What was due: what ended, and what was dropped. */
  due: number;
  /** Of that, what had no good answer. */
  failed: number;
  dropped: number;
  response_time_us: Latency;
  /** Bytes of a good answer's body, mean. */
  body_bytes_mean: number | null;
  system_cpu_us_per_request: number | null;
  system_cpu_share: number | null;
  /** What each store that was started took, by its name. */
  stores: Record<string, StoreFigures>;
  system_rss_bytes_max: number | null;
  driver_cpu_us_per_request: number;
  driver_cpu_share: number;
  curve: PercentilePoint[];
  /** Pages of its runs, beside this one. */
  pages: string[];
}

export interface Ratios {
  variant: string;
  to: string;
  answered_per_s: Ratio;
  p50: Ratio;
  p99: Ratio;
  body_bytes: Ratio;
  system_cpu_per_request: Ratio;
  /** Why nothing is claimed; empty where claims are made. */
  no_claim: string;
}

export interface Part {
  /** Which; at rates of their own times are not held against each other. */
  load: 'own' | 'equal-rate' | 'own-rate';
  variants: Variant[];
  ratios: Ratios[];
  /** Null where no system tells what it did. */
  operations: ComparedOperations | null;
}

/** Operations of one kind; an entry for each variant, null where it did none of these. */
export interface ComparedKind {
  entity: string;
  operation: string;
  variants: (OperationFigures | null)[];
  p95_us: Series[];
}

export interface ComparedOperations {
  /** Since the measured window began. */
  seconds: number[];
  bin_s: number;
  kinds: ComparedKind[];
  /** How many kinds are not shown. */
  left_out: number;
}

export interface Comparison {
  name: string;
  description: string;
  equal_rate_per_s: number | null;
  /** Share of its own rate. */
  own_rate: number | null;
  stopped: string;
  /** What was to be compared and is not here, with why. */
  left_out: string[];
  run_dir: string;
  source: string;
  parts: Part[];
  /** What each side costs; empty without prices. */
  bills: { name: string; bill: Bill }[];
}

/** Whether a link is to a place beside the page, and nothing else: no scheme, no other server. */
const isPlace = (link: string): boolean => !/^[\s\u0000-\u001f]*(?:[a-z][a-z\d+.-]*:|[\\/]{2})/i.test(link);

/** The comparison that stands in the page; null where something else does. */
export function readComparison(source: string): Comparison | null {
  let it;
  try {
    it = object(object(JSON.parse(source)).comparison);
  } catch {
    return null;
  }
  if (!Array.isArray(it.parts)) return null;
  return {
    name: text(it.name), description: text(it.description), stopped: text(it.stopped), left_out: list(it.left_out).map(text), run_dir: text(it.run_dir), source: text(it.source),
    equal_rate_per_s: maybe(it.equal_rate_per_s), own_rate: maybe(it.own_rate),
    bills: list(it.bills).map(object).flatMap((of) => {
      const bill = billOf(of.bill);
      return bill ? [{ name: text(of.name), bill }] : [];
    }),
    parts: list(it.parts).map(object).map((part) => ({
      load: part.part === 'equal-rate' || part.part === 'own-rate' ? part.part : 'own',
      variants: list(part.variants).map(object).map((of): Variant => {
        const verdict = object(of.verdict);
        const [requests, dropped] = [number(of.requests), number(of.dropped)];
        return {
          name: text(of.name), rounds: number(of.rounds),
          status: verdict.status === 'pass' || verdict.status === 'fail' ? verdict.status : 'invalid',
          reasons: list(verdict.reasons).map(text),
          answered_per_s: number(of.answered_per_s), offered_per_s: number(of.offered_per_s), requests, dropped, due: requests + dropped,
          failed: Object.values(object(of.errors)).reduce((sum: number, value) => sum + number(value), dropped),
          response_time_us: latencyOf(of.response_time_us),
          body_bytes_mean: maybe(of.body_bytes_mean),
          system_cpu_us_per_request: maybe(of.system_cpu_us_per_request), system_cpu_share: maybe(of.system_cpu_share), system_rss_bytes_max: maybe(of.system_rss_bytes_max),
          stores: Object.fromEntries(Object.entries(object(of.stores)).map(([name, store]) => [name, storeOf(object(store))])),
          driver_cpu_us_per_request: number(of.driver_cpu_us_per_request), driver_cpu_share: number(of.driver_cpu_share),
          curve: pointsOf(of.curve), pages: list(of.pages).map(text).filter(isPlace),
        };
      }),
      ratios: list(part.ratios).map(object).map((of): Ratios => ({
        variant: text(of.variant), to: text(of.to), answered_per_s: ratioOf(of.answered_per_s), p50: ratioOf(of.p50), p99: ratioOf(of.p99), body_bytes: ratioOf(of.body_bytes), system_cpu_per_request: ratioOf(of.system_cpu_per_request),
        no_claim: text(of.no_claim),
      })),
      operations: operationsOf(part.operations),
    })),
  };
}

function operationsOf(value: unknown): ComparedOperations | null {
  const it = object(value);
  const seconds = list(it.seconds).map(number);
  const kinds = list(it.kinds).map(object).map((of): ComparedKind => ({
    entity: text(of.entity), operation: text(of.operation), variants: list(of.variants).map(operationFiguresOf),
    p95_us: list(of.p95_us).map((values) => series(values, seconds.length)),
  }));
  return kinds.length > 0 ? { seconds, bin_s: number(it.bin_s) > 0 ? number(it.bin_s) : 1, kinds, left_out: number(it.left_out) } : null;
}

const storeOf = (of: Record<string, unknown>): StoreFigures => ({
  cpu_us_per_request: number(of.cpu_us_per_request), cpu_share: number(of.cpu_share), rss_bytes_max: number(of.rss_bytes_max),
});

const maybe = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function ratioOf(value: unknown): Ratio {
  const it = object(value);
  const [low, high] = [maybe(it.low), maybe(it.high)];
  // Comparisons of before left it to the reader.
  const told = low === null || high === null || it.difference === null ? null : low > 1 || high < 1;
  return { ratio: maybe(it.ratio), low, high, difference: typeof it.difference === 'boolean' ? it.difference : told, says: text(it.says) };
}
