//! The news feed from outside. One binary: each would be linked with everything again.

#[path = "../../service/tests/client/mod.rs"]
mod client;
mod contract;
mod feed;
#[cfg(feature = "graphql")]
mod graphql;
mod operations;
mod page;
mod people_in;
