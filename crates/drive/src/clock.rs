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
    wall_epoch_ms: i64,
}

impl Clock {
    /// With the run's zero on both clocks.
    pub fn new(epoch: Instant, wall_epoch: SystemTime) -> Self {
        let wall_epoch_ms = match wall_epoch.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_millis() as i64,
            Err(before) => -(before.duration().as_millis() as i64),
        };
        Clock { epoch, wall_epoch_ms }
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
        self.wall_epoch_ms + (at_ns / MILLISECOND_NS) as i64
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
