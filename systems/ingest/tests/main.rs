//! The intake from outside. One binary: each would be linked with everything again.

mod cassandra;
#[path = "../../service/tests/client/mod.rs"]
mod client;
mod contract;
mod ingest;
