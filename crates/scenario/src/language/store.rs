//! Stores of a run, by name.

use crate::grammar::Scalar::{Bool, Duration, Size, Text, Whole, Word};
use crate::grammar::Shape::{List, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, Shape, key};
use crate::plan::{AppendOnly, Product};

/// What may stand under `stores`.
pub(crate) static STORES: Shape = Map(Keys::Name("names of stores"), &Of(&STORE));

/// All products together; which keys belong to which is checked when a store is read.
static STORE: Record = Record {
    what: "a store",
    schema: "store",
    about: "A store: started before the system and stopped after it, or reached where it is.",
    verbs: &[],
    keys: &[
        key(
            "product",
            Scalar(Word(&Product::WORDS)),
            "What it is; not needed where the store is called by a product's name.",
        ),
        key(
            "version",
            Scalar(Word(&["5.0", "4.1", "4.3", "3.8"])),
            "Line of versions: `5.0` (default) or `4.1` of Cassandra, `4.3` of Kafka, `3.8` of OpenSearch. Others are what is installed.",
        ),
        key(
            "nodes",
            Scalar(Whole(1)),
            "Cassandra, Kafka: how many nodes it has, 1 to 3. Stores that speak Redis' protocol, memcached: how many servers, 1 to 16, each with a part of the keys. One by default, three for `cluster`.",
        ),
        key("cluster", Scalar(Bool), "Redis, Valkey: whether its nodes, at least 3, are one Redis Cluster."),
        key("replicas", Scalar(Whole(0)), "Of a `cluster`: replicas of each node, 0 (default) to 2."),
        key(
            "failover after",
            Scalar(Duration),
            "Of a `cluster`: how long a node is silent before the others hold it for dead; 2s by default.",
        ),
        key(
            "threads",
            Scalar(Whole(1)),
            "Redis, Valkey: I/O threads. KeyDB, Dragonfly, memcached: threads that serve. Of each node; by default as the product has it.",
        ),
        key("heap", Scalar(Size), "Cassandra, Kafka, OpenSearch: Java heap of each node; 512MiB by default."),
        key(
            "memory",
            Scalar(Size),
            "Stores that speak Redis' protocol, memcached: most memory for data, of each node. PostgreSQL: shared buffers. MariaDB: buffer pool. By default as the product has it.",
        ),
        key(
            "durability",
            Scalar(Word(&["synced", "buffered", "memory"])),
            "Whether an acknowledged write is on disk (`synced`), comes there later, or never; the strongest that the product has is the default.",
        ),
        key(
            "persistence",
            Of(&PERSISTENCE),
            "Redis, Valkey, KeyDB: how data are kept on disk, beyond `durability`.",
        ),
        key("url", Scalar(Text), "All but Cassandra and Kafka: where it is; then nothing is started."),
        key(
            "addresses",
            List(&Scalar(Text), 1),
            "Cassandra, Kafka: HOST:PORT of some of its nodes; then nothing is started.",
        ),
        key(
            "when",
            Scalar(Bool),
            "Whether it is there, with settings: `${store == 'cassandra'}`; else true.",
        ),
        key("ready within", Scalar(Duration), "Longest time until all of it is ready; 3m by default."),
    ],
    rule: Rule::AtMostOneOf(&["url", "addresses"]),
};

/// Files of stores that speak Redis' protocol.
static PERSISTENCE: Record = Record {
    what: "a persistence",
    schema: "persistence",
    about: "How a store of Redis' kind keeps its data on disk.",
    verbs: &[],
    keys: &[
        key(
            "append only",
            Scalar(Word(&AppendOnly::WORDS)),
            "When its append-only file is synced: before each answer, every second, when the operating system wants to (`no`); or there is none. By default as `durability` says.",
        ),
        key(
            "snapshots",
            Scalar(Text),
            "Pairs of seconds and changes after which a snapshot is written: `60 1000 300 10`; `off` by default.",
        ),
        key(
            "rewrite at",
            Scalar(Size),
            "Size from which the append-only file is rewritten; as the product has it by default, 64MiB.",
        ),
        key(
            "rewrite growth",
            Scalar(Text),
            "How much it grows until it is rewritten again: `100%`, as is the default of the product, or `off`.",
        ),
    ],
    rule: Rule::Free,
};
