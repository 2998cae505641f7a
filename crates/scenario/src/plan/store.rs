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

impl Store {
    /// What can be named of it: all of it, and where it has several nodes each of them (`cassandra.2`).
    pub fn names(&self) -> Vec<String> {
        let whole = self.product.word().to_owned();
        let nodes = (1..=self.nodes).filter(|_| self.nodes > 1).map(|node| format!("{whole}.{node}"));
        std::iter::once(whole.clone()).chain(nodes).collect()
    }
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
