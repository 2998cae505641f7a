//! The flights on offer, wherever they are: computed here, or in a store, and with or without a cache in front.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tidemark_service::Timings;
use tidemark_store::StoreError;
use tidemark_store::flights::{Flight, Flights as FlightStore};

use crate::app::Op;
use crate::flight_cache::{FlightCache, Query};
use crate::logins::timed;
use crate::refusal::Refusal;
use crate::segments::{SEGMENTS_LEN, Segments};
use crate::timetable::{DAY_MS, LATE_DAYS, Timetable, day_of, flights_on, write_stored};

/// Entries held where nothing is said and the flights are in a store: more than two months of the timetable.
const ENTRIES: usize = 32_768;

/// How many answers to flight queries are held, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheSettings {
    /// None: as many as suits where the flights are.
    pub(crate) entries: Option<usize>,
    pub(crate) age_max: Duration,
}

/// The flights on offer.
pub(crate) struct Flights {
    source: Source,
    cache: Option<FlightCache>,
}

enum Source {
    /// Computed by this process.
    Computed(Timetable),
    Stored(Stored),
}

struct Stored {
    store: Arc<dyn FlightStore>,
    days: i32,
    /// The first day of the window.
    today: AtomicI32,
    timings: Arc<Timings>,
}

/// A flight that can be booked: its id, and that of its segment.
pub(crate) type Bookable = (u128, Arc<str>);

impl Flights {
    /// `store` has them, if any.
    pub(crate) fn new(
        store: Option<Arc<dyn FlightStore>>,
        days: u32,
        now_ms: i64,
        cache: CacheSettings,
        timings: Arc<Timings>,
    ) -> Self {
        let entries = cache.entries.unwrap_or(if store.is_some() { ENTRIES } else { 0 });
        let source = match store {
            None => Source::Computed(Timetable::new(days, now_ms)),
            Some(store) => {
                let today = AtomicI32::new(day_of(now_ms));
                Source::Stored(Stored { store, days: days as i32, today, timings })
            }
        };
        let cache = NonZeroUsize::new(entries).map(|entries| FlightCache::new(entries, cache.age_max));
        Flights { source, cache }
    }

    pub(crate) fn cache(&self) -> Option<&FlightCache> {
        self.cache.as_ref()
    }

    /// Stores those flights on offer that the store does not have yet, and forgets what is cached.
    pub(crate) async fn load(&self) -> Result<(), StoreError> {
        if let Source::Stored(stored) = &self.source {
            stored.load(stored.today()).await?;
        }
        if let Some(cache) = &self.cache {
            cache.clear();
        }
        Ok(())
    }

    /// Moves the window to the day of `now_ms`, if that is later; a store gets the new days first. Forgets what is cached
    /// for too long.
    pub(crate) async fn follow(&self, now_ms: i64) {
        match &self.source {
            Source::Computed(timetable) => timetable.follow(now_ms),
            Source::Stored(stored) => {
                let today = day_of(now_ms);
                if today > stored.today() {
                    match stored.load(today).await {
                        Ok(()) => {
                            stored.today.fetch_max(today, Ordering::AcqRel);
                            self.cache.iter().for_each(FlightCache::clear);
                            tracing::info!(today, "the timetable has moved to a new day");
                        }
                        Err(error) => tracing::warn!(%error, "the flights of a new day could not be stored"),
                    }
                }
            }
        }
        if let Some(cache) = &self.cache {
            cache.sweep(Instant::now());
        }
    }

    /// Writes the JSON of the flights from an airport to another on a day, with commas between.
    pub(crate) async fn write_on(
        &self,
        out: &mut BytesMut,
        from: &str,
        to: &str,
        day: i32,
    ) -> Result<(), Refusal> {
        if !self.is_on_offer(day) {
            return Ok(());
        }
        let query = || Query::of(from, to, day);
        let Some((cache, query)) = self.cache.as_ref().and_then(|cache| Some((cache, query()?))) else {
            return self.read_on(out, from, to, day).await;
        };
        let now = Instant::now();
        match cache.get(query, now) {
            Ok(flights) => out.extend_from_slice(&flights),
            Err(lease) => {
                let begin = out.len();
                self.read_on(out, from, to, day).await?;
                cache.put(query, lease, Bytes::copy_from_slice(&out[begin..]), now);
            }
        }
        Ok(())
    }

    fn is_on_offer(&self, day: i32) -> bool {
        match &self.source {
            Source::Computed(timetable) => timetable.is_on_offer(day),
            Source::Stored(stored) => stored.window().contains(&day),
        }
    }

