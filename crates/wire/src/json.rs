//! Finding values in JSON text by path, without building a tree.
//!
//! A [`Path`] is compiled once and then walks over the text, passing over what it does not want. It looks no further
//! than it must: text behind the last match is not read, hence not checked; [`check`] reads all of it. What it does read is checked for being
//! JSON, except that strings are not checked for being UTF-8.
//!
//! Matches are raw tokens, as they stand in the text; [`write_text`] makes text of them.
//!
//! Paths beyond names, indices and `*` (descendants, slices, lists, filters) are RFC 9535's, by `serde_json_path`: these build
//! a tree of each text, and allocate.
//!
//! ```
//! use tidemark_wire::json::{Path, write_text};
//!
//! let json = br#"{"flights": [{"id": "AA1"}, {"id": "AA2", "seats": 7}]}"#;
//! assert_eq!(Path::parse("$.flights[-1].seats")?.find(json)?, Some(&b"7"[..]));
//! assert_eq!(Path::parse("$.flights[*].id")?.count(json)?, 2);
//!
//! let mut text = Vec::new();
//! write_text(Path::parse("$.flights[0].id")?.find(json)?.unwrap(), &mut text);
//! assert_eq!(text, b"AA1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod equal;
mod escape;
mod query;
mod scan;
mod text;
mod walk;

pub use equal::{equal, is_number, is_same_number};
pub use escape::write_string;
pub(crate) use escape::{escape, needs_escape};
pub use text::write_text;

use std::fmt;

use query::Query;

/// How deep arrays and objects may be nested in each other.
pub const MAX_DEPTH: usize = 128;
/// How many segments a path may have.
pub const MAX_SEGMENTS: usize = 64;

/// A compiled path such as `$.tripFlights[0].flightsOptions[-1]._id` or `$[*].bookingId`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    segments: Vec<Segment>,
    /// What is more than segments can say; there are none then.
    query: Option<Query>,
}

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A member of an object.
    Member(String),
    /// An element of an array; negative counts from the end.
    Index(i64),
    /// Every element of an array, or every member's value.
    Every,
}

/// Why a text is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {offset} of the path)")]
pub struct PathError {
    /// Where in the text, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// Why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {reason} at byte {offset}")]
pub struct JsonError {
    /// Where in the text, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl Path {
    /// Compiles a path: `$`, then any of `.name`, `['any name']`, `[0]`, `[-1]`, `[*]`, `.*`; or anything else that RFC 9535
    /// has: `..name`, `[1:3]`, `['a', 'b']`, `[?@.price < 10]`.
    ///
    /// In quotes, either kind, a backslash stands before a quote or a backslash that is part of the name.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let simple = Path::parse_simple(text);
        match (simple, Query::parse(text)) {
            (Ok(path), _) => Ok(path),
            (Err(_), Ok(query)) => Ok(Path { segments: Vec::new(), query: Some(query) }),
            // what only a query has is told of as one
            (Err(_), Err(error)) if query::is_meant(text) => Err(error),
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn parse_simple(text: &str) -> Result<Path, PathError> {
        let Some(mut rest) = text.strip_prefix('$') else {
            return Err(PathError { offset: 0, reason: "a path begins with `$`" });
        };
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let fail = |reason| PathError { offset: text.len() - rest.len(), reason };
            if segments.len() == MAX_SEGMENTS {
                return Err(fail("a path has at most 64 segments"));
            }
            let (segment, length) = if let Some(inner) = rest.strip_prefix('.') {
                parse_dotted(inner).map_err(fail)?
            } else if let Some(inner) = rest.strip_prefix('[') {
                parse_bracketed(inner).map_err(fail)?
            } else {
                return Err(fail("expected `.name` or `[…]`"));
            };
            segments.push(segment);
            rest = &rest[1 + length..];
        }
        Ok(Path { segments, query: None })
    }

