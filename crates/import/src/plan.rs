//! What the importers of plans have in common.

use std::path::Path;

/// A plan that is read, and what it is read with.
pub(crate) struct Plan<'p> {
    /// What messages call it.
    pub(crate) name: &'p str,
    pub(crate) text: &'p str,
    /// Where the files lie that it names.
    pub(crate) folder: &'p Path,
    /// What stands before their names in the scenario, which may lie elsewhere.
    pub(crate) prefix: &'p str,
    /// `-J name=value`; none where the tool has no properties.
    pub(crate) properties: &'p [(String, String)],
}

/// A text as an expression has it, in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out + "'"
}