    async fn read_on(&self, out: &mut BytesMut, from: &str, to: &str, day: i32) -> Result<(), Refusal> {
        match &self.source {
            Source::Computed(timetable) => {
                let number = Segments::all().between(from, to);
                write_all(out, number.and_then(|number| timetable.flight(number, day)).into_iter());
            }
            Source::Stored(stored) => stored.write(out, from, to, day..day + 1).await?,
        }
        Ok(())
    }

    /// The same of all days on offer; not cached.
    pub(crate) async fn write_all_days(
        &self,
        out: &mut BytesMut,
        from: &str,
        to: &str,
    ) -> Result<(), Refusal> {
        match &self.source {
            Source::Computed(timetable) => {
                let number = Segments::all().between(from, to);
                write_all(out, number.into_iter().flat_map(|number| timetable.flights_of(number)));
            }
            Source::Stored(stored) => stored.write(out, from, to, stored.window()).await?,
        }
        Ok(())
    }

    /// Those of these flights that can be booked now.
    pub(crate) async fn bookable(&self, ids: &[u128]) -> Result<Vec<Bookable>, Refusal> {
        match &self.source {
            Source::Computed(timetable) => {
                let segments = Segments::all().list();
                let key = |id| timetable.bookable(id).map(|key| usize::from(key.segment));
                Ok(ids.iter().filter_map(|&id| Some((id, segments[key(id)?].id.as_str().into()))).collect())
            }
            Source::Stored(stored) => {
                let Range { start, end } = stored.window();
                let window = departures(start - LATE_DAYS..end);
                let found = stored.find(ids).await?;
                let can_be = found.into_iter().filter(|flight| window.contains(&flight.departure_ms));
                Ok(can_be.map(|flight| (flight.id, flight.segment.id.clone())).collect())
            }
        }
    }

    /// The JSON of flights by id, on offer or not, in the order of `ids`; none for what is no flight's id.
    pub(crate) async fn whole(&self, ids: &[u128]) -> Result<Vec<Option<Bytes>>, Refusal> {
        match &self.source {
            Source::Computed(timetable) => Ok(ids.iter().map(|&id| timetable.whole(id)).collect()),
            Source::Stored(stored) => {
                let found = stored.find(ids).await?;
                let flight = |id: &u128| found.iter().find(|flight| flight.id == *id);
                let written = |flight: &Flight| {
                    let mut text = String::new();
                    write_stored(&mut text, flight);
                    text.into()
                };
                Ok(ids.iter().map(|id| flight(id).map(written)).collect())
            }
        }
    }

    /// How many flights are on offer.
    pub(crate) async fn count(&self) -> Result<u64, StoreError> {
        match &self.source {
            Source::Computed(timetable) => Ok(timetable.count()),
            Source::Stored(stored) => stored.store.count(departures(stored.window())).await,
        }
    }

    /// How many segments are flown.
    pub(crate) async fn count_segments(&self) -> Result<u64, StoreError> {
        match &self.source {
            Source::Computed(_) => Ok(SEGMENTS_LEN as u64),
            Source::Stored(stored) => stored.store.count_segments().await,
        }
    }
}

impl Stored {
    fn today(&self) -> i32 {
        self.today.load(Ordering::Acquire)
    }

    fn window(&self) -> Range<i32> {
        let today = self.today();
        today..today + self.days
    }

    /// Stores the flights of a window that begins `today`.
    async fn load(&self, today: i32) -> Result<(), StoreError> {
        let flights = (today..today + self.days).flat_map(flights_on);
        self.store.put_missing(Box::new(flights)).await.map(drop)
    }

    async fn write(&self, out: &mut BytesMut, from: &str, to: &str, days: Range<i32>) -> Result<(), Refusal> {
        let found = self.store.between(from, to, departures(days));
        let found = timed(&self.timings, Op::FlightQuery as usize, found).await?;
        let mut text = String::new();
        for (index, flight) in found.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            write_stored(&mut text, flight);
        }
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    async fn find(&self, ids: &[u128]) -> Result<Vec<Flight>, Refusal> {
        timed(&self.timings, Op::FlightFind as usize, self.store.find(ids)).await
    }
}

/// The times of departure of some days.
fn departures(days: Range<i32>) -> Range<i64> {
    i64::from(days.start) * DAY_MS..i64::from(days.end) * DAY_MS
}

