//! `js` steps that take values out of answers: by selectors of CSS, and one of several matches by chance.

use tidemark_scenario::source::{Map, Step};

use crate::plan::quoted;

/// Longest selector or regular expression, bytes.
const PATTERN_MAX: usize = 1 << 10;
/// Most brackets of a selector.
const BRACKETS_MAX: usize = 10;
/// What stands behind a `:`, and means the same in all tools.
const CLASSES: [&str; 14] = [
    "empty",
    "first-child",
    "first-of-type",
    "has",
    "is",
    "last-child",
    "last-of-type",
    "not",
    "nth-child",
    "nth-last-child",
    "nth-last-of-type",
    "nth-of-type",
    "only-child",
    "only-of-type",
];

/// Which of several is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// One of these, from 0.
    At(usize),
    Last,
    Random,
}

/// A `js` step.
pub(crate) fn js(code: &str) -> Step {
    Step::Other(Map::from([("js", code)]))
}

/// Sets a variable to a part of an element that a selector finds: `text()`, `attr('href')`; to another expression of
/// JavaScript where nothing is found.
pub(crate) fn of_page(
    variable: &str,
    selector: &str,
    which: Which,
    part: &str,
    otherwise: Option<&str>,
) -> Step {
    let found = format!("res?.html({}).toArray()", quoted(selector));
    let found = if which == Which::Random { format!("{found} ?? []") } else { found };
    one_of(variable, &found, which, &format!(".{part}"), otherwise)
}

/// Sets a variable to a group of one of the matches in the body, by chance.
pub(crate) fn of_matches(variable: &str, regex: &str, group: usize, otherwise: Option<&str>) -> Step {
    let found = format!("[...(res?.body ?? '').matchAll({regex})]");
    one_of(variable, &found, Which::Random, &format!(".[{group}]"), otherwise)
}

fn one_of(variable: &str, all: &str, which: Which, part: &str, otherwise: Option<&str>) -> Step {
    let otherwise = otherwise.map(|otherwise| format!(" ?? {otherwise}")).unwrap_or_default();
    let set = |one: &str| format!("vars.{variable} = {one}?{part}{otherwise};");
    js(&match which {
        Which::At(at) => set(&format!("{all}[{at}]")),
        Which::Last => set(&format!("{all}.at(-1)")),
        Which::Random => {
            format!("const all = {all};\n{}\n", set("all[Math.floor(Math.random() * all.length)]"))
        }
    })
}

/// A selector as `res.html()` reads it; none where it may mean something else there. `also` are classes that the tool has
/// besides.
pub(crate) fn selector(text: &str, also: &[&str]) -> Option<String> {
    let text = text.trim();
    let brackets = text.matches('(').count();
    if text.is_empty()
        || text.len() > PATTERN_MAX
        || brackets > BRACKETS_MAX
        || text.starts_with(['>', '+', '~', ','])
    {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut open) = (text, 0usize);
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '[' => {
                let (attribute, length) = attribute(rest)?;
                out.push_str(&attribute);
                rest = &rest[length..];
                continue;
            }
            '\'' | '"' if open > 0 => string(rest)?,
            ':' => {
                let end = rest[1..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
                let class = &rest[1..end.map_or(rest.len(), |end| end + 1)];
                if !CLASSES.contains(&class) && !also.contains(&class) {
                    return None;
                }
                1 + class.len()
            }
            '(' => {
                open += 1;
                1
            }
            ')' => {
                open = open.checked_sub(1)?;
                1
            }
            c if c.is_alphanumeric() || " \t\n_->+~,.#*".contains(c) => c.len_utf8(),
            _ => return None,
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (open == 0).then_some(out)
}

/// `[name^=/a]` with its value in quotes, and how long it is, bytes.
fn attribute(text: &str) -> Option<(String, usize)> {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c))
    };
    let end = text.find(']')?;
    let Some((left, right)) = text[1..end].split_once('=') else {
        let name = text[1..end].trim();
        return is_name(name).then(|| (format!("[{name}]"), end + 1));
    };
    // `~=` is a regular expression for some
    let name = left.strip_suffix(['^', '$', '*', '|']).unwrap_or(left);
    if !is_name(name.trim()) {
        return None;
    }
    let right_at = end - right.len();
    let value = right.trim_start();
    if value.starts_with(['\'', '"']) {
        let value_at = right_at + right.len() - value.len();
        let end = value_at + string(&text[value_at..])?;
        let close = text[end..].find(|c: char| c != ' ')? + end;
        return text[close..].starts_with(']').then(|| (text[..=close].to_owned(), close + 1));
    }
    let value = value.trim_end();
    let is_plain = !value.is_empty() && !value.contains(|c: char| "'\"\\[".contains(c) || c.is_whitespace());
    let value = if is_name(value) { value.to_owned() } else { format!("\"{value}\"") };
    is_plain.then(|| (format!("[{left}={value}]"), end + 1))
}

