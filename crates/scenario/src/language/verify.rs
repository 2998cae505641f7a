//! How everything is read back after the load.

use crate::grammar::kinds::{Either, JsonPath, Regex, Template, Text, Time, Variable, Whole, nodes};
use crate::grammar::record::record;
use crate::grammar::{Keys, Rule, Scalar, Shape};
use crate::plan::CassandraTable;

/// A path that answers with a number, or says where in its answer that stands.
pub(crate) type Counted<'n> = Either<Template, Count<'n>>;

nodes! {
    /// A store that is read past its system, or the server that is driven.
    pub(crate) StoreRead =
        Shape::Scalar(Scalar::Word(&["embedded", "cassandra", "redis", "memcached", "postgres", "aerospike"]));
    /// How many replicas acknowledged a write.
    pub(crate) Consistency = Shape::Scalar(Scalar::Word(&CassandraTable::CONSISTENCIES));
    /// A path, or several.
    pub(crate) Paths = Shape::Either(&[
        Shape::Scalar(Scalar::Template),
        Shape::List(&Shape::Scalar(Scalar::Template), 1),
    ]);
    /// Headers of questions.
    pub(crate) Headers = Shape::Map(Keys::Text("header names"), &Shape::Scalar(Scalar::Text));
}

record! {
    /// How everything that the system holds is read back after the load, to be compared with the ledger.
    pub(crate) struct Verify("verify", "a verify", Rule::OneOf(&["contents", "store"])) {
        settle: Time = "Wait before the first question; none by default.",
        behind: Counted<'n> =
            "Path that answers with how many writes were taken and are not shown yet: asked until that is 0, first \
             of all.",
        count: Counted<'n> =
            "Path that answers with the number of what is held, compared with what is shown.",
        at: Text = "Which of the `targets` is asked or read, where that is not the system.",
        contents: Contents<'n> = "Where the contents are read through the system's API.",
        store: StoreRead =
            "Directly in a store instead: embedded, a shipped system's own, by its directory after the system was \
             stopped; or cassandra, its table, by the store's own client; or the server that is driven, by its \
             protocol: redis or memcached by `keys`, postgres by `sql`, cassandra by `cql`, aerospike by `set`.",
        keys: Text =
            "Of redis and memcached: which keys are read; `*` stands for any characters, `?` for one; all by \
             default.",
        sql: Text = "Of postgres: the statement whose rows are read; each of their values is a content.",
        cql: Text = "The same of a cassandra that is driven.",
        set: Text =
            "Of aerospike: the set whose records are read; each value of a bin is a content. All sets by default.",
        contact: Text = "Of cassandra: HOST:PORT of nodes, with commas between; else as the system has it.",
        keyspace: Text = "Of cassandra: where the table is; else as the system has it.",
        consistency: Consistency =
            "Of cassandra: how many replicas acknowledged a write; else as the system has it.",
        headers: Headers = "Headers of every question.",
        parallel: Whole<1> = "Connections that ask at once; 4 by default, at most 64.",
        within: Time = "Longest time for all of it; 10m by default.",
    }
}

record! {
    /// A number within an answer.
    pub(crate) struct Count("count", "a count") {
        path (required): Template as "GET" = "Path, begun with a slash.",
        json: JsonPath = "Where the number stands; without it the answer is the number.",
    }
}

record! {
    /// Asked once, or for each row of a feeder, page by page.
    pub(crate) struct Contents("contents", "a question for contents") {
        each: Either<Text, Numbers<'n>> as "for" =
            "A feeder: asked once for each different row, whose columns are variables; or numbers.",
        paths (required): Paths as "GET" =
            "Path, begun with a slash; or several, all of which are asked.",
        items (required): JsonPath = "Where contents stand in an answer, like $[*].payload.",
        copies: Regex =
            "What a system stores in several places: the first group of this in a content is how many; 1 where it is \
             not found.",
        next: Next<'n> = "Where an answer names the next page; the last one names none.",
        parameter: Text as "as" = "Query parameter that hands it back; without it, it is the next path itself.",
    }
}

record! {
    /// Asked once for each whole number from one to another that the system tells.
    pub(crate) struct Numbers("numbers", "a range of numbers to ask for") {
        number (required): Variable = "The variable that has it.",
        from: Whole<0> = "The first; 1 by default.",
        to (required): Counted<'n> = "Path that answers with the last.",
    }
}

record! {
    /// Where an answer names the next page.
    pub(crate) struct Next("nextPage", "a next page", Rule::OneOf(&["header", "json"])) {
        header: Text = "In this header.",
        json: JsonPath = "In the answer's JSON.",
    }
}
