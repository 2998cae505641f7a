/** The airline over HTTP. What comes is read, not believed. Paths are relative: the page stands in two folders. */

import { asked, Failure, type Answered } from '../asked';
import { list, number, object, text } from '../loose';

export interface Flight {
  id: string; number: string; from: string; to: string;
  departs_ms: number; arrives_ms: number; miles: number; economy: number; first: number;
}
export interface Booking { id: string; flight: string; number: string; booked_ms: number }
export interface Named { name: string; description: string }

/** The fields of a profile that its owner changes, and what they are called. */
export const ADDRESS = [
  ['streetAddress1', 'Street', 'address-line1'], ['streetAddress2', 'Street, second line', 'address-line2'],
  ['city', 'City', 'address-level2'], ['stateProvince', 'State or province', 'address-level1'],
  ['postalCode', 'Postal code', 'postal-code'], ['country', 'Country', 'country-name'],
] as const;
export interface Profile {
  status: string; totalMiles: number; milesYtd: number;
  address: Record<string, string>; phone: string; phoneType: string;
}

/** Said to the page when the server does not know the session any more. */
export const SIGNED_OUT = 'signedout';
/** Loading customers takes as long as it takes; one hour. */
const LOAD_PATIENCE_MS = 3_600_000;

export function readFlight(value: unknown): Flight {
  const it = object(value);
  const segment = object(it['flightSegment']);
  return {
    id: text(it['_id']), number: text(it['flightSegmentId']), from: text(segment['originPort']), to: text(segment['destPort']),
    departs_ms: number(it['scheduledDepartureTime']), arrives_ms: number(it['scheduledArrivalTime']), miles: number(segment['miles']),
    economy: number(it['economyClassBaseCost']), first: number(it['firstClassBaseCost']),
  };
}

/** The flights out, and those back where they were asked for. */
export function readLegs(body: unknown): Flight[][] {
  return list(object(body)['tripFlights']).map((leg) => list(object(leg)['flightsOptions']).map(readFlight));
}

export function readBookings(body: unknown): Booking[] {
  return list(body).map(object).map((it) => ({
    id: text(it['_id']), flight: text(it['flightId']), number: text(it['flightSegmentId']), booked_ms: number(it['dateOfBooking']),
  }));
}

export function readProfile(body: unknown): Profile {
  const it = object(body);
  const address = object(it['address']);
  return {
    status: text(it['status']), totalMiles: number(it['total_miles']), milesYtd: number(it['miles_ytd']),
    address: Object.fromEntries(ADDRESS.map(([field]) => [field, text(address[field])])),
    phone: text(it['phoneNumber']), phoneType: text(it['phoneNumberType']),
  };
}

function readNames(body: unknown): Named[] {
  return list(body).map(object).map((it) => ({ name: text(it['name']), description: text(it['description']) }));
}

/** Whether a failure means that one has to sign in again; a wrong password is refused with the same status. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof Failure && error.status === 403 && error.message.startsWith('Not logged in');
}

async function ask(path: string, init: RequestInit = {}): Promise<Answered> {
  try {
    return await asked(`rest/api/${path}`, init);
  } catch (error) {
    if (isSignedOut(error)) dispatchEvent(new Event(SIGNED_OUT));
    throw error;
  }
}

const form = (path: string, fields: Record<string, string>) => ask(path, { method: 'POST', body: new URLSearchParams(fields) });
const part = encodeURIComponent;

export const login = (user: string, password: string) => form('login', { login: user, password });
export const logout = (user: string) => ask(`login/logout?${new URLSearchParams({ login: user })}`);

export interface Search { from: string; to: string; leave: string; back: string; oneWay: boolean }
export const find = async ({ from, to, leave, back, oneWay }: Search) => readLegs((await form('flights/queryflights', {
  fromAirport: from, toAirport: to, fromDate: leave, returnDate: back, oneWay: String(oneWay),
})).body);
export const browse = async ({ from, to, oneWay }: Pick<Search, 'from' | 'to' | 'oneWay'>) => readLegs((await form('flights/browseflights', {
  fromAirport: from, toAirport: to, oneWay: String(oneWay),
})).body);

/** The numbers of the bookings that were made. */
export async function book(user: string, out: Flight, back: Flight | null): Promise<string[]> {
  const way = back === null ? {} : { retFlightId: back.id, retFlightSegId: back.number };
  const { body } = await form('bookings/bookflights', {
    userid: user, toFlightId: out.id, toFlightSegId: out.number, ...way, oneWayFlight: String(back === null),
  });
  const booked = object(body);
  return [text(booked['departBookingId']), text(booked['returnBookingId'])].filter((it) => it !== '');
}

export const bookings = async (user: string) => readBookings((await ask(`bookings/byuser/${part(user)}`)).body);
export const cancel = (user: string, booking: string) => form('bookings/cancelbooking', { number: booking, userid: user });

export const profile = async (user: string) => readProfile((await ask(`customer/byid/${part(user)}`)).body);
export async function update(user: string, password: string, changed: Pick<Profile, 'address' | 'phone' | 'phoneType'>): Promise<Profile> {
  const sent = { _id: user, password, address: changed.address, phoneNumber: changed.phone, phoneNumberType: changed.phoneType };
  return readProfile((await ask(`customer/byid/${part(user)}`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(sent),
  })).body);
}

export const runtime = async () => readNames((await ask('config/runtime')).body);
export const dataServices = async () => readNames((await ask('config/dataServices')).body);
export const activeDataService = async () => (await ask('config/activeDataService')).text;
/** A number; −1 where the server cannot count. */
export const count = async (what: string) => number((await ask(`config/count${what}`)).body);
export const loadSize = async () => number((await ask('loader/query')).body);
export const load = async (customers: string) =>
  (await asked(`rest/api/loader/load?${new URLSearchParams({ numCustomers: customers })}`, {}, LOAD_PATIENCE_MS)).text;
