//! What a run that gave figures comes back as.

use std::path::PathBuf;

use tidemark_record::Manifest;
use tidemark_record::summary::Status;

use crate::script::EndedScript;

/// A run that gave figures.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Where it is.
    pub run_dir: PathBuf,
    /// What it came to.
    pub manifest: Manifest,
    /// Whether the user stopped it while it was verified.
    pub verify_stopped: bool,
    /// Why the trace is not whole, where it is not.
    pub trace_unwritten: Option<String>,
    /// The script that made requests, which may have something to say of the run.
    pub script: Option<EndedScript>,
}

impl Finished {
    /// The exit status that says what the run is worth.
    pub fn exit_status(&self) -> u8 {
        match self.manifest.summary.verdict.status {
            _ if self.manifest.interrupted || self.verify_stopped => crate::EXIT_INTERRUPTED,
            Status::Pass => crate::EXIT_PASS,
            Status::Fail => crate::EXIT_FAIL,
            Status::Invalid => crate::EXIT_INVALID,
        }
    }
}
