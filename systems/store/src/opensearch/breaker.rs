//! Lets requests be refused at once while the server does not answer, so that none of them waits in vain; one is let
//! through now and then, to see.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// So many failures in a row open it.
const FAILURES: u32 = 2;
/// Until one request is let through.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    /// While it is open: when the next is let through.
    next: Option<Instant>,
}

impl Breaker {
    /// Whether a request may be sent.
    pub(super) fn lets_through(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        match state.next {
            None => true,
            Some(next) if next <= now => {
                state.next = Some(now + PAUSE);
                true
            }
            Some(_) => false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.lock().next.is_some()
    }

    /// How a request ended. Tells whether this opened it.
    pub(super) fn ended(&self, well: bool, now: Instant) -> bool {
        let mut state = self.0.lock();
        if well {
            *state = State::default();
            return false;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES {
            return false;
        }
        state.next.replace(now + PAUSE).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_and_lets_one_through_now_and_then() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert!(!breaker.ended(false, now) && breaker.lets_through(now));
        assert!(!breaker.ended(true, now));
        assert!(!breaker.ended(false, now) && breaker.lets_through(now) && !breaker.is_open());
        assert!(breaker.ended(false, now) && breaker.is_open());
        assert!(!breaker.lets_through(now));
        let later = now + PAUSE;
        assert!(breaker.lets_through(later), "one may look");
        assert!(!breaker.lets_through(later), "but only one");
        assert!(!breaker.ended(false, later) && !breaker.lets_through(later));
        assert!(!breaker.ended(true, later) && breaker.lets_through(later) && !breaker.is_open());
    }
}
