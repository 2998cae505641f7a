//! Stores that are started for the run.

use std::time::Duration;

use crate::plan::{Product, Store};
use crate::reader::Reader;
use crate::yaml::Node;

/// Most nodes of a store: each needs an address of the loopback interface and some memory.
const NODES_MAX: usize = 3;
/// Heap of each node where a scenario says nothing, bytes.
const HEAP_BYTES: u64 = 512 << 20;
/// A heap below this starts no store, one above is hardly meant. Bytes.
const HEAP_BYTES_MIN: u64 = 128 << 20;
const HEAP_BYTES_MAX: u64 = 64 << 30;
/// Longest time until a store is ready where a scenario says nothing.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// The stores to start: those whose `when` holds.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Vec<Store> {
    let entries = node.map(Node::entries).unwrap_or_default();
    let stores = entries.iter().filter_map(|(key, node)| {
        let product = Product::ALL.into_iter().find(|product| key.text() == Some(product.word()))?;
        let is_wanted = node.get("when").and_then(|node| reader.bool(node)).unwrap_or(true);
        // one that is not wanted is read nevertheless, for its mistakes
        Some(store(product, node, reader)).filter(|_| is_wanted)
    });
    stores.collect()
}

fn store(product: Product, node: &Node, reader: &Reader<'_>) -> Store {
    let versions = product.versions();
    let version = node.get("version").and_then(|node| reader.word(node, versions));
    let nodes = node.get("nodes").and_then(|node| {
        let count = usize::try_from(reader.whole(node, 1)?).unwrap_or(usize::MAX);
        if count > NODES_MAX {
            reader.sink.error(node, format!("{count} is too many; at most {NODES_MAX} nodes"));
        }
        Some(count.min(NODES_MAX))
    });
    let heap_bytes = node.get("heap").and_then(|node| {
        let bytes = reader.size(node)?;
        if !(HEAP_BYTES_MIN..=HEAP_BYTES_MAX).contains(&bytes) {
            reader.sink.error(node, "a heap has at least 128MiB and at most 64GiB");
        }
        Some(bytes)
    });
    let durability = node.get("durability").and_then(|node| reader.word(node, &["synced", "buffered"]));
    Store {
        product,
        version: version.unwrap_or(versions[0]),
        nodes: nodes.unwrap_or(1),
        heap_bytes: heap_bytes.unwrap_or(HEAP_BYTES),
        synced: durability != Some("buffered"),
        ready_within: node.get("ready within").and_then(|node| reader.duration(node)).unwrap_or(READY_WITHIN),
    }
}
