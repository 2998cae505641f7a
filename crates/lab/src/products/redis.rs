//! Redis, and what speaks its protocol: Valkey, KeyDB, Dragonfly, Garnet.

mod cluster;
mod figures;
mod flavour;
mod persistence;
mod read_back;
pub mod resp;
mod start;
#[cfg(test)]
mod tests_fake;

pub use figures::Redis;
pub use flavour::{DRAGONFLY, GARNET, KEYDB, REDIS, VALKEY};
pub use read_back::read;
#[cfg(test)]
pub use start::{Connection, connect};
