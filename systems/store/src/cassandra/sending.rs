//! Requests take turns: so many are sent and not answered at most, and what went wrong with them is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::kept::Common;
use super::session::nodes;
use crate::error::StoreError;
use crate::metrics::OwnMetric;

/// Who waits for a turn, and what is counted.
pub(super) struct Sending {
    common: Arc<Common>,
    turns: Semaphore,
    timeouts: AtomicU64,
    unreachable: AtomicU64,
}

impl Sending {
    pub(super) fn new(common: Arc<Common>) -> Self {
        let turns = Semaphore::new(common.options.in_flight);
        Sending { common, turns, timeouts: AtomicU64::new(0), unreachable: AtomicU64::new(0) }
    }

    /// Waits until a write may be sent.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        if let Ok(turn) = self.turns.try_acquire() {
            return Ok(turn);
        }
        let timeout = self.common.options.timeout;
        match tokio::time::timeout(timeout, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                self.timeouts.fetch_add(1, Ordering::Relaxed);
                Err(StoreError::no_answer(format!(
                    "it was not this write's turn for {timeout:?}; it was not sent"
                )))
            }
        }
    }

    /// Counts a statement that failed.
    pub(super) fn failed(&self, error: &ExecutionError) -> StoreError {
        let counter = match error {
            ExecutionError::RequestTimeout(_) => Some(&self.timeouts),
            ExecutionError::ConnectionPoolError(_) | ExecutionError::EmptyPlan => Some(&self.unreachable),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        StoreError::of_statement(error)
    }

    /// What every store in Cassandra counts.
    pub(super) fn metrics(&self, session: &Session) -> Vec<OwnMetric> {
        let counter = OwnMetric::counter;
        let gauge = OwnMetric::gauge;
        let (nodes, connected) = nodes(session);
        let Common { options, attempts, relinks } = &*self.common;
        let in_flight = options.in_flight - self.turns.available_permits();
        vec![
            gauge("cassandra_in_flight", "Writes sent and not answered", in_flight as u64),
            gauge("cassandra_nodes", "Nodes of the cluster", nodes),
            gauge("cassandra_nodes_connected", "Nodes that there is a connection to", connected),
            counter(
                "cassandra_relinks",
                "Times that a session was made anew, since no node had a connection",
                relinks,
            ),
            counter("cassandra_retries", "Attempts after the first", &attempts.retries),
            counter("cassandra_timeouts", "Requests without an answer in time", &self.timeouts),
            counter("cassandra_unreachable", "Requests that found no node to send to", &self.unreachable),
            counter(
                "cassandra_replica_timeouts",
                "Answers that too few replicas confirmed in time",
                &attempts.replica_timeouts,
            ),
            counter(
                "cassandra_unavailable",
                "Answers that too few replicas are there",
                &attempts.unavailable,
            ),
            counter("cassandra_overloaded", "Answers that a node has too much to do", &attempts.overloaded),
            counter("cassandra_connections_broken", "Attempts whose connection broke", &attempts.broken),
        ]
    }
}
