import { describe, expect, it } from 'vitest';
import { amount, billOf, cpuOf } from './bill';

describe('amount', () => {
  it.each([
    ['0', '0.00'], ['0.0042', '0.0042'], ['0.000000001', '0.000000001'], ['0.00420555', '0.00421'], ['0.9996', '1.00'], ['12.345', '12.35'],
    ['1234567.894', '1,234,567.89'], ['9007199254740993', '9,007,199,254,740,993.00'], ['', '–'], ['1e3', '–'], ['-1', '–'],
  ])('shows %s as %s', (exact, shown) => expect(amount(exact)).toBe(shown));
});

describe('billOf', () => {
  it('is null where there is none, and empty of nothing', () => {
    expect(billOf(undefined)).toBeNull();
    expect(billOf('x')).toMatchObject({ tiers: [], sums: [], energy: [], not_in_sums: [], published: '' });
    expect(cpuOf(null)).toEqual([]);
  });

  it('has the sums that are there', () => {
    const price = { per_million: '0.01', per_hour: '0.5', per_day: '12', per_month: '365' };
    const bill = billOf({ currency: 'EUR', at_cpu: price, whole: null, published: { what: 'it', year: 2014, usd: '10', usd_today: null } });
    expect(bill?.sums).toEqual([{ name: 'CPU used', price: { ...price, per_customer_month: '' } }]);
    expect(bill?.published).toBe('it; 10.00 US dollars of 2014');
  });
});
