//! The service itself: one definition, from which all ways to call it come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidemark_rpc::service;
use tidemark_service::worker_index;

/// A trade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trade {
    /// What is traded.
    pub name: String,
    /// How much of it.
    pub amount: i64,
}

/// Takes trades and counts them.
#[service(name = "trade")]
pub trait Trades {
    /// Takes a trade.
    #[put("/trade")]
    async fn trade(&self, #[body] trade: Trade) -> bool;

    /// How many trades there were since the service started.
    #[get("/count")]
    async fn count(&self) -> u64;
}

/// Counters that workers have to themselves; workers beyond that share.
const COUNTERS: usize = 64;

/// Counts trades, for each worker apart, so that they do not wait for each other.
#[derive(Debug)]
pub(crate) struct Counting([CachePadded<AtomicU64>; COUNTERS]);

impl Counting {
    pub(crate) fn new() -> Self {
        Counting([const { CachePadded::new(AtomicU64::new(0)) }; COUNTERS])
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }
}

impl Trades for Arc<Counting> {
    async fn trade(&self, _trade: Trade) -> bool {
        self.0[worker_index() % COUNTERS].fetch_add(1, Ordering::Relaxed);
        true
    }

    async fn count(&self) -> u64 {
        self.sum()
    }
}
