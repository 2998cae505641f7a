//! What happened when.

use serde::{Deserialize, Serialize};

/// Something that happened in a run, for its time axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the run began (negative before it).
    pub at_us: i64,
    /// One word: `phase`, `started`, `ready`, `stopped`, `exited`, `fault`, `healed`, `rewrite`, `snapshot`, `interrupted`, `unreachable`, `bound`.
    pub kind: String,
    /// One line for a person.
    pub text: String,
}
