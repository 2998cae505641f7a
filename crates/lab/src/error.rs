//! What can keep an experiment from giving figures, and the exit status that says so.

use std::path::{Path, PathBuf};

/// Why there are no figures. The text says what was wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// What was asked for cannot be done: a pin to a core that is not there, a directory that cannot be written.
    #[error("{0}")]
    Usage(String),
    /// The system could not be started, or never became ready.
    #[error("{0}")]
    Start(String),
    /// Nobody answers where the load was to go: every request would have failed.
    #[error("{0}")]
    Unreachable(String),
    /// The scenario's `prepare` failed: the system's data is not what the load needs.
    #[error("{0}")]
    Prepare(String),
    /// A script of the scenario did not return in time.
    #[error("{0}")]
    Script(String),
    /// The load could not be driven or the run not be written.
    #[error("{0}")]
    Measure(String),
    /// The user stopped it before its load began, or stopped it twice. Where the run is that holds what was recorded
    /// until then.
    #[error("stopped{}", kept(.0.as_deref()))]
    Interrupted(Option<PathBuf>),
}

fn kept(run_dir: Option<&Path>) -> String {
    match run_dir {
        Some(dir) => format!("; what was recorded until then: tidemark report {}", dir.display()),
        None => "; nothing was kept of this run".into(),
    }
}

impl LabError {
    /// The same with another text.
    pub(crate) fn in_words(self, of: impl Fn(&str) -> String) -> LabError {
        match self {
            LabError::Usage(text) => LabError::Usage(of(&text)),
            LabError::Start(text) => LabError::Start(of(&text)),
            LabError::Unreachable(text) => LabError::Unreachable(of(&text)),
            LabError::Prepare(text) => LabError::Prepare(of(&text)),
            LabError::Script(text) => LabError::Script(of(&text)),
            LabError::Measure(text) => LabError::Measure(of(&text)),
            LabError::Interrupted(dir) => LabError::Interrupted(dir),
        }
    }

    /// The exit status that says it: 1 unreachable or a script that failed, 2 wrong use, 3 no valid measurement, 130 stopped by the user.
    pub fn exit_status(&self) -> u8 {
        match self {
            LabError::Unreachable(_) | LabError::Script(_) => crate::EXIT_FAIL,
            LabError::Usage(_) => crate::EXIT_USAGE,
            LabError::Start(_) | LabError::Prepare(_) | LabError::Measure(_) => crate::EXIT_INVALID,
            LabError::Interrupted(_) => crate::EXIT_INTERRUPTED,
        }
    }
}
