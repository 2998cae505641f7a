//! Apache Cassandra.

mod cql;
mod read_back;
mod start;

#[cfg(test)]
pub use cql::{Connection, Consistency};
pub use read_back::Messages;
pub use start::Cassandra;
