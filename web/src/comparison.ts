/** The page of several scenarios that are held against each other. */

import { billPart } from './bill-part';
import type { Comparison, Part, Ratio, Ratios, StoreFigures, Variant } from './compared';
import { el, svg, type Child } from './dom';
import { cores, count, digits, duration, NOTHING, plural, quantity, rate, share, size } from './format';
import { within } from './head';
import { comparedOperations } from './operations';
import { curveOf, percentileCurves } from './percentiles';
import { strokeOf, swatch } from './stroke';
import { themeButton } from './theme';
import type { Latency, Status } from './run';

export function comparisonPage(it: Comparison): HTMLElement[] {
  const rounds = Math.max(1, ...it.parts.flatMap((part) => part.variants.map((variant) => variant.rounds)));
  const noClaim = it.parts.flatMap((part) => part.ratios).filter((ratios) => ratios.no_claim);
  return [
    el('header', {},
      el('div', { class: 'row' },
        el('h1', {},
          svg('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true', class: 'mark' }, svg('path', { d: 'M1 6q3.5-4 7 0t7 0M1 11q3.5-4 7 0t7 0' })),
          'Tidemark ', el('span', {}, it.name || 'comparison')),
        el('div', { class: 'tools' }, themeButton()))),
    el('main', { id: 'main' },
      el('section', {},
        it.description && el('p', { class: 'lead' }, it.description.trim()),
        it.left_out.map((why) => el('p', { class: 'note' }, `Left out: ${why}`)),
        it.stopped && el('p', { class: 'bad-text' }, `▲ Stopped early: ${it.stopped}`)),
      it.parts.map((part) => section(part, it)),
      it.bills.map(({ name, bill }, at) => el('section', { 'aria-labelledby': `cost-${at}` }, el('h2', { id: `cost-${at}` }, `What it costs in money: ${name}`), billPart(bill))),
      el('section', { class: 'definitions', 'aria-labelledby': 'words' },
        el('h2', { id: 'words', class: 'quiet-heading' }, 'How to read it'),
        el('p', {}, 'Ratios are against the first column; the small numbers say where the ratio lies 95 of 100 times, corrected for how many there are, by how the rounds differ. Where 1 lies between them, or a ratio is nearer to 1 than 1\u202f%, there is no difference, if it is known to within 5\u202f%, or it is too noisy to say. ',
          noClaim.length > 0 && `Where a column says “no claim”, nothing is claimed: what differs from run to run is not known by so few rounds; give them with “rounds” in the scenario. `,
          rounds === 1 ? 'Each ran once.' : `Each ran ${count(rounds)} times, in turn; its rounds count as one longer run.`,
          ' Response times are of all requests that were due: one without a good answer is slower than every bound, and a time that falls among those is not reached (–). Latencies compare only where all had the same to do.')),
      it.source && el('section', { 'aria-labelledby': 'source' }, el('h2', { id: 'source' }, 'What was compared'), el('pre', { tabindex: 0 }, el('code', {}, it.source)))),
    el('footer', {}, it.run_dir),
  ];
}

function section(part: Part, it: Comparison): HTMLElement {
  const id = part.load;
  const title = {
    own: 'Each with its own load',
    'equal-rate': `Each at ${it.equal_rate_per_s === null ? 'the same rate' : rate(it.equal_rate_per_s)}`,
    'own-rate': `Each at ${share(it.own_rate ?? 1)} of that`,
  }[part.load];
  return el('section', { 'aria-labelledby': id }, el('h2', { id }, title), part.variants.length > VARIANTS_BESIDE ? overview(part) : table(part), curves(part),
    part.operations && comparedOperations(part.operations, part.variants.map((it) => it.name)), verdicts(part));
}

interface Row {
  name: string;
  of: (variant: Variant) => number | null;
  show: (value: number) => string;
  ratio?: (ratios: Ratios) => Ratio;
}

