//! A cache of answers to flight queries: at most so many, each for so long.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;
use tidemark_service::encode::{DescriptorEncoder, counter, gauge};

/// Two airports and a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Query {
    origin: [u8; 3],
    destination: [u8; 3],
    day: i32,
}

impl Query {
    /// None where that cannot be an airport's code: three bytes, so that an entry is never large.
    pub(crate) fn of(origin: &str, destination: &str, day: i32) -> Option<Self> {
        let code = |text: &str| text.as_bytes().try_into().ok();
        Some(Query { origin: code(origin)?, destination: code(destination)?, day })
    }
}

/// What is found for a query, with the time since it was read.
struct Entry {
    flights: Bytes,
    read: Instant,
}

struct Held {
    entries: LruCache<Query, Entry>,
    /// Counts how often all was forgotten.
    generation: u64,
    hits: u64,
    misses: u64,
    evicted: u64,
}

/// Answers of the store, least recently used out first.
pub(crate) struct FlightCache {
    held: Mutex<Held>,
    age_max: Duration,
}

/// Allows to keep an answer that is read from now on, until all is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease(u64);

impl FlightCache {
    pub(crate) fn new(entries_max: NonZeroUsize, age_max: Duration) -> Self {
        let held =
            Held { entries: LruCache::new(entries_max), generation: 0, hits: 0, misses: 0, evicted: 0 };
        FlightCache { held: Mutex::new(held), age_max }
    }

    /// What is held for a query; one that is too old is not.
    pub(crate) fn get(&self, query: Query, now: Instant) -> Result<Bytes, Lease> {
        let held = &mut *self.held.lock();
        match held.entries.get(&query) {
            Some(entry) if now.duration_since(entry.read) < self.age_max => {
                held.hits += 1;
                Ok(entry.flights.clone())
            }
            _ => {
                held.misses += 1;
                Err(Lease(held.generation))
            }
        }
    }

    /// Keeps an answer that was read after `read`, unless all was forgotten since the lease was given.
    pub(crate) fn put(&self, query: Query, lease: Lease, flights: Bytes, read: Instant) {
        let held = &mut *self.held.lock();
        if Lease(held.generation) != lease {
            return;
        }
        let evicted = held.entries.push(query, Entry { flights, read });
        held.evicted += u64::from(evicted.is_some_and(|(other, _)| other != query));
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        let held = &mut *self.held.lock();
        held.generation += 1;
        held.entries.clear();
    }

    /// Forgets what is too old.
    pub(crate) fn sweep(&self, now: Instant) {
        let entries = &mut self.held.lock().entries;
        let is_old = |entry: &Entry| now.duration_since(entry.read) >= self.age_max;
        let old: Vec<Query> =
            entries.iter().filter(|(_, entry)| is_old(entry)).map(|(query, _)| *query).collect();
        for query in old {
            entries.pop(&query);
        }
    }

    /// The time since the oldest entry was read; 0 where there is none.
    fn age(&self, now: Instant) -> Duration {
        let held = self.held.lock();
        let oldest = held.entries.iter().map(|(_, entry)| entry.read).min();
        oldest.map_or(Duration::ZERO, |read| now.duration_since(read))
    }

    /// Writes its counters.
    pub(crate) fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let age_s = self.age(Instant::now()).as_secs();
        let (entries, entries_max, hits, misses, evicted) = {
            let held = self.held.lock();
            (held.entries.len(), held.entries.cap().get(), held.hits, held.misses, held.evicted)
        };
        gauge(e, "airline_flight_cache_entries", "Flight queries that are held", entries as u64)?;
        gauge(e, "airline_flight_cache_entries_max", "The bound of these", entries_max as u64)?;
        let help = "Time since the oldest of these was read from where the flights are";
        gauge(e, "airline_flight_cache_age_seconds", help, age_s)?;
        counter(e, "airline_flight_cache_hits", "Flight queries that were held", hits)?;
        counter(e, "airline_flight_cache_misses", "Flight queries that were not held, or too old", misses)?;
        counter(e, "airline_flight_cache_evicted", "Entries that went for others", evicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn query(day: i32) -> Query {
        Query::of("CDG", "SVO", day).unwrap()
    }

    fn keep(cache: &FlightCache, day: i32, now: Instant) {
        let lease = cache.get(query(day), now).unwrap_err();
        cache.put(query(day), lease, "{}".into(), now);
    }

    fn counts(cache: &FlightCache) -> (usize, u64, u64, u64) {
        let held = cache.held.lock();
        (held.entries.len(), held.hits, held.misses, held.evicted)
    }

    #[test]
    fn there_are_never_more_than_may_be_and_what_is_asked_for_stays() {
        let (cache, now) = (FlightCache::new(NonZeroUsize::new(10).unwrap(), MINUTE), Instant::now());
        keep(&cache, 0, now);
        for day in 1..100 {
            keep(&cache, day, now);
            assert_eq!(cache.get(query(0), now), Ok("{}".into()), "{day}");
        }
        assert_eq!(counts(&cache), (10, 99, 100, 90));
        assert!(cache.get(query(1), now).is_err() && cache.get(query(99), now).is_ok());
    }

    #[test]
    fn what_is_too_old_is_read_again() {
        let (cache, now) = (FlightCache::new(NonZeroUsize::new(10).unwrap(), MINUTE), Instant::now());
        keep(&cache, 1, now);
        let later = now + MINUTE / 2;
        keep(&cache, 2, later);
        assert!(cache.get(query(1), later).is_ok());
        assert_eq!(cache.age(later), MINUTE / 2);
        assert!(cache.get(query(1), now + MINUTE).is_err());
        // read again, it is as young as that, and nothing had to go for it
        keep(&cache, 1, now + MINUTE);
        assert_eq!((cache.age(now + MINUTE), counts(&cache).3), (MINUTE / 2, 0));
        cache.sweep(later + MINUTE);
        assert_eq!(counts(&cache).0, 1, "the other one has gone without being asked for");
    }

    #[test]
    fn what_was_read_before_all_was_forgotten_is_not_kept() {
        let (cache, now) = (FlightCache::new(NonZeroUsize::new(10).unwrap(), MINUTE), Instant::now());
        keep(&cache, 1, now);
        let lease = cache.get(query(2), now).unwrap_err();
        cache.clear();
        cache.put(query(2), lease, "{}".into(), now);
        assert_eq!((counts(&cache).0, cache.age(now)), (0, Duration::ZERO));
    }

    #[test]
    fn only_what_may_be_an_airport_is_kept() {
        assert!(Query::of("CDG", "SVO", 1).is_some());
        for (from, to) in [("", "SVO"), ("CDG", "SVOX"), ("é", "SVO")] {
            assert_eq!(Query::of(from, to, 1), None, "{from}-{to}");
        }
    }
}
