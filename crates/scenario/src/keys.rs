//! The numbers of a scenario's `keys`, which all users share: which are inserted, and what is known of each one's versions.
//!
//! Every number has one atomic word. A write changes it when it begins and when it ends, by a compare-and-swap loop; a read
//! looks at it once. Nothing waits for anything; only numbers whose insert failed are kept behind a lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::plan::KeysPlan;

/// Most numbers of one `keys`; each takes eight bytes.
pub const KEYS_MAX: u64 = 100_000_000;

// A number's word, from the lowest bit: versions given out, the least version that a read may find, writes that have begun and of
// which it is not known whether they took place, and whether its insert was acknowledged.
const VERSION_BITS: u32 = 28;
const VERSION_MAX: u64 = (1 << VERSION_BITS) - 1;
const OPEN_AT: u32 = 2 * VERSION_BITS;
const OPEN_ONE: u64 = 1 << OPEN_AT;
/// So many are not counted any more: they stay open for ever.
const OPEN_MAX: u64 = 0x7F;
const INSERTED: u64 = 1 << 63;

/// A write that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Which `keys`, by index.
    pub keys: usize,
    /// The number.
    pub number: u64,
    /// The version that it writes, from 1 on.
    pub version: u64,
    /// Whether every earlier write of this number had ended when it began.
    alone: bool,
    is_insert: bool,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteEnd {
    /// It was acknowledged.
    Acknowledged,
    /// It was never sent, or certainly did not take place.
    Unsent,
    /// It is an insert that was refused, as the key is there already: the number is used up.
    Taken,
    /// Nobody knows: it may yet take place.
    Open,
}

/// The numbers of one `keys`.
#[derive(Debug)]
pub struct Keys {
    /// The next number that was never given out, less one.
    given: CachePadded<AtomicU64>,
    /// All numbers up to this are inserted and acknowledged, or were there before.
    inserted: CachePadded<AtomicU64>,
    /// Numbers whose insert failed: the next inserts take them.
    failed: Mutex<Vec<u64>>,
    failed_count: AtomicUsize,
    words: Box<[AtomicU64]>,
}

impl Write {
    /// Whether it inserts its number.
    pub fn is_insert(&self) -> bool {
        self.is_insert
    }
}

impl Keys {
    /// With nothing inserted but what was loaded before.
    pub fn new(plan: &KeysPlan) -> Self {
        let loaded = plan.loaded.min(plan.most);
        Keys {
            given: CachePadded::new(AtomicU64::new(loaded)),
            inserted: CachePadded::new(AtomicU64::new(loaded)),
            failed: Mutex::default(),
            failed_count: AtomicUsize::new(0),
            // versions begin with 1, so that what was loaded has one
            words: (0..plan.most)
                .map(|number| AtomicU64::new(u64::from(number < loaded) << VERSION_BITS))
                .collect(),
        }
    }

    /// All numbers from 1 up to this are inserted and acknowledged, or were there before.
    pub fn inserted(&self) -> u64 {
        self.inserted.load(Ordering::Acquire)
    }

    /// The least version that a read that is sent now may find; 0 where it may find nothing.
    pub fn least(&self, number: u64) -> u64 {
        self.word(number).map_or(0, |word| word.load(Ordering::Acquire) >> VERSION_BITS & VERSION_MAX)
    }

