//! Searches in virtual time, against what is known.

mod anomalies;
mod coverage;
mod kept;
#[allow(dead_code, reason = "the example that makes the table uses the rest")]
mod queues;
mod users;
mod ways;
