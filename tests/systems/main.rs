//! Against systems that others made, and our own from outside: what starts at once.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/secured.rs"]
mod secured;

mod aerospike;
mod cube;
#[cfg(feature = "fleet")]
mod fleet;
mod many_connections;
mod memcached;
mod peers;
mod postgres;
mod redis;
mod sinks;
mod soak;
mod targets;
mod trade;
mod tsung;
mod tsung_plan;
