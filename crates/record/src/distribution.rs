//! The one rule by which percentiles are taken: **of all requests that were due**.
//!
//! A request without a good answer (time-out, drop, refused or broken connection, protocol error, wrong status, failed
//! check, never sent, cut off at the end) is slower than every bound. Beyond the share of good answers a percentile is
//! therefore *not reached*: with 7.6 % of failures p90 is a figure, p95 and the longest are none.
//!
//! A percentile of fewer requests than have at least one beyond it is the slowest of them under another name: 999 requests
//! have no p99.9. Figures leave it out; an objective is decided by the slowest then, and says so.
//!
//! Whoever shows a percentile, the terminal, the page, JSON, a verdict, takes it from here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Merged;

/// Less than this above a whole number is rounding: 99.9 / 100 is a little more than 0.999.
const ROUNDING: f64 = 1e-6;

/// The rank, from 1, that a share (0 to 1) of so many is read at: the smallest whole number not below it.
pub fn rank(share: f64, of: u64) -> u64 {
    ((share.clamp(0.0, 1.0) * of as f64 - ROUNDING).ceil() as u64).clamp(1, of.max(1))
}

/// Whether so many have a percentile (a share, 0 to 1): at least one of them lies beyond it. Else it would be the largest,
/// whatever it is called.
pub fn supports(share: f64, of: u64) -> bool {
    (1.0 - share) * of as f64 >= 1.0 - ROUNDING
}

/// How many there are at least where they have a percentile (a share, 0 to 1).
pub fn least(share: f64) -> u64 {
    (1.0 / (1.0 - share.clamp(0.0, 1.0)) - ROUNDING).ceil() as u64
}

/// A latency distribution in few numbers, microseconds; null what is [not reached](Distribution), what is of nothing, and a
/// percentile that [so few](Distribution::supports) requests do not have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Latency {
    pub min: Option<u64>,
    pub mean: Option<f64>,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    /// Absent in runs of before.
    #[serde(default)]
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
}

/// Puts the times of things that all ended into few numbers; none where there is nothing. For requests, of which some
/// may have had no good answer, see [`Distribution`].
pub fn latency(histogram: &Merged) -> Latency {
    Distribution::new(histogram, 0).latency()
}

/// The times of the good answers, and how many requests that were due had none.
#[derive(Debug, Clone, Copy)]
pub struct Distribution<'a> {
    good: &'a Merged,
    failed: u64,
}

impl<'a> Distribution<'a> {
    /// Of good answers, and of so many requests without one.
    pub fn new(good: &'a Merged, failed: u64) -> Self {
        Distribution { good, failed }
    }

