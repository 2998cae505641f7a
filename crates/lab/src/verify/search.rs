//! Reading everything that a store holds, several parts at once, and holding it against the ledger.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tidemark_record::ledger::{Forms, Ledger, Reading, Search};

use crate::LabError;
use crate::shipped::MessageStore;

/// How often whoever watches is told how far a search is.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Contents after which a reader says how many it has read.
const TELL_CONTENTS: u64 = 1_000;
/// How often a system that is behind is asked whether it still is.
const ASK_BEHIND_EVERY: Duration = Duration::from_millis(200);
/// Longest sleep without a look whether to go on.
const NAP: Duration = Duration::from_millis(50);

/// Why not everything was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// The user stopped it.
    #[error("stopped by the user before everything was read")]
    Stopped,
    /// The time for it was over.
    #[error(
        "not everything was read within {0:?}; give it longer with verify: {{within: …}}, or less to read"
    )]
    OutOfTime(Duration),
    /// What was taken could not be seen in time.
    #[error(
        "{0} of the writes that were taken could not be seen yet after {1:?}; give it longer with verify: {{within: …}}"
    )]
    Behind(u64, Duration),
    /// A question stayed without an answer that can be used.
    #[error("{0}")]
    Failed(String),
}

/// Everything that a store holds, in parts that can be read at the same time: the system's API, or the store itself
/// through its own client.
pub trait StoredContents: Sync {
    /// Asks what must be known before the parts are; once, before anything of it is read.
    ///
    /// # Errors
    /// If it does not say.
    fn prepare(&self, _bounds: &Bounds) -> Result<(), Unfinished> {
        Ok(())
    }

    /// In how many places this content is to be.
    fn copies(&self, _content: &[u8]) -> u32 {
        1
    }

    /// How many parts there are. Every content is in exactly one.
    fn parts(&self) -> usize {
        1
    }

    /// A reader of parts; each of the threads that read has its own.
    ///
    /// # Errors
    /// If the store cannot be read at all.
    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished>;

    /// How many writes were taken and cannot be seen yet; 0 where nobody says so.
    ///
    /// # Errors
    /// If it does not say.
    fn behind(&self, _bounds: &Bounds) -> Result<u64, Unfinished> {
        Ok(0)
    }

    /// How much the store itself says that it holds; none where nobody asks it, or it would count what is not the run's too.
    ///
    /// # Errors
    /// If it does not say.
    fn count(&self, _bounds: &Bounds) -> Result<Option<u64>, Unfinished> {
        Ok(None)
    }

    /// How many numbers nobody has, once everything was read.
    fn absent(&self) -> u64 {
        0
    }

    /// What of it could not be read, asked once all the rest was: nobody knows what was there.
    fn unread(&self) -> Option<String> {
        None
    }

    /// What may be wrong with the question, asked once everything was read.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// A store, opened to be read. One that cannot be opened says so to whoever wants to read.
pub trait DirectStore: StoredContents {
    /// Refuses to go on where nothing is left to be read after the run.
    ///
    /// # Errors
    /// That it is gone, and what would have kept it.
    fn must_be_there(&self) -> Result<(), LabError> {
        Ok(())
    }
}

/// Reads the parts of a shipped system's store.
pub fn part_reader(store: &dyn MessageStore) -> Box<dyn PartReader + '_> {
    Box::new(store)
}

impl PartReader for &dyn MessageStore {
    fn read(&mut self, part: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        let goes_on = || bounds.check().is_ok();
        self.payloads(part, &goes_on, visit)
            .map_err(|error| bounds.check().err().unwrap_or(Unfinished::Failed(error)))
    }
}

/// Reads parts of a store.
pub trait PartReader {
    /// Shows every content of a part to `visit`, once.
    ///
    /// # Errors
    /// If not all of them could be read. It is the reader that asks again where that makes sense.
    fn read(&mut self, part: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished>;
}

/// How long a search may go on.
#[derive(Debug)]
pub struct Bounds {
    within: Duration,
    deadline: Instant,
    stopped: AtomicBool,
}

impl Bounds {
    /// From now on so long.
    pub fn new(within: Duration) -> Bounds {
        Bounds { within, deadline: Instant::now() + within, stopped: AtomicBool::new(false) }
    }