const ROWS: Row[] = [
  { name: 'Answered', of: (it) => it.answered_per_s, show: rate, ratio: (it) => it.answered_per_s },
  { name: 'Response time, median', of: (it) => time(it, 'p50'), show: duration, ratio: (it) => it.p50 },
  { name: 'Response time, p99', of: (it) => time(it, 'p99'), show: duration, ratio: (it) => it.p99 },
  { name: 'Response time, p99.9', of: (it) => time(it, 'p999'), show: duration },
  { name: 'Response time, longest', of: (it) => time(it, 'max'), show: duration },
  { name: 'Bytes of a good answer', of: (it) => it.body_bytes_mean, show: size, ratio: (it) => it.body_bytes },
  { name: 'System: CPU for each request', of: (it) => it.system_cpu_us_per_request, show: duration, ratio: (it) => it.system_cpu_per_request },
  { name: 'System: cores in use', of: (it) => it.system_cpu_share, show: cores },
  { name: 'System: memory, most', of: (it) => it.system_rss_bytes_max, show: size },
  { name: 'Load generator: CPU for each request', of: (it) => it.driver_cpu_us_per_request, show: duration },
  { name: 'Requests', of: (it) => it.requests, show: quantity },
];

/** Rows of each store that any of the variants had. */
function rowsOfStores(part: Part): Row[] {
  const names = [...new Set(part.variants.flatMap((it) => Object.keys(it.stores)))].sort();
  return names.flatMap((name): Row[] => [
    { name: `${name}: CPU for each request`, of: (it) => it.stores[name]?.cpu_us_per_request ?? null, show: duration },
    { name: `${name}: cores in use`, of: (it) => it.stores[name]?.cpu_share ?? null, show: cores },
    { name: `${name}: memory, most`, of: (it) => it.stores[name]?.rss_bytes_max ?? null, show: size },
  ]);
}

const time = (it: Variant, key: keyof Latency): number | null => it.response_time_us[key];

/** Ratios have columns of their own beside so many variants at most; of more they stand below the figures. */
const VARIANTS_BESIDE_RATIOS = 3;

/** Of more than so many variants each has a line, its verdict first. */
const VARIANTS_BESIDE = 7;

function overview(part: Part): HTMLElement {
  const stores = (it: Variant): StoreFigures[] => Object.values(it.stores);
  const sum = (it: Variant, own: number | null, of: (store: StoreFigures) => number): number => stores(it).reduce((all, store) => all + of(store), own ?? 0);
  const columns: [string, (it: Variant) => string][] = [
    ['Answered', (it) => rate(it.answered_per_s)],
    ...(['p50', 'p99', 'p999', 'max'] as const).map((key, index): [string, (it: Variant) => string] => [['Median', 'p99', 'p99.9', 'Longest'][index] ?? key, (it) => {
      const value = time(it, key);
      return value === null ? NOTHING : duration(value);
    }]),
    [`${part.variants.some((it) => it.system_cpu_share !== null) ? 'System' : 'Store'}: cores`, (it) => cores(sum(it, it.system_cpu_share, (store) => store.cpu_share))],
    ['CPU per good answer', (it) => (it.failed < it.due
      ? duration(sum(it, it.system_cpu_us_per_request, (store) => store.cpu_us_per_request) / (1 - it.failed / it.due)) : NOTHING)],
    ['Load generator: cores', (it) => cores(it.driver_cpu_share)],
    ['Memory, most', (it) => size(sum(it, it.system_rss_bytes_max, (store) => store.rss_bytes_max))],
  ];
  return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'A line for each' },
    el('table', { class: 'labels' },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }), el('th', { scope: 'col' }, 'Verdict'),
        columns.map(([name]) => el('th', { scope: 'col', class: 'number' }, name)), el('th', { scope: 'col', class: 'number' }, 'No good answer'))),
      el('tbody', {}, part.variants.map((it, index) => el('tr', {}, el('th', { scope: 'row' }, swatch(strokeOf(index)), ' ', it.name),
        el('td', {}, el('span', { class: it.status === 'pass' ? 'good-text' : 'bad-text' }, WORDS[it.status])),
        columns.map(([, show]) => el('td', { class: 'number' }, show(it))),
        el('td', { class: 'number' }, it.failed === 0 ? 'none' : el('span', { class: 'bad-text' }, `▲ ${share(it.failed / Math.max(1, it.due))}`)))))));
}

