//! A load generator: how it is told what to do, and how what it says is read.

use std::path::{Path, PathBuf};

use crate::job::Job;
use crate::process::Used;

/// A load generator.
pub trait Tool {
    /// Its name in the tables.
    fn name(&self) -> &'static str;

    /// Its program.
    fn program(&self) -> &'static str {
        self.name()
    }

    /// Its arguments for this job; none where it cannot do that. Files that it reads are written to the job's directory.
    fn arguments(&self, job: &Job) -> std::io::Result<Option<Vec<String>>>;

    /// What it said.
    fn figures(&self, job: &Job, used: &Used) -> Figures;

    /// What turns its output into a report, with the file that its output goes to; most need nothing.
    fn report(&self, _job: &Job) -> Option<Vec<String>> {
        None
    }

    /// Most connections that it is asked for: beyond, it takes gigabytes or minutes.
    fn most_connections(&self) -> usize {
        usize::MAX
    }
}

/// What a tool says of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Requests a second.
    pub per_s: Option<f64>,
    /// Latencies, microseconds.
    pub p50_us: Option<f64>,
    /// Of a hundred, ninety-nine are not longer.
    pub p99_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// Requests that failed.
    pub errors: Option<f64>,
    /// What else it says, in a word or two.
    pub remark: String,
}

/// Where a tool's program is.
pub fn find(name: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if name == env!("CARGO_PKG_NAME") {
        return std::env::current_exe().ok();
    }
    if name == "tidemark" {
        // beside this program: built together
        let own = std::env::current_exe().ok()?.with_file_name("tidemark");
        return variable("TIDEMARK").or(Some(own)).filter(|file| file.is_file());
    }
    let place = variable("TIDEMARK_PEERS").or_else(|| {
        let cache =
            variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(cache.join("tidemark-bench"))
    });
    let own = place.map(|place| place.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    own.into_iter()
        .chain(std::env::split_paths(&path))
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

/// Words as a command.
pub fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
