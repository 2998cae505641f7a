//! The 31 airports, and between which of them the airline flies.
//!
//! Fourteen cities can be flown to, twenty-nine can be flown from, and the two sets differ: nothing departs from
//! Bombay or Delhi, and nothing arrives in the seventeen cities that are only origins. The published benchmark's
//! traffic has its peculiar mix of empty and half-empty answers from this, so it is kept.

/// An airport.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Airport {
    /// IATA code, three capitals.
    pub code: &'static str,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

const fn at(code: &'static str, latitude: f64, longitude: f64) -> Airport {
    Airport { code, latitude, longitude }
}

/// How many airports there are.
pub const AIRPORTS_LEN: usize = 31;

/// The airports: the origins in the order in which their segments are numbered, then the two that are only
/// destinations.
pub const AIRPORTS: [Airport; AIRPORTS_LEN] = [
    at("AMS", 52.3086, 4.7639),
    at("AKL", -37.0081, 174.7917),
    at("BKK", 13.6811, 100.7473),
    at("BRU", 50.9014, 4.4844),
    at("CAI", 30.1219, 31.4056),
    at("DXB", 25.2528, 55.3644),
    at("FRA", 50.0333, 8.5706),
    at("GVA", 46.2381, 6.1089),
    at("HKG", 22.3089, 113.9146),
    at("IST", 41.2753, 28.7519),
    at("KHI", 24.9065, 67.1608),
    at("KWI", 29.2266, 47.9689),
    at("LOS", 6.5774, 3.3212),
    at("LHR", 51.4706, -0.4619),
    at("MNL", 14.5086, 121.0194),
    at("MEX", 19.4363, -99.0721),
    at("YUL", 45.4706, -73.7408),
    at("SVO", 55.9726, 37.4146),
    at("NBO", -1.3192, 36.9278),
    at("JFK", 40.6398, -73.7789),
    at("CDG", 49.0128, 2.5500),
    at("PRG", 50.1008, 14.2600),
    at("GIG", -22.8100, -43.2506),
    at("FCO", 41.8045, 12.2508),
    at("SIN", 1.3502, 103.9944),
    at("ARN", 59.6519, 17.9186),
    at("SYD", -33.9461, 151.1772),
    at("IKA", 35.4161, 51.1522),
    at("NRT", 35.7647, 140.3864),
    at("BOM", 19.0887, 72.8679),
    at("DEL", 28.5665, 77.1031),
];

/// How many of [`AIRPORTS`], from the front, have departures.
pub const ORIGINS_LEN: usize = 29;

/// Where one can fly to, in the order in which the segments of an origin are numbered.
pub const DESTINATIONS: [&str; 14] =
    ["BOM", "DEL", "FRA", "HKG", "LHR", "YUL", "SVO", "JFK", "CDG", "FCO", "SIN", "SYD", "IKA", "NRT"];

/// The place of an airport in [`AIRPORTS`].
pub fn index_of(code: &str) -> Option<usize> {
    AIRPORTS.iter().position(|airport| airport.code == code)
}

/// Mean radius of the Earth.
const EARTH_RADIUS_MILES: f64 = 3958.8;

/// Distance along the great circle, in whole statute miles.
pub fn miles_between(from: &Airport, to: &Airport) -> u32 {
    let (from_lat, to_lat) = (from.latitude.to_radians(), to.latitude.to_radians());
    let half_lat = (to_lat - from_lat) / 2.0;
    let half_lon = (to.longitude - from.longitude).to_radians() / 2.0;
    let haversine = half_lat.sin().powi(2) + from_lat.cos() * to_lat.cos() * half_lon.sin().powi(2);
    (2.0 * EARTH_RADIUS_MILES * haversine.sqrt().min(1.0).asin()).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miles(from: &str, to: &str) -> u32 {
        miles_between(&AIRPORTS[index_of(from).unwrap()], &AIRPORTS[index_of(to).unwrap()])
    }

    #[test]
    fn distances_are_those_of_the_real_world() {
        for (from, to, expected) in [
            ("CDG", "SVO", 1533),
            ("JFK", "LHR", 3451),
            ("AKL", "FCO", 11400),
            ("SIN", "SYD", 3907),
            ("NRT", "IKA", 4760),
            ("AMS", "BOM", 4280),
        ] {
            let got = miles(from, to);
            assert!(
                got.abs_diff(expected) * 50 <= expected,
                "{from}-{to}: {got} miles, expected about {expected}"
            );
            assert_eq!(got, miles(to, from));
        }
        assert_eq!(miles("JFK", "JFK"), 0);
    }

    #[test]
    fn codes_are_unique_and_destinations_exist() {
        for (index, airport) in AIRPORTS.iter().enumerate() {
            assert_eq!(index_of(airport.code), Some(index));
        }
        assert!(DESTINATIONS.iter().all(|code| index_of(code).is_some()));
        assert_eq!(index_of("XXX"), None);
    }
}
