//! Statements of CQL, and what cannot stand beside them.

use super::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use super::beside::{self, Spoken};
use super::keys::{INSERT, READ, WRITE};
use super::ledger::LEDGER;
use super::measure::MEASURE;
use super::statement::WITH;
use super::{Step, statement};
use crate::compile::{Session, Whole};
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::{Record as Of, Scalar};
use crate::plan::RequestKind;

pub(super) static SPOKEN: Spoken = Spoken {
    schemes: &["cql"],
    is_ask: |ask| matches!(ask, RequestKind::Cql(_)),
    server: "Cassandra",
    requests: "statements of CQL",
    step: "cql: …",
    has_streams: false,
};

step! {
    /// Has Cassandra execute a statement, which is prepared once for each connection, and waits for its rows
    /// (docs/cql.md).
    KIND("cql", "a statement of CQL") [
        "cql": Scalar(Template) => "The statement: `SELECT v FROM t WHERE k = ?`. No variable stands in it."
    ] {
        WITH, LABEL, TAGS, AT, LEDGER, INSERT, WRITE, READ, TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) =>
            "What must hold of the reply: its status is 200, 204 where there are no rows, 500 where it is an error. \
             The body is a JSON array of objects.",
    }
    beside: check_beside,
    example: "
- cql: SELECT name FROM shop.people WHERE id = ?
  with: [7]
  check: {status: 200, json: {'$[0].name': ann}}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let why =
        "connections are shared, and this statement changes one for others; the keyspace stands in the URL";
    statement::compile(session, step, RequestKind::Cql, &["USE"], why);
}

fn check_beside(whole: &Whole<'_>) {
    beside::check(whole, &SPOKEN);
    if whole.scheme() == Some("cql") {
        let message = "a node answers the requests of a connection in any order, so that each connection carries one at a time; \
                       write more `connections`";
        whole.parts.limits.pipeline.refuse(whole.reader.sink, message);
    }
}
