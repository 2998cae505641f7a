//! Secrets in the arguments of a command.

use super::names::{MASK, is_secret, is_secret_name, scheme};
use crate::pieces::{Piece, split};

/// Flags whose next argument is `NAME: VALUE`, or `NAME=VALUE`.
const HEADER_FLAGS: [&str; 2] = ["-H", "--header"];
const SETTING_FLAGS: [&str; 1] = ["--set"];

/// Flags whose next argument is URLs of NATS servers, or machines that ssh reaches.
const NATS_FLAGS: [&str; 2] = ["--fleet", "--nats"];

/// URLs of NATS servers in a command.
pub(super) fn nats_urls(command: &[String]) -> impl Iterator<Item = &str> {
    let before = std::iter::once("").chain(command.iter().map(String::as_str));
    let urls = before.zip(command).filter_map(|(before, argument)| match argument.split_once('=') {
        Some((flag, urls)) if NATS_FLAGS.contains(&flag) => Some(urls),
        _ => NATS_FLAGS.contains(&before).then_some(argument.as_str()),
    });
    urls.filter(|urls| !urls.starts_with("ssh://"))
}

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

/// The secret in an argument of a command that [`masked_argument`] masks, and its name.
pub(super) fn secret_argument<'t>(before: Option<&'t str>, argument: &'t str) -> Option<(&'t str, &'t str)> {
    let masked = masked_argument(before, argument);
    if masked == MASK {
        return before.map(|before| (before.trim_start_matches('-'), argument));
    }
    let of_flag = HEADER_FLAGS.iter().chain(&SETTING_FLAGS).find_map(|flag| argument.strip_prefix(flag));
    let rest = of_flag.map_or(argument, |rest| rest.strip_prefix('=').unwrap_or(rest));
    rest.split_once([':', '='])
        .filter(|_| masked != argument)
        .map(|(name, value)| (name.trim(), value.trim()))
}

/// A command that is one text, its arguments masked.
pub(super) fn masked_words(text: &str) -> String {
    let (mut out, mut done) = (String::new(), 0);
    let mut before = None;
    for word in words(text) {
        let masked = masked_argument(before, word);
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        out.extend([&text[done..at], &masked]);
        done = at + word.len();
        before = Some(word);
    }
    out + &text[done..]
}

/// The words of a command, without quotes around them.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut quote = None;
    let ends = |c: char| {
        match quote {
            Some(mark) if mark == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && c.is_whitespace()
    };
    let words = text.split(ends).map(|word| match word.chars().next() {
        Some(mark @ ('"' | '\'')) => word.trim_matches(mark),
        _ => word,
    });
    words.filter(|word| !word.is_empty()).collect()
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
    fn a_command_in_one_text_is_masked_word_by_word() {
        assert_eq!(
            masked_words("./serve  --token S1 --n 5 -H \"Cookie: a=S1\" --set 'pin=S1' x"),
            "./serve  --token *** --n 5 -H \"Cookie: ***\" --set 'pin=***' x"
        );
        for (before, argument, wanted) in [
            ("--token", "S1", Some(("token", "S1"))),
            ("-H", "Cookie: a=S1", Some(("Cookie", "a=S1"))),
            ("x", "--header=X-Api-Key:S1", Some(("X-Api-Key", "S1"))),
            ("--set", "pin=S1", Some(("pin", "S1"))),
            ("--n", "a=b", None),
        ] {
            assert_eq!(secret_argument(Some(before), argument), wanted, "{argument}");
        }
    }

    #[test]
    fn a_header_keeps_its_scheme_and_its_holes() {
        assert_eq!(masked_value("Bearer abc"), "Bearer ***");
        assert_eq!(masked_value("Bearer ${env(\"TOKEN\")}"), "Bearer ${env(\"TOKEN\")}");
        assert_eq!(masked_value("session=${s}; theme=dark"), "***${s}***");
        assert_eq!(masked_value("abc"), "***");
    }
}
