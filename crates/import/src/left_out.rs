//! What of another tool's plan has no counterpart here, told with its place.

use std::fmt;

/// A part of a plan that is not in the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its line in the plan, from 1.
    pub line: usize,
    /// Its kind, and its name where it has one.
    pub element: String,
    /// What it would have done, as it follows "would have": `waited for all users`.
    pub would: String,
    /// Whether requests are missing without it, or others are sent than the plan's.
    pub is_request: bool,
    /// The setting that gives the value which is missing; none where it takes more than a value.
    pub setting: Option<String>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: would have {}", self.line, self.element, self.would)
    }
}