/// How long the string is that a text begins with, quotes included, bytes.
fn string(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let inner = &text[1..text[1..].find(quote)? + 1];
    (!inner.contains(['\\', '\n', '\r'])).then_some(inner.len() + 2)
}

/// A regular expression as a literal that finds all matches; none where JavaScript may read it otherwise.
pub(crate) fn regex(text: &str) -> Option<String> {
    let (flags, body) = match text.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
        Some((flags, rest)) if !flags.is_empty() && flags.chars().all(|c| "ims".contains(c)) => (flags, rest),
        _ => ("", text),
    };
    let of_classes = ["&&", "--", "~~"].iter().any(|sign| body.contains(sign)) && body.contains('[');
    let differs = of_classes || ["(?P", "[[", "[]", "[^]"].iter().any(|sign| body.contains(sign));
    if body.is_empty() || body.len() > PATTERN_MAX || differs || regex::Regex::new(text).is_err() {
        return None;
    }
    let mut out = String::from("/");
    let mut rest = body;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        match next {
            '/' => out.push_str("\\/"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => return None,
            '(' if rest.starts_with('?') => {
                let behind = &rest[1..];
                let is_known = behind.starts_with(':') || behind.starts_with('<');
                if !is_known {
                    return None;
                }
                out.push('(');
            }
            '\\' => {
                let escaped = rest.chars().next()?;
                let is_same = "dDwWsSbBnrt".contains(escaped)
                    || escaped.is_ascii_punctuation() && !"<>".contains(escaped);
                if !is_same {
                    return None;
                }
                out.extend(['\\', escaped]);
                rest = &rest[escaped.len_utf8()..];
            }
            c => out.push(c),
        }
    }
    let flags: String = "ims".chars().filter(|flag| flags.contains(*flag)).collect();
    Some(format!("{out}/g{flags}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_that_mean_the_same_are_taken() {
        for (text, is) in [
            (" input[name='csrf token'] ", "input[name='csrf token']"),
            ("a[href^=/product], #b > .c-d", "a[href^=\"/product\"], #b > .c-d"),
            ("[name=_csrf]", "[name=_csrf]"),
            ("li:not(.x):nth-child(2n+1)", "li:not(.x):nth-child(2n+1)"),
            ("a[title=\"it's ]\"]", "a[title=\"it's ]\"]"),
            ("a:contains('(')", "a:contains('(')"),
        ] {
            assert_eq!(selector(text, &["contains"]).as_deref(), Some(is), "{text}");
        }
        let long = "a".repeat(2_000);
        for text in [
            "",
            "a:eq(1)",
            "a::before",
            "[^data]",
            "a[x!=y]",
            "a[x~=y]",
            "a[x",
            "a)",
            "a(",
            "> a",
            "a|b",
            "a\\:b",
            "a:hover",
            "a['x']",
            "a[x=]",
            "a[x='\\'']",
            "${a}",
            "a{}",
            &long,
        ] {
            assert_eq!(selector(text, &[]), None, "{text}");
        }
    }

    #[test]
    fn expressions_that_mean_the_same_are_taken() {
        for (text, is) in [
            ("a(\\d+)/b", "/a(\\d+)\\/b/g"),
            ("(?is)x(?:y|z)[^/]", "/x(?:y|z)[^\\/]/gis"),
            ("a\\/b\\.", "/a\\/b\\./g"),
        ] {
            assert_eq!(regex(text).as_deref(), Some(is), "{text}");
        }
        for text in ["", "(", "(?i:a)", "\\Aa", "\\p{L}", "[[:alpha:]]", "(?P<a>b)", "(?x) a"] {
            assert_eq!(regex(text), None, "{text}");
        }
    }
}
