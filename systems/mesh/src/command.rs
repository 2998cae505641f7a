//! A kind of call to another service: its breaker, and what is counted about it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::breaker::{Admission, Breaker, BreakerOptions, Counts, Outcome, State};
use crate::peak::Peak;

/// Latencies are of the last minute, in so many parts, as Hystrix has them.
const PARTS: u64 = 6;
const PART_MS: u64 = 10_000;
/// The longest latency that is told apart, microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;

/// Latencies of the last minute.
#[derive(Debug)]
struct Latencies(VecDeque<(u64, Histogram<u32>)>);

impl Latencies {
    fn record(&mut self, now_ms: u64, took: Duration) {
        let number = now_ms / PART_MS;
        if self.0.back().is_none_or(|(last, _)| *last != number) {
            let spare = if self.0.len() as u64 >= PARTS { self.0.pop_front() } else { None };
            if let Some(mut histogram) = spare.map(|(_, histogram)| histogram).or_else(empty) {
                histogram.reset();
                self.0.push_back((number, histogram));
            }
        }
        if let Some((_, histogram)) = self.0.back_mut() {
            histogram.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
    }

    fn all(&self, now_ms: u64) -> Option<Histogram<u32>> {
        let first = (now_ms / PART_MS).saturating_sub(PARTS - 1);
        let mut sum = empty()?;
        for (_, histogram) in self.0.iter().filter(|(number, _)| *number >= first) {
            sum.add(histogram).ok()?;
        }
        Some(sum)
    }
}

fn empty() -> Option<Histogram<u32>> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 2).ok()
}

struct Guarded {
    breaker: Breaker,
    latencies: Latencies,
}

/// A kind of call.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    guarded: Mutex<Guarded>,
    ended: [AtomicU64; Outcome::ALL.len()],
    pub(crate) under_way: AtomicUsize,
    pub(crate) peak: Peak,
    pub(crate) retries: AtomicU64,
    pub(crate) hedges: AtomicU64,
}

/// From one state to another.
pub(crate) type Change = Option<(State, State)>;

/// What a command has come to in its window.
pub(crate) struct Snapshot {
    pub(crate) state: State,
    pub(crate) counts: Counts,
    pub(crate) latencies: Option<Histogram<u32>>,
}

impl Command {
    pub(crate) fn new(name: &'static str, options: BreakerOptions) -> Self {
        let peak = Peak::new(options.window_ms);
        let guarded = Guarded { breaker: Breaker::new(options), latencies: Latencies(VecDeque::new()) };
        Command {
            name,
            guarded: Mutex::new(guarded),
            ended: Default::default(),
            under_way: AtomicUsize::new(0),
            peak,
            retries: AtomicU64::new(0),
            hedges: AtomicU64::new(0),
        }
    }

    pub(crate) fn admit(&self, now_ms: u64) -> (Admission, Change) {
        let mut guarded = self.guarded.lock();
        let before = guarded.breaker.state();
        let admission = guarded.breaker.admit(now_ms);
        let change = changed(before, guarded.breaker.state());
        drop(guarded);
        if admission == Admission::Refused {
            self.count(Outcome::ShortCircuited);
        }
        (admission, change)
    }

    /// A call has ended. How long it took is of interest where it was begun.
    pub(crate) fn ended(&self, now_ms: u64, outcome: Outcome, trial: bool, took: Option<Duration>) -> Change {
        self.count(outcome);
        let mut guarded = self.guarded.lock();
        let before = guarded.breaker.state();
        guarded.breaker.ended(now_ms, outcome, trial);
        if let Some(took) = took {
            guarded.latencies.record(now_ms, took);
        }
        changed(before, guarded.breaker.state())
    }

    pub(crate) fn abandoned(&self) -> Change {
        let mut guarded = self.guarded.lock();
        let before = guarded.breaker.state();
        guarded.breaker.abandoned();
        changed(before, guarded.breaker.state())
    }

    pub(crate) fn state(&self) -> State {
        self.guarded.lock().breaker.state()
    }

    pub(crate) fn snapshot(&self, now_ms: u64) -> Snapshot {
        let guarded = self.guarded.lock();
        let counts = guarded.breaker.counts(now_ms);
        Snapshot { state: guarded.breaker.state(), counts, latencies: guarded.latencies.all(now_ms) }
    }

    /// How many have ended so since the start.
    pub(crate) fn total(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize].load(Ordering::Relaxed)
    }

    fn count(&self, outcome: Outcome) {
        self.ended[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

fn changed(before: State, after: State) -> Change {
    (before != after).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_those_of_the_last_minute() {
        let command = Command::new("x", BreakerOptions::default());
        let count = |now_ms| command.snapshot(now_ms).latencies.unwrap().len();
        for part in 0..20 {
            command.ended(part * PART_MS, Outcome::Success, false, Some(Duration::from_millis(part + 1)));
        }
        assert_eq!(count(19 * PART_MS), PARTS);
        let latencies = command.snapshot(19 * PART_MS).latencies.unwrap();
        assert!((14_900..=15_200).contains(&latencies.min()), "{}", latencies.min());
        assert_eq!((count(24 * PART_MS), count(25 * PART_MS)), (1, 0));
    }
}
