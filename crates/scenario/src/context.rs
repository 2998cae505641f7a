//! What expressions are evaluated in: a session's slots, its thread's random numbers, and the few things that all
//! sessions share because the scenario says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::claims::Claims;
use crate::keys::Keys;
use crate::plan::{Plan, VALUES_BYTES_MAX};
use crate::slot::Slot;

/// Rows that sessions draw from.
#[derive(Debug, Clone, Default)]
pub struct Feeder {
    /// Its name.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows; each has a text for every column. Never empty.
    pub rows: Vec<Vec<Box<str>>>,
    /// Whether a row belongs to one session at a time: until that takes another of this feeder, or ends.
    pub held: bool,
}

/// Counters and cursors that all sessions of all threads share. The only thing that threads share on the hot path;
/// one relaxed atomic addition for each value of a counter or step of a cursor, and a compare-and-swap loop to claim a row.
#[derive(Debug, Default)]
pub struct Shared {
    counters: Vec<CachePadded<AtomicU64>>,
    cursors: Vec<CachePadded<AtomicU64>>,
    /// Who has which row, for feeders whose rows are held.
    claims: Vec<Option<Claims>>,
    feeders: Vec<Feeder>,
    keys: Arc<[Keys]>,
    /// Memory that threads have reserved for what is in variables, bytes.
    reserved: CachePadded<AtomicU64>,
}

impl Shared {
    /// Reserves memory for what is in variables; false where all sessions together would have more than
    /// [`VALUES_BYTES_MAX`].
    pub fn reserve(&self, bytes: u64) -> bool {
        let fits =
            self.reserved.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= VALUES_BYTES_MAX;
        if !fits {
            self.give_room(bytes);
        }
        fits
    }

    /// Gives memory back that was reserved.
    pub fn give_room(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What a plan's sessions share.
    pub fn of(plan: &Plan) -> Self {
        let keys = plan.keys.iter().map(Keys::new).collect();
        Shared { keys, ..Shared::new(plan.counters, plan.feeders.clone()) }
    }

    /// Keys, and nothing else.
    #[cfg(test)]
    pub(crate) fn with_keys(keys: Vec<Keys>) -> Self {
        Shared { keys: keys.into(), ..Shared::default() }
    }

    /// What those share that come after these: counters and cursors begin anew, keys stay what they are.
    pub fn followed(&self, plan: &Plan) -> Self {
        Shared { keys: self.keys.clone(), ..Shared::new(plan.counters, plan.feeders.clone()) }
    }

    /// Keys, by index.
    pub fn keys(&self, keys: usize) -> Option<&Keys> {
        self.keys.get(keys)
    }

    /// For `counters` counters, and a cursor for each feeder.
    pub fn new(counters: usize, feeders: Vec<Feeder>) -> Self {
        let zeros = |n| (0..n).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        let claims =
            feeders.iter().map(|feeder| feeder.held.then(|| Claims::new(feeder.rows.len()))).collect();
        Shared {
            counters: zeros(counters),
            cursors: zeros(feeders.len()),
            claims,
            feeders,
            keys: Arc::default(),
            reserved: CachePadded::default(),
        }
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

    /// The next row, in turn, of a feeder whose rows are held, and that nobody holds; from now on it is the caller's, until
    /// it is [given back](Shared::give_back). None where as many rows are held as there are, or none has to be.
    pub fn hold_row(&self, feeder: usize) -> Option<usize> {
        self.claims[feeder].as_ref()?.claim(|| self.next_row(feeder))
    }

    /// A row that was held is free again. To be called once by who held it.
    pub fn give_back(&self, feeder: usize, row: usize) {
        if let Some(claims) = &self.claims[feeder] {
            claims.give_back(row);
        }
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
