//! What was found in an answer, in words: for whoever looks at single requests.

use tidemark_scenario::Value;
use tidemark_scenario::template::Encoding;

/// Most bytes of a request, of a body and of a value that are told.
pub const LOGGED_BYTES: usize = 4 << 10;

/// A value that was to be kept from an answer.
#[derive(Debug, Clone)]
pub struct Extracted {
    /// The variable.
    pub variable: String,
    /// Where it was looked for.
    pub source: String,
    /// What was found there.
    pub value: Option<String>,
}

/// A check.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What was to hold.
    pub what: String,
    /// What was there.
    pub saw: String,
    /// Whether it held; none where something before it had failed.
    pub held: Option<bool>,
}

/// A value in words; none of one that is missing.
pub(crate) fn text(value: Value<'_>) -> Option<String> {
    if value == Value::Missing {
        return None;
    }
    let mut text = Vec::new();
    Encoding::Raw.write_value(value, &mut text);
    let mut told = String::from_utf8_lossy(&text[..text.len().min(LOGGED_BYTES)]).into_owned();
    if text.len() > LOGGED_BYTES {
        told.push('…');
    }
    Some(told)
}
