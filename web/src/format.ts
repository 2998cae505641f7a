/** Numbers for people: three significant digits, a sensible unit, nothing rounded to look better than it is. */

/** What stands where there is nothing to say. */
export const NOTHING = '–';

/** Narrow no-break space between a number and its unit. */
const GAP = '\u202f';

/** Three significant digits without an exponent: `0.0123`, `1.20`, `12.3`, `123`, `1230`. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return NOTHING;
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(3));
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  return rounded.toFixed(Math.min(6, Math.max(0, 2 - magnitude)));
}

/** As `digits`, without zeros that say nothing: for axes, where every tick is a round number. */
export function plain(value: number): string {
  const shown = digits(value);
  return shown.includes('.') ? shown.replace(/\.?0+$/, '') : shown;
}

/** A whole number of the smallest unit has no decimals: `7 µs`, not `7.00 µs`. */
const wholeOrDigits = (value: number) => (Number.isInteger(value) && Math.abs(value) < 1024 ? String(value) : digits(value));

type Unit = readonly [factor: number, name: string];

/** The largest unit in which the rounded value is at least 1. */
function scaled(value: number, units: readonly Unit[], show = digits, showSmallest = wholeOrDigits): string {
  if (!Number.isFinite(value)) return NOTHING;
  const reaches = (factor: number) => Number(Math.abs(value / factor).toPrecision(3)) >= 1;
  const [factor, name] = units.findLast(([factor]) => reaches(factor)) ?? units[0] ?? [1, ''];
  const shown = factor === 1 ? showSmallest(value) : show(value / factor);
  return name === '' ? shown : `${shown}${GAP}${name}`;
}

const TIMES: readonly Unit[] = [[1, 'µs'], [1e3, 'ms'], [1e6, 's']];
const NUMBERS: readonly Unit[] = [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']];
const SIZES: readonly Unit[] = [[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB']];

/** `1.23k`, `12.3M`; whole numbers below a thousand as they are. */
export const quantity = (value: number | null): string =>
  value === null ? NOTHING : scaled(value, NUMBERS).replace(GAP, '');

/** Microseconds as `123 µs`, `1.23 ms`, `1.23 s`. */
export const duration = (us: number | null): string =>
  us === null ? NOTHING : scaled(us, TIMES);

/** Bytes as `1.50 MiB`. */
export const size = (bytes: number | null): string =>
  bytes === null ? NOTHING : scaled(bytes, SIZES);

/** A rate of something that has no unit of its own. */
export const rate = (perSecond: number | null): string => (perSecond === null ? NOTHING : `${quantity(perSecond)}/s`);

/** A rate of bytes. */
export const sizeRate = (bytes: number | null): string => (bytes === null ? NOTHING : `${size(bytes)}/s`);

/** Cores: `1.85`. */
export const cores = (value: number | null): string => (value === null ? NOTHING : value === 0 ? '0' : value.toFixed(2));

/** A whole count in full, digits grouped: `149,823`. */
export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A share of 1 as a percentage; something is never shown as nothing. */
export function share(value: number): string {
  if (!Number.isFinite(value)) return NOTHING;
  const percent = value * 100;
  if (percent === 0) return `0${GAP}%`;
  if (Math.abs(percent) < 0.001) return `<${GAP}0.001${GAP}%`;
  // 99.96 must not become 100: whatever is missing from all of it must stay visible.
  const shown = percent < 100 && percent > 99 ? floorDigits(percent) : digits(percent);
  return `${shown}${GAP}%`;
}

function floorDigits(percent: number): string {
  const decimals = Math.min(6, Math.max(1, Math.ceil(-Math.log10(100 - percent)) + 1));
  return (Math.floor(percent * 10 ** decimals) / 10 ** decimals).toFixed(decimals).replace(/\.?0+$/, '');
}

/** Ticks of the axes: the same units, no needless zeros. */
export const tick = {
  quantity: (value: number) => scaled(value, NUMBERS, plain, plain).replace(GAP, ''),
  rate: (value: number) => scaled(value, NUMBERS, plain, plain).replace(GAP, ''),
  duration: (us: number) => scaled(us, TIMES, plain, plain),
  size: (bytes: number) => scaled(bytes, SIZES, plain, plain),
  cores: plain,
};

/** Seconds since the run began: `42 s`, and from two minutes on `2:05` or `1:02:05`. */
export function clock(seconds: number, whole = false): string {
  if (!whole && Math.abs(seconds) < 120) return `${plain(seconds)}${GAP}s`;
  const sign = seconds < 0 ? '-' : '';
  const all = Math.floor(Math.abs(seconds));
  const two = (value: number) => String(value).padStart(2, '0');
  const [h, m, s] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  return sign + (h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`);
}

/** A moment to the hundredth of a second: `59.02 s`. */
export const atSecond = (seconds: number): string => `${seconds.toFixed(2).replace(/^-(?=0\.00$)/, '').replace('-', '−')}${GAP}s`;

/** A length of time in seconds: `45 s`, `2 min 5 s`, `1 h 3 min`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${plain(seconds)}${GAP}s`;
  const all = Math.round(seconds);
  const [h, m, s] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  if (h > 0) return m > 0 ? `${h}${GAP}h ${m}${GAP}min` : `${h}${GAP}h`;
  return s > 0 ? `${m}${GAP}min ${s}${GAP}s` : `${m}${GAP}min`;
}

/** A percentile on an axis: `99.9 %`, from the number of nines. */
export function nines(count: number): string {
  if (count <= 1) return count <= 0 ? `0${GAP}%` : `90${GAP}%`;
  return `99${count > 2 ? `.${'9'.repeat(count - 2)}` : ''}${GAP}%`;
}

/** Arguments as one line that a shell reads back. */
export function shellLine(args: readonly string[]): string {
  return args.map((arg) => (/^[\w@%+=:,./~-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`)).join(' ');
}

/** `2026-01-31 14:05:09 UTC`, or the text as it is where it is no date. */
export function moment(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(text);
  return match ? `${match[1]} ${match[2]} UTC` : text;
}

/** `1 request`, `2 requests`. */
export const plural = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;

/** Cores that something was pinned to: `0–3, 6`. */
export function coreList(list: readonly number[]): string {
  const sorted = [...list].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let from = 0; from < sorted.length; ) {
    let to = from;
    while (sorted[to + 1] === (sorted[to] ?? 0) + 1) to += 1;
    parts.push(from === to ? `${sorted[from]}` : `${sorted[from]}–${sorted[to]}`);
    from = to + 1;
  }
  return parts.join(', ');
}
