//! Statuses of what a store replies, which has none of its own: those by which HTTP says the same.

/// As it should be.
pub(crate) const OK: u16 = 200;
/// There is nothing: a miss, a nil, no rows where a statement could have had some.
pub(crate) const NO_CONTENT: u16 = 204;
/// Not done: what it depends on was otherwise.
pub(crate) const CONFLICT: u16 = 409;
/// An error, or a reply that holds one, as of a Redis transaction.
pub(crate) const SERVER_ERROR: u16 = 500;
