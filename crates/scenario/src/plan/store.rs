//! Stores that the lab starts before the system, or that it finds there.

use std::time::Duration;

/// A store of other people's making, for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// What the scenario calls it: letters, digits and `_`.
    pub name: String,
    /// What it is.
    pub product: Product,
    /// Whether it is started or there already.
    pub origin: StoreOrigin,
    /// The line of versions: `5.0`; empty where the version is that of the installed program.
    pub version: &'static str,
    /// How many nodes it has.
    pub nodes: usize,
    /// Heap of each node, bytes; of products that run on Java.
    pub heap_bytes: u64,
    /// What it may keep in memory, bytes, where the scenario says so; of products that do not run on Java.
    pub memory_bytes: Option<u64>,
    /// When it acknowledges a write.
    pub durability: Durability,
    /// Longest time until all of it is ready; fetching it does not count.
    pub ready_within: Duration,
}

/// Where a store comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreOrigin {
    /// The lab starts it.
    Started,
    /// It is there already, at this URL.
    Url(String),
    /// It is there already; some of its nodes, each as `HOST:PORT`.
    Addresses(Vec<String>),
}

/// When a store acknowledges a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it is on disk.
    Synced,
    /// Before that; it is written and comes to the disk later.
    Buffered,
    /// It is kept in memory only.
    Memory,
}

impl Durability {
    /// The word of scenarios.
    pub fn word(self) -> &'static str {
        match self {
            Durability::Synced => "synced",
            Durability::Buffered => "buffered",
            Durability::Memory => "memory",
        }
    }
}

impl Store {
    /// A store of this product as it is where a scenario says nothing more.
    pub fn new(name: impl Into<String>, product: Product) -> Store {
        Store {
            name: name.into(),
            product,
            origin: StoreOrigin::Started,
            version: product.versions().first().copied().unwrap_or_default(),
            nodes: 1,
            heap_bytes: 512 << 20,
            memory_bytes: None,
            durability: Durability::Synced,
            ready_within: Duration::from_secs(180),
        }
    }

    /// Whether an acknowledged write is on disk.
    pub fn is_synced(&self) -> bool {
        self.durability == Durability::Synced
    }

    /// Whether the lab starts it.
    pub fn is_started(&self) -> bool {
        self.origin == StoreOrigin::Started
    }

    /// What can be named of it: all of it, and where it has several nodes each of them (`cassandra.2`).
    pub fn names(&self) -> Vec<String> {
        let nodes = (1..=self.nodes).filter(|_| self.nodes > 1).map(|node| format!("{}.{node}", self.name));
        std::iter::once(self.name.clone()).chain(nodes).collect()
    }
}

/// A product that the lab can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Apache Cassandra.
    Cassandra,
    /// Apache Kafka.
    Kafka,
    /// Redis.
    Redis,
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
    /// OpenSearch.
    Opensearch,
}

impl Product {
    /// All of them.
    pub const ALL: [Product; 6] = [
        Product::Cassandra,
        Product::Kafka,
        Product::Redis,
        Product::Postgres,
        Product::Mariadb,
        Product::Opensearch,
    ];
    /// Their words, in the same order.
    pub const WORDS: [&'static str; 6] = ["cassandra", "kafka", "redis", "postgres", "mariadb", "opensearch"];

    /// What scenarios call it.
    pub fn word(self) -> &'static str {
        Product::WORDS[self as usize]
    }

    /// By its word.
    pub fn from_word(word: &str) -> Option<Product> {
        Product::ALL.into_iter().find(|product| product.word() == word)
    }

    /// Its name, for people.
    pub fn title(self) -> &'static str {
        match self {
            Product::Cassandra => "Cassandra",
            Product::Kafka => "Kafka",
            Product::Redis => "Redis",
            Product::Postgres => "PostgreSQL",
            Product::Mariadb => "MariaDB",
            Product::Opensearch => "OpenSearch",
        }
    }

    /// Lines of versions, the default first; none where the installed program's is taken.
    pub const fn versions(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra => &["5.0", "4.1"],
            Product::Kafka => &["4.3"],
            Product::Opensearch => &["3.8"],
            Product::Redis | Product::Postgres | Product::Mariadb => &[],
        }
    }

    /// Whether it is a cluster of nodes, whose clients find them by what the nodes say of themselves.
    pub fn is_cluster(self) -> bool {
        matches!(self, Product::Cassandra | Product::Kafka)
    }

    /// Durabilities that it offers.
    pub fn durabilities(self) -> &'static [&'static str] {
        match self {
            Product::Redis => &["synced", "buffered", "memory"],
            _ => &["synced", "buffered"],
        }
    }

    /// Keys of the scenario that say something of a store of this product.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra | Product::Kafka => {
                &["product", "version", "nodes", "heap", "durability", "addresses", "when", "ready within"]
            }
            Product::Opensearch => {
                &["product", "version", "heap", "durability", "url", "when", "ready within"]
            }
            Product::Redis | Product::Postgres | Product::Mariadb => {
                &["product", "memory", "durability", "url", "when", "ready within"]
            }
        }
    }

    /// Schemes of the URLs by which it is reached, the one that the lab writes first; none for a cluster.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra | Product::Kafka => &[],
            Product::Redis => &["redis"],
            Product::Postgres => &["postgres", "postgresql"],
            Product::Mariadb => &["mysql", "mariadb"],
            Product::Opensearch => &["http"],
        }
    }

    /// The setting by which a system learns where it is.
    pub fn setting(self) -> &'static str {
        match self {
            Product::Cassandra => "contact",
            Product::Kafka => "brokers",
            other => other.word(),
        }
    }

    /// The fact that this setting is: a URL, or addresses with commas between.
    pub fn fact(self) -> &'static str {
        if self.is_cluster() { "addresses" } else { "url" }
    }
}