    /// Its segments, in order; none of a path that is more than they can say.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The first match in `json`, as it stands there.
    pub fn find<'a>(&self, json: &'a [u8]) -> Result<Option<&'a [u8]>, JsonError> {
        let mut first = None;
        if let Some(query) = &self.query {
            query.each(json, &mut |token| {
                first = Some(token);
                false
            })?;
            return Ok(first);
        }
        walk::walk(json, &self.segments, |token| {
            first = Some(token);
            false
        })?;
        Ok(first)
    }

    /// Shows every match in `json` to `visit`, in the order of the text. After an error some may have been shown.
    pub fn find_all<'a>(&self, json: &'a [u8], visit: &mut dyn FnMut(&'a [u8])) -> Result<(), JsonError> {
        let mut visit = |token| {
            visit(token);
            true
        };
        match &self.query {
            Some(query) => query.each(json, &mut visit),
            None => walk::walk(json, &self.segments, visit),
        }
    }

    /// How many matches `json` has.
    pub fn count(&self, json: &[u8]) -> Result<usize, JsonError> {
        let mut count = 0;
        self.find_all(json, &mut |_| count += 1)?;
        Ok(count)
    }
}

/// Checks that a text is JSON and nothing more.
pub fn check(json: &[u8]) -> Result<(), JsonError> {
    let start = scan::blanks(json, 0);
    let end = scan::blanks(json, scan::value(json, start, 0)?);
    match end == json.len() {
        true => Ok(()),
        false => Err(JsonError { offset: end, reason: "something behind the value" }),
    }
}

/// What follows a dot, and its length in bytes.
fn parse_dotted(text: &str) -> Result<(Segment, usize), &'static str> {
    let length = text.find(|c: char| !bare(c)).unwrap_or(text.len());
    match &text[..length] {
        "" if text.starts_with('*') => Ok((Segment::Every, 1)),
        "" if text.starts_with('.') => Err("`..` is not supported; name every level"),
        "" => Err("expected a name or `*` behind the dot; other names are written ['…']"),
        name => Ok((Segment::Member(name.to_owned()), length)),
    }
}

/// What follows an opening bracket, and its length in bytes with the closing one.
fn parse_bracketed(text: &str) -> Result<(Segment, usize), &'static str> {
    if let Some(quote @ ('\'' | '"')) = text.chars().next() {
        let (name, length) = parse_quoted(&text[1..], quote)?;
        return match text[1 + length..].starts_with(']') {
            true => Ok((Segment::Member(name), length + 2)),
            false => Err("expected `]` behind the name; a bracket holds one name"),
        };
    }
    let length = text.find(']').ok_or("the bracket is not closed")?;
    let segment = match &text[..length] {
        "*" => Segment::Every,
        number if number.starts_with('+') => return Err("expected a whole number, `*` or a quoted name"),
        number => {
            Segment::Index(number.parse().map_err(|_| "expected a whole number, `*` or a quoted name")?)
        }
    };
    Ok((segment, length + 1))
}

/// A name up to its closing quote, and its length in bytes with the quote.
fn parse_quoted(text: &str, quote: char) -> Result<(String, usize), &'static str> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, c @ ('\\' | '\'' | '"'))) => name.push(c),
                _ => return Err("a backslash in a name stands before a quote or a backslash"),
            },
            c if c == quote => return Ok((name, at + 1)),
            c => name.push(c),
        }
    }
    Err("the quote is not closed")
}

