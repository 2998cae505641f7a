//! What can go wrong in a store, said so that a person knows what to do.

use std::path::PathBuf;
use std::sync::Arc;

use crate::durability::Durability;

/// Why a store could not be opened, read or written.
///
/// Cheap to clone: one failed group of writes answers all its waiters with the same reason.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process (or another store in this one) has the directory open.
    #[error("the store directory {} is in use; stop the process that uses it, or choose another directory", dir.display())]
    Locked {
        /// The directory that was asked for.
        dir: PathBuf,
    },
    /// The directory cannot be created, read or written.
    #[error("cannot open the store directory {}: {reason}; check that it can be created and written", dir.display())]
    Open {
        /// The directory that was asked for.
        dir: PathBuf,
        /// What the operating system or the storage engine said.
        reason: Arc<str>,
    },
    /// What was read back is not what this store writes.
    #[error("the store directory {} holds unreadable data: {reason}; restore it from a copy, or choose an empty directory", dir.display())]
    Unreadable {
        /// The directory that was asked for.
        dir: PathBuf,
        /// Which record, and what is wrong with it.
        reason: Arc<str>,
    },
    /// Another version of this program wrote it.
    #[error("the store directory {} cannot be read: {reason}; use the version that wrote it, or choose an empty directory", dir.display())]
    Format {
        /// The directory that was asked for.
        dir: PathBuf,
        /// Which format it has.
        reason: Arc<str>,
    },
    /// A value, or an option, that the store does not take. Nothing was written.
    #[error("{what} cannot be used: {reason}")]
    Invalid {
        /// Which part of the value.
        what: &'static str,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// Writing failed. This write may or may not be on disk: it was not acknowledged.
    #[error(
        "writing to the store failed: {reason}; the store takes no more writes, restart it when the disk is well"
    )]
    Write {
        /// What the operating system or the storage engine said.
        reason: Arc<str>,
    },
    /// An earlier write failed, so this one was refused. Nothing was written.
    #[error("the store takes no more writes since one failed: {reason}; restart it when the disk is well")]
    Stopped {
        /// The failure that stopped the store.
        reason: Arc<str>,
    },
    /// There is too much to do at the moment, so this write was refused. Nothing was written; it may be tried again.
    #[error("the store is busy: {what}; try again later")]
    Busy {
        /// What there is too much of.
        what: &'static str,
    },
    /// The servers of the store cannot be reached.
    #[error("cannot reach the store at {place}: {reason}; check that it runs there and takes connections")]
    Unreachable {
        /// Where it was looked for.
        place: Arc<str>,
        /// What went wrong.
        reason: Arc<str>,
    },
    /// The servers of the store are there, but not what was to be read.
    #[error("there is no {what} in the store at {place}")]
    Missing {
        /// Where it was looked for.
        place: Arc<str>,
        /// What is not there.
        what: Arc<str>,
    },
    /// What is at this address cannot be this store: it holds other data, is of another version, or is set up wrongly.
    #[error("the store at {place} cannot be used: {reason}")]
    Unusable {
        /// Where it is.
        place: Arc<str>,
        /// Why, and what to do.
        reason: Arc<str>,
    },
    /// What the servers of the store acknowledge is worth less than was asked for.
    #[error("what the store at {place} acknowledges is {given}, not {wanted}; ask for {given}, or {remedy}")]
    LessDurable {
        /// Where it is.
        place: Arc<str>,
        /// What it is worth.
        given: Durability,
        /// What was asked for.
        wanted: Durability,
        /// What would make it worth that.
        remedy: &'static str,
    },
    /// The servers of the store did not do what was asked, or did not say so in time. A write may have been kept or
    /// not: it was not acknowledged. It may be tried again.
    #[error("the store did not confirm: {reason}; try again later")]
    NoAnswer {
        /// What they said, or that they did not.
        reason: Arc<str>,
    },
    /// The store is closing. Nothing is known about this write.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn invalid(what: &'static str, reason: impl Into<Arc<str>>) -> Self {
        StoreError::Invalid { what, reason: reason.into() }
    }

    /// A question, to servers as a rule, that failed in whatever way.
    #[cfg(any(
        feature = "cassandra",
        feature = "kafka",
        feature = "opensearch",
        feature = "mariadb",
        feature = "postgres",
        feature = "redis",
        feature = "tantivy"
    ))]
    pub(crate) fn no_answer(error: impl std::fmt::Display) -> Self {
        StoreError::NoAnswer { reason: error.to_string().into() }
    }

    /// Whether it may be otherwise in a moment.
    #[cfg(any(
        feature = "cassandra",
        feature = "opensearch",
        feature = "mariadb",
        feature = "postgres",
        feature = "redis"
    ))]
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, StoreError::Unreachable { .. } | StoreError::NoAnswer { .. })
    }
}
