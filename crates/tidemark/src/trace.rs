//! Flags of a trace, for every verb that drives something.

use std::path::PathBuf;

use clap::Args;
use tidemark_lab::TraceOptions;

use crate::failure::Failure;
use crate::results::is_stdout;

/// Which requests are kept as they were.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Debugging")]
pub struct TraceArguments {
    /// Write one request in 100, and those that failed, with their answers and without secrets, to this HAR file
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
    /// What is asked for.
    ///
    /// # Errors
    /// If it cannot be written there.
    pub fn options(&self) -> Result<Option<TraceOptions>, Failure> {
        let Some(file) = &self.trace else { return Ok(None) };
        if is_stdout(file) {
            return Err(Failure::usage("--trace is written while the load is on; name a file"));
        }
        if file.is_dir() {
            return Err(Failure::usage(format!("--trace: {} is a folder; name a file", file.display())));
        }
        Ok(Some(TraceOptions { file: file.clone(), every: self.trace_every }))
    }
}
