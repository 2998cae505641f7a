/** Which figures of stores are drawn together, and how. Pure, tested. */

import type { Line } from './chart';
import { duration, quantity, rate, size, tick } from './format';
import type { RunPage, StoreSeries } from './run';
import { SIZE_STEPS } from './scale';

export interface StoreChart {
  title: string;
  note: string;
  lines: Line[];
  format: (value: number | null) => string;
  tick: (value: number) => string;
  steps?: number[];
}

type Unit = 'rate' | 'size' | 'quantity' | 'microseconds';

interface Group {
  title: string;
  note: string;
  unit: Unit;
  /** Name of the figure, what its lines are called, how they are dashed. */
  figures: [figure: string, name: string, dash?: number[]][];
}

const DASHED = [5, 4];
const DOTTED = [1, 3];

const GROUPS: Group[] = [
  { title: 'Operations', note: 'per second, as the store counts', unit: 'rate', figures: [['instantaneous_ops_per_sec', '']] },
  { title: 'Hits and misses', note: 'per second; dashed: misses', unit: 'rate', figures: [
    ['keyspace_hits_per_s', 'hits'], ['keyspace_misses_per_s', 'misses', DASHED], ['get_hits_per_s', 'hits'], ['get_misses_per_s', 'misses', DASHED]] },
  { title: 'Memory', note: 'dashed: resident, what it has from the operating system', unit: 'size', figures: [
    ['used_memory', 'used'], ['used_memory_rss', 'resident', DASHED], ['bytes', 'used']] },
  { title: 'Append-only file', note: 'size; dashed: of that, as of the last rewrite', unit: 'size', figures: [
    ['aof_current_size', 'whole'], ['aof_base_size', 'base', DASHED]] },
  { title: 'Syncs that were late', note: 'per second: writes that waited for the disk', unit: 'rate', figures: [['aof_delayed_fsync_per_s', '']] },
  { title: 'Keys removed', note: 'per second; dashed: expired', unit: 'rate', figures: [
    ['evicted_keys_per_s', 'evicted'], ['evictions_per_s', 'evicted'], ['expired_keys_per_s', 'expired', DASHED]] },
  { title: 'Last fork', note: 'how long the store stood still for it', unit: 'microseconds', figures: [['latest_fork_usec', '']] },
  { title: 'Clients of the store', note: 'at the end of each second; dashed: blocked; dotted: replicas', unit: 'quantity', figures: [
    ['connected_clients', 'clients'], ['blocked_clients', 'blocked', DASHED], ['connected_slaves', 'replicas', DOTTED], ['curr_connections', 'clients']] },
  { title: 'Items', note: 'held at the end of each second', unit: 'quantity', figures: [['curr_items', '']] },
];

/** Drawn as bands, or no number to be drawn. */
const UNDRAWN = new Set(['aof_rewrite_in_progress', 'rdb_bgsave_in_progress', 'is_master']);

const PALETTE = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];

/** So many lines of a chart are shown at first. */
const SHOWN = 12;

const UNITS: Record<Unit, Pick<StoreChart, 'format' | 'tick' | 'steps'>> = {
  rate: { format: rate, tick: tick.rate },
  size: { format: size, tick: tick.size, steps: SIZE_STEPS },
  quantity: { format: quantity, tick: tick.quantity },
  microseconds: { format: duration, tick: tick.duration },
};

/** Series of pages that were watched, and of stores. */
export function split(run: RunPage): { watched: StoreSeries[]; stores: StoreSeries[] } {
  const isWatched = (name: string) => run.manifest.watched.some((it) => it.name === name);
  return { watched: run.stores.filter((it) => isWatched(it.name)), stores: run.stores.filter((it) => !isWatched(it.name)) };
}

/** A chart for each group that has something to show, and one for each figure that is in no group; `who` says those. */
export function storeCharts(stores: readonly StoreSeries[], who = 'the store'): StoreChart[] {
  const known = new Set(GROUPS.flatMap(({ figures }) => figures.map(([figure]) => figure)));
  const others = [...new Set(stores.flatMap((store) => store.figures.map(({ figure }) => figure)))].filter((figure) => !known.has(figure) && !UNDRAWN.has(figure));
  const own = others.map((figure): Group => ({
    title: titleOf(figure), note: figure.endsWith('_per_s') ? 'per second' : `as ${who} says it`,
    unit: /_bytes(_total)?(\{.*\})?(_per_s)?$/.test(figure) ? 'size' : figure.endsWith('_per_s') ? 'rate' : 'quantity', figures: [[figure, '']],
  }));
  return [...GROUPS, ...own].flatMap((group): StoreChart[] => {
    const lines = linesOf(group, stores);
    return lines.length === 0 ? [] : [{ title: group.title, note: group.note, lines, ...UNITS[group.unit] }];
  });
}

/** Words of a name; labels of a series stay as they are. */
function titleOf(figure: string): string {
  const [name = '', ...labels] = figure.replace(/_per_s$/, '').split('{');
  return [name.replaceAll('_', ' '), ...labels].join('{');
}

function linesOf(group: Group, stores: readonly StoreSeries[]): Line[] {
  const lines = group.figures.flatMap(([figure, name, dash]) => stores.flatMap((store, index): Line[] => {
    const found = store.figures.find((it) => it.figure === figure);
    if (!found) return [];
    const label = [stores.length > 1 || !name ? store.name : '', name].filter(Boolean).join(', ');
    return [{ label, values: found.values, colour: PALETTE[index % PALETTE.length] ?? 'c1', width: 1.5, ...(dash ? { dash } : {}) }];
  }));
  return lines.map((line, index) => (index < SHOWN ? line : { ...line, hidden: true }));
}
