import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../asked';
import { AIRPORTS, byCity, city, DESTINATIONS, isFlown, ORIGINS, routeOf } from './airports';
import { book, bookings, cancel, find, isSignedOut, profile, readBookings, readFlight, readLegs, readProfile, update } from './api';
import { counted } from './house';
import { status } from './profile';
import { day, dayField, many, moment, price, times, userCookie, userIn, wrongTrip } from './words';

const sent: { path: string; init: RequestInit }[] = [];

function answers(...all: Response[]): void {
  sent.length = 0;
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    sent.push({ path, init });
    return all.shift();
  });
}

const json = (body: unknown, of = 200) => new Response(JSON.stringify(body), { status: of });
const AT_MS = Date.UTC(2026, 10, 28);
const flight = {
  _id: 'f', flightSegmentId: 'AA280', scheduledDepartureTime: AT_MS, scheduledArrivalTime: AT_MS + 9_198_000, firstClassBaseCost: 500, economyClassBaseCost: 200,
  flightSegment: { originPort: 'CDG', destPort: 'SVO', miles: 1533 },
};
const read = readFlight(flight);

afterEach(() => vi.unstubAllGlobals());

describe('the map', () => {
  const rust = readFileSync(new URL('../../../systems/airline/src/airports.rs', import.meta.url), 'utf8');
  it("is the server's", () => {
    expect([...rust.matchAll(/^    at\("([A-Z]{3})"/gm)].map(([, code]) => code)).toEqual(AIRPORTS);
    expect(rust).toContain(`ORIGINS_LEN: usize = ${ORIGINS.length};`);
    const destinations = /DESTINATIONS[^=]*=\s*\[([^\]]*)\]/.exec(rust)?.[1] ?? '';
    expect([...destinations.matchAll(/[A-Z]{3}/g)].map(String)).toEqual(DESTINATIONS);
  });
  it('has flights by number', () => {
    expect([routeOf('AA0'), routeOf('AA280'), routeOf('AA241'), routeOf('AA393')]).toEqual([['AMS', 'BOM'], ['CDG', 'SVO'], ['SVO', 'CDG'], ['NRT', 'IKA']]);
    for (const none of ['AA394', 'AA', 'AA-1', 'XX1', '', 'AA1e1']) expect(routeOf(none)).toBeNull();
    expect([isFlown('CDG', 'SVO'), isFlown('CDG', 'AMS'), isFlown('BOM', 'CDG'), isFlown('CDG', 'CDG')]).toEqual([true, false, false, false]);
  });
  it('has cities, in their order', () => {
    expect(byCity(['JFK', 'AMS', 'BOM'])).toEqual(['AMS', 'BOM', 'JFK']);
    expect([city('JFK'), city('???')]).toEqual(['New York', '???']);
  });
});

describe('what is read', () => {
  it('are flights each way', () => {
    expect(readLegs({ tripFlights: [{ flightsOptions: [flight] }, { flightsOptions: [] }] })).toEqual([[read], []]);
    expect(read).toMatchObject({ id: 'f', number: 'AA280', from: 'CDG', to: 'SVO', miles: 1533, economy: 200, first: 500 });
  });
  it('is empty where it is something else, never an exception', () => {
    for (const odd of [null, 7, 'x', [], {}, { tripFlights: [null] }]) expect(readLegs(odd).flat()).toEqual([]);
    expect(readBookings({})).toEqual([]);
    expect(readBookings([null])).toEqual([{ id: '', flight: '', number: '', booked_ms: 0 }]);
    expect(readProfile(null).address['city']).toBe('');
  });
});

