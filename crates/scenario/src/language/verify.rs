//! How everything is read back after the load.

use crate::grammar::Scalar::{Duration, JsonPath, Regex, Template, Text, Variable, Whole, Word};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, key, required};
use crate::plan::CassandraTable;

pub(super) static VERIFY: Record = Record {
    what: "a verify",
    schema: "verify",
    about: "How everything that the system holds is read back after the load, to be compared with the ledger.",
    verbs: &[],
    keys: &[
        key("settle", Scalar(Duration), "Wait before the first question; none by default."),
        key(
            "behind",
            Either(&[Scalar(Template), Of(&COUNT)]),
            "Path that answers with how many writes were taken and are not shown yet: asked until that is 0, first of all.",
        ),
        key(
            "count",
            Either(&[Scalar(Template), Of(&COUNT)]),
            "Path that answers with the number of what is held, compared with what is shown.",
        ),
        key("at", Scalar(Text), "Which of the `targets` is asked or read, where that is not the system."),
        key("contents", Of(&CONTENTS), "Where the contents are read through the system's API."),
        key(
            "store",
            Scalar(Word(&["embedded", "cassandra", "redis", "memcached", "postgres", "aerospike"])),
            "Directly in a store instead: embedded, a shipped system's own, by its directory after the system was stopped; \
             or cassandra, its table, by the store's own client; or the server that is driven, by its protocol: redis or memcached \
             by `keys`, postgres by `sql`, cassandra by `cql`, aerospike by `set`.",
        ),
        key(
            "keys",
            Scalar(Text),
            "Of redis and memcached: which keys are read; `*` stands for any characters, `?` for one; all by default.",
        ),
        key(
            "sql",
            Scalar(Text),
            "Of postgres: the statement whose rows are read; each of their values is a content.",
        ),
        key("cql", Scalar(Text), "The same of a cassandra that is driven."),
        key(
            "set",
            Scalar(Text),
            "Of aerospike: the set whose records are read; each value of a bin is a content. All sets by default.",
        ),
        key(
            "contact",
            Scalar(Text),
            "Of cassandra: HOST:PORT of nodes, with commas between; else as the system has it.",
        ),
        key("keyspace", Scalar(Text), "Of cassandra: where the table is; else as the system has it."),
        key(
            "consistency",
            Scalar(Word(&CassandraTable::CONSISTENCIES)),
            "Of cassandra: how many replicas acknowledged a write; else as the system has it.",
        ),
        key("headers", Map(Keys::Text("header names"), &Scalar(Text)), "Headers of every question."),
        key("parallel", Scalar(Whole(1)), "Connections that ask at once; 4 by default, at most 64."),
        key("within", Scalar(Duration), "Longest time for all of it; 10m by default."),
    ],
    rule: Rule::OneOf(&["contents", "store"]),
};

static COUNT: Record = Record {
    what: "a count",
    schema: "count",
    about: "A number within an answer.",
    verbs: &[],
    keys: &[
        required("GET", Scalar(Template), "Path, begun with a slash."),
        key("json", Scalar(JsonPath), "Where the number stands; without it the answer is the number."),
    ],
    rule: Rule::Free,
};

static CONTENTS: Record = Record {
    what: "a question for contents",
    schema: "contents",
    about: "Asked once, or for each row of a feeder, page by page.",
    verbs: &[],
    keys: &[
        key(
            "for",
            Either(&[Scalar(Text), Of(&NUMBERS)]),
            "A feeder: asked once for each different row, whose columns are variables; or numbers.",
        ),
        required(
            "GET",
            Either(&[Scalar(Template), List(&Scalar(Template), 1)]),
            "Path, begun with a slash; or several, all of which are asked.",
        ),
        required("items", Scalar(JsonPath), "Where contents stand in an answer, like $[*].payload."),
        key(
            "copies",
            Scalar(Regex),
            "What a system stores in several places: the first group of this in a content is how many; 1 where it is not found.",
        ),
        key("next", Of(&NEXT), "Where an answer names the next page; the last one names none."),
        key(
            "as",
            Scalar(Text),
            "Query parameter that hands it back; without it, it is the next path itself.",
        ),
    ],
    rule: Rule::Free,
};

static NUMBERS: Record = Record {
    what: "a range of numbers to ask for",
    schema: "numbers",
    about: "Asked once for each whole number from one to another that the system tells.",
    verbs: &[],
    keys: &[
        required("number", Scalar(Variable), "The variable that has it."),
        key("from", Scalar(Whole(0)), "The first; 1 by default."),
        required("to", Either(&[Scalar(Template), Of(&COUNT)]), "Path that answers with the last."),
    ],
    rule: Rule::Free,
};

static NEXT: Record = Record {
    what: "a next page",
    schema: "nextPage",
    about: "Where an answer names the next page.",
    verbs: &[],
    keys: &[
        key("header", Scalar(Text), "In this header."),
        key("json", Scalar(JsonPath), "In the answer's JSON."),
    ],
    rule: Rule::OneOf(&["header", "json"]),
};
