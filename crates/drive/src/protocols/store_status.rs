//! Statuses of what a store replies, which has none of its own: those by which HTTP says the same.

use tidemark_wire::cql::Kind;

/// As it should be.
pub(crate) const OK: u16 = 200;
/// There is nothing: a miss, a nil, no rows where a statement could have had some.
pub(crate) const NO_CONTENT: u16 = 204;
/// Not done: what it depends on was otherwise.
pub(crate) const CONFLICT: u16 = 409;
/// An error, or a reply that holds one, as of a Redis transaction.
pub(crate) const SERVER_ERROR: u16 = 500;

/// The status of a reply to a statement of PostgreSQL or Cassandra, and the words for it.
pub(crate) fn of_statement(kind: Kind) -> (u16, &'static str) {
    match kind {
        Kind::Error => (SERVER_ERROR, "an error"),
        Kind::NoRows => (NO_CONTENT, "no rows"),
        Kind::Rows => (OK, "rows"),
        Kind::Done => (OK, "done"),
    }
}
