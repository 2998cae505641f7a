//! An even pace for what may cost only so much: refusing, above all. Who asks is told when it is his turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Gives out turns at a rate; a few at once are let through when there were none for a while. Any number of threads
/// may ask.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tidemark_service::Pace;
///
/// let pace = Pace::new(100, 2); // 100 a second, two at once
/// let now = Instant::now();
/// let waits: Vec<u128> = (0..4).map(|_| (pace.turn(now) - now).as_millis()).collect();
/// assert_eq!(waits, [0, 0, 10, 20]);
/// assert_eq!(pace.turn(now + Duration::from_secs(1)), now + Duration::from_secs(1));
/// ```
#[derive(Debug)]
pub struct Pace {
    began: Instant,
    /// Between two turns.
    step_ns: u64,
    /// By how much a turn may come before its time.
    ahead_ns: u64,
    /// The time of the next turn, counted from `began`.
    next_ns: AtomicU64,
}

impl Pace {
    /// So many turns a second, and so many at once; both at least 1.
    pub fn new(per_s: u64, at_once: u64) -> Self {
        let step_ns = (1_000_000_000 / per_s.max(1)).max(1);
        let ahead_ns = step_ns.saturating_mul(at_once.max(1) - 1);
        Pace { began: Instant::now(), step_ns, ahead_ns, next_ns: AtomicU64::new(0) }
    }

    /// When the turn is of who asks `now`: `now` itself, or later. The turn is taken, whether it is used or not.
    pub fn turn(&self, now: Instant) -> Instant {
        let now_ns = now.saturating_duration_since(self.began).as_nanos() as u64;
        let take = |next_ns: u64| Some(next_ns.max(now_ns).saturating_add(self.step_ns));
        let mine = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        // `take` always gives something
        let mine_ns = mine.unwrap_or_else(|next_ns| next_ns).max(now_ns);
        now + Duration::from_nanos((mine_ns - now_ns).saturating_sub(self.ahead_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However they come, no second has more turns than the rate and those at once.
        #[test]
        fn no_second_has_more_turns_than_its_share(
            gaps_us in prop::collection::vec(0u64..3_000, 1..400), per_s in 1u64..2_000, at_once in 1u64..50,
        ) {
            let pace = Pace::new(per_s, at_once);
            let mut now = pace.began;
            let mut turns = Vec::new();
            for gap_us in gaps_us {
                now += Duration::from_micros(gap_us);
                let turn = pace.turn(now);
                prop_assert!(turn >= now);
                turns.push(turn);
            }
            prop_assert!(turns.is_sorted(), "who asks first has the first turn");
            for (first, begin) in turns.iter().enumerate() {
                let within = turns[first..].iter().take_while(|turn| **turn < *begin + Duration::from_secs(1));
                prop_assert!(within.count() as u64 <= per_s + at_once + 1);
            }
        }
    }
}
