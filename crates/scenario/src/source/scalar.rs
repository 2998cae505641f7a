//! Plain values as YAML: without quotes where every reader takes them as they are, else in the quotes that need the
//! fewest marks.
//!
//! Readers differ: YAML 1.1 has `yes`, `0o7`, `1_000`, `12:30` and dates, YAML 1.2 has not. A text that either takes
//! for something else is quoted. What cannot be seen is written as an escape.

use std::fmt::Write;

use super::value::Scalar;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// On a line, to its end.
    Block,
    /// Between `{ }` or `[ ]`.
    Flow,
}

/// A value on one line.
pub(super) fn written(scalar: &Scalar, context: Context) -> String {
    if scalar.is_bare() { scalar.as_str().to_owned() } else { text(scalar.as_str(), context) }
}

/// A text on one line.
pub(super) fn text(text: &str, context: Context) -> String {
    if is_plain(text, context) {
        text.to_owned()
    } else if !text.chars().all(is_visible) {
        double_quoted(text)
    } else {
        let single = format!("'{}'", text.replace('\'', "''"));
        let double = double_quoted(text);
        if single.len() < double.len() { single } else { double }
    }
}

/// Whether a text of several lines can be written as a block of them. A line that begins with a tab or is made of blanks
/// would be too easily lost.
pub(super) fn is_block(text: &str) -> bool {
    let is_lost = |line: &str| {
        line.starts_with('\t') || (!line.is_empty() && line.trim_start_matches([' ', '\t']).is_empty())
    };
    let visible = |c: char| is_visible(c) || matches!(c, '\n' | '\t');
    text.contains('\n')
        && !text.trim_matches('\n').is_empty()
        && text.chars().all(visible)
        && !text.split('\n').any(is_lost)
}

/// Whether a text stands for itself without quotes.
fn is_plain(text: &str, context: Context) -> bool {
    let begins = |c: char| !"-?:,[]{}#&*!|>'\"%@`.+ ".contains(c);
    // there readers differ in what may follow a colon or a dash, and of question marks
    let is_safe = |after: &str| after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    let is_plain_in_flow = || {
        let has_marks = text.contains([',', '[', ']', '{', '}', '?']) || text.ends_with('-');
        !has_marks && text.split(':').skip(1).all(is_safe)
    };
    text.chars().all(is_visible)
        && text.starts_with(begins)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && (context == Context::Block || is_plain_in_flow())
        && !is_word(text)
        && !is_number(text)
}

/// What some reader takes for a truth value, for nothing or for more than a text.
fn is_word(text: &str) -> bool {
    let words = ["null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// What some reader takes for a number, a time of day or a date. More than these begin with a sign or a point, and are
/// quoted for that.
fn is_number(text: &str) -> bool {
    let digits = text.replace('_', "");
    let Some(first) = text.chars().next().filter(char::is_ascii_digit) else { return false };
    let radix = |prefix, radix| {
        digits.strip_prefix(prefix).is_some_and(|rest| rest.chars().all(|c| c.is_digit(radix)))
    };
    let is_date = || {
        let mut parts = text.splitn(3, '-');
        let mut all = |least: usize| {
            parts.next().is_some_and(|p| p.len() >= least && p.starts_with(|c: char| c.is_ascii_digit()))
        };
        all(4) && all(1) && all(1)
    };
    let is_time_of_day = || {
        let mut parts = text.split(':').rev();
        let last = parts.next().and_then(|last| last.split('.').next()).unwrap_or_default();
        let all_digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
        text.contains(':') && last.len() <= 2 && all_digits(last) && parts.all(all_digits)
    };
    digits.parse::<f64>().is_ok()
        || digits.chars().all(|c| c.is_ascii_digit() || c == ',')
        || (first == '0' && (radix("0x", 16) || radix("0o", 8) || radix("0b", 2)))
        || is_time_of_day()
        || is_date()
}

/// Whether a character is seen as what it is; others are written as escapes.
pub(super) fn is_visible(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // spaces that look like others, marks without a width, marks that turn the direction of writing
        '\u{a0}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{1680}' | '\u{3000}' | '\u{feff}' => false,
        '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' => false,
        // what YAML does not take as it is
        '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e000}'..='\u{f8ff}' => false,
        _ => !c.is_control() && (c as u32) & 0xfffe != 0xfffe && (c as u32) < 0xe_0000,
    }
}

fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        // writing to a String cannot fail
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            c if is_visible(c) => write!(out, "{c}"),
            c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
            c if (c as u32) < 0x1_0000 => write!(out, "\\u{:04x}", c as u32),
            c => write!(out, "\\U{:08x}", c as u32),
        };
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_stand_only_where_a_reader_needs_them() {
        for plain in [
            "a",
            "a b",
            "10s",
            "5k/s",
            "100/s to 1k/s in 5 steps",
            "25%",
            "2xx",
            "200-204",
            "p99 < 50ms",
            "/a?b=c",
            "10.0.0.1",
            "127.0.0.1:8080",
            "http://h:1/",
            "$.a[0]",
            "${a}",
            "/${random(1, 2)}",
            "ä 日本 🌊",
            "a#b",
            "it's",
            "no way",
        ] {
            assert_eq!(text(plain, Context::Block), plain);
        }
        for quoted in [
            "",
            " a",
            "a ",
            "yes",
            "No",
            "on",
            "OFF",
            "y",
            "null",
            "~",
            "true",
            "1",
            "-1",
            "+1",
            ".5",
            "1e3",
            "0x1f",
            "0o7",
            "1_000",
            "12:30",
            "1:2:3.5",
            "2001-12-14",
            "a: b",
            "a:",
            "a #b",
            "#a",
            "- a",
            "-",
            "? a",
            "*",
            "&a",
            "!a",
            "|",
            ">",
            "@a",
            "%a",
            "[a",
            "{a}",
            "<<",
            "=",
        ] {
            assert_eq!(text(quoted, Context::Block), format!("\"{quoted}\""));
        }
        for in_flow in ["${a}", "a, b", "a[0]", "/a?b", "a-", "a:?"] {
            assert_eq!(text(in_flow, Context::Block), in_flow);
            assert_eq!(text(in_flow, Context::Flow), format!("\"{in_flow}\""));
        }
    }

    #[test]
    fn quotes_are_those_with_the_fewest_marks() {
        assert_eq!(text("{\"a\": 1}", Context::Block), "'{\"a\": 1}'");
        assert_eq!(text("'a': \\", Context::Block), "\"'a': \\\\\"");
        assert_eq!(
            text("a\n\t\u{85}\u{feff}\u{202e}\u{e0001}\0", Context::Block),
            "\"a\\n\\t\\x85\\ufeff\\u202e\\U000e0001\\x00\""
        );
    }
}
