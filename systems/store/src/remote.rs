//! What is counted about writes to servers, whichever they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::metrics::{SYNC_BOUNDS_US, StoreMetrics};

/// Writes and how they ended.
#[derive(Default)]
pub(crate) struct Writes {
    written: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    buckets: [AtomicU64; SYNC_BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    us_max: AtomicU64,
}

impl Writes {
    /// One was answered after so long.
    pub(crate) fn answered(&self, took: Duration, well: bool) {
        if !well {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let us = took.as_micros() as u64;
        self.written.fetch_add(1, Ordering::Relaxed);
        self.buckets[SYNC_BOUNDS_US.partition_point(|bound| *bound < us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        if us > self.us_max.load(Ordering::Relaxed) {
            self.us_max.fetch_max(us, Ordering::Relaxed);
        }
    }

    /// One was refused at once.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// All that is counted here; the rest is left at its default.
    pub(crate) fn snapshot(&self) -> StoreMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreMetrics {
            writes: read(&self.written),
            failed: read(&self.failed),
            refused: read(&self.refused),
            sync_buckets: std::array::from_fn(|bucket| read(&self.buckets[bucket])),
            sync_sum_us: read(&self.sum_us),
            sync_us_max: read(&self.us_max),
            ..StoreMetrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_counted_by_how_it_ended_and_how_long_it_took() {
        let writes = Writes::default();
        for (us, well) in [(50, true), (51, true), (9_000_000, true), (7, false)] {
            writes.answered(Duration::from_micros(us), well);
        }
        writes.refused();
        let counted = writes.snapshot();
        assert_eq!((counted.writes, counted.failed, counted.refused), (3, 1, 1));
        let (first, second, last) =
            (counted.sync_buckets[0], counted.sync_buckets[1], counted.sync_buckets[14]);
        assert_eq!((first, second, last), (1, 1, 1));
        assert_eq!((counted.sync_sum_us, counted.sync_us_max), (9_000_101, 9_000_000));
    }
}
