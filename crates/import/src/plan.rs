//! What the importers of plans have in common.

use std::path::{Path, PathBuf};

use tidemark_scenario::source::{Scenario, Step, Value};

/// Most values of one call in an expression.
pub(crate) const VALUES_MAX: usize = 16;
/// Longest text that is shown, characters.
const SHOWN_MAX: usize = 80;

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
    /// `-E`: a file of Postman's, or the name of an environment of Artillery's.
    pub(crate) environment: Option<&'p str>,
}

impl Plan<'_> {
    /// A file that the plan names, as the scenario names it, and where it is: in the plan's folder, under its whole name or
    /// its last one.
    pub(crate) fn file(&self, name: &str) -> Option<(String, PathBuf)> {
        let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let path = beside(self.folder, name).or_else(|| beside(self.folder, last))?;
        Some((format!("{}{}", self.prefix, path.display()), self.folder.join(path)))
    }

    /// The same with its text.
    pub(crate) fn text_of(&self, name: &str) -> Option<(String, String)> {
        let (name, path) = self.file(name)?;
        Some((name, crate::read(&path).ok()?))
    }
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

/// Texts one behind the other, as an expression.
pub(crate) fn concat(parts: &[String]) -> String {
    match parts {
        [only] => only.clone(),
        _ if parts.len() <= VALUES_MAX => format!("concat({})", parts.join(", ")),
        _ => concat(&parts.chunks(VALUES_MAX).map(concat).collect::<Vec<_>>()),
    }
}

/// A text of the plan as it is shown: short, on one line.
pub(crate) fn shown(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_MAX + 1).collect();
    if text.chars().count() > SHOWN_MAX {
        text.chars().take(SHOWN_MAX).chain("…".chars()).collect()
    } else {
        text
    }
}

/// Steps as they stand below another step.
pub(crate) fn nested(steps: Vec<Step>) -> Value {
    let whole = Scenario { prepare: steps, ..Scenario::default() };
    whole.to_map().get("prepare").cloned().unwrap_or_else(|| Value::List(Vec::new()))
}

/// The path of a file within a folder or below. A plan of somebody else's must not read what it likes.
pub(crate) fn beside(folder: &Path, name: &str) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let path = folder.join(name).canonicalize().ok()?;
    path.strip_prefix(&folder).ok().filter(|_| path.is_file()).map(Path::to_owned)
}

/// Whether a scheme, a host and perhaps a port name a server that can be driven.
pub(crate) fn is_address(url: &str) -> bool {
    let Some((scheme, host)) = url.split_once("://") else { return false };
    ["http", "https", "ws", "wss"].contains(&scheme)
        && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_[]:".contains(c))
        && url::Url::parse(url).is_ok_and(|url| url.has_host() && url.port() != Some(0))
}
