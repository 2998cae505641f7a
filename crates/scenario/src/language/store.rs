//! Stores of a run, by name.

use crate::grammar::Scalar::{Bool, Duration, Size, Text, Whole, Word};
use crate::grammar::Shape::{List, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, Shape, key};
use crate::plan::Product;

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
        key("nodes", Scalar(Whole(1)), "Cassandra, Kafka: how many nodes it has, 1 to 3; one by default."),
        key("heap", Scalar(Size), "Cassandra, Kafka, OpenSearch: Java heap of each node; 512MiB by default."),
        key(
            "memory",
            Scalar(Size),
            "Redis: most memory for data. PostgreSQL: shared buffers. MariaDB: buffer pool. By default as the product has it.",
        ),
        key(
            "durability",
            Scalar(Word(&["synced", "buffered", "memory"])),
            "Whether an acknowledged write is on disk (`synced`, the default), comes there later, or (Redis) never.",
        ),
        key(
            "url",
            Scalar(Text),
            "Redis, PostgreSQL, MariaDB, OpenSearch: where it is; then nothing is started.",
        ),
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
