//! What can go wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// What was being done: `read`, `create`, …
        action: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory is no run, or one whose run did not come to its end.
    #[error("{path}: no run.json in it: not a run directory, or its run was killed before it could finish", path = .0.display())]
    NotARun(PathBuf),
    /// The run in the directory has come to its end.
    #[error("{path}: this run has come to its end, so that there is nothing to go on with; `tidemark report {path}` shows it", path = .0.display())]
    Whole(PathBuf),
    /// The directory is of a search with several runs.
    #[error("{path}: a search for a limit, and no run: `tidemark report {path}` shows it, and its runs are in it", path = .0.display())]
    Search(PathBuf),
    /// The run in the directory has not come to its end yet.
    #[error("{path}: this run is still going on; it can be shown when it has ended", path = .0.display())]
    GoesOn(PathBuf),
    /// A file is there but does not hold what it should.
    #[error("{path}: {reason}", path = path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a later version.
    #[error("{path}: run directory of format {found}, this version reads up to {known}; use a newer tidemark", path = path.display())]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// What is known here.
        known: u32,
    },
    /// The directory asked for has something in it already.
    #[error("{path}: already exists and is not empty; runs are never overwritten, name another directory", path = .0.display())]
    Occupied(PathBuf),
    /// There is no run by that name.
    #[error("no run \"{run}\": {reason}")]
    NoSuchRun {
        /// As it was asked for.
        run: String,
        /// Where was looked.
        reason: String,
    },
    /// What was handed over does not fit the run.
    #[error("interval of thread {thread} names group {group}, but the run has {groups}")]
    UnknownGroup {
        /// Which thread handed it over.
        thread: u16,
        /// The group's index.
        group: u16,
        /// How many the run has.
        groups: usize,
    },
    /// What was handed over does not fit the run.
    #[error("interval of thread {thread} names metric {metric}, but the run has {metrics} of its own")]
    UnknownMetric {
        /// Which thread handed it over.
        thread: u16,
        /// The metric's index.
        metric: u16,
        /// How many the run has.
        metrics: usize,
    },
    /// What was handed over does not fit the run.
    #[error("interval of thread {thread} names label {label}, but the run has {labels}")]
    UnknownLabel {
        /// Which thread handed it over.
        thread: u16,
        /// The label's index.
        label: u16,
        /// How many labels there are.
        labels: usize,
    },
}

/// Says what was being done to which file when the system refused.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    let path = path.to_owned();
    move |source| RecordError::Io { action, path, source }
}

/// Says that a file does not hold what it should.
pub(crate) fn damaged(path: &Path, reason: impl ToString) -> RecordError {
    RecordError::Damaged { path: path.to_owned(), reason: reason.to_string() }
}
