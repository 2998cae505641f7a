//! Stores of a run.

use super::Texts;
use crate::grammar::kinds::{Bool, Size, Text, Time, Whole, nodes};
use crate::grammar::record::record;
use crate::grammar::{Rule, Scalar, Shape};
use crate::plan::{AppendOnly, Durability, Product};

nodes! {
    /// A line of versions; which a product has is known once it is.
    pub(crate) Version = Shape::Scalar(Scalar::Word(&["5.0", "4.1", "4.3", "3.8", "9.10"]));
}

record! {
    /// A store: started before the system and stopped after it, or reached where it is.
    pub(crate) struct Store("store", "a store", Rule::AtMostOneOf(&["url", "addresses"])) {
        product: Product =
            "What it is; not needed where the store is called by a product's name.",
        version: Version =
            "Line of versions: `5.0` (default) or `4.1` of Cassandra, `4.3` of Kafka, `3.8` of OpenSearch, `9.10` \
             of Solr, `4.3` of Eureka. Others are what is installed.",
        nodes: Whole<1> =
            "Cassandra, Kafka: how many nodes it has, 1 to 3. Stores that speak Redis' protocol, memcached: how many \
             servers, 1 to 16, each with a part of the keys. One by default, three for `cluster`.",
        cluster: Bool = "Redis, Valkey: whether its nodes, at least 3, are one Redis Cluster.",
        replicas: Whole<0> = "Of a `cluster`: replicas of each node, 0 (default) to 2.",
        failover_after: Time as "failover after" =
            "Of a `cluster`: how long a node is silent before the others hold it for dead; 2s by default.",
        threads: Whole<1> =
            "Redis, Valkey: I/O threads. KeyDB, Dragonfly, memcached: threads that serve. Of each node; by default \
             as the product has it.",
        heap: Size = "Cassandra, Kafka, OpenSearch, Solr, Eureka: Java heap of each node; 512MiB by default, 256MiB of Eureka.",
        memory: Size =
            "Stores that speak Redis' protocol, memcached: most memory for data, of each node. PostgreSQL: shared \
             buffers. MariaDB: buffer pool. By default as the product has it.",
        durability: Durability =
            "Whether an acknowledged write is on disk (`synced`), comes there later, or never; the strongest that \
             the product has is the default.",
        persistence: Persistence<'n> = "Redis, Valkey, KeyDB: how data are kept on disk, beyond `durability`.",
        directory: Text =
            "Where its data lie: a directory that exists, relative to this file. A folder of its own is made in it for \
             the run. By default they lie in the run directory.",
        url: Text = "All but Cassandra and Kafka: where it is; then nothing is started.",
        addresses: Texts = "Cassandra, Kafka: HOST:PORT of some of its nodes; then nothing is started.",
        when: Bool = "Whether it is there, with settings: `${store == 'cassandra'}`; else true.",
        ready_within: Time as "ready within" = "Longest time until all of it is ready; 3m by default.",
    }
}

record! {
    /// How a store of Redis' kind keeps its data on disk.
    pub(crate) struct Persistence("persistence", "a persistence") {
        append_only: AppendOnly as "append only" =
            "When its append-only file is synced: before each answer, every second, when the operating system wants \
             to (`no`); or there is none. By default as `durability` says.",
        snapshots: Text =
            "Pairs of seconds and changes after which a snapshot is written: `60 1000 300 10`; `off` by default.",
        rewrite_at: Size as "rewrite at" =
            "Size from which the append-only file is rewritten; as the product has it by default, 64MiB.",
        rewrite_growth: Text as "rewrite growth" =
            "How much it grows until it is rewritten again: `100%`, as is the default of the product, or `off`.",
    }
}
