/** What a run costs, and CPU by tier, read. Amounts are exact decimals, as text: they are never made a number. Pure. */

import { NOTHING } from './format';
import { list, number, object, text } from './loose';

export interface TierCpu {
  tier: string;
  instances: number;
  mean: number;
  min: number;
  max: number;
  rss_bytes_max: number;
}

export const PRICE = ['per_million', 'per_hour', 'per_day', 'per_month', 'per_customer_month'] as const;
/** Empty where there is none. */
export type Price = Record<(typeof PRICE)[number], string>;

export interface Bill {
  currency: string;
  source: string;
  date: string;
  caveat: string;
  good: number;
  failed: number;
  measured_s: number;
  tiers: { tier: string; instances: number; machine: string; machines: number; cores_used: number; rss_bytes_max: number; at_cpu: Price | null; at_cpu_is_less: boolean; whole: Price | null }[];
  sums: { name: string; price: Price }[];
  energy: { name: string; price: Price }[];
  not_in_sums: string[];
  notes: string[];
  published: string;
}

function priceOf(value: unknown): Price | null {
  if (value === null || value === undefined) return null;
  const it = object(value);
  return Object.fromEntries(PRICE.map((key) => [key, text(it[key])])) as Price;
}

function named(of: readonly (readonly [name: string, value: unknown])[]): { name: string; price: Price }[] {
  return of.flatMap(([name, value]) => {
    const price = priceOf(value);
    return price ? [{ name, price }] : [];
  });
}

/** Null where no price file was given. */
export function billOf(value: unknown): Bill | null {
  if (value === null || value === undefined) return null;
  const it = object(value);
  const [energy, published, currency] = [object(it.energy), object(it.published), text(it.currency)];
  const usd = text(published.usd);
  const today = text(published.usd_today);
  return {
    currency, source: text(it.source), date: text(it.date), caveat: text(it.caveat), good: number(it.good), failed: number(it.failed), measured_s: number(it.measured_s),
    tiers: list(it.tiers).map(object).map((of) => ({
      tier: text(of.tier), instances: number(of.instances), machine: text(of.machine), machines: number(of.machines), cores_used: number(of.cores_used),
      rss_bytes_max: number(of.rss_bytes_max), at_cpu: priceOf(of.at_cpu), at_cpu_is_less: of.at_cpu_is_less === true, whole: priceOf(of.whole),
    })),
    sums: named([['CPU used', it.at_cpu], ['Whole machines', it.whole], ['Whole machines, reserved', it.reserved], ['Whole machines, spot', it.spot]]),
    energy: named([
      ['CPU used, Wh', energy.at_cpu_wh], ['Whole machines, Wh', energy.whole_wh], [`CPU used, ${currency}`, energy.at_cpu], [`Whole machines, ${currency}`, energy.whole],
    ]),
    not_in_sums: list(it.not_in_sums).map(text), notes: list(it.notes).map(text),
    published: [text(published.what), usd && `${amount(usd)} US dollars of ${number(published.year)}`, today && `${amount(today)} in today’s`].filter(Boolean).join('; '),
  };
}

export const cpuOf = (value: unknown): TierCpu[] => list(value).map(object).map((of) => ({
  tier: text(of.tier), instances: number(of.instances), mean: number(of.mean), min: number(of.min), max: number(of.max), rss_bytes_max: number(of.rss_bytes_max),
}));

/** At least two decimals, and at least three digits of a small amount: a cent is never hidden. */
export function amount(exact: string): string {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d{1,9}))?$/.exec(exact) ?? [];
  if (whole === undefined) return NOTHING;
  const nano = BigInt(whole + fraction.padEnd(9, '0'));
  const digits = nano === 0n ? 0 : nano.toString().length;
  const decimals = Math.min(9, Math.max(2, 12 - digits));
  const unit = 10n ** BigInt(9 - decimals);
  const rounded = ((nano + unit / 2n) / unit) * unit;
  const kept = (rounded % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '').padEnd(2, '0');
  return `${(rounded / 1_000_000_000n).toString().replace(/\B(?=(\d{3})+$)/g, ',')}.${kept}`;
}
