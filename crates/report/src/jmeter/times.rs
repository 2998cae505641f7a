//! Response times, counted by the millisecond, which is as exact as JMeter writes them.

use std::collections::BTreeMap;

/// From here on times are counted by the second, so that few of them cannot fill the memory: an hour.
const EXACT_BELOW_MS: u64 = 3_600_000;

/// How many requests took how long.
#[derive(Debug, Default, Clone)]
pub struct Times {
    counts: BTreeMap<u64, u64>,
    count: u64,
    sum_ms: u128,
    min_ms: Option<u64>,
    max_ms: u64,
}

impl Times {
    /// Counts a request.
    pub fn add(&mut self, ms: u64) {
        self.add_many(ms, 1);
    }

    /// Counts so many requests.
    pub fn add_many(&mut self, ms: u64, requests: u64) {
        let counted = if ms < EXACT_BELOW_MS { ms } else { ms / 1_000 * 1_000 };
        *self.counts.entry(counted).or_default() += requests;
        self.count += requests;
        self.sum_ms += u128::from(ms) * u128::from(requests);
        self.min_ms = Some(self.min_ms.map_or(ms, |min| min.min(ms)));
        self.max_ms = self.max_ms.max(ms);
    }

    /// Counts all requests of others.
    pub fn merge(&mut self, other: &Times) {
        for (ms, count) in &other.counts {
            *self.counts.entry(*ms).or_default() += count;
        }
        self.count += other.count;
        self.sum_ms += other.sum_ms;
        self.min_ms = self.min_ms.into_iter().chain(other.min_ms).min();
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Milliseconds; 0 of none.
    pub fn mean_ms(&self) -> f64 {
        self.sum_ms as f64 / self.count.max(1) as f64
    }

    /// The shortest and the longest, milliseconds; 0 of none.
    pub fn range_ms(&self) -> (u64, u64) {
        (self.min_ms.unwrap_or(0), self.max_ms)
    }

    /// The published 90th percentile, milliseconds: of the sorted times that at index round(0.9 · n) from 0, or the last.
    pub fn published_p90(&self) -> u64 {
        let index = (u128::from(self.count) * 9 + 5) / 10;
        self.at(u64::try_from(index).unwrap_or(u64::MAX))
    }

    /// A percentile by nearest rank, milliseconds: the least time that so many of a thousand do not exceed.
    pub fn permille(&self, permille: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(permille)).div_ceil(1_000);
        self.at(u64::try_from(rank).unwrap_or(u64::MAX).saturating_sub(1))
    }

    /// The time at an index of the sorted ones, or the last.
    fn at(&self, index: u64) -> u64 {
        let index = index.min(self.count.saturating_sub(1));
        let mut before = 0;
        let found = self.counts.iter().find(|(_, count)| {
            before += **count;
            before > index
        });
        // those that are counted by the second
        found.map_or(0, |(ms, _)| (*ms).clamp(self.range_ms().0, self.max_ms))
    }

    /// How many lie in each step of so many milliseconds, by the step's begin; steps without any are left out.
    pub fn by_step(&self, step_ms: u64) -> BTreeMap<u64, u64> {
        let mut steps = BTreeMap::new();
        for (ms, count) in &self.counts {
            *steps.entry(ms / step_ms * step_ms).or_default() += count;
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_are_wider_than_32_bits() {
        let mut times = Times::default();
        for _ in 0..10 {
            times.add(u64::from(u32::MAX));
        }
        assert_eq!(times.mean_ms(), f64::from(u32::MAX));
        assert_eq!(
            (times.published_p90(), times.range_ms()),
            (4_294_967_295, (4_294_967_295, 4_294_967_295))
        );
    }

    proptest! {
        /// Against sorted times.
        #[test]
        fn what_is_counted_is_what_sorting_says(mut all in prop::collection::vec(0u64..3_000, 1..200), cut in 0usize..200) {
            let (one, two) = all.split_at(cut.min(all.len()));
            let of = |part: &[u64]| {
                let mut times = Times::default();
                part.iter().for_each(|ms| times.add(*ms));
                times
            };
            let mut times = of(one);
            times.merge(&of(two));
            all.sort_unstable();
            let n = all.len();
            prop_assert_eq!(times.published_p90(), all[((0.9 * n as f64).round() as usize).min(n - 1)]);
            for permille in [500, 990, 999, 1_000] {
                let rank = (n * permille as usize).div_ceil(1_000).max(1);
                prop_assert_eq!(times.permille(permille), all[rank - 1]);
            }
            prop_assert_eq!(times.range_ms(), (all[0], all[n - 1]));
            prop_assert_eq!(times.count(), n as u64);
            let in_first = all.iter().filter(|ms| **ms < 500).count() as u64;
            prop_assert_eq!(times.by_step(500).get(&0).copied().unwrap_or(0), in_first);
        }
    }
}
