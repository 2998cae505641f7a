//! The store's own counters in `/metrics`.

use std::fmt;

use tidemark_service::encode::{DescriptorEncoder, counter, gauge, info, own, syncs};
use tidemark_store::Durability;

use crate::app::App;
use crate::identity::Identity;

/// Writes the counters of the intake and of its store.
pub(crate) fn encode(
    e: &mut DescriptorEncoder<'_>,
    app: &App,
    durability: Durability,
    identity: Identity,
) -> fmt::Result {
    let now = app.store.metrics();
    let labels = [("durability", durability.as_str()), ("identity", identity.as_str())];
    info(
        e,
        "ingest_store",
        "What an acknowledged message is worth, and what makes two requests one",
        &labels,
    )?;
    counter(e, "ingest_messages", "Messages acknowledged by the store", now.writes)?;
    let help = "Messages that the store did not acknowledge, whether they are kept or not";
    counter(e, "ingest_failed", help, now.failed)?;
    let help = "Messages refused because too many waited";
    counter(e, "ingest_refused", help, app.refused() + now.refused)?;
    gauge(e, "ingest_waiting", "Messages that wait for the store", app.waiting())?;
    let help = "Messages held back until a place is free or it is their turn to be refused";
    gauge(e, "ingest_held", help, app.held())?;
    counter(e, "ingest_store_groups", "Groups of messages made durable together", now.commits)?;
    gauge(e, "ingest_store_group_messages_max", "The largest group so far", now.group_writes_max)?;
    let help = "1 after a write has failed: the store takes no more";
    gauge(e, "ingest_store_stopped", help, u64::from(now.stopped))?;
    let help = "Time to make a group of messages durable, in seconds";
    syncs(e, "ingest_store_sync_seconds", help, (&now.sync_buckets, now.sync_sum_us))?;
    own(e, "ingest_store", &now.own)
}
