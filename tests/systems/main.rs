//! Against systems that others made, and our own from outside: what starts at once.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/secured.rs"]
mod secured;
#[cfg(feature = "fleet")]
#[path = "../../crates/tidemark/tests/program/server.rs"]
#[allow(dead_code, reason = "it has its own tests where it is")]
mod server;
#[cfg(feature = "fleet")]
#[path = "../../crates/tidemark/tests/program/store.rs"]
#[allow(dead_code, reason = "it has its own tests where it is")]
mod store;

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
