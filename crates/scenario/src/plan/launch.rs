//! How a system of one's own is started, and how it is known to be ready.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{System, SystemOrigin};

/// What stands for the number of an instance in whatever a command is told, from 1.
pub const INSTANCE: &str = "{instance}";
/// What stands for the port in whatever a command is told.
pub const PORT: &str = "{port}";
/// Status of an answer that says so, where a scenario does not name another.
pub const READY_STATUS: (u16, u16) = (200, 200);

/// What a command has around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Variables of its environment, beside those of this process.
    pub env: BTreeMap<String, String>,
    /// The folder that it is started in; this process's own if there is none.
    pub cwd: Option<PathBuf>,
    /// The port that it always listens on; a free one if there is none.
    pub port: Option<u16>,
    /// What is run to its end before it is started, in order.
    pub before: Vec<Hook>,
    /// What is run to its end once it was stopped, in order.
    pub after: Vec<Hook>,
}

/// A command that comes to an end by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Its words.
    pub command: Vec<String>,
    /// Longest time until its end.
    pub within: Duration,
}

/// When a system is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ready {
    /// Once it accepts connections.
    #[default]
    Connects,
    /// Once it answers a GET.
    Answers {
        /// Of this path.
        path: String,
        /// With a status from the first to the last of these.
        status: (u16, u16),
    },
    /// Once its health check of gRPC says that this service serves.
    Serves(String),
    /// Once its output has a line with this in it.
    Prints(String),
}

impl System {
    /// All that a command and what is run around it are told.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let command = match &mut self.origin {
            SystemOrigin::Command(words) => words.as_mut_slice(),
            _ => &mut [],
        };
        let Launch { env, before, after, .. } = &mut self.launch;
        let hooks = before.iter_mut().chain(after).flat_map(|hook| &mut hook.command);
        command.iter_mut().chain(env.values_mut()).chain(hooks)
    }
}
