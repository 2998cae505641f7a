//! Stores that the lab starts before the system.

use std::time::Duration;

/// A store of other people's making, to be started for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// What it is; its word is also the name that the scenario calls it by.
    pub product: Product,
    /// The line of versions: `5.0`.
    pub version: &'static str,
    /// How many nodes it has.
    pub nodes: usize,
    /// Heap of each node, bytes.
    pub heap_bytes: u64,
    /// Whether an acknowledged write is on disk (`synced`) or with the operating system (`buffered`).
    pub synced: bool,
    /// Longest time until all of it is ready; fetching it does not count.
    pub ready_within: Duration,
}

/// A product that the lab can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Apache Cassandra.
    Cassandra,
    /// Apache Kafka.
    Kafka,
}

impl Product {
    /// All of them.
    pub const ALL: [Product; 2] = [Product::Cassandra, Product::Kafka];

    /// What scenarios call it.
    pub fn word(self) -> &'static str {
        match self {
            Product::Cassandra => "cassandra",
            Product::Kafka => "kafka",
        }
    }

    /// Lines of versions, the default first.
    pub const fn versions(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra => &["5.0", "4.1"],
            Product::Kafka => &["4.3"],
        }
    }
}
