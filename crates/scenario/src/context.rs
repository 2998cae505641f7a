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

/// A part of a load that several processes drive: the threads of one process among those of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// The number of its first thread.
    pub first: u64,
    /// How many it has.
    pub here: u64,
    /// How many there are.
    pub all: u64,
}

impl Default for Threads {
    fn default() -> Self {
        Threads::ALONE
    }
}

impl Threads {
    /// A process that drives a load alone.
    pub const ALONE: Threads = Threads { first: 0, here: 1, all: 1 };

    /// The number over all processes of what is the `nth` here; no other process has the same.
    pub fn number(self, nth: u64) -> u64 {
        let here = self.here.max(1);
        (nth / here).saturating_mul(self.all).saturating_add(self.first + nth % here)
    }

    /// Whether what has this number over all processes is of this one.
    pub fn has(self, number: u64) -> bool {
        (self.first..self.first + self.here).contains(&(number % self.all.max(1)))
    }
}

/// Counters and cursors that all sessions of all threads share. The only thing that threads share on the hot path;
/// one relaxed atomic addition for each value of a counter or step of a cursor, and a compare-and-swap loop to claim a row.
#[derive(Debug, Default)]
pub struct Shared {
    /// Which numbers of counters are of this process.
    threads: Threads,
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

    /// The same for a part of a load. Counters give numbers that no other part has. Rows are dealt out to the threads of all
    /// parts; where there are fewer rows than threads, and none is held, each part has all.
    pub fn shared_out(plan: &Plan, threads: Threads) -> Self {
        let dealt = plan.feeders.iter().map(|feeder| {
            if !feeder.held && (feeder.rows.len() as u64) < threads.all {
                return feeder.clone();
            }
            let mine = |(row, _): &(usize, &Vec<Box<str>>)| threads.has(*row as u64);
            let rows = feeder.rows.iter().enumerate().filter(mine).map(|(_, row)| row.clone()).collect();
            Feeder { rows, name: feeder.name.clone(), columns: feeder.columns.clone(), held: feeder.held }
        });
        let keys = plan.keys.iter().map(Keys::new).collect();
        Shared { keys, threads, ..Shared::new(plan.counters, dealt.collect()) }
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
            threads: Threads::ALONE,
            counters: zeros(counters),
            cursors: zeros(feeders.len()),
            claims,
            feeders,
            keys: Arc::default(),
            reserved: CachePadded::default(),
        }
    }

    /// Counts one up and returns the count before: 0 for the first caller, and over all parts of a load no number twice.
    pub fn count(&self, counter: usize) -> u64 {
        self.threads.number(self.turn(counter))
    }

    /// The same over this part of the load alone: what goes in turn does so in each part.
    pub fn turn(&self, counter: usize) -> u64 {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Load, LoadModel};

    /// The threads of processes that have so many each.
    fn parts(threads: &[u64]) -> Vec<Threads> {
        let all = threads.iter().sum();
        let mut first = 0;
        let part = |here: &u64| {
            first += here;
            Threads { first: first - here, here: *here, all }
        };
        threads.iter().map(part).collect()
    }

    fn plan(rows: usize, held: bool) -> Plan {
        let rows = (0..rows).map(|row| vec![row.to_string().into_boxed_str()]).collect();
        let feeder = Feeder { name: "f".into(), columns: vec!["c".into()], rows, held };
        Plan {
            counters: 1,
            feeders: vec![feeder],
            ..Plan::new("t", Load::new(LoadModel::Closed, Vec::new()))
        }
    }

    #[test]
    fn one_process_counts_as_it_always_did() {
        let shared = Shared::of(&plan(3, false));
        assert_eq!([0, 1, 2], [(); 3].map(|()| shared.count(0)));
        assert_eq!([0, 1, 2, 0], [(); 4].map(|()| shared.next_row(0)));
        assert_eq!([0, 1, 2, 3], [0, 1, 2, 3].map(|nth| Threads { first: 0, here: 4, all: 4 }.number(nth)));
    }

    #[test]
    fn few_rows_that_nobody_holds_are_everyones() {
        let parts = parts(&[2, 2]);
        let rows = |rows, held| {
            parts
                .iter()
                .map(|part| Shared::shared_out(&plan(rows, held), *part).feeders[0].rows.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(3, false), [3, 3]);
        assert_eq!(rows(3, true), [2, 1]);
    }

    proptest! {
        /// Where each part takes as much as it has threads, all numbers are there once, as if one process had counted.
        #[test]
        fn parts_together_are_the_whole(
            threads in prop::collection::vec(1u64..6, 1..9),
            rounds in 1u64..20,
            rows in 48usize..200,
            held: bool,
        ) {
            let parts = parts(&threads);
            let all: u64 = threads.iter().sum();
            let plan = plan(rows, held);
            let (mut counted, mut dealt) = (BTreeSet::new(), Vec::new());
            for part in parts {
                let shared = Shared::shared_out(&plan, part);
                counted.extend((0..rounds * part.here).map(|_| shared.count(0)));
                prop_assert_eq!(shared.turn(0), rounds * part.here);
                dealt.extend(shared.feeders[0].rows.iter().map(|row| row[0].parse::<usize>().unwrap()));
            }
            prop_assert_eq!(counted.into_iter().collect::<Vec<_>>(), (0..rounds * all).collect::<Vec<_>>());
            dealt.sort_unstable();
            prop_assert_eq!(dealt, (0..rows).collect::<Vec<_>>());
        }
    }
}
