/** What the server says, read: a missing part is empty, never an exception. Pure, tested. */

import { list, number, numberOrNull, object, text } from '../loose';

export type State = 'finished' | 'running' | 'killed' | 'comparison' | 'limit' | 'unreadable';

export interface Listed {
  name: string;
  state: State;
  scenario: string;
  started_at: string;
  verdict: string;
  reasons: string[];
  /** How many stand beside the verdict; 0 also where an older server does not say. */
  warnings: number;
  achieved_per_s: number | null;
  offered_per_s: number | null;
  /** Null where it was not reached. */
  p99_us: number | null;
  failed_share: number | null;
  system: string;
  load: string;
  compared: number | null;
  /** Of a search for a limit alone. */
  trials: number | null;
  /** What a search has found by now. */
  says: string[];
}

export interface Listing {
  folder: string;
  runs: Listed[];
  left_out: number;
}

export interface Second {
  at_s: number;
  in_window: boolean;
  offered_per_s: number;
  achieved_per_s: number;
  errors_per_s: number;
  p50_us: number | null;
  p99_us: number | null;
  in_flight: number;
  waiting: number;
  requests: number;
  errors: number;
  dropped: number;
}

export interface Phase {
  name: string;
  level: string;
  start_us: number;
  end_us: number;
}

export interface Live {
  scenario: string;
  system: string;
  load: string;
  started_at: string;
  running: boolean;
  phases: Phase[];
  seconds: Second[];
  processes: { name: string; cpu_share: number; rss_bytes: number }[];
  events: { at_s: number; kind: string; text: string }[];
}

const STATES: readonly State[] = ['finished', 'running', 'killed', 'comparison', 'limit', 'unreadable'];

export function readListing(value: unknown): Listing {
  const it = object(value);
  return {
    folder: text(it['folder']), left_out: number(it['left_out']),
    runs: list(it['runs']).map(object).map((run): Listed => ({
      name: text(run['name']), state: STATES.find((state) => state === run['state']) ?? 'unreadable', scenario: text(run['scenario']),
      started_at: text(run['started_at']), verdict: text(run['verdict']), reasons: list(run['reasons']).map(text).filter(Boolean),
      warnings: number(run['warnings']),
      achieved_per_s: numberOrNull(run['achieved_per_s']), offered_per_s: numberOrNull(run['offered_per_s']), p99_us: numberOrNull(run['p99_us']),
      failed_share: numberOrNull(run['failed_share']), system: text(run['system']), load: text(run['load']), compared: numberOrNull(run['compared']),
      trials: numberOrNull(run['trials']), says: list(run['says']).map(text).filter(Boolean),
    })),
  };
}

export function readLive(value: unknown): Live {
  const it = object(value);
  return {
    scenario: text(it['scenario']), system: text(it['system']), load: text(it['load']), started_at: text(it['started_at']), running: it['running'] === true,
    phases: list(it['phases']).map(object).map((phase) => ({ name: text(phase['name']), level: text(phase['level']), start_us: number(phase['start_us']), end_us: number(phase['end_us']) })),
    seconds: list(it['seconds']).map(object).map((second): Second => ({
      at_s: number(second['at_s']), in_window: second['in_window'] === true, offered_per_s: number(second['offered_per_s']), achieved_per_s: number(second['achieved_per_s']),
      errors_per_s: number(second['errors_per_s']), p50_us: numberOrNull(second['p50_us']), p99_us: numberOrNull(second['p99_us']), in_flight: number(second['in_flight']),
      waiting: number(second['waiting']), requests: number(second['requests']), errors: number(second['errors']), dropped: number(second['dropped']),
    })),
    processes: list(it['processes']).map(object).map((process) => ({ name: text(process['name']), cpu_share: number(process['cpu_share']), rss_bytes: number(process['rss_bytes']) })),
    events: list(it['events']).map(object).map((event) => ({ at_s: number(event['at_s']), kind: text(event['kind']), text: text(event['text']) })),
  };
}

/** Where a run is, with one more part behind it; the first names are folders. */
export const place = (first: string, name: string, behind = ''): string => `/${first}/${encodeURIComponent(name)}${behind}`;

