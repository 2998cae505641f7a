//! The most calls that were under way at once, within a window that moves.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::breaker::BUCKETS;

/// Bits of a bucket that hold its maximum; the others hold its number.
const COUNT_BITS: u32 = 24;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// Maxima by part of the window. Entered by all threads without a lock.
#[derive(Debug)]
pub(crate) struct Peak {
    bucket_ms: u64,
    /// Number and maximum in one, so that the greater one of a bucket is the newer one, or the one with more.
    buckets: [AtomicU64; BUCKETS as usize],
}

impl Peak {
    pub(crate) fn new(window_ms: u64) -> Self {
        Peak { bucket_ms: (window_ms / BUCKETS).max(1), buckets: Default::default() }
    }

    /// So many are under way now.
    pub(crate) fn enter(&self, now_ms: u64, count: usize) {
        let number = now_ms / self.bucket_ms;
        let entry = number << COUNT_BITS | (count as u64).min(COUNT_MAX);
        self.buckets[(number % BUCKETS) as usize].fetch_max(entry, Ordering::Relaxed);
    }

    /// The most within the window that ends now; those that still are under way count.
    pub(crate) fn max(&self, now_ms: u64, under_way: usize) -> u64 {
        let now = now_ms / self.bucket_ms;
        let entries = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let inside = entries.filter(|entry| now.saturating_sub(entry >> COUNT_BITS) < BUCKETS);
        inside.map(|entry| entry & COUNT_MAX).max().unwrap_or(0).max(under_way as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_most_of_the_window() {
        let peak = Peak::new(10_000);
        assert_eq!(peak.max(0, 3), 3);
        for (now_ms, count) in [(500, 1), (900, 7), (950, 2), (4_000, 5)] {
            peak.enter(now_ms, count);
        }
        assert_eq!([peak.max(4_000, 0), peak.max(9_999, 0), peak.max(10_000, 0)], [7, 7, 5]);
        assert_eq!((peak.max(14_000, 0), peak.max(14_000, 1)), (0, 1));
        // a bucket of the past makes room for the same one of now
        peak.enter(10_500, 4);
        assert_eq!((peak.max(10_500, 0), peak.max(19_000, 0)), (5, 4));
    }
}
