//! Secrets in the arguments of a command.

use super::names::{MASK, is_secret, is_secret_name, scheme};
use crate::pieces::{Piece, split};

/// Flags whose next argument is `NAME: VALUE`, or `NAME=VALUE`.
const HEADER_FLAGS: [&str; 2] = ["-H", "--header"];
const SETTING_FLAGS: [&str; 1] = ["--set"];

/// An argument of a command, which may say by its name or by the argument before that it is a secret.
pub(super) fn masked_argument(before: Option<&str>, argument: &str) -> String {
    let as_header = |text: &str| {
        let (name, value) = text.split_once(':')?;
        is_secret_name(name.trim()).then(|| format!("{name}: {}", masked_value(value.trim())))
    };
    let as_setting = |text: &str| {
        let (name, value) = text.split_once('=')?;
        is_secret(name.trim(), value).then(|| format!("{name}={MASK}"))
    };
    let in_one = |flags: &[&str], of: &dyn Fn(&str) -> Option<String>| {
        if before.is_some_and(|before| flags.contains(&before)) {
            return of(argument);
        }
        let flag = flags.iter().find(|flag| argument.starts_with(**flag))?;
        let rest = &argument[flag.len()..];
        let (mark, rest) = rest.strip_prefix('=').map_or(("", rest), |rest| ("=", rest));
        of(rest).map(|masked| format!("{flag}{mark}{masked}"))
    };
    let named =
        |before: &str| before.starts_with("--") && !before.contains('=') && is_secret(before, argument);
    in_one(&HEADER_FLAGS, &as_header)
        .or_else(|| in_one(&SETTING_FLAGS, &as_setting))
        .or_else(|| before.filter(|before| named(before) && !argument.starts_with('-')).map(|_| MASK.into()))
        .unwrap_or_else(|| argument.to_owned())
}

/// Names and values of secrets in an argument of a command, which may say by the argument before what it is.
pub(super) fn named_in_argument(before: &str, argument: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let flag = argument
        .strip_prefix("--")
        .map_or(argument, |flag| flag.split_once('=').map_or(flag, |(_, value)| value));
    let short = HEADER_FLAGS.iter().chain(&["-u"]).find_map(|flag| argument.strip_prefix(flag));
    for text in [argument, flag, short.unwrap_or(argument)] {
        for mark in [":", "=", " "] {
            let named = text
                .split_once(mark)
                .map(|(name, value)| (name.trim_start_matches('-').trim(), value.trim()));
            found.extend(named.filter(|(name, value)| is_secret(name, value)));
        }
        // with a wrong mark
        let text = text.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let (name, value) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
        let is_mark = |c: char| matches!(c, ';' | ',' | ':' | '=') || c.is_whitespace();
        let value = value.trim_start_matches(is_mark);
        if is_secret(name, value) && text[name.len()..].starts_with(is_mark) {
            found.push((name, value));
            found.extend(
                value.split(';').filter_map(|cookie| cookie.split_once('=')).map(|(_, value)| (name, value)),
            );
        }
    }
    let is_flag = argument.starts_with("--");
    if !is_flag && is_secret(before.trim_start_matches('-'), argument) && !before.contains([' ', '=', ':']) {
        found.push((before, argument));
    }
    let login = if ["-u", "--user"].contains(&before) { Some(argument) } else { argument.strip_prefix("-u") };
    found.extend(login.and_then(|login| login.split_once(':')).map(|(_, password)| ("password", password)));
    for part in argument.split(['?', '&', '#']).skip(1) {
        found.extend(part.split_once('=').filter(|(name, value)| is_secret(name, value)));
    }
    // of a file with a key
    let is_of_file = |name: &str| name == "key" && (argument.starts_with("--key") || before == "--key");
    found.retain(|(name, _)| !is_of_file(name.trim_start_matches('-')));
    found.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A secret's value, of a header perhaps: its holes and the name of its scheme stay.
pub(super) fn masked_value(text: &str) -> String {
    let Ok(pieces) = split(text) else { return MASK.to_owned() };
    let mut out = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Hole { text, .. } => out.extend(["${", text, "}"]),
            Piece::Literal(literal) if index == 0 => {
                let (scheme, rest) = scheme(literal);
                out.push_str(scheme);
                out.push_str(if rest.is_empty() { "" } else { MASK });
            }
            Piece::Literal(literal) => out.push_str(if literal.trim().is_empty() { literal } else { MASK }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_keeps_its_scheme_and_its_holes() {
        assert_eq!(masked_value("Bearer abc"), "Bearer ***");
        assert_eq!(masked_value("Bearer ${env(\"TOKEN\")}"), "Bearer ${env(\"TOKEN\")}");
        assert_eq!(masked_value("session=${s}; theme=dark"), "***${s}***");
        assert_eq!(masked_value("abc"), "***");
    }
}
