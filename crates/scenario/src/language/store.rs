//! Stores that are started for the run.

use crate::grammar::Scalar::{Bool, Duration, Size, Whole, Word};
use crate::grammar::Shape::{Record as Of, Scalar};
use crate::grammar::{Key, Record, Rule, key};
use crate::plan::Product;

const WHEN: Key =
    key("when", Scalar(Bool), "Whether it is started, with settings: `${store == 'cassandra'}`; else true.");
const NODES: Key = key("nodes", Scalar(Whole(1)), "How many nodes it has, 1 to 3; one by default.");
const HEAP: Key = key("heap", Scalar(Size), "Java heap of each node; 512MiB by default.");
const DURABILITY: Key = key(
    "durability",
    Scalar(Word(&["synced", "buffered"])),
    "Whether an acknowledged write is on disk (`synced`, the default) or with the operating system.",
);
const READY_WITHIN: Key =
    key("ready within", Scalar(Duration), "Longest time until all nodes are ready; 3m by default.");

/// What may stand under `stores`.
pub(crate) static STORES: Record = Record {
    what: "the stores",
    schema: "stores",
    about: "Stores started before the system and stopped after it.",
    verbs: &[],
    keys: &[
        key("cassandra", Of(&CASSANDRA), "Apache Cassandra; needs Java 17 and Maven, and is fetched once."),
        key("kafka", Of(&KAFKA), "Apache Kafka; needs Java 17 and Maven, and is fetched once."),
    ],
    rule: Rule::Free,
};

static CASSANDRA: Record = Record {
    what: "a Cassandra",
    schema: "cassandra",
    about: "Apache Cassandra on this machine; the system gets its addresses as the setting `contact`.",
    verbs: &[],
    keys: &[
        key(
            "version",
            Scalar(Word(Product::Cassandra.versions())),
            "Line of versions, `5.0` (default) or `4.1`.",
        ),
        NODES,
        HEAP,
        DURABILITY,
        WHEN,
        READY_WITHIN,
    ],
    rule: Rule::Free,
};

static KAFKA: Record = Record {
    what: "a Kafka",
    schema: "kafka",
    about: "Apache Kafka on this machine; the system gets its addresses as the setting `brokers`.",
    verbs: &[],
    keys: &[
        key("version", Scalar(Word(Product::Kafka.versions())), "Line of versions, `4.3`."),
        NODES,
        HEAP,
        DURABILITY,
        WHEN,
        READY_WITHIN,
    ],
    rule: Rule::Free,
};
