//! Flags of a trace, for every verb that drives something.

use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_lab::TraceOptions;

use crate::failure::Failure;
use crate::results::is_stdout;

/// Which requests are kept as they were.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Debugging")]
pub struct TraceArguments {
    /// Write one request in 100, and those that failed, with their answers and without secrets, to this HAR file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// With --trace: one request in N, beside those that failed; 0 for these alone [default: 100; all with --once]
    #[arg(long, value_name = "N", requires = "trace")]
    pub trace_every: Option<u64>,
}

/// Fails where a trace is not whole, as with every other result.
pub fn whole(unwritten: Option<&str>) -> Result<(), Failure> {
    unwritten.map_or(Ok(()), |reason| Err(Failure::unwritable(reason)))
}

impl TraceArguments {
    /// What is asked for. It is written while the load is on, as the view is shown.
    ///
    /// # Errors
    /// If both want standard output.
    pub fn options(&self, tui: bool) -> Result<Option<TraceOptions>, Failure> {
        let Some(file) = &self.trace else { return Ok(None) };
        if tui && self.takes_stdout() {
            return Err(Failure::usage(
                "--trace and --tui both want standard output; give the trace a file: --trace FILE",
            ));
        }
        let file = Some(file.clone()).filter(|file| !is_stdout(file));
        Ok(Some(TraceOptions { file, every: self.trace_every }))
    }

    /// The flag and its file, for whoever checks all outputs together.
    pub fn output(&self) -> Option<(&'static str, &Path)> {
        self.trace.as_deref().map(|file| ("--trace", file))
    }

    /// Whether it has standard output for itself.
    pub fn takes_stdout(&self) -> bool {
        self.trace.as_deref().is_some_and(is_stdout)
    }
}
