//! The store's own counters in `/metrics`.

use std::fmt;
use std::sync::Arc;

use tidemark_service::prometheus_client::collector::Collector;
use tidemark_service::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use tidemark_service::prometheus_client::metrics::MetricType;
use tidemark_service::prometheus_client::metrics::gauge::ConstGauge;
use tidemark_store::messages::MessagesMetrics;
use tidemark_store::{Durability, SYNC_BOUNDS_US};

use crate::app::App;

/// Reads the counters at each scrape.
pub(crate) struct StoreCollector {
    pub(crate) app: Arc<App>,
    pub(crate) durability: Durability,
}

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

fn syncs(mut metric: MetricEncoder, now: &MessagesMetrics) -> fmt::Result {
    let bounds_s = SYNC_BOUNDS_US.iter().map(|&us| us as f64 / 1e6).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds_s.zip(now.sync_buckets).collect();
    let count = now.sync_buckets.iter().sum();
    metric.encode_histogram::<NoLabels>(now.sync_sum_us as f64 / 1e6, count, &buckets, None)
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let now = self.app.store.metrics();
        let e = &mut encoder;
        let labels = [("durability", self.durability.as_str())];
        let help = "What an acknowledged message is worth";
        e.encode_descriptor("ingest_store", help, None, MetricType::Info)?.encode_info(&labels)?;
        counter(e, "ingest_messages", "Messages acknowledged by the store", now.written)?;
        let help = "Messages that the store did not acknowledge, whether they are kept or not";
        counter(e, "ingest_failed", help, now.failed)?;
        let help = "Messages refused at once because too many waited";
        counter(e, "ingest_refused", help, self.app.refused() + now.refused)?;
        gauge(e, "ingest_waiting", "Messages that wait for the store", self.app.waiting())?;
        counter(e, "ingest_store_groups", "Groups of messages made durable together", now.groups)?;
        gauge(e, "ingest_store_group_messages_max", "The largest group so far", now.group_messages_max)?;
        let help = "1 after a write has failed: the store takes no more";
        gauge(e, "ingest_store_stopped", help, u64::from(now.stopped))?;
        let name = "ingest_store_sync_seconds";
        let help = "Time to make a group of messages durable, in seconds";
        syncs(e.encode_descriptor(name, help, None, MetricType::Histogram)?, &now)?;
        for own in &now.own {
            let name = format!("ingest_store_{}", own.name);
            let write = if own.is_counter { counter } else { gauge };
            write(e, &name, own.help, own.value)?;
        }
        Ok(())
    }
}