describe('what is asked for', () => {
  const field = (at: number) => Object.fromEntries(sent[at]?.init.body as URLSearchParams);
  it('are flights of days', async () => {
    answers(json({}));
    await find({ from: 'CDG', to: 'S&O', leave: '2026-11-28', back: '2026-12-04', oneWay: false });
    expect([sent[0]?.path, sent[0]?.init.method]).toEqual(['rest/api/flights/queryflights', 'POST']);
    expect(field(0)).toEqual({ fromAirport: 'CDG', toAirport: 'S&O', fromDate: '2026-11-28', returnDate: '2026-12-04', oneWay: 'false' });
  });
  it('are bookings, of one flight or two', async () => {
    answers(json({ departBookingId: 'a', oneWay: true }), json({ departBookingId: 'a', returnBookingId: 'b', oneWay: false }));
    expect(await book('u', read, null)).toEqual(['a']);
    expect(await book('u', read, { ...read, id: 'g' })).toEqual(['a', 'b']);
    expect(field(0)).toEqual({ userid: 'u', toFlightId: 'f', toFlightSegId: 'AA280', oneWayFlight: 'true' });
    expect(field(1)).toMatchObject({ retFlightId: 'g', oneWayFlight: 'false' });
  });
  it('is written so that no text becomes another part of the address', async () => {
    answers(json([]), json({}), json({}), json({}));
    await bookings('../a b?c');
    await profile('a/b#');
    await cancel('u&v', 'x=y');
    await update('u"', 'p', { address: { city: '"' }, phone: '1', phoneType: 'HOME' });
    expect(sent.map(({ path }) => path)).toEqual(['rest/api/bookings/byuser/..%2Fa%20b%3Fc', 'rest/api/customer/byid/a%2Fb%23', 'rest/api/bookings/cancelbooking', 'rest/api/customer/byid/u%22']);
    expect(field(2)).toEqual({ number: 'x=y', userid: 'u&v' });
    expect(JSON.parse(String(sent[3]?.init.body))).toEqual({ _id: 'u"', password: 'p', address: { city: '"' }, phoneNumber: '1', phoneNumberType: 'HOME' });
  });
  it('tells the page when the session has ended, and not of a wrong password', async () => {
    const told = vi.fn();
    vi.stubGlobal('dispatchEvent', told);
    answers(json({ reason: 'wrong password' }, 403), json({ reason: 'not logged in: the session is unknown or has expired' }, 403));
    await expect(profile('u')).rejects.toThrow('Wrong password.');
    expect(told).not.toHaveBeenCalled();
    await expect(profile('u')).rejects.toThrow('Not logged in');
    expect(told).toHaveBeenCalledOnce();
    expect(isSignedOut(new Failure('Not logged in', 503, true))).toBe(false);
  });
});

describe('words', () => {
  it('for days and times are in UTC', () => {
    expect([day(AT_MS), moment(AT_MS + 34_200_000)]).toEqual(['Sat 28 Nov 2026', 'Sat 28 Nov 2026, 09:30']);
    expect(times(AT_MS, AT_MS + 9_198_000)).toBe('Sat 28 Nov 2026, 00:00 – 02:33');
    expect(times(AT_MS, AT_MS + 90_000_000)).toBe('Sat 28 Nov 2026, 00:00 – Sun 29 Nov 2026, 01:00');
    expect([dayField(AT_MS - 1, 0), dayField(AT_MS, 7)]).toEqual(['2026-11-27', '2026-12-05']);
    for (const odd of [NaN, Infinity, 9e99]) expect([day(odd), moment(odd), times(odd, odd)]).toEqual(['unknown', 'unknown', 'unknown – unknown']);
  });
  it('for figures', () => {
    expect([price(1200), many(1, 'mile'), many(1533, 'mile'), counted(-1), counted(11820), status('EXEC_PLATINUM')])
      .toEqual(['$1,200', '1 mile', '1,533 miles', 'unknown', '11,820', 'Exec platinum']);
  });
  it('for a trip that is none', () => {
    const at = (departs_ms: number) => ({ departs_ms });
    expect([wrongTrip(at(1), null), wrongTrip(at(1), at(1))]).toEqual(['', '']);
    expect(wrongTrip(at(2), at(1))).toContain('leaves before');
  });
  it('who is signed in is read from among other cookies', () => {
    const set = userCookie('a=b; c@d').split('; ')[0] ?? '';
    expect(userIn(`x=1; ${set}; sessionid=2`)).toBe('a=b; c@d');
    for (const none of ['', 'x', 'loggedinuser=', 'loggedinuser=%', 'myloggedinuser=a', userCookie(null)]) expect(userIn(none)).toBeNull();
    expect(userCookie(null)).toContain('Max-Age=0');
  });
});
