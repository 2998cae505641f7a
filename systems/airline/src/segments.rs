//! The routes: 394 segments from an origin to a destination, numbered origin by origin.

use std::sync::LazyLock;

use crate::airports::{AIRPORTS, AIRPORTS_LEN, DESTINATIONS, ORIGINS_LEN, index_of, miles_between};

/// How many segments there are: each origin to each destination, less the twelve that would end where they begin.
pub const SEGMENTS_LEN: usize = ORIGINS_LEN * DESTINATIONS.len() - 12;

/// A route that is flown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// `AA0` to `AA393`.
    pub id: String,
    /// IATA code of the origin.
    pub origin: &'static str,
    /// IATA code of the destination.
    pub destination: &'static str,
    /// Great circle, statute miles.
    pub miles: u32,
}

/// All segments, and which one joins two airports.
#[derive(Debug)]
pub struct Segments {
    list: Vec<Segment>,
    /// By origin and destination as indices of [`AIRPORTS`].
    between: [[Option<u16>; AIRPORTS_LEN]; AIRPORTS_LEN],
}

impl Segments {
    /// The segments; made once.
    pub fn all() -> &'static Segments {
        static ALL: LazyLock<Segments> = LazyLock::new(Segments::build);
        &ALL
    }

    fn build() -> Self {
        let mut list = Vec::with_capacity(SEGMENTS_LEN);
        let mut between = [[None; AIRPORTS_LEN]; AIRPORTS_LEN];
        for (from, origin) in AIRPORTS[..ORIGINS_LEN].iter().enumerate() {
            let reachable = DESTINATIONS.iter().filter_map(|code| index_of(code)).filter(|&to| to != from);
            for to in reachable {
                between[from][to] = Some(list.len() as u16);
                list.push(Segment {
                    id: format!("AA{}", list.len()),
                    origin: origin.code,
                    destination: AIRPORTS[to].code,
                    miles: miles_between(origin, &AIRPORTS[to]),
                });
            }
        }
        debug_assert_eq!(list.len(), SEGMENTS_LEN);
        Segments { list, between }
    }

    /// In the order of their numbers.
    pub fn list(&self) -> &[Segment] {
        &self.list
    }

    /// The number of the segment from one airport to another, if it is flown and both codes exist.
    pub fn between(&self, from: &str, to: &str) -> Option<usize> {
        self.between[index_of(from)?][index_of(to)?].map(usize::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_begins_at_its_number() {
        let segments = Segments::all();
        assert_eq!(segments.list().len(), SEGMENTS_LEN);
        let begins = [
            ("AMS", 0),
            ("AKL", 14),
            ("BKK", 28),
            ("BRU", 42),
            ("CAI", 56),
            ("DXB", 70),
            ("FRA", 84),
            ("GVA", 97),
            ("HKG", 111),
            ("IST", 124),
            ("KHI", 138),
            ("KWI", 152),
            ("LOS", 166),
            ("LHR", 180),
            ("MNL", 193),
            ("MEX", 207),
            ("YUL", 221),
            ("SVO", 234),
            ("NBO", 247),
            ("JFK", 261),
            ("CDG", 274),
            ("PRG", 287),
            ("GIG", 301),
            ("FCO", 315),
            ("SIN", 328),
            ("ARN", 341),
            ("SYD", 355),
            ("IKA", 368),
            ("NRT", 381),
        ];
        for (code, number) in begins {
            assert_eq!(segments.list()[number].origin, code);
            assert!(number == 0 || segments.list()[number - 1].origin != code);
        }
        assert_eq!(segments.list()[SEGMENTS_LEN - 1].origin, "NRT");
    }

    #[test]
    fn known_segments_are_where_they_belong() {
        let segments = Segments::all();
        for (from, to, number) in [("AMS", "BOM", 0), ("CDG", "SVO", 280), ("SVO", "CDG", 241)] {
            assert_eq!(segments.between(from, to), Some(number));
            assert_eq!(segments.list()[number].id, format!("AA{number}"));
            assert_eq!((segments.list()[number].origin, segments.list()[number].destination), (from, to));
        }
        for (from, to) in
            [("BOM", "AMS"), ("DEL", "JFK"), ("JFK", "AMS"), ("JFK", "JFK"), ("XXX", "JFK"), ("", "")]
        {
            assert_eq!(segments.between(from, to), None, "{from}-{to}");
        }
    }

    /// The pairs that the published driver asks for, and what is flown between them.
    #[test]
    fn the_mix_of_the_published_queries() {
        const FROM: [&str; 15] = [
            "NRT", "BOM", "DEL", "FRA", "AMS", "HKG", "LHR", "YUL", "SVO", "JFK", "CDG", "FCO", "SIN", "SYD",
            "IKA",
        ];
        let segments = Segments::all();
        let (mut none, mut out_only, mut both) = (0, 0, 0);
        for from in FROM {
            for to in DESTINATIONS {
                match (segments.between(from, to), segments.between(to, from)) {
                    (None, _) => none += 1,
                    (Some(_), None) => out_only += 1,
                    (Some(_), Some(_)) => both += 1,
                }
            }
        }
        assert_eq!((none, out_only, both), (40, 38, 132));
    }
}
