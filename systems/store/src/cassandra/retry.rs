//! When a request is sent again.
//!
//! Every statement of this store can be sent twice: what it writes carries the time that was taken before the first
//! attempt, so a late copy can neither undo nor reorder anything. What bounds the retries is use: a node that is
//! asked again right after it said that it is overloaded is worse off than before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scylla::errors::{DbError, RequestAttemptError};
use scylla::policies::retry::{RequestInfo, RetryDecision, RetryPolicy, RetrySession};

/// At most so many attempts after the first.
pub const RETRIES_MAX: u32 = 3;

/// Counts of what went wrong on the way, each attempt by itself.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Attempts after a first one.
    pub(super) retries: AtomicU64,
    /// Answers that too few replicas confirmed in time.
    pub(super) replica_timeouts: AtomicU64,
    /// Answers that too few replicas are there.
    pub(super) unavailable: AtomicU64,
    /// Answers that a node has too much to do.
    pub(super) overloaded: AtomicU64,
    /// Connections that broke before the answer.
    pub(super) broken: AtomicU64,
}

/// Decides for all requests of a session, and counts.
#[derive(Debug)]
pub(super) struct BoundedRetries(pub(super) Arc<Attempts>);

impl RetryPolicy for BoundedRetries {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(OfOne { attempts: self.0.clone(), retries: 0 })
    }
}

/// The retries of one request.
struct OfOne {
    attempts: Arc<Attempts>,
    retries: u32,
}

impl RetrySession for OfOne {
    fn decide_should_retry(&mut self, request: RequestInfo) -> RetryDecision {
        note(&self.attempts, request.error);
        if !request.is_idempotent || self.retries >= RETRIES_MAX {
            return RetryDecision::DontRetry;
        }
        let decision = decide(request.error, self.retries);
        if decision != RetryDecision::DontRetry {
            self.retries += 1;
            self.attempts.retries.fetch_add(1, Ordering::Relaxed);
        }
        decision
    }

    fn reset(&mut self) {
        self.retries = 0;
    }
}

fn note(attempts: &Attempts, error: &RequestAttemptError) {
    let counter = match error {
        RequestAttemptError::BrokenConnectionError(_) => &attempts.broken,
        RequestAttemptError::DbError(DbError::WriteTimeout { .. } | DbError::ReadTimeout { .. }, _) => {
            &attempts.replica_timeouts
        }
        RequestAttemptError::DbError(DbError::Unavailable { .. }, _) => &attempts.unavailable,
        RequestAttemptError::DbError(DbError::Overloaded, _) => &attempts.overloaded,
        _ => return,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What to do after an error, when `retries` were made already.
fn decide(error: &RequestAttemptError, retries: u32) -> RetryDecision {
    match error {
        // This node or this way to it is no good; another may be.
        RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId => {
            RetryDecision::RetryNextTarget(None)
        }
        RequestAttemptError::DbError(error, _) => match error {
            DbError::Overloaded
            | DbError::ServerError
            | DbError::TruncateError
            | DbError::IsBootstrapping
            | DbError::WriteFailure { .. }
            | DbError::ReadFailure { .. } => RetryDecision::RetryNextTarget(None),
            // Not enough replicas, as this node sees it: one other opinion.
            DbError::Unavailable { .. } if retries == 0 => RetryDecision::RetryNextTarget(None),
            // By now the node has learnt which of the replicas do not answer.
            DbError::WriteTimeout { .. } | DbError::ReadTimeout { .. } if retries == 0 => {
                RetryDecision::RetrySameTarget(None)
            }
            _ => RetryDecision::DontRetry,
        },
        _ => RetryDecision::DontRetry,
    }
}

#[cfg(test)]
mod tests {
    use scylla::errors::WriteType;
    use scylla::statement::Consistency;

    use super::*;

    fn said(error: DbError) -> RequestAttemptError {
        RequestAttemptError::DbError(error, String::new())
    }

    fn write_timeout() -> RequestAttemptError {
        said(DbError::WriteTimeout {
            consistency: Consistency::Quorum,
            received: 1,
            required: 2,
            write_type: WriteType::Simple,
        })
    }

    fn unavailable() -> RequestAttemptError {
        said(DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 })
    }

    #[test]
    fn a_replica_that_was_late_is_asked_once_more() {
        assert_eq!(decide(&write_timeout(), 0), RetryDecision::RetrySameTarget(None));
        assert_eq!(decide(&write_timeout(), 1), RetryDecision::DontRetry);
    }

    #[test]
    fn too_few_replicas_are_believed_the_second_time() {
        assert_eq!(decide(&unavailable(), 0), RetryDecision::RetryNextTarget(None));
        assert_eq!(decide(&unavailable(), 1), RetryDecision::DontRetry);
    }

    #[test]
    fn another_node_is_tried_where_this_one_is_at_fault_and_none_where_the_request_is() {
        for error in [DbError::Overloaded, DbError::ServerError, DbError::IsBootstrapping] {
            assert_eq!(decide(&said(error), 0), RetryDecision::RetryNextTarget(None));
        }
        assert_eq!(
            decide(&RequestAttemptError::UnableToAllocStreamId, 2),
            RetryDecision::RetryNextTarget(None)
        );
        for error in [DbError::SyntaxError, DbError::Invalid, DbError::Unauthorized, DbError::ConfigError] {
            assert_eq!(decide(&said(error), 0), RetryDecision::DontRetry);
        }
    }

    #[test]
    fn what_went_wrong_is_counted_by_kind() {
        let attempts = Attempts::default();
        for error in [write_timeout(), unavailable(), said(DbError::Overloaded), said(DbError::Invalid)] {
            note(&attempts, &error);
        }
        let counts =
            [&attempts.replica_timeouts, &attempts.unavailable, &attempts.overloaded, &attempts.broken];
        assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1, 1, 1, 0]);
    }
}
