//! Stores that the lab starts before the system, or that it finds there.

use std::path::PathBuf;
use std::time::Duration;

use super::persistence::{AppendOnly, Persistence};
use crate::grammar::kinds::words;

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
    /// How many nodes it has, replicas not counted.
    pub nodes: usize,
    /// What makes one cluster of its nodes; of products that are that only where a scenario says so.
    pub cluster: Option<Cluster>,
    /// Threads of each node, where the scenario says so.
    pub threads: Option<usize>,
    /// Heap of each node, bytes; of products that run on Java.
    pub heap_bytes: u64,
    /// What it may keep in memory, bytes, where the scenario says so; of products that do not run on Java.
    pub memory_bytes: Option<u64>,
    /// When it acknowledges a write.
    pub durability: Durability,
    /// How it keeps its data, beyond that; of stores that speak Redis' protocol.
    pub persistence: Persistence,
    /// The directory in which its data lie, where the scenario says so.
    pub directory: Option<PathBuf>,
    /// Longest time until all of it is ready; fetching it does not count.
    pub ready_within: Duration,
}

/// A cluster whose nodes have parts of the data and find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// Replicas of each node.
    pub replicas: usize,
    /// How long a node is silent before the others hold it for dead.
    pub failover_after: Duration,
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

words! {
    /// When a store acknowledges a write.
    pub enum Durability {
        /// When it is on disk.
        Synced = "synced",
        /// Before that; it is written and comes to the disk later.
        Buffered = "buffered",
        /// It is kept in memory only.
        Memory = "memory",
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
            cluster: None,
            threads: None,
            heap_bytes: product.heap_bytes(),
            memory_bytes: None,
            durability: product.durability(),
            persistence: Persistence::default(),
            directory: None,
            ready_within: Duration::from_secs(180),
        }
    }

    /// Whether an acknowledged write is on disk.
    pub fn is_synced(&self) -> bool {
        self.durability == Durability::Synced
    }

    /// When its append-only file is synced; of stores that speak Redis' protocol.
    pub fn append_only(&self) -> AppendOnly {
        self.persistence.append_only.unwrap_or_else(|| self.durability.into())
    }

    /// How many processes its nodes and their replicas are. The replicas come after the nodes: one of each node, in
    /// their order, then the second ones.
    pub fn processes(&self) -> usize {
        self.nodes * (1 + self.cluster.map_or(0, |cluster| cluster.replicas))
    }

    /// Whether the lab starts it.
    pub fn is_started(&self) -> bool {
        self.origin == StoreOrigin::Started
    }

    /// What can be named of it: all of it, and where it has several nodes each of them (`cassandra.2`).
    pub fn names(&self) -> Vec<String> {
        let all = self.processes();
        let nodes = (1..=all).filter(|_| all > 1).map(|node| format!("{}.{node}", self.name));
        std::iter::once(self.name.clone()).chain(nodes).collect()
    }
}

words! {
    /// A product that the lab can start.
    pub enum Product {
        /// Apache Cassandra.
        Cassandra = "cassandra",
        /// Apache Kafka.
        Kafka = "kafka",
        /// Redis.
        Redis = "redis",
        /// PostgreSQL.
        Postgres = "postgres",
        /// MariaDB.
        Mariadb = "mariadb",
        /// OpenSearch.
        Opensearch = "opensearch",
        /// Solr.
        Solr = "solr",
        /// Valkey.
        Valkey = "valkey",
        /// KeyDB.
        Keydb = "keydb",
        /// Dragonfly.
        Dragonfly = "dragonfly",
        /// Garnet.
        Garnet = "garnet",
        /// memcached.
        Memcached = "memcached",
        /// Eureka, a registry of instances.
        Eureka = "eureka",
        /// etcd, a registry of instances.
        Etcd = "etcd",
    }
}

