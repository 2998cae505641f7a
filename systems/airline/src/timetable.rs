//! The timetable: each segment flown once a day, for a window of days that follows the calendar.
//!
//! Day 0 is today in UTC; flights leave at its midnight. The window is `[today, today + days)`: when a server runs
//! past midnight the days that have passed disappear from the answers and new ones appear at the end, so that a
//! server that runs for weeks answers like one that was started today. Flights of yesterday can still be booked,
//! for the client that asked before midnight.
//!
//! Every flight's JSON is written once, when its day enters the window; a query copies it.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use tidemark_store::flights::{self, Flight};

use crate::flight_id::FlightKey;
use crate::segments::{SEGMENTS_LEN, Segment, Segments};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;
/// Speed of every airplane: a mile takes 6 s.
const MS_PER_MILE: i64 = 6_000;
/// Most days in the window.
pub const DAYS_MAX: u32 = 366;
/// The window moves at most this far in the life of a process (some ten years); then it stands still.
const MOVES_MAX: usize = 3660;
/// How long before today a flight can still be booked.
pub(crate) const LATE_DAYS: i32 = 1;

/// The JSON of the flights of one day, by segment.
type Day = Box<[Bytes]>;

/// The flights on offer. Read by all threads without a lock.
#[derive(Debug)]
pub struct Timetable {
    days: i32,
    /// The day when this timetable was made.
    first: i32,
    /// Today, so the first day of the window.
    today: AtomicI32,
    /// From `first` on. A day is written before `today` moves up to it and never changes.
    written: Box<[OnceLock<Day>]>,
}

/// The day of a moment, counted from 1970-01-01, in UTC.
pub fn day_of(now_ms: i64) -> i32 {
    i32::try_from(now_ms.div_euclid(DAY_MS)).unwrap_or(i32::MAX / 2)
}

impl Timetable {
    /// A timetable of `days` days (1 to [`DAYS_MAX`]) from the day of `now_ms` on.
    pub fn new(days: u32, now_ms: i64) -> Self {
        debug_assert!((1..=DAYS_MAX).contains(&days));
        let days = days.clamp(1, DAYS_MAX) as i32;
        let first = day_of(now_ms);
        let written = (0..days as usize + MOVES_MAX).map(|_| OnceLock::new()).collect();
        let timetable = Timetable { days, first, today: AtomicI32::new(first), written };
        timetable.write_up_to(first + days);
        timetable
    }

    /// Moves the window to the day of `now_ms`, if that is later.
    pub fn follow(&self, now_ms: i64) {
        let today = day_of(now_ms).min(self.first + MOVES_MAX as i32);
        if today > self.today() {
            self.write_up_to(today + self.days);
            self.today.fetch_max(today, Ordering::AcqRel);
            tracing::info!(today, "the timetable has moved to a new day");
        }
    }

    fn write_up_to(&self, end: i32) {
        for day in self.today()..end {
            if let Some(slot) = self.written.get((day - self.first) as usize) {
                slot.get_or_init(|| write_day(day));
            }
        }
    }

    fn today(&self) -> i32 {
        self.today.load(Ordering::Acquire)
    }

    /// How many flights are on offer.
    pub fn count(&self) -> u64 {
        self.days as u64 * SEGMENTS_LEN as u64
    }

    /// Whether flights of this day are on offer.
    pub(crate) fn is_on_offer(&self, day: i32) -> bool {
        let today = self.today();
        (today..today + self.days).contains(&day)
    }

    /// The JSON of one flight, if it is on offer.
    pub fn flight(&self, segment: usize, day: i32) -> Option<&Bytes> {
        if !self.is_on_offer(day) {
            return None;
        }
        self.written.get((day - self.first) as usize)?.get()?.get(segment)
    }

    /// The JSON of all flights of a segment, by day.
    pub fn flights_of(&self, segment: usize) -> impl Iterator<Item = &Bytes> {
        let today = self.today();
        (today..today + self.days).filter_map(move |day| self.flight(segment, day))
    }

