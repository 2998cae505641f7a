//! What expressions are evaluated in: a session's slots, its thread's random numbers, and the few things that all
//! sessions share because the scenario says so.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::plan::Feeder;
use crate::slot::Slot;

/// Counters and cursors that all sessions of all threads share. The only thing that threads share on the hot path;
/// one relaxed atomic addition each time the scenario asks for it.
#[derive(Debug, Default)]
pub struct Shared {
    counters: Vec<CachePadded<AtomicU64>>,
    cursors: Vec<CachePadded<AtomicU64>>,
    feeders: Vec<Feeder>,
}

impl Shared {
    /// For `counters` counters, and a cursor for each feeder.
    pub fn new(counters: usize, feeders: Vec<Feeder>) -> Self {
        let zeros = |n| (0..n).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        Shared { counters: zeros(counters), cursors: zeros(feeders.len()), feeders }
    }

    /// Counts one up and returns the count before: 0 for the first caller.
    pub fn count(&self, counter: usize) -> u64 {
        self.counters[counter].fetch_add(1, Ordering::Relaxed)
    }

    /// The feeder's next row index, in turn over all sessions of all threads.
    pub fn next_row(&self, feeder: usize) -> usize {
        let rows = self.feeders[feeder].rows.len().max(1);
        (self.cursors[feeder].fetch_add(1, Ordering::Relaxed) % rows as u64) as usize
    }

    /// The feeders, by index.
    pub fn feeders(&self) -> &[Feeder] {
        &self.feeders
    }
}

/// Everything that an expression may look at.
#[derive(Debug)]
pub struct Context<'a> {
    /// The session's variables.
    pub slots: &'a [Slot],
    /// Shared counters and feeders.
    pub shared: &'a Shared,
    /// The thread's random numbers.
    pub random: &'a mut fastrand::Rng,
    /// Wall-clock time, milliseconds since 1970 UTC: the run's one anchor plus monotonic time.
    pub epoch_ms: i64,
}
