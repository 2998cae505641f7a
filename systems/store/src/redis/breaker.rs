//! Nobody waits for a server again and again that did not answer.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures in a row after which nothing is asked.
const FAILURES_MAX: u32 = 5;
/// How often one request is let through then, to see whether it works again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Lets requests through as long as they are answered.
#[derive(Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    /// When the last one was let through.
    probed: Option<Instant>,
}

impl Breaker {
    /// Whether a request is worth it now.
    pub(super) fn lets_through(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        if state.failures < FAILURES_MAX {
            return true;
        }
        let is_time = state.probed.is_none_or(|probed| now.duration_since(probed) >= PROBE_EVERY);
        if is_time {
            state.probed = Some(now);
        }
        is_time
    }

    /// One that was let through was answered or not.
    pub(super) fn ended(&self, well: bool, now: Instant) {
        let mut state = self.0.lock();
        if well {
            *state = State::default();
        } else {
            state.failures = state.failures.saturating_add(1);
            state.probed = Some(now);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.lock().failures >= FAILURES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_in_a_row_only_a_probe_goes_through_now_and_then() {
        let (breaker, begin) = (Breaker::default(), Instant::now());
        for round in 0..FAILURES_MAX {
            assert!(breaker.lets_through(begin) && !breaker.is_open(), "{round}");
            breaker.ended(false, begin);
        }
        assert!(breaker.is_open() && !breaker.lets_through(begin));
        let later = begin + PROBE_EVERY;
        assert_eq!([later; 3].map(|at| breaker.lets_through(at)), [true, false, false]);
        breaker.ended(false, later);
        assert!(!breaker.lets_through(later) && breaker.lets_through(later + PROBE_EVERY));
        breaker.ended(true, later);
        assert!(!breaker.is_open() && breaker.lets_through(later));
        // not in a row
        (0..2 * FAILURES_MAX).for_each(|round| breaker.ended(round % 2 == 0, later));
        assert!(!breaker.is_open());
    }
}
