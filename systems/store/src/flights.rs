//! Flights: which are on offer, by segment and by id.

use std::ops::Range;
use std::sync::Arc;

use crate::answer::Answer;

/// A segment that is flown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// For example `AA280`.
    pub id: Arc<str>,
    /// IATA code of the origin.
    pub origin: Arc<str>,
    /// IATA code of the destination.
    pub destination: Arc<str>,
    /// Great circle, statute miles.
    pub miles: u32,
}

/// A segment flown once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// A UUID as a number.
    pub id: u128,
    /// What is flown.
    pub segment: Arc<Segment>,
    /// Departure, milliseconds since 1970.
    pub departure_ms: i64,
    /// Arrival, milliseconds since 1970.
    pub arrival_ms: i64,
}

/// Which flights there are.
pub trait Flights: Send + Sync {
    /// Stores those flights that are not there yet, and their segments; tells how many. Not one atomic write: after an
    /// error some are stored.
    fn put_missing<'a>(&'a self, flights: Box<dyn Iterator<Item = Flight> + Send + 'a>) -> Answer<'a, u64>;

    /// The flights from `origin` to `destination` that depart in a time (milliseconds since 1970), by departure.
    fn between<'a>(
        &'a self,
        origin: &'a str,
        destination: &'a str,
        departure_ms: Range<i64>,
    ) -> Answer<'a, Vec<Flight>>;

    /// Those with one of these ids, in no order.
    fn find<'a>(&'a self, ids: &'a [u128]) -> Answer<'a, Vec<Flight>>;

    /// How many depart in a time (milliseconds since 1970).
    fn count(&self, departure_ms: Range<i64>) -> Answer<'_, u64>;

    /// How many segments there are.
    fn count_segments(&self) -> Answer<'_, u64>;
}