    /// The times of the good answers.
    pub fn good(&self) -> &'a Merged {
        self.good
    }

    /// Requests that were due.
    pub fn due(&self) -> u64 {
        self.good.len() + self.failed
    }

    /// Those without a good answer.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Whether so many requests have a percentile (a share, 0 to 1): at least one of them lies beyond it. Else it would be the
    /// slowest, whatever it is called.
    pub fn supports(&self, share: f64) -> bool {
        supports(share, self.due())
    }

    /// The value that at least this share of all requests (0 to 1) did not exceed; none where that share had no good
    /// answer, or nothing was due. The rank is the smallest whole number not below the share of all, as HdrHistogram has it.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = rank(share, self.due());
        let good = self.good.len();
        // half a rank below: the share is turned into the same rank again, whatever the rounding
        (rank <= good).then(|| self.good.value_at_quantile((rank as f64 - 0.5) / good as f64))
    }

    /// The fastest good answer; none if there was none.
    pub fn min(&self) -> Option<u64> {
        (!self.good.is_empty()).then(|| self.good.min())
    }

    /// The slowest of all; none where one had no good answer.
    pub fn max(&self) -> Option<u64> {
        (!self.good.is_empty() && self.failed == 0).then(|| self.good.max())
    }

    /// The mean of all; none where one had no good answer, which took for ever.
    pub fn mean(&self) -> Option<f64> {
        (!self.good.is_empty() && self.failed == 0).then(|| self.good.mean())
    }

    /// Share of all requests (0 to 1) and the value that it did not exceed, ascending, up to the share of good answers: so
    /// many points each time the rest is halved.
    pub fn curve(&self, points_per_halving: u32) -> impl Iterator<Item = (f64, u64)> + 'a {
        let reached = if self.due() > 0 { self.good.len() as f64 / self.due() as f64 } else { 0.0 };
        let points = (!self.good.is_empty()).then(|| self.good.iter_quantiles(points_per_halving));
        points
            .into_iter()
            .flatten()
            .map(move |point| (point.quantile_iterated_to() * reached, point.value_iterated_to()))
    }

    /// In few numbers.
    pub fn latency(&self) -> Latency {
        let percentile = |share| self.quantile(share).filter(|_| self.supports(share));
        Latency {
            min: self.min(),
            mean: self.mean(),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p999: percentile(0.999),
            max: self.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::{merge, new_merged};
    use crate::new_histogram;

    fn of(values: &[u64]) -> Merged {
        let mut merged = new_merged();
        values.iter().for_each(|us| merged.record(*us).unwrap());
        merged
    }

    #[test]
    fn beyond_the_share_of_good_answers_nothing_is_reached() {
        let good = of(&(1..=924).collect::<Vec<_>>());
        let times = Distribution::new(&good, 76);
        assert_eq!((times.due(), times.quantile(0.5), times.quantile(0.9)), (1_000, Some(500), Some(900)));
        assert_eq!((times.quantile(0.924), times.quantile(0.925)), (Some(924), None));
        let latency = times.latency();
        assert_eq!((latency.p95, latency.p99, latency.max, latency.mean), (None, None, None, None));
        assert_eq!(latency.min, Some(1));
    }

    #[test]
    fn a_percentile_needs_a_request_beyond_it() {
        let times = of(&(1..=1_000).collect::<Vec<_>>());
        let latency = |failed| Distribution::new(&times, failed).latency();
        assert_eq!((latency(0).p99, latency(0).p999), (Some(990), Some(999)));
        let few = of(&(1..=999).collect::<Vec<_>>());
        let short = Distribution::new(&few, 0);
        assert_eq!(
            (short.latency().p99, short.latency().p999, short.latency().max),
            (Some(990), None, Some(999))
        );
        // failures are requests, too
        assert!(Distribution::new(&few, 1).supports(0.999) && !short.supports(0.999));
        for (share, least) in [(0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1_000), (0.9999, 10_000)]
        {
            let supports = |count: u64| Distribution::new(&new_merged(), count).supports(share);
            assert!(supports(least) && !supports(least - 1), "{share}");
        }
        let one = of(&[7]);
        let one = Distribution::new(&one, 0).latency();
        assert_eq!((one.min, one.p50, one.max, one.mean), (Some(7), None, Some(7), Some(7.0)));
    }

    #[test]
    fn without_failures_it_is_the_histogram() {
        let good = of(&[7; 10]);
        let latency = Distribution::new(&good, 0).latency();
        assert_eq!((latency.p50, latency.max, latency.mean), (Some(7), Some(7), Some(7.0)));
    }

    #[test]
    fn where_nothing_was_good_or_nothing_due_there_is_no_figure() {
        let nothing = new_merged();
        for failed in [0, 5] {
            let latency = Distribution::new(&nothing, failed).latency();
            assert_eq!((latency.min, latency.p50, latency.max), (None, None, None));
        }
    }

    #[test]
    fn percentiles_come_from_merged_counts() {
        // 99 fast ones on one side, 1 slow one on the other: the mean of two p50s would be 5 ms, the truth is 10 us.
        let mut merged = new_merged();
        let mut fast = new_histogram();
        fast.record_n(10, 99);
        let mut slow = new_histogram();
        slow.record(10_000);
        merge(&mut merged, &fast);
        merge(&mut merged, &slow);
        let latency = latency(&merged);
        assert_eq!((latency.p50, latency.p99), (Some(10), Some(10)));
        assert!((10_000..10_010).contains(&latency.max.unwrap()));
    }

    proptest! {
        /// The rule against its definition: sort all that was due, failures last, and take the rank.
        #[test]
        fn it_is_the_rank_among_all(
            mut good in prop::collection::vec(0u64..2_000, 0..300),
            failed in 0u64..300,
            permille in 0u64..=1_000,
        ) {
            let merged = of(&good);
            good.sort_unstable();
            let due = good.len() as u64 + failed;
            // as an objective writes it: 99.9 of a hundred
            let share = permille as f64 / 10.0 / 100.0;
            let rank = (permille * due).div_ceil(1_000).max(1);
            let expected = good.get(rank as usize - 1).copied();
            let found = Distribution::new(&merged, failed).quantile(share);
            // three significant digits: whole microseconds up to 2,047
            prop_assert_eq!(found, expected);
        }
    }
}
