//! The store's own counters in `/metrics`.

use std::fmt;
use std::sync::Arc;

use tidemark_service::encode::{counter, gauge, info, times};
use tidemark_service::prometheus_client::collector::Collector;
use tidemark_service::prometheus_client::encoding::DescriptorEncoder;
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

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let now = self.app.store.metrics();
        let e = &mut encoder;
        let labels = [("durability", self.durability.as_str())];
        info(e, "ingest_store", "What an acknowledged message is worth", &labels)?;
        counter(e, "ingest_messages", "Messages acknowledged by the store", now.written)?;
        let help = "Messages that the store did not acknowledge, whether they are kept or not";
        counter(e, "ingest_failed", help, now.failed)?;
        let help = "Messages refused because too many waited";
        counter(e, "ingest_refused", help, self.app.refused() + now.refused)?;
        gauge(e, "ingest_waiting", "Messages that wait for the store", self.app.waiting())?;
        let help = "Messages held back until a place is free or it is their turn to be refused";
        gauge(e, "ingest_held", help, self.app.held())?;
        counter(e, "ingest_store_groups", "Groups of messages made durable together", now.groups)?;
        gauge(e, "ingest_store_group_messages_max", "The largest group so far", now.group_messages_max)?;
        let help = "1 after a write has failed: the store takes no more";
        gauge(e, "ingest_store_stopped", help, u64::from(now.stopped))?;
        let name = "ingest_store_sync_seconds";
        let help = "Time to make a group of messages durable, in seconds";
        times(e, name, help, (&SYNC_BOUNDS_US, &now.sync_buckets, now.sync_sum_us))?;
        for own in &now.own {
            let name = format!("ingest_store_{}", own.name);
            let write = if own.is_counter { counter } else { gauge };
            write(e, &name, own.help, own.value)?;
        }
        Ok(())
    }
}
