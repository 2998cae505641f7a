/** What a run costs, and CPU by tier, shown. */

import { amount, PRICE, type Bill, type Price, type TierCpu } from './bill';
import { el, facts, type Child } from './dom';
import { cores, count, NOTHING, plural, share, size } from './format';
import { table } from './table';

const right = (name: string) => ({ name, number: true });

/** CPU by tier. */
export function cpuTable(tiers: readonly TierCpu[]): Child {
  return tiers.length > 0 && [
    el('h3', {}, 'CPU by tier'),
    el('p', { class: 'note' }, 'Of one instance, over the measured window; 100% is one core fully used. Least and most are of single looks, one a second.'),
    table('CPU by tier', [{ name: 'Tier' }, ...['Instances', 'Mean', 'Least', 'Most', 'Memory'].map(right)],
      tiers.map((of) => [of.tier, count(of.instances), share(of.mean), share(of.min), share(of.max), size(of.rss_bytes_max)])),
  ];
}

export function billPart(bill: Bill): Child {
  const cell = (price: Price | null, key: keyof Price): string => (price ? amount(price[key]) : NOTHING);
  const sumName = bill.not_in_sums.length > 0 ? 'Sum, incomplete' : 'Sum, no load generator';
  const prices = (name: string, at_cpu: Price | null, whole: Price | null, less = ''): Child[] =>
    [name, ...(['per_million', 'per_month'] as const).map((key) => (at_cpu?.[key] ? less : '') + cell(at_cpu, key)), cell(whole, 'per_million'), cell(whole, 'per_month')];
  const sum = (name: string) => bill.sums.find((of) => of.name === name)?.price ?? null;
  const whole = (caption: string, rows: Bill['sums']) => {
    const customers = rows.some(({ price }) => price.per_customer_month !== '');
    const keys = PRICE.filter((key) => customers || key !== 'per_customer_month');
    const names: Record<keyof Price, string> = { per_million: 'Million', per_hour: 'Hour', per_day: 'Day', per_month: 'Month', per_customer_month: 'Customer, month' };
    return rows.length > 0 && table(caption, [{ name: caption }, ...keys.map((key) => right(names[key]))], rows.map(({ name, price }) => [name, ...keys.map((key) => cell(price, key))]));
  };
  return el('div', { class: 'bill' }, [
    bill.caveat !== '' && el('p', { class: 'bad-text' }, `▲ ${bill.caveat}`),
    el('p', { class: 'lead' }, 'At the rate of this run: the cores that were used, as a share of machines; and whole machines, one for each instance. A million is of good answers, a month 730 hours.'),
    facts([['Prices', [bill.currency, bill.source, bill.date].filter(Boolean).join(' · ')], ['Good answers', [`${count(bill.good)} in ${plural(Math.round(bill.measured_s), 'second')}`, bill.failed > 0 && `${count(bill.failed)} failed (${share(bill.failed / (bill.failed + bill.good))})`].filter(Boolean).join(', ')], ['Published', bill.published]]),
    whole(`Together, ${bill.currency}`, bill.sums),
    table('By tier', [{ name: 'By tier' }, ...['Million, CPU', 'Month, CPU', 'Million, whole', 'Month, whole'].map(right)], [
      ...bill.tiers.map((of) => prices(of.tier, of.at_cpu, of.whole, of.at_cpu_is_less ? '<' : '')), prices(sumName, sum('CPU used'), sum('Whole machines')),
    ]),
    table('Machines', [{ name: 'Machines' }, { name: 'Kind' }, ...['Instances', 'Machines', 'Cores used', 'Memory'].map(right)],
      bill.tiers.map((of) => [of.tier, of.machine || NOTHING, count(of.instances), of.machines > 0 ? count(of.machines) : NOTHING, of.cores_used < 0.005 ? '<0.01' : cores(of.cores_used), of.rss_bytes_max > 0 ? size(of.rss_bytes_max) : NOTHING])),
    bill.not_in_sums.length > 0 && el('ul', {}, bill.not_in_sums.map((lack) => el('li', { class: 'bad-text' }, lack))),
    bill.notes.length > 0 && el('ul', {}, bill.notes.map((note) => el('li', {}, note))),
    whole('Energy', bill.energy),
  ]);
}