impl Product {
    /// Its name, for people.
    pub fn title(self) -> &'static str {
        match self {
            Product::Cassandra => "Cassandra",
            Product::Kafka => "Kafka",
            Product::Redis => "Redis",
            Product::Postgres => "PostgreSQL",
            Product::Mariadb => "MariaDB",
            Product::Opensearch => "OpenSearch",
            Product::Solr => "Solr",
            Product::Valkey => "Valkey",
            Product::Keydb => "KeyDB",
            Product::Dragonfly => "Dragonfly",
            Product::Garnet => "Garnet",
            Product::Memcached => "memcached",
            Product::Eureka => "Eureka",
            Product::Etcd => "etcd",
        }
    }

    /// Lines of versions, the default first; none where the installed program's is taken.
    pub const fn versions(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra => &["5.0", "4.1"],
            Product::Kafka => &["4.3"],
            Product::Opensearch => &["3.8"],
            Product::Solr => &["9.10"],
            Product::Eureka => &["4.3"],
            _ => &[],
        }
    }

    /// Java heap where a scenario says nothing, bytes; of products that run on Java.
    pub fn heap_bytes(self) -> u64 {
        match self {
            Product::Eureka => 256 << 20,
            _ => 512 << 20,
        }
    }

    /// Memory that a node takes, bytes: the heap of a product that runs on Java and what Java takes beside it, as measured of
    /// Cassandra 5.0 with heaps of 320 and 512 MiB. 0 where it is not known.
    pub fn node_bytes(self, heap_bytes: u64) -> u64 {
        match self {
            Product::Cassandra => heap_bytes + (440 << 20),
            _ => 0,
        }
    }

    /// Whether it is a cluster of nodes, whose clients find them by what the nodes say of themselves.
    pub fn is_cluster(self) -> bool {
        matches!(self, Product::Cassandra | Product::Kafka)
    }

    /// Whether it speaks Redis' protocol.
    pub fn speaks_redis(self) -> bool {
        use Product::{Dragonfly, Garnet, Keydb, Redis, Valkey};
        matches!(self, Redis | Valkey | Keydb | Dragonfly | Garnet)
    }

    /// Whether the driver speaks its protocol.
    pub fn is_driven(self) -> bool {
        self.speaks_redis() || matches!(self, Product::Memcached | Product::Postgres | Product::Cassandra)
    }

    /// Most nodes that the lab starts of one store; one of which there are no more, each of which a store of its own is.
    pub fn nodes_max(self) -> usize {
        match self {
            // each needs an address of the loopback interface and some memory
            Product::Kafka => 3,
            Product::Cassandra => 16,
            _ if self.is_driven() => 16,
            _ => 1,
        }
    }

    /// Durabilities that it offers, the default first.
    pub fn durabilities(self) -> &'static [&'static str] {
        match self {
            Product::Redis | Product::Valkey | Product::Keydb => &["synced", "buffered", "memory"],
            Product::Garnet => &["buffered", "memory"],
            Product::Dragonfly | Product::Memcached | Product::Eureka => &["memory"],
            Product::Etcd => &["synced"],
            _ => &["synced", "buffered"],
        }
    }

    /// The durability that it has where a scenario says nothing.
    pub fn durability(self) -> Durability {
        self.durabilities().first().and_then(|word| Durability::from_name(word)).unwrap_or(Durability::Synced)
    }

    /// Keys of the scenario that say something of a store of this product.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra | Product::Kafka => &[
                "product",
                "version",
                "nodes",
                "heap",
                "durability",
                "directory",
                "addresses",
                "when",
                "ready within",
            ],
            Product::Opensearch | Product::Solr => {
                &["product", "version", "heap", "durability", "directory", "url", "when", "ready within"]
            }
            Product::Postgres | Product::Mariadb => {
                &["product", "memory", "durability", "directory", "url", "when", "ready within"]
            }
            Product::Redis | Product::Valkey => &[
                "product",
                "nodes",
                "cluster",
                "replicas",
                "failover after",
                "threads",
                "memory",
                "durability",
                "persistence",
                "directory",
                "url",
                "when",
                "ready within",
            ],
            Product::Keydb => &[
                "product",
                "nodes",
                "threads",
                "memory",
                "durability",
                "persistence",
                "directory",
                "url",
                "when",
                "ready within",
            ],
            Product::Dragonfly => &[
                "product",
                "nodes",
                "threads",
                "memory",
                "durability",
                "directory",
                "url",
                "when",
                "ready within",
            ],
            Product::Memcached => {
                &["product", "nodes", "threads", "memory", "durability", "url", "when", "ready within"]
            }
            Product::Eureka => &["product", "version", "heap", "url", "when", "ready within"],
            Product::Etcd => &["product", "url", "when", "ready within"],
            // .NET takes threads as it needs them
            Product::Garnet => {
                &["product", "nodes", "memory", "durability", "directory", "url", "when", "ready within"]
            }
        }
    }

    /// Schemes of the URLs by which it is reached, the one that the lab writes first; none for a cluster.
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Product::Cassandra | Product::Kafka => &[],
            Product::Postgres => &["postgres", "postgresql"],
            Product::Mariadb => &["mysql", "mariadb"],
            Product::Opensearch | Product::Solr | Product::Eureka | Product::Etcd => &["http"],
            Product::Memcached => &["memcached"],
            Product::Redis | Product::Valkey | Product::Keydb | Product::Dragonfly | Product::Garnet => {
                &["redis", "redis-cluster"]
            }
        }
    }

    /// The setting by which a system learns where it is.
    pub fn setting(self) -> &'static str {
        match self {
            Product::Cassandra => "contact",
            Product::Kafka => "brokers",
            other if other.speaks_redis() => Product::Redis.name(),
            other => other.name(),
        }
    }

    /// The fact that this setting is: a URL, or addresses with commas between.
    pub fn fact(self) -> &'static str {
        if self.is_cluster() { "addresses" } else { "url" }
    }
}