/** Where two runs are held against each other. */
export const comparison = (a: string, b: string): string => `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;

/** How the runs of a scenario went. */
export const historyOf = (scenario: string): string => `/history?scenario=${encodeURIComponent(scenario)}`;

/** Where the page of one of the list is: that of what has ended, of a search also while it goes on. */
export function pageOf(run: Listed): string | null {
  if (run.state === 'unreadable') return null;
  return run.state === 'running' && run.trials === null ? place('live', run.name) : place('runs', run.name, '/report.html');
}

/** Whether it can be in a history: not what is invalid, stopped or no run. */
export const hasHistory = (run: Listed): boolean => run.scenario !== '' && (run.verdict === 'pass' || run.verdict === 'fail');

/** The name in the path of a page, if it is one of a run. */
export function nameIn(path: string, first: string): string | null {
  const [, front, name, ...rest] = path.split('/');
  if (front !== first || !name || rest.some(Boolean)) return null;
  try {
    return decodeURIComponent(name);
  } catch {
    return null;
  }
}

/** What a run is, in a word, and its tone. */
export function badge(run: Pick<Listed, 'state' | 'verdict'>): { word: string; tone: string } {
  switch (run.state) {
    case 'finished': return { word: run.verdict || 'no verdict', tone: run.verdict };
    case 'running': return { word: 'running', tone: 'running' };
    case 'comparison': case 'limit': return { word: run.state, tone: '' };
    default: return { word: run.state, tone: run.state };
  }
}

/** Whether two of a list can be held against each other: runs that have ended. */
export const isComparable = (run: Listed): boolean => run.trials === null && (run.state === 'finished' || run.state === 'killed');

/** What a chart's height stands for, in hundredths from above. */
export interface Height {
  of: (value: number) => number;
  /** Values with a mark, the lowest first. */
  marks: number[];
}

/** Marks of a chart, at most. */
const MARKS_MAX = 4;

/** The height of lines, linear from 0, or logarithmic. */
export function heightOf(lines: readonly (readonly (number | null)[])[], log = false): Height {
  const known = lines.flat().filter((value): value is number => value !== null && (!log || value > 0));
  const top = Math.max(...known, log ? 1 : 0);
  const low = log ? Math.min(...known, top) / 1.2 : 0;
  const of = (value: number) => {
    const part = log ? Math.log(value / low) / Math.log(Math.max(top / low, 1.0001)) : value / Math.max(top, Number.MIN_VALUE);
    return 98 - 96 * Math.min(1, Math.max(0, part));
  };
  if (known.length === 0 || top <= 0) return { of, marks: [] };
  const round = (decade: number) => [1, 2, 5].map((step) => step * 10 ** decade);
  const decades = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
  if (!log) {
    const step = decades(Math.floor(Math.log10(top)) - 1, Math.ceil(Math.log10(top))).flatMap(round).find((each) => top / each < MARKS_MAX) ?? top;
    return { of, marks: decades(0, Math.floor(top / step)).map((at) => at * step) };
  }
  const within = decades(Math.floor(Math.log10(low)), Math.ceil(Math.log10(top))).flatMap(round).filter((value) => low <= value && value <= top);
  if (within.length < 2) return { of, marks: [...new Set([Math.min(...known), top])] };
  const each = Math.ceil(within.length / MARKS_MAX);
  return { of, marks: within.filter((_, at) => at % each === 0) };
}

/** Lines as the points of polylines in a box of 1000 by 100: gaps where there is no value, the highest of all lines at the top. */
export function points(lines: readonly (readonly (number | null)[])[], log = false): string[][] {
  const length = Math.max(2, ...lines.map((line) => line.length));
  const { of } = heightOf(lines, log);
  return lines.map((line) => {
    const pieces: string[][] = [[]];
    line.forEach((value, index) => {
      if (value === null || (log && value <= 0)) pieces.push([]);
      else pieces.at(-1)?.push(`${((1000 * index) / (length - 1)).toFixed(1)},${of(value).toFixed(1)}`);
    });
    return pieces.filter((piece) => piece.length > 0).map((piece) => piece.join(' '));
  });
}

/** Moments below a chart of seconds, evenly from the first to the last. */
export function moments(seconds: readonly { at_s: number }[], most = MARKS_MAX): number[] {
  const [first, last] = [seconds.at(0)?.at_s, seconds.at(-1)?.at_s];
  if (first === undefined || last === undefined) return [];
  const count = Math.min(most, seconds.length);
  if (count < 2) return [last];
  return Array.from({ length: count }, (_, at) => Math.round(first + ((last - first) * at) / (count - 1)));
}
