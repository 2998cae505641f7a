//! The store's own counters in `/metrics`.

use std::fmt;
use std::sync::Arc;

use tidemark_service::prometheus_client::collector::Collector;
use tidemark_service::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use tidemark_service::prometheus_client::metrics::MetricType;
use tidemark_service::prometheus_client::metrics::gauge::ConstGauge;
use tidemark_store::{Embedded, SYNC_BOUNDS_US, StoreMetrics};

/// Reads the counters of the embedded store at each scrape.
pub(crate) struct StoreCollector(pub(crate) Arc<Embedded>);

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreCollector")
    }
}

type NoLabels = [(&'static str, &'static str); 0];

fn counter(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabels, u64, f64>(&value, None)
}

fn gauge(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: u64) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn syncs(mut metric: MetricEncoder, now: &StoreMetrics) -> fmt::Result {
    let bounds_s = SYNC_BOUNDS_US.iter().map(|&us| us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds_s.zip(now.sync_buckets).collect();
    let count = now.sync_buckets.iter().sum();
    metric.encode_histogram::<NoLabels>(now.sync_sum_us as f64 / 1e6, count, &buckets, None)
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let now = self.0.metrics();
        let e = &mut encoder;
        let labels = [("durability", self.0.durability().as_str())];
        let help = "What an acknowledged write is worth";
        e.encode_descriptor("airline_store", help, None, MetricType::Info)?.encode_info(&labels)?;
        counter(e, "airline_store_commits", "Groups of writes made durable", now.commits)?;
        counter(e, "airline_store_writes", "Writes in those groups", now.writes)?;
        let help = "Writes that found the queue full and waited for room";
        counter(e, "airline_store_queue_waits", help, now.queue_waits)?;
        gauge(e, "airline_store_queue_depth", "Writes that wait to enter a group", now.queue_depth)?;
        gauge(e, "airline_store_group_writes_max", "The largest group so far", now.group_writes_max)?;
        let help = "1 after a write has failed: the store takes no more";
        gauge(e, "airline_store_stopped", help, u64::from(now.stopped))?;
        let name = "airline_store_sync_seconds";
        let help = "Time to make a group of writes durable, in seconds";
        syncs(e.encode_descriptor(name, help, None, MetricType::Histogram)?, &now)
    }
}
