//! How a server is reached.

use std::time::Duration;

/// How a server is reached, as a system's settings have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Where it is, with a password perhaps.
    pub url: String,
    /// Connections.
    pub connections: usize,
    /// Most requests taken and not answered yet; more are refused.
    pub waiting_max: usize,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How long the start waits for a server that is not there yet.
    pub start_timeout: Duration,
}
