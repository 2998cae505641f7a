//! What compares times and rates with what was, so that nothing may run beside it:
//! `cargo test --package tidemark --test measuring -- --test-threads 1`.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/watch.rs"]
mod watch;

mod demo;
mod driver_bound;
mod freeze;
mod truth;
mod verdicts;
