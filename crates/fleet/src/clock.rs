//! Clocks of machines: one instant, told in each machine's own monotonic time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A machine's clock: monotonic time that began at the wall clock's. A wall clock that is set later changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
    began_us: i64,
}

impl Clock {
    /// One that begins now.
    pub fn start() -> Clock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { began: Instant::now(), began_us: micros(wall) }
    }

    /// What it shows now, microseconds.
    pub fn now_us(&self) -> i64 {
        self.us_of(Instant::now())
    }

    /// What it shows at an instant, microseconds.
    pub fn us_of(&self, at: Instant) -> i64 {
        match at.checked_duration_since(self.began) {
            Some(since) => self.began_us.saturating_add(micros(since)),
            None => self.began_us.saturating_sub(micros(self.began.saturating_duration_since(at))),
        }
    }

    /// The instant at which it shows this; none where this machine has no such instant.
    pub fn instant_of(&self, us: i64) -> Option<Instant> {
        let since = us.checked_sub(self.began_us)?;
        let length = Duration::from_micros(since.unsigned_abs());
        if since < 0 { self.began.checked_sub(length) } else { self.began.checked_add(length) }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A question for the time, by the clock of who asks, and the answer by the clock of who is asked; microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// When it was asked.
    pub sent_us: i64,
    /// What the other clock showed.
    pub there_us: i64,
    /// When the answer came.
    pub received_us: i64,
}

/// How far another clock is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// By so much, microseconds; below 0 where it is behind.
    pub offset_us: i64,
    /// It is at most so much more or less, microseconds.
    pub bound_us: u64,
}

/// A bound above this is told, microseconds.
pub const TOLD_ABOVE_US: u64 = 5_000;
/// With a bound above this a run does not begin, microseconds.
pub const REFUSED_ABOVE_US: u64 = 100_000;

/// The offset by the shortest of several rounds, as the other clock was looked at somewhere within; none without a round.
pub fn offset(rounds: &[Round]) -> Option<Offset> {
    let length = |round: &Round| round.received_us.saturating_sub(round.sent_us);
    let shortest = rounds.iter().filter(|round| length(round) >= 0).min_by_key(|round| length(round))?;
    let half = length(shortest) / 2;
    let middle = shortest.sent_us.saturating_add(half);
    // half a microsecond is lost on either side
    Some(Offset { offset_us: shortest.there_us.saturating_sub(middle), bound_us: half.unsigned_abs() + 1 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_instant_and_back() {
        let clock = Clock::start();
        let now = clock.now_us();
        for us in [now - 5_000_000, now, now + 5_000_000] {
            let Some(at) = clock.instant_of(us) else { continue };
            assert!((clock.us_of(at) - us).abs() <= 1);
        }
        assert_eq!(clock.instant_of(i64::MIN), None);
        assert_eq!(offset(&[]), None);
    }

    proptest! {
        /// Whatever the ways there and back take, the true offset lies within the bound.
        #[test]
        fn the_bound_holds(
            ahead in -2_000_000i64..2_000_000,
            ways in prop::collection::vec((0i64..50_000, 0i64..50_000), 1..40),
        ) {
            let mut now = 1_700_000_000_000_000i64;
            let mut rounds = Vec::new();
            for (there, back) in &ways {
                rounds.push(Round { sent_us: now, there_us: now + there + ahead, received_us: now + there + back });
                now += there + back + 1;
            }
            let found = offset(&rounds).unwrap();
            prop_assert!(found.offset_us.abs_diff(ahead) <= found.bound_us);
            let shortest = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(found.bound_us, shortest as u64 / 2 + 1);
        }
    }
}
