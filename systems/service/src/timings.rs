//! Latency histograms that many threads can feed without meeting each other.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;

use crate::worker_index;

/// Upper bounds of the buckets, in microseconds; what is above goes into one more.
const BOUNDS_US: [u64; 18] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// One histogram. Fed with plain atomic additions; exact for a reader once the writers pause.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Histogram {
    pub(crate) fn record(&self, time: Duration) {
        self.record_many(time, 1);
    }

    fn record_many(&self, time: Duration, count: u64) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|&bound_us| bound_us.saturating_mul(1000) < ns);
        self.buckets[bucket].fetch_add(count, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns.saturating_mul(count), Ordering::Relaxed);
    }
}

/// Writes the sum of several histograms as one.
pub(crate) fn encode_sum<'a>(
    mut encoder: MetricEncoder,
    parts: impl Iterator<Item = &'a Histogram>,
) -> Result<(), fmt::Error> {
    let mut counts = [0u64; BOUNDS_US.len() + 1];
    let mut sum_ns = 0u64;
    for part in parts {
        for (count, bucket) in counts.iter_mut().zip(&part.buckets) {
            *count += bucket.load(Ordering::Relaxed);
        }
        sum_ns = sum_ns.saturating_add(part.sum_ns.load(Ordering::Relaxed));
    }
    // The encoder writes infinity as +Inf.
    let bounds_s = BOUNDS_US.iter().map(|&us| us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds_s.zip(counts).collect();
    let labels: Option<&std::collections::HashMap<usize, _>> = None;
    encoder.encode_histogram::<[(&str, &str); 0]>(sum_ns as f64 / 1e9, counts.iter().sum(), &buckets, labels)
}

/// A named family of latency histograms, one for each of a fixed list of operations, for a system to show
/// in `/metrics` what its parts take: its stores, for example.
///
/// Each worker of the server feeds its own copy; they are added up when somebody looks.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use tidemark_service::Timings;
///
/// let store = Arc::new(Timings::new("store_seconds", "Time that store calls took", "op", &["find", "put"]));
/// store.record(0, Duration::from_micros(80)); // one "find"
/// assert_eq!(store.count(0), 1);
/// ```
#[derive(Debug)]
pub struct Timings {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    operations: &'static [&'static str],
    shards: Box<[Box<[Histogram]>]>,
}

/// Copies of each histogram; workers beyond that share.
const SHARDS: usize = 16;

impl Timings {
    /// A family called `name` (ending in the unit, `_seconds`), with the label `label` taking the values
    /// `operations`.
    pub fn new(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        operations: &'static [&'static str],
    ) -> Self {
        let shard = || operations.iter().map(|_| Histogram::default()).collect();
        Timings { name, help, label, operations, shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Enters that the operation with this index in the list took `time`.
    pub fn record(&self, operation: usize, time: Duration) {
        self.shards[worker_index() % SHARDS][operation].record(time);
    }

    /// Enters that each of `count` operations took `time`.
    pub fn record_many(&self, operation: usize, time: Duration, count: u64) {
        self.shards[worker_index() % SHARDS][operation].record_many(time, count);
    }

    /// How often an operation was entered.
    pub fn count(&self, operation: usize) -> u64 {
        let of_shard = |shard: &[Histogram]| -> u64 {
            shard[operation].buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
        };
        self.shards.iter().map(|shard| of_shard(shard)).sum()
    }
}

impl Collector for Timings {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Histogram)?;
        for (index, operation) in self.operations.iter().enumerate() {
            let labels = [(self.label, *operation)];
            encode_sum(family.encode_family(&labels)?, self.shards.iter().map(|shard| &shard[index]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_time_lands_in_the_bucket_whose_bound_it_does_not_exceed() {
        let timings = Arc::new(Timings::new("t_seconds", "help", "op", &["a", "b"]));
        for us in [25, 26] {
            timings.record(1, Duration::from_micros(us));
        }
        timings.record_many(1, Duration::from_secs(20), 1);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(timings.clone()));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let line = |start: &str| match text.lines().find(|l| l.starts_with(start)) {
            Some(line) => line.to_owned(),
            None => panic!("no {start} in\n{text}"),
        };
        assert_eq!(
            line("t_seconds_bucket{le=\"0.000025\",op=\"b\"}"),
            "t_seconds_bucket{le=\"0.000025\",op=\"b\"} 1"
        );
        assert_eq!(
            line("t_seconds_bucket{le=\"0.00005\",op=\"b\"}"),
            "t_seconds_bucket{le=\"0.00005\",op=\"b\"} 2"
        );
        assert_eq!(
            line("t_seconds_bucket{le=\"10.0\",op=\"b\"}"),
            "t_seconds_bucket{le=\"10.0\",op=\"b\"} 2"
        );
        assert_eq!(
            line("t_seconds_bucket{le=\"+Inf\",op=\"b\"}"),
            "t_seconds_bucket{le=\"+Inf\",op=\"b\"} 3"
        );
        assert_eq!(line("t_seconds_count{op=\"a\"}"), "t_seconds_count{op=\"a\"} 0");
        assert_eq!((timings.count(0), timings.count(1)), (0, 3));
    }
}
