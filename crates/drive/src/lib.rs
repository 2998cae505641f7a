//! The load engine: load models, sessions, connections, threads.
//!
//! [`start`] begins a drive on its own threads; each hands over a [`tidemark_record::ThreadInterval`] a second.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Instant, SystemTime};

use tidemark_record::ThreadInterval;
use tidemark_scenario::{Plan, Shared};

/// Where the requests go.
#[derive(Debug, Clone)]
pub struct Target {
    /// The resolved address.
    pub address: SocketAddr,
    /// The `Host` header.
    pub authority: String,
    /// Put in front of every path; empty, or begins with `/` and does not end with it.
    pub base_path: String,
}

/// How a drive is carried out.
#[derive(Debug, Clone)]
pub struct DriveOptions {
    /// Number of driving threads, at least 1.
    pub threads: usize,
    /// Cores to pin the threads to, one after the other; empty for none.
    pub cores: Vec<usize>,
    /// Seed of the random numbers; thread `i` draws from its own stream of it.
    pub seed: u64,
    /// Where to.
    pub target: Target,
    /// The run's zero on the monotonic clock, shared with whoever watches.
    pub epoch: Instant,
    /// The same moment on the wall clock: the one anchor.
    pub wall_epoch: SystemTime,
}
