//! Patterns of a plan, and what they mean here: regular expressions, statuses, headers, paths of JSON.

use std::path::Path;

use tidemark_scenario::source::{Load, Map, Method, Request, Scenario, Session, System, Value};

use super::answer::Kind;

/// Longest pattern, bytes.
const PATTERN_BYTES_MAX: usize = 10_000;

/// What a pattern is about.
pub(super) enum Test {
    Status(u16),
    Header(String, String),
    Body(String),
    /// A text with variables in it.
    Expression(String),
}

pub(super) fn regex(pattern: &str) -> Map {
    Map::from([("regex", pattern)])
}

/// What a pattern is about: Tsung looks through the head of an answer, too.
pub(super) fn test_of(pattern: &str, is_body: bool, kind: Kind) -> Option<Test> {
    if kind == Kind::Http && !is_body {
        if let Some(status) = status_of(pattern) {
            return Some(Test::Status(status));
        }
        if let Some((header, rest)) = header_of(pattern) {
            let rest = rest.trim_start();
            let rest = rest.strip_suffix("\\r\\n").or(rest.strip_suffix("\\r")).unwrap_or(rest);
            return is_regex(rest).then(|| Test::Header(header, rest.to_owned()));
        }
    }
    (!pattern.is_empty() && is_regex(pattern)).then(|| Test::Body(pattern.to_owned()))
}

/// `200 OK`, `HTTP/1.1 200`: the status that a pattern asks for.
pub(super) fn status_of(pattern: &str) -> Option<u16> {
    let version = behind_version(pattern);
    let rest = version.unwrap_or(pattern.trim_start_matches('^'));
    let status = rest.get(..3)?.parse::<u16>().ok().filter(|status| (100..600).contains(status))?;
    let words = rest[3..].trim_matches([' ', '.', '*', '\\', 'r', 'n', '$']);
    let is_reason = !words.is_empty() && words.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    (is_reason || version.is_some() && words.is_empty()).then_some(status)
}

/// What follows `HTTP/1.1 ` in a pattern.
pub(super) fn behind_version(pattern: &str) -> Option<&str> {
    let rest = pattern.trim_start_matches('^').strip_prefix("HTTP/1")?;
    let rest = rest.trim_start_matches(['\\', '.', '1', '0', '[', ']']);
    let rest = rest.strip_prefix('d').unwrap_or(rest);
    Some(rest.trim_start_matches(|c| " s+*".contains(c) || c == '\\' && !rest.starts_with("(")))
}

/// `Location: …`: a header's name and what follows, if a pattern begins so.
pub(super) fn header_of(pattern: &str) -> Option<(String, &str)> {
    let pattern = pattern.trim_start_matches('^');
    let pattern = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    let (name, rest) = pattern.split_once(':')?;
    const NAMES: [&str; 16] = [
        "location",
        "set-cookie",
        "content-type",
        "content-length",
        "etag",
        "last-modified",
        "server",
        "cache-control",
        "content-encoding",
        "www-authenticate",
        "date",
        "expires",
        "vary",
        "content-disposition",
        "transfer-encoding",
        "connection",
    ];
    let name = name.to_ascii_lowercase();
    (NAMES.contains(&name.as_str()) || name.starts_with("x-") && literal_of(&name).is_some())
        .then_some((name, rest))
}

/// Whether a pattern takes all that follows, up to a mark that ends it anyway.
pub(super) fn is_all(pattern: &str) -> bool {
    let pattern = ["\\r\\n", "\\r", "\\n", "\r\n", "\r", "\n", ";", "$"]
        .iter()
        .find_map(|end| pattern.strip_suffix(end))
        .unwrap_or(pattern);
    let Some(inner) = pattern.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) else {
        return false;
    };
    // a location is a URL in full
    const BEGINS: [&str; 6] =
        ["(http|https)://", "(https|http)://", "(?:http|https)://", "https?://", "https://", "http://"];
    let inner = BEGINS.iter().find_map(|begin| inner.strip_prefix(begin)).unwrap_or(inner);
    let (inner, is_many) = match inner.strip_suffix('?').unwrap_or(inner) {
        inner if inner.ends_with(['*', '+']) => (&inner[..inner.len() - 1], true),
        inner => (inner, false),
    };
    const ANY: [&str; 9] =
        [".", "[^;]", "[^\\r]", "[^\\n]", "[^\\r\\n]", "[^\\n\\r]", "[^\\s]", "\\S", "[^;\\s]"];
    is_many && ANY.contains(&inner)
}

/// What a pattern stands for, if it is but a text.
pub(super) fn literal_of(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                c if c.is_ascii_punctuation() || c == ' ' => text.push(c),
                _ => return None,
            },
            '.' | '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

/// A text as a pattern.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && c != '_' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A pattern of Erlang's old module: groups are `\(…\)`.
pub(super) fn of_old_pattern(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(mark @ ('(' | ')'))) => {
                chars.next();
                out.push(mark);
            }
            ('\\', Some(next)) => {
                chars.next();
                out.extend(['\\', next]);
            }
            ('(', _) => out += "(?:",
            (c, _) => out.push(c),
        }
    }
    out
}

