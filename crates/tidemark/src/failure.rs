//! What ends a verb without a result.

use tidemark_import::ImportError;
use tidemark_lab::{EXIT_INVALID, EXIT_USAGE, LabError};

/// Exit status where a result was there but could not be written (`EX_IOERR` of sysexits.h).
pub const EXIT_UNWRITABLE: u8 = 74;

/// What was wrong, where and what to do, and the exit status that says it.
#[derive(Debug)]
pub struct Failure {
    /// For standard error.
    pub message: String,
    /// See the table in `main.rs`.
    pub status: u8,
}

impl Failure {
    /// Wrong use, or input that cannot be read.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: EXIT_USAGE }
    }

    /// There is a result, but it cannot be written to where it should go.
    pub fn unwritable(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: EXIT_UNWRITABLE }
    }

    /// The work itself could not be done.
    pub fn broken(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: EXIT_INVALID }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Failure::usage(error.to_string())
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Failure { message: error.to_string(), status: error.exit_status() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
