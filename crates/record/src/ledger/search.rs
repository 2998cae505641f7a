//! What a store turned out to hold, against the ledger.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringTreemap;

use super::file::ThreadLedger;
use super::{Entry, Ledger};
use crate::summary::LostWhen;

/// Examples of each kind that findings name.
pub const EXAMPLES: usize = 10;

/// Takes everything that a store holds, entry by entry, in any order. Several can search at once, each a part of the
/// store, and be [merged](Search::merge).
#[derive(Debug, Clone)]
pub struct Search<'a> {
    ledger: &'a Ledger,
    /// Those seen with the content that was sent.
    whole: BTreeMap<u16, RoaringTreemap>,
    /// Those seen with another content at least once.
    different: BTreeMap<u16, RoaringTreemap>,
    /// Of those that are to be there several times: how often each was seen, and how often it is to be.
    copies: BTreeMap<Entry, Copies>,
    duplicated: u64,
    duplicated_examples: Vec<Entry>,
    foreign: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Copies {
    seen: u32,
    wanted: u32,
}

impl<'a> Search<'a> {
    /// Nothing was found yet.
    pub fn new(ledger: &'a Ledger) -> Search<'a> {
        Search {
            ledger,
            whole: BTreeMap::new(),
            different: BTreeMap::new(),
            copies: BTreeMap::new(),
            duplicated: 0,
            duplicated_examples: Vec::new(),
            foreign: 0,
        }
    }

    /// The store holds this write, with the content that was sent. Its checksum says that it is this run's: so it is one
    /// also where the ledger lacks it, because the driver died before it could hand its last second over.
    pub fn found(&mut self, entry: Entry) {
        let is_first = self.whole.entry(entry.thread).or_default().insert(entry.number);
        self.count(entry, is_first && !contains(&self.different, entry));
    }

    /// The store holds this write, with the content that was sent, in one of the `wanted` places in which it is to be. It
    /// counts as found once it was seen in all of them, and each time beyond that as duplicated.
    pub fn found_copy(&mut self, entry: Entry, wanted: u32) {
        if wanted <= 1 {
            return self.found(entry);
        }
        let copies = self.copies.entry(entry).or_default();
        *copies = Copies { seen: copies.seen + 1, wanted };
        let Copies { seen, wanted } = *copies;
        self.count_copy(entry, seen, wanted);
    }

    /// The store holds this write once more in a place in which it was seen already.
    pub fn found_again(&mut self, entry: Entry) {
        self.count(entry, false);
    }

    fn count_copy(&mut self, entry: Entry, seen: u32, wanted: u32) {
        if seen == wanted {
            self.whole.entry(entry.thread).or_default().insert(entry.number);
        } else if seen > wanted {
            self.count(entry, false);
        }
    }

    /// Of a thread those that were seen in some of their places and not in all.
    fn incomplete(&self, thread: u16) -> RoaringTreemap {
        let first = Entry { thread, number: 0 };
        let last = Entry { thread, number: u64::MAX };
        let short = self.copies.range(first..=last).filter(|(_, copies)| copies.seen < copies.wanted);
        short.map(|(entry, _)| entry.number).collect()
    }

    /// The store holds this write with another content; a write that was never sent is another's. It is not found by
    /// that: what another run left behind may have the same number.
    pub fn found_different(&mut self, entry: Entry) {
        if !self.ledger.was_sent(entry) {
            self.foreign += 1;
            return;
        }
        let is_first = self.different.entry(entry.thread).or_default().insert(entry.number);
        self.count(entry, is_first && !contains(&self.whole, entry));
    }

    fn count(&mut self, entry: Entry, is_first: bool) {
        if !is_first {
            self.duplicated += 1;
            note(&mut self.duplicated_examples, entry);
        }
    }

    /// The store holds something that is no write of this run.
    pub fn found_foreign(&mut self) {
        self.foreign += 1;
    }

    /// Adds what another search of the same ledger found elsewhere.
    pub fn merge(&mut self, other: Search<'_>) {
        let threads: BTreeSet<u16> = other.whole.keys().chain(other.different.keys()).copied().collect();
        for thread in threads {
            for number in &self.seen(thread) & &other.seen(thread) {
                let entry = Entry { thread, number };
                if !self.copies.contains_key(&entry) {
                    self.count(entry, false);
                }
            }
        }
        for (thread, numbers) in other.whole {
            *self.whole.entry(thread).or_default() |= numbers;
        }
        for (thread, numbers) in other.different {
            *self.different.entry(thread).or_default() |= numbers;
        }
        for (entry, Copies { seen, wanted }) in other.copies {
            let copies = self.copies.entry(entry).or_default();
            let before = copies.seen.min(wanted);
            *copies = Copies { seen: copies.seen + seen, wanted };
            // what is beyond in one of the two is counted already
            let together = before + seen.min(wanted);
            if together >= wanted {
                self.whole.entry(entry.thread).or_default().insert(entry.number);
            }
            (wanted..together).for_each(|_| self.count(entry, false));
        }
        self.duplicated += other.duplicated;
        other.duplicated_examples.into_iter().for_each(|entry| note(&mut self.duplicated_examples, entry));
        self.foreign += other.foreign;
    }

    /// What of a thread was seen, with whatever content.
    fn seen(&self, thread: u16) -> RoaringTreemap {
        let of = |numbers: &BTreeMap<u16, RoaringTreemap>| numbers.get(&thread).cloned().unwrap_or_default();
        of(&self.whole) | of(&self.different)
    }

    /// In which seconds the lost writes were sent: begin and end in microseconds since the run began, and how many.
    pub fn lost_when(&self) -> Vec<LostWhen> {
        let none = RoaringTreemap::new();
        let mut seconds = BTreeMap::new();
        for (&thread, own) in &self.ledger.threads {
            let lost = &own.acknowledged - self.whole.get(&thread).unwrap_or(&none);
            if !lost.is_empty() {
                self.ledger.add_by_second(thread, &lost, &mut seconds);
            }
        }
        let second = |(second, (to_us, lost))| LostWhen { from_us: second * 1_000_000, to_us, lost };
        seconds.into_iter().map(second).collect()
    }

    /// What it proves, once everything in the store was seen.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings {
            sent: self.ledger.sent(),
            acknowledged: self.ledger.acknowledged(),
            duplicated: self.duplicated,
            duplicated_examples: self.duplicated_examples.clone(),
            foreign: self.foreign,
            torn: self.ledger.torn(),
            ..Findings::default()
        };
        let none = RoaringTreemap::new();
        let nothing = ThreadLedger::default();
        let entries = self.copies.keys().map(|entry| entry.thread);
        let known = self.ledger.threads.keys().chain(self.whole.keys()).chain(self.different.keys());
        let threads: BTreeSet<u16> = known.copied().chain(entries).collect();
        for thread in threads {
            let own = self.ledger.threads.get(&thread).unwrap_or(&nothing);
            let whole = self.whole.get(&thread).unwrap_or(&none);
            let different = self.different.get(&thread).unwrap_or(&none);
            let incomplete = self.incomplete(thread);
            findings.incomplete += own.acknowledged.intersection_len(&incomplete);
            let seen = whole | different;
            let found = own.acknowledged.intersection_len(whole);
            findings.found += found;
            findings.lost += own.acknowledged.len() - found;
            findings.changed += own.acknowledged.intersection_len(&seen) - found;
            let seen = seen | incomplete;
            findings.unacknowledged_found += seen.len() - own.acknowledged.intersection_len(&seen);
            findings.different += different.len();
            let entries = |numbers: RoaringTreemap| {
                numbers.into_iter().take(EXAMPLES).map(move |number| Entry { thread, number })
            };
            if findings.lost_examples.len() < EXAMPLES {
                findings.lost_examples.extend(entries(&own.acknowledged - whole));
            }
            if findings.unacknowledged_examples.len() < EXAMPLES {
                findings.unacknowledged_examples.extend(entries(&seen - &own.acknowledged));
            }
            findings.different_examples.extend(entries(different.clone()));
        }
        findings.lost_examples.truncate(EXAMPLES);
        findings.unacknowledged_examples.truncate(EXAMPLES);
        findings.different_examples.truncate(EXAMPLES);
        findings
    }
}