/// `field.array[3].value` as a path of RFC 9535.
pub(super) fn json_path(path: &str) -> Option<String> {
    let path = path.trim();
    let path = path.strip_prefix("$.").or(path.strip_prefix('$')).unwrap_or(path);
    let mut out = String::from("$");
    for part in path.split('.') {
        let (name, mut rest) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        if !name.is_empty() {
            if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
            {
                out += &format!(".{name}");
            } else {
                out += &format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"));
            }
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let (inner, behind) = inner.split_once(']')?;
            rest = behind;
            match inner.strip_prefix('?') {
                None if inner == "*" || inner.parse::<u32>().is_ok() => out += &format!("[{inner}]"),
                None => return None,
                Some(filter) => {
                    let (key, value) = filter.split_once('=')?;
                    let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                    if !is_name || key.is_empty() {
                        return None;
                    }
                    let text = format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
                    // numbers are compared as they are written
                    out += &match value.parse::<i64>() {
                        Ok(number) => format!("[?@.{key} == {text} || @.{key} == {number}]"),
                        Err(_) => format!("[?@.{key} == {text}]"),
                    };
                }
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(out)
}

pub(super) fn source_of_path(path: &str, is_list: bool) -> Value {
    if path.contains("[*]") {
        Map::from([("all", path)]).into()
    } else if is_list {
        Map::from([("all", format!("{path}[*]"))]).into()
    } else {
        path.into()
    }
}

/// `data_row[2].mtime`: a column by its name.
pub(super) fn column(expression: &str) -> Option<String> {
    let (row, name) = expression.trim().strip_prefix("data_row[")?.split_once("].")?;
    let row = row.parse::<usize>().ok()?.checked_sub(1)?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| format!("$[{row}].{name}"))
}

pub(super) fn is_regex(pattern: &str) -> bool {
    is_good(&regex(pattern).into())
}

/// Whether the scenario language takes a source as it is. A pattern with `${` in it would be read as another.
pub(super) fn is_good(source: &Value) -> bool {
    let texts = match source {
        Value::Map(map) => map.entries().iter().filter_map(|entry| entry.value.as_str()).collect(),
        value => value.as_str().into_iter().collect::<Vec<_>>(),
    };
    if texts.iter().any(|text| text.len() > PATTERN_BYTES_MAX || text.contains("${")) {
        return false;
    }
    let request =
        Request { extract: Map::from([("value", source.clone())]), ..Request::new(Method::Get, "/") };
    let scenario = Scenario {
        system: Some(System { url: Some("http://127.0.0.1".into()), ..System::default() }),
        sessions: vec![("s".into(), Session { steps: vec![request.into()], ..Session::default() })],
        load: Some(Load { users: Some(1u64.into()), hold: Some("1s".into()), ..Load::default() }),
        ..Scenario::default()
    };
    let text = scenario.to_yaml();
    let (_, mistakes) = tidemark_scenario::check_text("pattern.yaml", &text, Path::new("."), &[]);
    !mistakes.has_errors()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_found_in_patterns() {
        for (pattern, status) in [
            ("200 OK", Some(200)),
            ("200OK", Some(200)),
            ("HTTP/1.1 302", Some(302)),
            ("^HTTP/1\\.1 404 Not Found", Some(404)),
            ("HTTP/1.. 200", Some(200)),
            ("200", None),
            ("2000 items", None),
            ("Welcome", None),
        ] {
            assert_eq!(status_of(pattern), status, "{pattern}");
        }
    }

    #[test]
    fn paths_are_as_in_rfc_9535() {
        for (path, ours) in [
            ("field.array[3].value", Some("$.field.array[3].value")),
            ("$.id", Some("$.id")),
            ("items[*].id", Some("$.items[*].id")),
            ("a[?name=bar].v", Some("$.a[?@.name == 'bar'].v")),
            ("a[?id=2].v", Some("$.a[?@.id == '2' || @.id == 2].v")),
            ("a-b.c", Some("$['a-b'].c")),
            ("a[x]", None),
        ] {
            assert_eq!(json_path(path).as_deref(), ours, "{path}");
            if let Some(ours) = ours {
                assert!(is_good(&ours.into()), "{ours}");
            }
        }
    }

    #[test]
    fn what_takes_a_whole_header_is_one() {
        for (pattern, is) in [
            ("(.*)", true),
            ("(.*)\\r\\n", true),
            ("([^;]+);", true),
            ("(.*?)$", true),
            ("((http|https)://.*)\\r", true),
            ("(http://.*)\r", true),
            ("id=(.*)", false),
            (".*", false),
        ] {
            assert_eq!(is_all(pattern), is, "{pattern}");
        }
        assert_eq!(of_old_pattern("<a>\\(.*\\)</a>(b|c)\\."), "<a>(.*)</a>(?:b|c)\\.");
        assert_eq!(literal_of("a\\/b\\. c").as_deref(), Some("a/b. c"));
        assert_eq!(literal_of("a.b"), None);
    }
}
