/** The airports, and between which of them the airline flies: `airports.rs` of the airline has the same. */

/** Where one can leave from, in the order in which flights are numbered, then where one can only arrive. */
const CITIES: Record<string, string> = {
  AMS: 'Amsterdam', AKL: 'Auckland', BKK: 'Bangkok', BRU: 'Brussels', CAI: 'Cairo', DXB: 'Dubai', FRA: 'Frankfurt', GVA: 'Geneva',
  HKG: 'Hong Kong', IST: 'Istanbul', KHI: 'Karachi', KWI: 'Kuwait', LOS: 'Lagos', LHR: 'London', MNL: 'Manila', MEX: 'Mexico City',
  YUL: 'Montreal', SVO: 'Moscow', NBO: 'Nairobi', JFK: 'New York', CDG: 'Paris', PRG: 'Prague', GIG: 'Rio de Janeiro', FCO: 'Rome',
  SIN: 'Singapore', ARN: 'Stockholm', SYD: 'Sydney', IKA: 'Tehran', NRT: 'Tokyo', BOM: 'Mumbai', DEL: 'Delhi',
};
export const AIRPORTS = Object.keys(CITIES);
export const ORIGINS = AIRPORTS.slice(0, 29);
export const DESTINATIONS = ['BOM', 'DEL', 'FRA', 'HKG', 'LHR', 'YUL', 'SVO', 'JFK', 'CDG', 'FCO', 'SIN', 'SYD', 'IKA', 'NRT'];

export type Route = readonly [from: string, to: string];

/** Each origin to each destination, by number. */
const ROUTES: readonly Route[] = ORIGINS.flatMap((from) => DESTINATIONS.filter((to) => to !== from).map((to) => [from, to] as const));

/** Where a flight such as `AA280` goes. */
export function routeOf(number: string): Route | null {
  const digits = /^AA([0-9]{1,3})$/.exec(number)?.[1];
  return digits === undefined ? null : ROUTES[Number(digits)] ?? null;
}

export function isFlown(from: string, to: string): boolean {
  return ROUTES.some((route) => route[0] === from && route[1] === to);
}

/** The city of an airport; its code where that is not known. */
export function city(code: string): string {
  return CITIES[code] ?? code;
}

export function byCity(codes: readonly string[]): string[] {
  return [...codes].sort((a, b) => city(a).localeCompare(city(b), 'en'));
}