fn write_all<'a>(out: &mut BytesMut, flights: impl Iterator<Item = &'a Bytes>) {
    for (index, flight) in flights.enumerate() {
        if index > 0 {
            out.extend_from_slice(b",");
        }
        out.extend_from_slice(flight);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tidemark_store::Answer;

    use super::*;

    /// Flights in a list, while it works.
    #[derive(Default)]
    struct Listed {
        flights: Mutex<Vec<Flight>>,
        is_away: std::sync::atomic::AtomicBool,
    }

    impl FlightStore for Listed {
        fn put_missing<'a>(
            &'a self,
            flights: Box<dyn Iterator<Item = Flight> + Send + 'a>,
        ) -> Answer<'a, u64> {
            if self.is_away.load(Ordering::Relaxed) {
                return Answer::ready(Err(StoreError::Unreachable {
                    place: "x".into(),
                    reason: "it is away".into(),
                }));
            }
            let mut held = self.flights.lock();
            let before = held.len();
            for flight in flights {
                if held.iter().all(|other| other.id != flight.id) {
                    held.push(flight);
                }
            }
            Answer::ready(Ok((held.len() - before) as u64))
        }

        fn between<'a>(&'a self, from: &'a str, to: &'a str, times: Range<i64>) -> Answer<'a, Vec<Flight>> {
            let is_asked = |flight: &&Flight| {
                (&*flight.segment.origin, &*flight.segment.destination) == (from, to)
                    && times.contains(&flight.departure_ms)
            };
            Answer::ready(Ok(self.flights.lock().iter().filter(is_asked).cloned().collect()))
        }

        fn find<'a>(&'a self, ids: &'a [u128]) -> Answer<'a, Vec<Flight>> {
            let flights = self.flights.lock();
            Answer::ready(Ok(flights.iter().filter(|flight| ids.contains(&flight.id)).cloned().collect()))
        }

        fn count(&self, times: Range<i64>) -> Answer<'_, u64> {
            let flights = self.flights.lock();
            let inside = flights.iter().filter(|flight| times.contains(&flight.departure_ms));
            Answer::ready(Ok(inside.count() as u64))
        }

        fn count_segments(&self) -> Answer<'_, u64> {
            Answer::ready(Ok(0))
        }
    }

    const NOON: i64 = 20_000 * DAY_MS + DAY_MS / 2;

    fn flights(store: Option<Arc<dyn FlightStore>>, entries: usize) -> Flights {
        let cache = CacheSettings { entries: Some(entries), age_max: Duration::from_secs(60) };
        let timings = Timings::new("x_seconds", "x", "op", crate::app::OPS);
        Flights::new(store, 3, NOON, cache, Arc::new(timings))
    }

    async fn on(flights: &Flights, day: i32) -> String {
        let mut out = BytesMut::new();
        flights.write_on(&mut out, "CDG", "SVO", day).await.unwrap();
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_store_has_the_flights_of_a_new_day_before_they_are_on_offer() {
        let store = Arc::new(Listed::default());
        let (stored, computed) = (flights(Some(store.clone()), 10), flights(None, 0));
        stored.load().await.unwrap();
        for day in 19_999..20_004 {
            assert_eq!(on(&stored, day).await, on(&computed, day).await, "{day}");
        }
        assert!(on(&stored, 20_002).await.contains("AA280") && on(&stored, 20_003).await.is_empty());

        // while it is away, all stays as it is
        store.is_away.store(true, Ordering::Relaxed);
        stored.follow(NOON + DAY_MS).await;
        assert!(!on(&stored, 20_000).await.is_empty() && on(&stored, 20_003).await.is_empty());
        store.is_away.store(false, Ordering::Relaxed);
        stored.follow(NOON + DAY_MS).await;
        computed.follow(NOON + DAY_MS).await;
        for day in 19_999..20_005 {
            assert_eq!(on(&stored, day).await, on(&computed, day).await, "{day}");
        }
        assert_eq!(stored.count().await.unwrap(), computed.count().await.unwrap());

        // bookable until a day after, and whole for ever
        let ids: Vec<u128> = [20_000, 20_003]
            .map(|day| crate::FlightKey { segment: 280, day }.id())
            .into_iter()
            .chain([7])
            .collect();
        for now_ms in [NOON + DAY_MS, NOON + 2 * DAY_MS] {
            stored.follow(now_ms).await;
            computed.follow(now_ms).await;
            assert_eq!(stored.bookable(&ids).await.unwrap(), computed.bookable(&ids).await.unwrap());
            assert_eq!(stored.whole(&ids).await.unwrap(), computed.whole(&ids).await.unwrap());
        }
        assert_eq!(stored.bookable(&ids).await.unwrap().len(), 1);
    }
}
