//! Statements of SQL, and what cannot stand beside them.

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
use crate::plan::{RequestKind, TransactionPart};

pub(super) static SPOKEN: Spoken = Spoken {
    schemes: &["postgres", "postgresql"],
    is_ask: |ask| matches!(ask, RequestKind::Sql(_)),
    server: "PostgreSQL",
    requests: "statements of SQL",
    step: "sql: …",
    has_streams: false,
};

/// Statements after which a connection is another one than it was, or whose replies are no rows.
pub const REFUSED: [&str; 18] = [
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SAVEPOINT",
    "RELEASE",
    "PREPARE",
    "DEALLOCATE",
    "DISCARD",
    "SET",
    "RESET",
    "LISTEN",
    "UNLISTEN",
    "DECLARE",
    "FETCH",
    "COPY",
];
const WHY: &str = "requests share connections, and each is a transaction of its own; this statement changes the connection for \
                   others, or has no reply of rows. Several statements are one transaction with `transaction: NAME` and `steps`";

step! {
    /// Has PostgreSQL execute a statement, which is prepared once for each connection, and waits for its rows
    /// (docs/sql.md).
    KIND("sql", "a statement of SQL") [
        "sql": Scalar(Template) => "The statement: `SELECT v FROM t WHERE k = $1`. No variable stands in it."
    ] {
        WITH, LABEL, TAGS, AT, LEDGER, INSERT, WRITE, READ, TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) =>
            "What must hold of the reply: its status is 200, 204 where there are no rows, 500 where it is an error. \
             The body is a JSON array of objects, or the command tag; headers are `rows` and `sqlstate`.",
    }
    beside: check_beside,
    example: "
- sql: SELECT name FROM people WHERE id = $1
  with: [7]
  check: {status: 200, json: {'$[0].name': ann}}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    statement::compile(session, step, RequestKind::Sql, &REFUSED, WHY);
}

fn check_beside(whole: &Whole<'_>) {
    beside::check(whole, &SPOKEN);
    let begins = |ask: &RequestKind| matches!(ask, RequestKind::Sql(statement) if statement.part == TransactionPart::Begin);
    if whole.is_pipelined() && whole.requests.first_anywhere(begins).is_some() {
        let message =
            "a transaction has its connection to itself; leave out `pipeline`, and take more `connections`";
        whole.parts.limits.pipeline.refuse(whole.reader.sink, message);
    }
}