    /// Whether it may go on.
    pub fn check(&self) -> Result<(), Unfinished> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Unfinished::Stopped);
        }
        if Instant::now() < self.deadline { Ok(()) } else { Err(Unfinished::OutOfTime(self.within)) }
    }

    /// Waits, unless it may not go on.
    pub fn sleep(&self, time: Duration) -> Result<(), Unfinished> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

/// Waits before the first question.
pub fn settle(
    time: Duration,
    bounds: &Bounds,
    goes_on: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(u64),
) -> Result<(), Unfinished> {
    tell(0);
    let end = Instant::now() + time;
    while Instant::now() < end {
        if !goes_on() {
            return Err(Unfinished::Stopped);
        }
        bounds.sleep(end.saturating_duration_since(Instant::now()).min(NAP))?;
    }
    Ok(())
}

/// Waits until everything that was taken can be seen: until `behind` says that nothing is missing any more.
pub fn catch_up(
    behind: &(dyn Fn() -> Result<u64, Unfinished> + Sync),
    bounds: &Bounds,
    goes_on: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(u64),
) -> Result<(), Unfinished> {
    let ask = || {
        loop {
            let missing = behind()?;
            if missing == 0 {
                return Ok(());
            }
            bounds.sleep(ASK_BEHIND_EVERY).map_err(|error| match error {
                Unfinished::OutOfTime(within) => Unfinished::Behind(missing, within),
                error => error,
            })?;
        }
    };
    std::thread::scope(|scope| {
        // an answer may take its time, and whoever stops it is heard meanwhile
        let asking = scope.spawn(ask);
        while !asking.is_finished() {
            if !goes_on() {
                bounds.stopped.store(true, Ordering::Relaxed);
            }
            tell(0);
            std::thread::sleep(NAP);
        }
        asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Reads everything, on so many threads, and asks for the count before; the first failure ends it.
pub fn search<'l>(
    ledger: &'l Ledger,
    forms: &Forms,
    contents: &dyn StoredContents,
    parallel: usize,
    bounds: &Bounds,
    goes_on: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(u64),
) -> Result<(Search<'l>, Option<u64>), Unfinished> {
    contents.prepare(bounds)?;
    let next = AtomicUsize::new(0);
    let read = AtomicU64::new(0);
    let work = || {
        let mut search = Search::new(ledger);
        let mut reader = contents.reader()?;
        let (mut spare, mut untold) = (Vec::new(), 0);
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= contents.parts() {
                read.fetch_add(untold, Ordering::Relaxed);
                return Ok(search);
            }
            bounds.check()?;
            // a part is one place: what is there twice is in none beside it
            let mut copied = HashSet::new();
            reader.read(part, bounds, &mut |content| {
                match forms.reading(content, &mut spare) {
                    Reading::Whole(entry) => match contents.copies(content) {
                        0 | 1 => search.found(entry),
                        _ if !copied.insert(entry) => search.found_again(entry),
                        copies => search.found_copy(entry, copies),
                    },
                    Reading::Different(entry) => search.found_different(entry),
                    Reading::Foreign => search.found_foreign(),
                }
                untold += 1;
                if untold == TELL_CONTENTS {
                    read.fetch_add(std::mem::take(&mut untold), Ordering::Relaxed);
                }
            })?;
        }
    };
    let threads = parallel.min(contents.parts()).max(1);
    let (done, results) = channel();
    std::thread::scope(|scope| {
        // the question for the count goes beside those for the contents
        let counting = scope.spawn(|| contents.count(bounds));
        for _ in 0..threads {
            let (work, done) = (&work, done.clone());
            scope.spawn(move || {
                // the receiver lives as long as the scope
                let _ = done.send(work());
            });
        }
        let mut whole = Search::new(ledger);
        let mut failure = None;
        let mut left = threads;
        while left > 0 {
            match results.recv_timeout(TELL_EVERY) {
                Ok(Ok(search)) => {
                    whole.merge(search);
                    left -= 1;
                }
                Ok(Err(error)) => {
                    // what the others are stopped by is no reason of its own
                    failure.get_or_insert(error);
                    bounds.stopped.store(true, Ordering::Relaxed);
                    left -= 1;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !goes_on() && failure.is_none() {
                failure = Some(Unfinished::Stopped);
                bounds.stopped.store(true, Ordering::Relaxed);
            }
            tell(read.load(Ordering::Relaxed));
        }
        let counted = match counting.join() {
            Ok(counted) => counted,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        match failure {
            Some(failure) => Err(failure),
            None => Ok((whole, counted?)),
        }
    })
}
