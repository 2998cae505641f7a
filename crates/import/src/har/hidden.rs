//! What must not be taken over from a recording. A name too many is better here than one too few.

use tidemark_scenario::{Secrets, secrets};

/// Whether what has this name is secret; so is what has several of them (`apiKeys`).
pub(crate) fn is_secret_name(name: &str) -> bool {
    let of = secrets::is_secret_name;
    of(name) || name.strip_suffix(['s', 'S']).is_some_and(of)
}

/// Whether the value of a field is not taken over: it is secret, or whoever recorded it has taken it out already.
pub(crate) fn is_hidden(name: &str, value: &str) -> bool {
    if value.is_empty() {
        // browsers leave passwords out; other fields are often sent empty
        return is_secret_name(name) && name.to_ascii_lowercase().contains("pass");
    }
    is_masked(value) || is_secret_name(name) || looks_secret(value)
}

/// `****`, `[REDACTED]`: what stands where a recorder has taken a value out.
pub(super) fn is_masked(value: &str) -> bool {
    const WORDS: [&str; 7] = ["redacted", "masked", "filtered", "removed", "hidden", "scrubbed", "sanitized"];
    const STARS: [char; 3] = ['*', '\u{2022}', '\u{25cf}'];
    let value = value.trim();
    let inner = value.trim_matches(|c| STARS.contains(&c) || "[]<>(){}_".contains(c)).to_ascii_lowercase();
    match inner.as_str() {
        "" => value.chars().filter(|c| STARS.contains(c)).count() >= 3,
        "redacted" => true,
        word => inner.len() < value.len() && WORDS.contains(&word),
    }
}

/// Whether a value is secret by itself, or holds a name with its secret.
pub(super) fn looks_secret(text: &str) -> bool {
    has_jwt(text) || Secrets::default().masked(text) != text || assigns_secret(text)
}

/// Whether there is a secret's name anywhere in a text, or what looks like a secret.
pub(crate) fn has_secret(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    text.split(|c: char| !is_part(c)).any(is_secret_name) || looks_secret(text)
}

/// `eyJ….….…`
pub(super) fn has_jwt(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    text.split(|c: char| !is_part(c)).any(|word| word.starts_with("eyJ") && word.matches('.').count() >= 2)
}

/// `password: "x"`, as in GraphQL.
fn assigns_secret(text: &str) -> bool {
    const QUOTES: [char; 3] = ['"', '\'', '\\'];
    text.match_indices([':', '=']).any(|(at, _)| {
        let before = text[..at].trim_end_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c));
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let name = before.rsplit(|c: char| !is_part(c)).next().unwrap_or_default();
        text[at + 1..].trim_start().starts_with(QUOTES) && is_secret_name(name)
    })
}