    /// The JSON of the flight with this id, on offer or not; none where the id is none of a flight.
    pub fn whole(&self, id: u128) -> Option<Bytes> {
        let FlightKey { segment, day } = FlightKey::of_id(id)?;
        let number = usize::from(segment);
        let written = || {
            let mut text = String::new();
            write_flight(&mut text, number, Segments::all().list().get(number)?, day);
            Some(text.into())
        };
        self.flight(number, day).cloned().or_else(written)
    }

    /// The flight with this id, if it can be booked now.
    pub fn bookable(&self, id: u128) -> Option<FlightKey> {
        let today = self.today();
        let window = today - LATE_DAYS..today + self.days;
        FlightKey::of_id(id)
            .filter(|key| usize::from(key.segment) < SEGMENTS_LEN && window.contains(&key.day))
    }
}

/// Writes a day's flights into one buffer that they share.
fn write_day(day: i32) -> Day {
    let mut text = String::with_capacity(SEGMENTS_LEN * 560);
    let mut ends = Vec::with_capacity(SEGMENTS_LEN);
    for (number, segment) in Segments::all().list().iter().enumerate() {
        write_flight(&mut text, number, segment, day);
        ends.push(text.len());
    }
    let mut rest = BytesMut::from(text.as_bytes()).freeze();
    let mut begin = 0;
    let cut = |end: usize| {
        let flight = rest.split_to(end - begin);
        begin = end;
        flight
    };
    ends.into_iter().map(cut).collect()
}

/// All flights of a day, for a store.
pub(crate) fn flights_on(day: i32) -> impl Iterator<Item = Flight> + Send {
    Segments::all().list().iter().zip(0..).map(move |(segment, number)| {
        let Segment { id, origin, destination, miles } = segment;
        let (departure_ms, arrival_ms) = times(*miles, day);
        let (origin, destination) = ((*origin).into(), (*destination).into());
        let segment =
            Arc::new(flights::Segment { id: id.as_str().into(), origin, destination, miles: *miles });
        Flight { id: FlightKey { segment: number, day }.id(), segment, departure_ms, arrival_ms }
    })
}

/// Departure and arrival.
fn times(miles: u32, day: i32) -> (i64, i64) {
    let departure_ms = i64::from(day) * DAY_MS;
    (departure_ms, departure_ms + i64::from(miles) * MS_PER_MILE)
}

fn write_flight(text: &mut String, number: usize, segment: &Segment, day: i32) {
    let Segment { id: segment_id, origin, destination, miles } = segment;
    let id = FlightKey { segment: number as u16, day }.id();
    write_json(text, id, (segment_id, origin, destination, *miles), times(*miles, day));
}

/// Writes the JSON of a flight that a store has.
pub(crate) fn write_stored(text: &mut String, flight: &Flight) {
    let Flight { id, segment, departure_ms, arrival_ms } = flight;
    let flights::Segment { id: segment_id, origin, destination, miles } = &**segment;
    // others may have written the rows
    let [segment_id, origin, destination] = [segment_id, origin, destination].map(|word| escaped(word));
    write_json(text, *id, (&segment_id, &origin, &destination, *miles), (*departure_ms, *arrival_ms));
}

/// A text as it stands between the quotes of JSON.
fn escaped(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return text.into();
    }
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned().into()
}

