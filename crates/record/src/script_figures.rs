//! What a script measured itself, as its own tool means it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a script measured itself. Times are service times in milliseconds, as in its tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScriptFigures {
    /// Iterations that came to their end.
    pub iterations: u64,
    /// Iterations that were interrupted: their time, or the run's, was over.
    pub interrupted: u64,
    /// Of those that came to their end, how many did so with an exception.
    pub exceptions: u64,
    /// Its checks, in the order in which they came.
    pub checks: Vec<ScriptCheck>,
    /// Its tool's metrics and its own.
    pub metrics: Vec<ScriptMetric>,
}

/// A check of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptCheck {
    /// The path of its group, as `::outer::inner`; empty outside of any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its name.
    pub name: String,
    /// How often it held.
    pub passes: u64,
    /// How often it did not.
    pub fails: u64,
}

/// A metric of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptMetric {
    /// Its name; with the tags in braces where it is a part.
    pub name: String,
    /// `counter`, `gauge`, `rate` or `trend`.
    pub kind: String,
    /// Whether its values are milliseconds.
    pub is_time: bool,
    /// Whether the script made it, and not its tool.
    pub own: bool,
    /// Its figures, by their names: `avg`, `p(95)`, `count`.
    pub figures: Vec<ScriptFigure>,
}

/// A figure of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScriptFigure {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
}
