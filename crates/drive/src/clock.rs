//! The one clock of a thread: monotonic, nanoseconds since the run's zero.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND_NS: u64 = 1_000_000;

/// Time since the run's zero, and the wall clock derived from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
    wall_epoch_ns: i64,
}

impl Clock {
    /// With the run's zero on both clocks.
    pub fn new(epoch: Instant, wall_epoch: SystemTime) -> Self {
        // whole milliseconds would lag behind those of others by up to one
        let wall_epoch_ns = match wall_epoch.duration_since(UNIX_EPOCH) {
            Ok(after) => nanoseconds(after) as i64,
            Err(before) => -(nanoseconds(before.duration()) as i64),
        };
        Clock { epoch, wall_epoch_ns }
    }

    /// Now; 0 while the run's zero is still ahead.
    pub fn now_ns(&self) -> u64 {
        nanoseconds(self.epoch.elapsed())
    }

    /// A moment on this clock; 0 where it lies before the run's zero.
    pub fn at(&self, moment: Instant) -> u64 {
        nanoseconds(moment.saturating_duration_since(self.epoch))
    }

    /// How long ago that moment of the wall clock was; none where the clock was set back meanwhile.
    pub fn since_wall(&self, wall_ns: u64) -> Option<u64> {
        nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).ok()?).checked_sub(wall_ns)
    }

    /// The wall clock at a moment of the run: its one anchor plus monotonic time.
    pub fn wall_ms(&self, at_ns: u64) -> i64 {
        self.wall_epoch_ns.saturating_add(at_ns as i64).div_euclid(MILLISECOND_NS as i64)
    }
}

/// A duration in nanoseconds; 584 years are enough.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(SECOND_NS).saturating_add(duration.subsec_nanos().into())
}

/// Nanoseconds to the nearest microsecond.
pub(crate) fn microseconds(ns: u64) -> u64 {
    ns.saturating_add(500) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_no_millisecond_behind() {
        let wall_epoch = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_900);
        let clock = Clock::new(Instant::now(), wall_epoch);
        assert_eq!(clock.wall_ms(0), 1_700_000_000_000);
        assert_eq!(clock.wall_ms(99_999), 1_700_000_000_000);
        assert_eq!(clock.wall_ms(100_000), 1_700_000_000_001);
        assert_eq!(clock.wall_ms(700_900_000), 1_700_000_000_701);
    }
}