fn write_json(
    text: &mut String,
    id: u128,
    (segment_id, origin, destination, miles): (&str, &str, &str, u32),
    (departure_ms, arrival_ms): (i64, i64),
) {
    let id = uuid::Uuid::from_u128(id);
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{{\"_id\":\"{id}\",\"id\":\"{id}\",\"flightSegmentId\":\"{segment_id}\",\
         \"pkey\":{{\"id\":\"{id}\",\"flightSegmentId\":\"{segment_id}\"}},\
         \"scheduledDepartureTime\":{departure_ms},\"scheduledArrivalTime\":{arrival_ms},\
         \"firstClassBaseCost\":500,\"economyClassBaseCost\":200,\
         \"numFirstClassSeats\":10,\"numEconomyClassSeats\":200,\"airplaneTypeId\":\"B747\",\
         \"flightSegment\":{{\"_id\":\"{segment_id}\",\"flightName\":\"{segment_id}\",\
         \"originPort\":\"{origin}\",\"destPort\":\"{destination}\",\"miles\":{miles}}}}}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 20_000 * DAY_MS + DAY_MS / 2;

    #[test]
    fn what_others_have_written_into_the_tables_is_escaped() {
        let mut flight = flights_on(20_000).next().unwrap();
        flight.segment = Arc::new(flights::Segment { id: "A\"\\\n1".into(), ..(*flight.segment).clone() });
        let mut text = String::new();
        write_stored(&mut text, &flight);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["flightSegment"]["_id"], "A\"\\\n1");
    }

    #[test]
    fn a_flight_has_all_its_fields() {
        let timetable = Timetable::new(30, NOON);
        assert_eq!(timetable.count(), 11_820);
        let json: serde_json::Value = serde_json::from_slice(timetable.flight(280, 20_003).unwrap()).unwrap();
        let id = json["_id"].as_str().unwrap();
        assert_eq!((json["id"].as_str(), json["pkey"]["id"].as_str()), (Some(id), Some(id)));
        assert_eq!(
            (&json["flightSegmentId"], &json["pkey"]["flightSegmentId"]),
            (&"AA280".into(), &"AA280".into())
        );
        let departure_ms = json["scheduledDepartureTime"].as_i64().unwrap();
        assert_eq!(departure_ms, 20_003 * DAY_MS);
        let miles = json["flightSegment"]["miles"].as_i64().unwrap();
        // 600 miles an hour
        assert_eq!(json["scheduledArrivalTime"].as_i64().unwrap() - departure_ms, miles * 3_600_000 / 600);
        let fixed =
            ["firstClassBaseCost", "economyClassBaseCost", "numFirstClassSeats", "numEconomyClassSeats"];
        assert_eq!(fixed.map(|field| json[field].as_i64().unwrap()), [500, 200, 10, 200]);
        assert_eq!(json["airplaneTypeId"], "B747");
        let segment = &json["flightSegment"];
        assert_eq!([&segment["_id"], &segment["originPort"], &segment["destPort"]], ["AA280", "CDG", "SVO"]);
        let id = uuid::Uuid::parse_str(id).unwrap().as_u128();
        assert_eq!(timetable.bookable(id), Some(FlightKey { segment: 280, day: 20_003 }));
    }

    #[test]
    fn the_window_has_ends_and_follows_the_calendar() {
        let timetable = Timetable::new(5, NOON);
        let on_offer = |day| timetable.flight(0, day).is_some();
        assert!(!on_offer(19_999) && on_offer(20_000) && on_offer(20_004) && !on_offer(20_005));
        let first = timetable.flight(0, 20_001).unwrap().clone();

        timetable.follow(NOON + DAY_MS);
        assert!(!on_offer(20_000) && on_offer(20_001) && on_offer(20_005) && !on_offer(20_006));
        assert_eq!(
            timetable.flight(0, 20_001),
            Some(&first),
            "a flight stays the same when the window moves"
        );
        let can_book = |day| timetable.bookable(FlightKey { segment: 0, day }.id()).is_some();
        assert!(!can_book(19_999) && can_book(20_000) && can_book(20_005) && !can_book(20_006));

        timetable.follow(NOON); // a clock that goes back does not move it back
        assert!(on_offer(20_005));
        timetable.follow(NOON + 100 * DAY_MS); // sleeping for long is no problem
        assert!(on_offer(20_100) && on_offer(20_104) && !on_offer(20_099));
        assert_eq!(timetable.flights_of(393).count(), 5);
        assert_eq!(timetable.count(), 5 * 394);
    }

    #[test]
    fn only_real_flights_can_be_booked() {
        let timetable = Timetable::new(5, NOON);
        assert_eq!(timetable.bookable(FlightKey { segment: 394, day: 20_000 }.id()), None);
        assert_eq!(timetable.bookable(0), None);
        assert_eq!(timetable.bookable(u128::MAX), None);
    }
}
