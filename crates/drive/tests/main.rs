//! The driver from outside. One binary: each would be linked with everything again.

mod addresses;
mod bounded;
mod connections;
mod encodings;
mod event_streams;
mod held_rows;
mod http2;
mod keys;
mod ledger;
mod loads;
mod lying;
mod models;
mod outcomes;
mod pipeline;
mod programs;
mod redirects;
mod rpc;
mod server_log;
mod sessions;
mod sharding;
mod support;
mod targets;
mod timestamps;
mod tls;
mod variables;
mod websocket;