fn contains(numbers: &BTreeMap<u16, RoaringTreemap>, entry: Entry) -> bool {
    numbers.get(&entry.thread).is_some_and(|numbers| numbers.contains(entry.number))
}

fn note(examples: &mut Vec<Entry>, entry: Entry) {
    if examples.len() < EXAMPLES {
        examples.push(entry);
    }
}

/// What a search proves. Examples are at most [`EXAMPLES`] of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Findings {
    /// Writes sent.
    pub sent: u64,
    /// Writes acknowledged.
    pub acknowledged: u64,
    /// Acknowledged and found, with the content that was sent.
    pub found: u64,
    /// Acknowledged and not found so: must be 0.
    pub lost: u64,
    /// Of those, how many are there with another content, of this run or of one before.
    #[serde(default)]
    pub changed: u64,
    /// Of the lost, how many are in some of the places in which they are to be, and not in all.
    #[serde(default)]
    pub incomplete: u64,
    /// Found more than once, or in more places than they are to be: how many times too often, over all.
    pub duplicated: u64,
    /// Found though never acknowledged: allowed, for the answer may have been lost on its way, or the driver died before
    /// it could note it.
    pub unacknowledged_found: u64,
    /// Found with another content than was sent.
    pub different: u64,
    /// Found and not of this run.
    pub foreign: u64,
    /// Files of the ledger whose end was cut off.
    pub torn: u64,
    /// The first that are lost.
    pub lost_examples: Vec<Entry>,
    /// The first found more than once.
    pub duplicated_examples: Vec<Entry>,
    /// The first found though never acknowledged.
    pub unacknowledged_examples: Vec<Entry>,
    /// The first with another content.
    pub different_examples: Vec<Entry>,
}

impl Findings {
    /// Nothing that was acknowledged is missing, doubled or changed.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.different == 0
    }
}
