//! Scripts of other load generators.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of a script.
pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// A script that makes a session's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptPlan {
    /// Its file, as the scenario names it.
    pub file: String,
    /// Where that is.
    pub path: PathBuf,
    /// What stands in it.
    pub source: Arc<[u8]>,
    /// What `init` is given behind the URL.
    pub args: Vec<String>,
    /// Path and query behind the system's URL that it finds.
    pub route: String,
    /// Headers that it finds.
    pub headers: Vec<(String, String)>,
    /// Longest time for an answer.
    pub timeout: Duration,
    /// Index into the plan's labels: what its requests are counted as.
    pub label: u16,
}
