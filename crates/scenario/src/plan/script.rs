//! Scripts of other load generators.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of a script.
pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// The tool whose scripts it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptTool {
    /// wrk and wrk2: Lua.
    Wrk,
    /// k6: JavaScript or TypeScript.
    K6,
}

impl ScriptTool {
    /// By how its files end.
    pub fn of(extension: &str) -> Option<ScriptTool> {
        match extension {
            "lua" => Some(ScriptTool::Wrk),
            "js" | "mjs" | "ts" => Some(ScriptTool::K6),
            _ => None,
        }
    }
}

/// Bounds of scripts and of code, where the scenario gives them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptBounds {
    /// Most memory of a script's user, or of the code of a driving thread; bytes.
    pub memory_bytes: Option<usize>,
    /// Longest time of a script's user without waiting, or of a step's code.
    pub step: Option<Duration>,
}

/// How long iterations go on that began in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// From the end of their load.
    pub stop: Duration,
    /// From when their user is to leave, where that is before.
    pub ramp_down: Duration,
}

/// A script that makes a session's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptPlan {
    /// Whose script it is.
    pub tool: ScriptTool,
    /// Its file, as the scenario names it.
    pub file: String,
    /// Where that is.
    pub path: PathBuf,
    /// What stands in it.
    pub source: Arc<[u8]>,
    /// What `init` is given behind the URL; of k6 what `__ENV` has besides, as `NAME=VALUE`.
    pub args: Vec<String>,
    /// Path and query behind the system's URL that it finds.
    pub route: String,
    /// Headers that it finds.
    pub headers: Vec<(String, String)>,
    /// Longest time for an answer.
    pub timeout: Duration,
    /// Index into the plan's labels: what its requests are counted as, unless they have one of their own.
    pub label: u16,
    /// Of k6: the exported function that is an iteration.
    pub exec: String,
    /// Of k6: how many iterations all users make together, where that is fixed.
    pub iterations: Option<u64>,
    /// Of k6: how long iterations may go on; no bound of their own where none is given.
    pub grace: Option<Grace>,
    /// Of k6: what each user may take.
    pub bounds: ScriptBounds,
    /// Of k6: labels of requests by their `name` tag, or method and path.
    pub labels: Vec<(String, u16)>,
}