/// Whether a character may stand in a name without quotes.
fn bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@' | ':')
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(query) = &self.query {
            return query.fmt(f);
        }
        f.write_str("$")?;
        for segment in &self.segments {
            match segment {
                Segment::Member(name) if !name.is_empty() && name.chars().all(bare) => write!(f, ".{name}")?,
                Segment::Member(name) => {
                    write!(f, "['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))?
                }
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Every => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        Path::parse(text)
    }
}

/// As its text.
impl serde::Serialize for Path {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Path {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Path::parse(&text).map_err(|error| serde::de::Error::custom(format!("{text}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Segment {
        Segment::Member(name.into())
    }

    #[test]
    fn paths_are_understood() {
        let path = Path::parse("$.tripFlights[0].flightsOptions[-1]._id").unwrap();
        let expected = [
            member("tripFlights"),
            Segment::Index(0),
            member("flightsOptions"),
            Segment::Index(-1),
            member("_id"),
        ];
        assert_eq!(path.segments(), expected);
        assert_eq!(Path::parse("$").unwrap().segments(), []);
        assert_eq!(Path::parse("$[*].*").unwrap().segments(), [Segment::Every, Segment::Every]);
        assert_eq!(
            Path::parse(r#"$['a.b]'].content-type["it's"]['\'\\']"#).unwrap().segments(),
            [member("a.b]"), member("content-type"), member("it's"), member("'\\")]
        );
        assert_eq!(Path::parse("$.größe['']").unwrap().segments(), [member("größe"), member("")]);
    }

    #[test]
    fn paths_are_written_as_they_are_read() {
        for text in ["$", "$.a", "$.a[0][-1][*]", "$['a b']['']", r"$['\'\\']", "$.größe"] {
            let path = Path::parse(text).unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(Path::parse(&path.to_string()).unwrap(), path);
        }
        assert_eq!(Path::parse("$.*").unwrap().to_string(), "$[*]");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let offset = |text: &str| Path::parse(text).unwrap_err().offset;
        for (text, at) in [
            ("", 0),
            ("a.b", 0),
            ("$a", 1),
            ("$.", 1),
            ("$.a b", 3),
            ("$[", 1),
            ("$.a[x]", 3),
            ("$.a[1", 3),
            ("$.a[+1]", 3),
            ("$['a", 1),
            ("$['a'", 1),
            ("$[99999999999999999999]", 1),
        ] {
            assert_eq!(offset(text), at, "{text}");
        }
        assert!(Path::parse(&format!("${}", "[0]".repeat(MAX_SEGMENTS))).is_ok());
        assert!(Path::parse(&format!("${}", "[0]".repeat(MAX_SEGMENTS + 1))).is_ok());
        for long in ["[0]", "[?(", "..*"].map(|part| part.repeat(1_000)) {
            assert!(Path::parse(&format!("${long}")).is_err());
        }
        assert!(Path::parse(&format!("$[?{}", "(".repeat(1_000))).is_err());
    }

    #[test]
    fn paths_are_all_that_the_rfc_has() {
        let json = br#"{"a": [{"b": 1, "c": "x"}, {"b": 2.50}, {"b": 3, "c": ["y"]}], "b": null, "n\u00f6": {"b": 9}}"#;
        let found = |text: &str| {
            let (path, mut found) = (Path::parse(text).unwrap(), Vec::new());
            path.find_all(json, &mut |token| found.push(String::from_utf8_lossy(token).into_owned()))
                .unwrap();
            assert_eq!(
                path.find(json).unwrap().map(<[u8]>::to_vec),
                found.first().map(|one| one.clone().into_bytes())
            );
            assert_eq!(
                (path.count(json).unwrap(), Path::parse(&path.to_string()).unwrap()),
                (found.len(), path)
            );
            found
        };
        assert_eq!(found("$..c"), ["\"x\"", "[\"y\"]"]);
        assert_eq!(found("$.a[1:].b"), ["2.50", "3"], "as they stand there");
        assert_eq!(found("$.a[::-1].b"), ["3", "2.50", "1"]);
        assert_eq!(found("$.a[?@.b > 1].b"), ["2.50", "3"]);
        assert_eq!(found("$.a[?@.c == 'x' || @.b == 3].b"), ["1", "3"]);
        assert_eq!(found("$.a[?match(@.c, 'x')].b"), ["1"]);
        assert_eq!(found("$.a[0]['b', 'c']"), ["1", "\"x\""]);
        assert_eq!(found("$['n\u{f6}']..b"), ["9"]);
        assert_eq!(found("$.a[?length(@.c) > 5]"), [""; 0]);
        assert!(Path::parse("$..a").unwrap().find(b"{\"a\": 1").is_err(), "no JSON");
        assert_eq!(Path::parse("$..a").unwrap().find(b"\xef\xbb\xbf{\"a\": 1}"), Ok(Some(&b"1"[..])));
        for wrong in ["$.a[?]", "$..", "$.a[1:2:x]", "$[?@.a ==]", "$.a[?length(@.a)]"] {
            let error = Path::parse(wrong).unwrap_err();
            assert!(error.reason.contains("RFC 9535") && error.offset <= wrong.len(), "{wrong}: {error}");
        }
    }

    #[test]
    fn check_wants_one_whole_value() {
        assert!(check(b" {\"a\": [1, 2.5e-3, null]} \n").is_ok());
        assert!(check(b"{} {}").is_err());
        assert!(check(b"\xef\xbb\xbf {}").is_ok(), "behind a byte order mark");
        assert!(check(b"\xef\xbb {}").is_err() && check(b" \xef\xbb\xbf{}").is_err());
        assert_eq!(Path::parse("$.a").unwrap().find(b"\xef\xbb\xbf{\"a\": 7}"), Ok(Some(&b"7"[..])));
        assert!(check(b"").is_err());
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(check(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(check(nested(MAX_DEPTH + 1).as_bytes()).is_err());
    }
}
