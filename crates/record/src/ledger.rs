//! What was acknowledged, so that it can be looked for afterwards.
//!
//! Every write that a driver thread enters gets the thread's next sequence number; thread and number together are its
//! [`Entry`], which the write carries. So the ledger keeps nothing but two facts about each
//! number: that it was sent (all below a count were) and whether it was acknowledged (a compressed bitmap, about one
//! bit for each write). Once a second a thread hands over a [`Part`]; [`LedgerWriter`] appends it to the run
//! directory, so that a driver that dies leaves all but its last second. An acknowledgement that is lost this way
//! makes the check milder by one write, never wrong: such a write counts as unacknowledged.
//!
//! A write's content carries its entry and a checksum over all of it, keyed with the run's seed and the entry; a [`Form`]
//! says where both stand. So the content may hold whatever a session knows (a user, the time), and a changed byte is still seen.
//!
//! [`Ledger::read`] brings it back, a [`Search`] takes what a store turned out to hold, and [`Findings`] says what
//! that proves.
//!
//! ```
//! use tidemark_record::ledger::{Entry, Ledger, LedgerWriter, Part, Search};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let run_dir = place.path();
//! let mut part = Part::new(0);
//! let (first, second) = (part.enter(), part.enter());
//! part.acknowledge(first.number);
//! LedgerWriter::create(run_dir)?.add(&part, 1_000_000)?;
//!
//! let ledger = Ledger::read(run_dir)?;
//! let mut search = Search::new(&ledger);
//! search.found(Entry { thread: 0, number: second.number });
//! let findings = search.findings();
//! assert_eq!((findings.acknowledged, findings.found, findings.lost), (1, 0, 1));
//! assert_eq!(findings.unacknowledged_found, 1);
//! assert_eq!(findings.lost_examples, [first]);
//! # Ok(())
//! # }
//! ```

mod file;
mod form;
mod search;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use file::{Ledger, LedgerWriter};
pub use form::{CHECK_DIGITS, Form, Forms, Piece, Reading, check, seed, stamp};
pub use search::{EXAMPLES, Findings, Search};

/// Where in a run directory the ledger is.
pub const DIR: &str = crate::files::LEDGER;
/// Digits of an entry as text: three of the thread, thirteen of the number.
pub const ENTRY_DIGITS: usize = 16;
const THREAD_DIGITS: usize = 3;
/// Threads that an entry's text has room for.
pub const THREADS_MAX: u16 = 1_000;
/// Numbers that it has room for.
const NUMBERS_MAX: u64 = 10_000_000_000_000;
/// Most acknowledgements that a part from elsewhere is believed to have: minutes of a fast thread.
const ACKNOWLEDGED_MAX: u64 = 1 << 28;

/// One write: which driver thread sent it, and its number in that thread's order. As text always [`ENTRY_DIGITS`] digits, so that it can
/// be a part of a key that sorts, and be found in any content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Driver thread, below 1,000.
    pub thread: u16,
    /// Sequence number in it, from 0, below 10¹³.
    pub number: u64,
}

impl Entry {
    /// Its text.
    pub fn digits(self) -> [u8; ENTRY_DIGITS] {
        let mut digits = [0; ENTRY_DIGITS];
        let (thread, number) = digits.split_at_mut(THREAD_DIGITS);
        write_digits(self.thread.into(), thread);
        write_digits(self.number, number);
        digits
    }
}

/// A number with leading zeros in all of a place.
fn write_digits(mut number: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}{:013}", self.thread, self.number)
    }
}

/// A text that is no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an entry of a ledger: it takes 16 digits")]
pub struct NotAnEntry;

impl FromStr for Entry {
    type Err = NotAnEntry;

    fn from_str(text: &str) -> Result<Entry, NotAnEntry> {
        if text.len() != ENTRY_DIGITS || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NotAnEntry);
        }
        let (thread, number) = text.split_at(THREAD_DIGITS);
        let thread = thread.parse().map_err(|_| NotAnEntry)?;
        let number = number.parse().map_err(|_| NotAnEntry)?;
        Ok(Entry { thread, number })
    }
}

/// What one thread has entered since it last handed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    thread: u16,
    sent: u64,
    /// Numbers acknowledged, as they came; neighbours that came one after the other as one range.
    acknowledged: Vec<Range<u64>>,
}

impl Part {
    /// Of a thread that has sent nothing. Threads are below 1,000.
    pub fn new(thread: u16) -> Part {
        debug_assert!(thread < THREADS_MAX);
        Part { thread, sent: 0, acknowledged: Vec::new() }
    }

    /// The next write is about to be sent.
    pub fn enter(&mut self) -> Entry {
        let number = self.sent;
        debug_assert!(number < NUMBERS_MAX);
        self.sent += 1;
        Entry { thread: self.thread, number }
    }

    /// The write that was entered last was not sent after all.
    pub fn withdraw(&mut self, number: u64) {
        debug_assert!(number + 1 == self.sent, "only the last one can be taken back");
        self.sent = number;
    }

    /// The system said that it has this write.
    pub fn acknowledge(&mut self, number: u64) {
        debug_assert!(number < self.sent);
        match self.acknowledged.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => self.acknowledged.push(number..number + 1),
        }
    }

    /// One that says this, be it possible or not.
    #[cfg(test)]
    pub(crate) fn acknowledging(sent: u64, range: Range<u64>) -> Part {
        Part { thread: 0, sent, acknowledged: vec![range] }
    }

    /// Whether a driver can have entered this: a part that comes from elsewhere is asked first.
    pub(crate) fn is_sound(&self) -> bool {
        let is_sound = |range: &Range<u64>| range.start < range.end && range.end <= self.sent;
        let counts = self.acknowledged.iter().map(|range| range.end.saturating_sub(range.start));
        self.thread < THREADS_MAX
            && self.sent <= NUMBERS_MAX
            && self.acknowledged.iter().all(is_sound)
            && counts.fold(0_u64, u64::saturating_add) <= ACKNOWLEDGED_MAX
    }

    /// Whose it is.
    pub fn thread(&self) -> u16 {
        self.thread
    }

    /// Writes sent so far, from the thread's beginning.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Writes acknowledged since it last handed over.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.iter().map(|range| range.end - range.start).sum()
    }

    /// Gives its acknowledgements up; the buffer is kept.
    pub fn clear(&mut self) {
        self.acknowledged.clear();
    }

    /// Hands over what it holds and goes on with the next number and no acknowledgement, in the buffer of `used`,
    /// a part that was handed over before and is done with; so a warm thread allocates nothing.
    pub fn hand_over(&mut self, used: Part) -> Part {
        let mut buffer = used.acknowledged;
        buffer.clear();
        let acknowledged = std::mem::replace(&mut self.acknowledged, buffer);
        Part { thread: self.thread, sent: self.sent, acknowledged }
    }

    /// Takes back what was handed over before and arrived nowhere; it is handed over next time.
    pub fn take_back(&mut self, mut untaken: Part) {
        untaken.acknowledged.append(&mut self.acknowledged);
        self.acknowledged = untaken.acknowledged;
    }
}