function table(part: Part): HTMLElement {
  const own = part.variants.length <= VARIANTS_BESIDE_RATIOS ? part.ratios : [];
  const below = (name: string): Ratios | undefined => (own.length > 0 ? undefined : part.ratios.find((it) => it.variant === name));
  const head = [
    ...part.variants.map((it, index) => el('th', { scope: 'col', class: 'number' }, swatch(strokeOf(index)), ' ', it.name)),
    ...own.map((it) => el('th', { scope: 'col', class: 'number' }, `${it.variant} ÷ ${it.to}`, it.no_claim && el('span', { class: 'sub' }, `no claim: ${it.no_claim}`))),
  ];
  const told = ({ of }: Row): boolean => part.variants.some((it) => of(it) !== null);
  const rows = [...ROWS.filter((row) => told(row) || row.name.startsWith('Response')), ...rowsOfStores(part)].map(({ name, of, show, ratio }) => {
    const values = part.variants.map(of);
    const most = Math.max(...values.map((value) => value ?? 0));
    return el('tr', {}, el('th', { scope: 'row' }, name),
      values.map((value, index) => el('td', { class: 'number' },
        value === null ? el('span', { title: name.startsWith('Response') ? 'not reached' : 'not watched' }, NOTHING) : show(value),
        inCell(ratio, below(part.variants[index]?.name ?? '')),
        value !== null && most > 0 && el('span', { class: 'bar', 'aria-hidden': 'true' }, el('i', { style: `width:${((value / most) * 100).toFixed(1)}%;background:var(--${strokeOf(index).colour})` })))),
      own.map((ratios) => el('td', { class: 'number' }, ratio ? shown(ratio(ratios), !ratios.no_claim) : '')));
  });
  const failures = el('tr', {}, el('th', { scope: 'row' }, 'No good answer'),
    part.variants.map((it) => el('td', { class: 'number' }, it.failed === 0 ? 'none' : el('span', { class: 'bad-text' }, `▲ ${share(it.failed / Math.max(1, it.due))}`),
      it.dropped > 0 && el('span', { class: 'sub bad-text' }, `${count(it.dropped)} dropped`))),
    own.map(() => el('td', {})));
  const reasons = [...new Set(own.length > 0 ? [] : part.ratios.flatMap((it) => (it.no_claim ? [`no claim: ${it.no_claim}`] : [])))];
  const note = own.length === 0 && part.ratios[0] && el('p', { class: 'note' }, [`× is to ${part.ratios[0].to}`, ...reasons].join('; '));
  return el('div', {}, note, el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Figures side by side' },
    el('table', { class: 'labels' }, el('caption', { class: 'unseen' }, 'Figures side by side'),
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, ''), head)), el('tbody', {}, rows, failures))));
}

function shown({ ratio, low, high, difference, says }: Ratio, isClaim: boolean): Child {
  if (ratio === null) return NOTHING;
  const bounds = difference !== true && says ? says : low !== null && high !== null && `${digits(low)} to ${digits(high)}`;
  return [el(isClaim ? 'b' : 'span', {}, `${digits(ratio)} ×`), bounds && el('span', { class: 'sub' }, bounds)];
}

/** A ratio below its figure. */
function inCell(ratio: Row['ratio'], ratios: Ratios | undefined): Child {
  return ratio && ratios && el('span', { class: 'sub' }, shown(ratio(ratios), !ratios.no_claim));
}

function curves(part: Part): Child {
  const words = part.variants.map((it) => `${it.name}: ${within('50\u202f%', it.response_time_us.p50)}, ${within('99\u202f%', it.response_time_us.p99)}`).join('; ');
  return percentileCurves(part.variants.map((it, index) => ({
    label: it.name, ...strokeOf(index), ...curveOf(it.curve, Math.max(0, it.due - it.failed)),
  })), 'Response time', `Percentile curves of the response time. ${words}. Arrow keys move the cursor.`);
}

const WORDS: Record<Status, string> = { pass: '✓ Pass', fail: '✗ Fail', invalid: '▲ Invalid' };

function verdicts(part: Part): HTMLElement {
  return el('dl', { class: 'facts' }, part.variants.map((it) => el('div', {},
    el('dt', {}, it.name),
    el('dd', {}, el('span', { class: it.status === 'pass' ? 'good-text' : 'bad-text' }, WORDS[it.status]),
      it.reasons.length > 0 && el('span', { class: 'sub' }, it.reasons.join('; ')),
      el('span', { class: 'sub' }, plural(it.rounds, 'round'), ': ', it.pages.map((page, index) => [index > 0 && ', ', el('a', { href: page }, `report ${index + 1}`)]))))));
}