    fn word(&self, number: u64) -> Option<&AtomicU64> {
        self.words.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// Begins to insert the next number, or one whose insert failed. None where there is no more room.
    pub fn insert(&self, keys: usize) -> Option<Write> {
        let number = self.next_failed().or_else(|| {
            let next = self.given.fetch_add(1, Ordering::Relaxed) + 1;
            (next <= self.words.len() as u64).then_some(next)
        })?;
        Some(Write { is_insert: true, ..self.write(keys, number)? })
    }

    fn next_failed(&self) -> Option<u64> {
        if self.failed_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let next = failed.pop();
        self.failed_count.store(failed.len(), Ordering::Relaxed);
        next
    }

    /// Begins to write a number anew. None where there is none such.
    pub fn write(&self, keys: usize, number: u64) -> Option<Write> {
        let before = change(self.word(number)?, |word| {
            let version = word & VERSION_MAX;
            let next = word + u64::from(version < VERSION_MAX);
            if open(word) < OPEN_MAX { next + OPEN_ONE } else { next }
        });
        let version = (before & VERSION_MAX) + 1;
        // versions beyond what can be told apart are not judged
        let alone = open(before) == 0 && version < VERSION_MAX;
        Some(Write { keys, number, version: version.min(VERSION_MAX), alone, is_insert: false })
    }

    /// A write has ended. To be called once for each that began.
    pub fn end(&self, write: Write, end: WriteEnd) {
        let Some(word) = self.word(write.number) else { return };
        let is_good = end == WriteEnd::Acknowledged;
        let is_there = is_good || end == WriteEnd::Taken;
        change(word, |word| {
            let mut word = word;
            if end != WriteEnd::Open && (1..OPEN_MAX).contains(&open(word)) {
                word -= OPEN_ONE;
            }
            if is_there && write.is_insert {
                word |= INSERTED;
            }
            // What ended before this one began cannot come back. What was under way beside it can be the last.
            let least = word >> VERSION_BITS & VERSION_MAX;
            if is_good && write.alone && least < write.version {
                word += (write.version - least) << VERSION_BITS;
            }
            word
        });
        match is_there {
            _ if !write.is_insert => {}
            true => self.advance(),
            false => {
                let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.push(write.number);
                self.failed_count.store(failed.len(), Ordering::Relaxed);
            }
        }
    }

    /// Goes on over all that is inserted without a gap.
    fn advance(&self) {
        let mut at = self.inserted.load(Ordering::SeqCst);
        while let Some(word) = self.word(at + 1)
            && word.load(Ordering::SeqCst) & INSERTED != 0
        {
            at = match self.inserted.compare_exchange(at, at + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => at + 1,
                Err(now) => now,
            };
        }
    }
}

/// Writes whose end is not known.
fn open(word: u64) -> u64 {
    word >> OPEN_AT & OPEN_MAX
}

/// Changes a word; what it was before.
fn change(word: &AtomicU64, to: impl Fn(u64) -> u64) -> u64 {
    let mut now = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange_weak(now, to(now), Ordering::SeqCst, Ordering::Relaxed) {
            Ok(before) => return before,
            Err(other) => now = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(most: u64, loaded: u64) -> Keys {
        Keys::new(&KeysPlan { name: "k".into(), most, loaded })
    }

    #[test]
    fn what_is_inserted_is_told_without_gaps_and_a_failed_number_is_taken_again() {
        let keys = keys(5, 2);
        assert_eq!(keys.inserted(), 2);
        assert_eq!([1, 2, 3].map(|number| keys.least(number)), [1, 1, 0], "what was loaded is there");
        let [a, b, c] = [(); 3].map(|()| keys.insert(0).unwrap());
        assert_eq!([a.number, b.number, c.number], [3, 4, 5]);
        assert!(keys.insert(0).is_none(), "there is no room");
        keys.end(c, WriteEnd::Acknowledged);
        keys.end(a, WriteEnd::Acknowledged);
        assert_eq!(keys.inserted(), 3);
        keys.end(b, WriteEnd::Open);
        assert_eq!(keys.inserted(), 3);
        let again = keys.insert(0).unwrap();
        assert_eq!((again.number, again.version), (4, 2));
        keys.end(again, WriteEnd::Acknowledged);
        assert_eq!(keys.inserted(), 5);
        assert_eq!(keys.least(4), 0, "the first try may yet take place");
        assert_eq!((keys.least(5), keys.least(0), keys.least(6)), (1, 0, 0));
    }

    #[test]
    fn only_what_surely_came_later_makes_an_older_version_stale() {
        let keys = keys(1, 0);
        let end = |write: Option<Write>, how| keys.end(write.unwrap(), how);
        let (first, second) = (keys.write(0, 1), keys.write(0, 1));
        assert_eq!(second.unwrap().version, 2);
        end(second, WriteEnd::Acknowledged);
        assert_eq!(keys.least(1), 0, "the first may come behind it");
        end(first, WriteEnd::Acknowledged);
        assert_eq!(keys.least(1), 1, "it began alone; the second may have come before it");
        let third = keys.write(0, 1);
        assert_eq!(keys.least(1), 1, "it is not acknowledged yet");
        end(third, WriteEnd::Acknowledged);
        assert_eq!(keys.least(1), 3);
        end(keys.write(0, 1), WriteEnd::Unsent);
        end(keys.write(0, 1), WriteEnd::Acknowledged);
        assert_eq!(keys.least(1), 5);
        end(keys.write(0, 1), WriteEnd::Open);
        end(keys.write(0, 1), WriteEnd::Acknowledged);
        assert_eq!(keys.least(1), 5, "the open one may come last");
    }

    #[test]
    fn a_number_that_is_taken_is_used_up_and_its_versions_are_judged_from_the_next_on() {
        let keys = keys(2, 0);
        keys.end(keys.insert(0).unwrap(), WriteEnd::Taken);
        assert_eq!((keys.inserted(), keys.least(1)), (1, 0), "it is there, and nobody knows how");
        assert_eq!(keys.insert(0).unwrap().number, 2);
        keys.end(keys.write(0, 1).unwrap(), WriteEnd::Unsent);
        keys.end(keys.write(0, 1).unwrap(), WriteEnd::Acknowledged);
        assert_eq!(keys.least(1), 3);
    }

    #[test]
    fn many_threads_insert_every_number_once() {
        let keys = keys(40_000, 0);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let keys = &keys;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    while let Some(write) = keys.insert(0) {
                        let failed = random.u8(..) < 40;
                        keys.end(write, if failed { WriteEnd::Open } else { WriteEnd::Acknowledged });
                    }
                });
            }
        });
        // what failed last may have been left where all others had ended
        while let Some(write) = keys.next_failed().and_then(|number| keys.write(0, number)) {
            keys.end(Write { is_insert: true, ..write }, WriteEnd::Acknowledged);
        }
        assert_eq!(keys.inserted(), 40_000);
    }

    #[test]
    fn more_writes_at_once_than_are_counted_judge_nothing_any_more() {
        let keys = keys(1, 0);
        let writes: Vec<_> = (0..200).map(|_| keys.write(0, 1).unwrap()).collect();
        writes[1..].iter().for_each(|write| keys.end(*write, WriteEnd::Acknowledged));
        let last = keys.write(0, 1).unwrap();
        keys.end(last, WriteEnd::Acknowledged);
        assert_eq!((last.version, keys.least(1)), (201, 0));
    }
}
