//! A system's own counters in the form that `/metrics` speaks, for its [counters](crate::System::counters).

use std::fmt;

pub use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tidemark_store::{OwnMetric, SYNC_BOUNDS_US};

type NoLabels = [(&'static str, &'static str); 0];

/// A count that only rises.
pub fn counter(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabels, u64, f64>(&value, None)
}

/// A number that rises and falls.
pub fn gauge(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: u64) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

/// What something is, as labels.
pub fn info(encoder: &mut DescriptorEncoder, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels)
}

/// Times in classes: `counts` by `bounds_us` (upper bounds, microseconds), with one more for what is above, and their
/// sum. The metric is in seconds.
pub fn times(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    (bounds_us, counts, sum_us): (&[u64], &[u64], u64),
) -> fmt::Result {
    let bounds_s = bounds_us.iter().map(|&us| us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds_s.zip(counts.iter().copied()).collect();
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    metric.encode_histogram::<NoLabels>(sum_us as f64 / 1e6, counts.iter().sum(), &buckets, None)
}

/// How long a store took to make groups of writes durable: `counts` by [`SYNC_BOUNDS_US`] and the sum in microseconds.
pub fn syncs(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    (counts, sum_us): (&[u64], u64),
) -> fmt::Result {
    times(encoder, name, help, (&SYNC_BOUNDS_US, counts, sum_us))
}

/// What only one product of a store counts; `prefix` stands before each name.
pub fn own(encoder: &mut DescriptorEncoder, prefix: &str, metrics: &[OwnMetric]) -> fmt::Result {
    for metric in metrics {
        let write = if metric.is_counter { counter } else { gauge };
        write(encoder, &format!("{prefix}_{}", metric.name), metric.help, metric.value)?;
    }
    Ok(())
}
