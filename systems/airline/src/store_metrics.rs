//! The store's own counters in `/metrics`.

use std::fmt;

use tidemark_service::encode::{DescriptorEncoder, counter, gauge, info, own, syncs};
use tidemark_store::Embedded;

use crate::stores::Opened;

/// Writes where an airline's data is, and the counters of the stores.
pub(crate) fn encode(e: &mut DescriptorEncoder<'_>, opened: &Opened) -> fmt::Result {
    let choice = &opened.choice;
    let places = [
        ("customers", choice.customers.name()),
        ("sessions", choice.sessions.name()),
        ("bookings", choice.bookings.name()),
        ("flights", choice.flights.name()),
    ];
    info(e, "airline_data", "Where the data is", &places)?;
    encode_stores(e, opened)
}

/// Writes the counters of the stores.
pub(crate) fn encode_stores(e: &mut DescriptorEncoder<'_>, opened: &Opened) -> fmt::Result {
    let Opened { durability, embedded, .. } = opened;
    let promise = [("durability", durability.as_str())];
    info(e, "airline_store", "What an acknowledged write is worth", &promise)?;
    if let Some(embedded) = embedded {
        encode_embedded(e, embedded)?;
    }
    for (product, metrics) in opened.remote() {
        own(e, &format!("airline_{product}"), &metrics)?;
    }
    Ok(())
}

/// Writes those of an embedded store.
pub(crate) fn encode_embedded(e: &mut DescriptorEncoder<'_>, store: &Embedded) -> fmt::Result {
    let (now, recovered) = (store.metrics(), store.recovered());
    counter(e, "airline_store_commits", "Groups of writes made durable", now.commits)?;
    counter(e, "airline_store_writes", "Writes in those groups", now.writes)?;
    let help = "Writes that found the queue full and waited for room";
    counter(e, "airline_store_queue_waits", help, now.queue_waits)?;
    gauge(e, "airline_store_queue_depth", "Writes that wait to enter a group", now.queue_depth)?;
    gauge(e, "airline_store_group_writes_max", "The largest group so far", now.group_writes_max)?;
    let help = "1 after a write has failed: the store takes no more";
    gauge(e, "airline_store_stopped", help, u64::from(now.stopped))?;
    let help = "1 if files were damaged or missing when the store was opened (only as buffered)";
    gauge(e, "airline_store_damaged", help, u64::from(recovered.is_damaged))?;
    let help = "Acknowledged changes that could not be read back then, at least";
    gauge(e, "airline_store_missing", help, recovered.missing)?;
    let name = "airline_store_sync_seconds";
    let help = "Time to make a group of writes durable, in seconds";
    syncs(e, name, help, (&now.sync_buckets, now.sync_sum_us))
}
