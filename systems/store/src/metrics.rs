//! What a store counts about itself, cheap enough to be always on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the sync latency buckets, in microseconds; one more bucket holds everything above.
pub const SYNC_BOUNDS_US: [u64; 14] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000];

/// Something that only one product counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnMetric {
    /// Its name, as metrics are named: lower case with underscores, the unit last.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Whether it only grows.
    pub is_counter: bool,
    /// Its value now.
    pub value: u64,
}

impl OwnMetric {
    /// One that only grows, as it stands now.
    pub fn counter(name: &'static str, help: &'static str, counter: &AtomicU64) -> Self {
        OwnMetric { name, help, is_counter: true, value: counter.load(Ordering::Relaxed) }
    }

    /// One that may fall.
    pub fn gauge(name: &'static str, help: &'static str, value: u64) -> Self {
        OwnMetric { name, help, is_counter: false, value }
    }
}

/// A snapshot of a store's counters. All counts are since it was opened. What a product does not count is 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreMetrics {
    /// Groups made durable; 0 where a store has none, and each write is made durable by itself.
    pub commits: u64,
    /// Writes made durable; divided by `commits`, the mean group size.
    pub writes: u64,
    /// The largest group.
    pub group_writes_max: u64,
    /// Groups by how long making them durable took: entry `i` counts those of at most [`SYNC_BOUNDS_US`]`[i]`
    /// microseconds that are above the bound before; the last entry counts the rest. With `buffered` this is the
    /// time to hand the data to the operating system.
    pub sync_buckets: [u64; SYNC_BOUNDS_US.len() + 1],
    /// Sum of those times in microseconds.
    pub sync_sum_us: u64,
    /// The longest of those times in microseconds.
    pub sync_us_max: u64,
    /// Time that the committer spent on everything else (log, index, waking), in microseconds.
    pub committer_sum_us: u64,
    /// The longest such time for one group in microseconds: shows when the log held the committer up.
    pub committer_us_max: u64,
    /// Writes taken and not answered yet.
    pub queue_depth: u64,
    /// The bound of `queue_depth`.
    pub queue_depth_max: u64,
    /// Writes that found the queue full and had to wait for room.
    pub queue_waits: u64,
    /// Writes that failed: not acknowledged, whether they are kept or not.
    pub failed: u64,
    /// Writes refused at once, because there was too much to do.
    pub refused: u64,
    /// Whether a write failed, so that the store refuses all further ones.
    pub stopped: bool,
    /// What only this product counts.
    pub own: Vec<OwnMetric>,
}

/// The live counters behind [`StoreMetrics`]. Written by the committer, but for `queue_waits`.
#[derive(Default)]
pub(crate) struct CommitCounters {
    commits: AtomicU64,
    writes: AtomicU64,
    group_writes_max: AtomicU64,
    sync_buckets: [AtomicU64; SYNC_BOUNDS_US.len() + 1],
    sync_sum_us: AtomicU64,
    sync_us_max: AtomicU64,
    committer_sum_us: AtomicU64,
    committer_us_max: AtomicU64,
    queue_waits: AtomicU64,
}

impl CommitCounters {
    /// A group of `writes` became durable in `sync`.
    pub(crate) fn committed(&self, writes: usize, sync: Duration) {
        let sync_us = sync.as_micros() as u64;
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
        self.group_writes_max.fetch_max(writes as u64, Ordering::Relaxed);
        let bucket = SYNC_BOUNDS_US.partition_point(|bound| *bound < sync_us);
        self.sync_buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sync_sum_us.fetch_add(sync_us, Ordering::Relaxed);
        self.sync_us_max.fetch_max(sync_us, Ordering::Relaxed);
    }

    /// The committer worked for `time` beside the sync.
    pub(crate) fn worked(&self, time: Duration) {
        let us = time.as_micros() as u64;
        self.committer_sum_us.fetch_add(us, Ordering::Relaxed);
        self.committer_us_max.fetch_max(us, Ordering::Relaxed);
    }

    /// A write found the queue full.
    pub(crate) fn waited(&self) {
        self.queue_waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything that is counted here; the rest is left at its default.
    pub(crate) fn snapshot(&self) -> StoreMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreMetrics {
            commits: read(&self.commits),
            writes: read(&self.writes),
            group_writes_max: read(&self.group_writes_max),
            sync_buckets: std::array::from_fn(|bucket| read(&self.sync_buckets[bucket])),
            sync_sum_us: read(&self.sync_sum_us),
            sync_us_max: read(&self.sync_us_max),
            committer_sum_us: read(&self.committer_sum_us),
            committer_us_max: read(&self.committer_us_max),
            queue_waits: read(&self.queue_waits),
            ..StoreMetrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_falls_into_the_bucket_whose_bound_holds_it() {
        let counters = CommitCounters::default();
        for us in [0, 50, 51, 1_000_000, 1_000_001] {
            counters.committed(2, Duration::from_micros(us));
        }
        let metrics = counters.snapshot();
        let mut expected = [0; SYNC_BOUNDS_US.len() + 1];
        expected[0] = 2;
        expected[1] = 1;
        expected[13] = 1;
        expected[14] = 1;
        assert_eq!(metrics.sync_buckets, expected);
        assert_eq!((metrics.commits, metrics.writes, metrics.group_writes_max), (5, 10, 2));
        assert_eq!(metrics.sync_us_max, 1_000_001);
    }
}
