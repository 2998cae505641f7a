//! What looks like a secret: by the name that stands beside it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::names::{
    MASK, SCHEMES, is_mask, is_placeholder, is_secret, is_secret_name, is_strong, may_name_a_secret,
    unescaped,
};
use super::url::{URL_BYTES_MAX, encoded_user_info, literals, user_info};
use crate::pieces::{Piece, split};

/// Bytes of a value that decide whether it is masked, so that a text of many names is not gone through for each.
const DECIDING_BYTES: usize = 1 << 10;

macro_rules! regexes {
    ($($name:ident $text:literal;)*) => {
        $(static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($text).ok());)*

        #[cfg(test)]
        #[test]
        fn all_patterns_are_right() {
            $(assert!($name.is_some(), "{}", $text);)*
        }
    };
}

regexes! {
    URL r"(?i):(?:\\*/){2}|%3a%2f%2f";
    PARAMETER r#"(?:^|[?&\s;,|({'"`])(?:--)?(?<name>(?:[A-Za-z0-9_.\-\[\]]|%[0-9A-Fa-f]{2}){1,64})="#;
    PARAMETER_VALUE r#"^(?<secret>(?:\$\{[^}&\r\n]*\}|[^&\s"'`#])+)"#;
    FIELD r#""(?<name>(?:[^"\\\s]|\\[^"\s]){1,64})(?<escape>\\?)"\s*:\s*"#;
    FIELD_VALUE r#"^(?:\\"(?<inner>(?:[^"\\]|\\\\\\"|\\[^"])+)|"(?<secret>(?:[^"\\]|\\(?s:.))+)|(?<number>-?[0-9][0-9.eE+\-]*))"#;
    HEADER r#"(?i)(?<before>\b(?:proxy-)?authorization:\s*(?:(?:bearer|basic|digest|token|apikey|negotiate)\s+)?|\b(?:set-)?cookie:\s*|\bx-(?:auth(?:-[a-z0-9_-]+)?|session(?:-id)?|api-key):\s*)(?<secret>[^\s"',;]+(?:;\s*[^\s"',;]+)*)"#;
    PART r#"(?is)(?<before>;\s*name="(?<name>[^"\r\n]{1,64})"[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n)(?<secret>.+?)(?:\r?\n--|$)"#;
    ELEMENT r#"<(?<whole>(?:[A-Za-z0-9_.\-]{1,64}:)?(?<name>[A-Za-z0-9_.\-]{1,64}))(?:\s(?:[^<>"']|"[^"]*"|'[^']*')*)?>"#;
    TAG r#"<[A-Za-z_][^\s<>]*\s(?:[^<>"']|"[^"]*(?:"|$)|'[^']*(?:'|$))*"#;
    ATTRIBUTE r#"(?<before>\s(?:[A-Za-z0-9_.\-]{1,64}:)?(?<name>[A-Za-z0-9_.\-]{1,64})\s*=\s*(?:\\?"|'))(?<secret>[^"'\\]+)"#;
    BELOW r#""(?<name>(?:[^"\\\s]|\\[^"\s]){1,64})"\s*:\s*[\[{]"#;
    NAMED r#"(?m)(?<before>^|[^\w$.\\/:\-]|\\[nrt])[ \t]*(?<quote>['"]?)(?<name>[\w$][\w$.\-]{0,63})['"]?[ \t]*:(?<space>[ \t]*)(?<scheme>(?i:bearer|basic|digest|token|apikey|negotiate)[ \t]+)?"#;
    LOGIN r#"(?<before>(?:^|\s)(?:-[uU]|--user|--proxy-user)(?:\s*|=)["']?[^\s:"'/]*:)(?<secret>[^\s"']+)"#;
    CURL_VALUE r#"(?<before>(?:^|\s)(?:--cookie|--oauth2-bearer|--pass|--proxy-pass)(?:\s+|=)["']?)(?<secret>[^\s"']+)"#;
    ASSIGNED r#"(?m)(?<before>(?:^|[\s;,|({'"`#])(?<name>[A-Za-z0-9_.\-]{1,64})(?:[ \t]+(?::?=|=>)[ \t]*|(?::?=|=>)[ \t]+|:=)["']?)(?<secret>[^\s"'`=>~$?:@%<][^\s"'`]*)"#;
    BEARER r#"(?i)(?<before>(?:^|[^\w/.\-])bearer\s+)(?<secret>[^\s"',(<\[{][^\s"',]{7,})"#;
}

/// Whose text is masked, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Of a scenario: what it says with holes, `${…}`, is no secret.
    Scenario,
    /// The same, with a star for each character.
    InPlace,
    /// Of requests, answers and logs, in which nothing has a hole.
    Traffic,
}

impl Way {
    fn mask(self, secret: &str) -> String {
        match self {
            Way::InPlace => super::stars(secret),
            Way::Scenario | Way::Traffic => MASK.to_owned(),
        }
    }

    /// Whether a value says nothing as it stands, as it is made when the scenario runs.
    fn is_made_later(self, value: &str) -> bool {
        let has_hole = || {
            let pieces = split(value);
            pieces.is_ok_and(|pieces| pieces.iter().any(|piece| matches!(piece, Piece::Hole { .. })))
        };
        // one in which quotes stand may be cut off at them
        self != Way::Traffic && (value.trim_start().starts_with("${") || is_placeholder(value) || has_hole())
    }

    fn is_masked(self, name: &str, value: &str) -> bool {
        is_secret(name, value) && !self.is_made_later(value)
    }
}

/// A text of whatever kind without what stands in it beside a secret's name.
pub(super) fn masked(text: &str, way: Way) -> Cow<'_, str> {
    // in a source the others are found with what goes on below
    by_patterns(text, way, way != Way::InPlace)
}

/// What stands in a text beside a secret's name, and that name.
pub(super) fn found(text: &str) -> Vec<(&str, &str)> {
    let masked = by_patterns(text, Way::InPlace, true);
    let Cow::Owned(masked) = masked else { return Vec::new() };
    let mut found = Vec::new();
    // of the value that a star stands for
    let mut begin = None;
    let mut put = |value: Range<usize>| {
        let (before, value) = (&text[..value.start], &text[value]);
        if value.chars().all(|c| c == '*') {
            return;
        }
        match before.ends_with('/') || before.to_ascii_lowercase().ends_with("%2f") {
            // of a URL; a user alone is no secret
            true => found.extend(value.split_once(':').map(|(_, password)| ("password", password))),
            false => found.push((name_before(before), value)),
        }
    };
    for ((at, _), c) in text.char_indices().zip(masked.chars()) {
        match (c == '*', begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                put(from..at);
                begin = None;
            }
            _ => {}
        }
    }
    if let Some(from) = begin {
        put(from..text.len());
    }
    found
}

/// The name beside which a value stands that follows.
fn name_before(text: &str) -> &str {
    let is_other = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let mut words = text.rsplit(is_other).filter(|word| !word.is_empty());
    let name = words.next().unwrap_or_default();
    // `Authorization: Bearer …`
    if SCHEMES.contains(&name.to_ascii_lowercase().as_str()) { words.next().unwrap_or(name) } else { name }
}

fn by_patterns(whole: &str, way: Way, all: bool) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(whole);
    // a pattern is made when it is needed first, which takes milliseconds: most texts lack what it cannot do without
    let names = may_name_a_secret(whole);
    let has = |mark| names && whole.contains(mark);
    let (has_quotes, has_colons, has_equals, has_tags) = (has('"'), has(':'), has('='), has('<'));
    if all && has_quotes && has_colons {
        then(&mut text, |text| below(text, way));
    }
    if has_tags {
        then(&mut text, |text| elements(text, way));
        then(&mut text, |text| in_tags(text, way));
    }
    then(&mut text, |text| user_infos(text, way));
    if has_equals {
        then(&mut text, |text| parameters(text, way));
    }
    if has_quotes && has_colons {
        then(&mut text, |text| fields(text, way));
    }
    if all && has_colons {
        then(&mut text, |text| headers(text, way));
        if may_be_named(whole) {
            then(&mut text, |text| named(text, way));
        }
    }
    let patterns = [
        (has_quotes && has_equals, &PART),
        (has_equals, &ASSIGNED),
        (names && whole.to_ascii_lowercase().contains("bearer"), &BEARER),
        (whole.split_whitespace().any(|word| LOGINS.iter().any(|flag| word.starts_with(flag))), &LOGIN),
        (names && whole.contains("--"), &CURL_VALUE),
    ];
    for (_, pattern) in patterns.into_iter().filter(|(may_match, _)| *may_match) {
        then(&mut text, |text| replaced(pattern, text, way));
    }
    text
}

/// What [`LOGIN`] begins with.
const LOGINS: [&str; 4] = ["-u", "-U", "--user", "--proxy-user"];

/// Whether [`NAMED`] may find a secret's name: one that stands right before a colon.
fn may_be_named(text: &str) -> bool {
    let is_of_no_name = |c: char| c.is_whitespace() || "'\",:;(){}[]<>".contains(c);
    text.match_indices(':').any(|(at, _)| {
        let before = text[..at].trim_end_matches([' ', '\t']);
        let before = before.strip_suffix(['\'', '"']).unwrap_or(before);
        let begin = before.rfind(is_of_no_name).unwrap_or(0);
        may_name_a_secret(&before[begin..])
    })
}

/// A text without the secrets of headers, each of which is named.
pub(super) fn headers(text: &str, way: Way) -> Cow<'_, str> {
    match text.contains(':') && may_name_a_secret(text) {
        true => replaced(&HEADER, text, way),
        false => Cow::Borrowed(text),
    }
}

fn then(text: &mut Cow<'_, str>, mask: impl FnOnce(&str) -> Cow<'_, str>) {
    let masked = match mask(text) {
        Cow::Owned(masked) => masked,
        Cow::Borrowed(_) => return,
    };
    *text = Cow::Owned(masked);
}

/// A text without what stands in URLs before the last `@` of who serves them. Slashes may be escaped as in JSON, or the whole
/// URL as in a query.
fn user_infos(text: &str, way: Way) -> Cow<'_, str> {
    let Some(pattern) = URL.as_ref() else { return Cow::Borrowed(text) };
    let mut out = Replaced::new(text);
    for mark in pattern.find_iter(text) {
        let begin = mark.end();
        let is_encoded = mark.as_str().starts_with('%');
        let rest = beginning(&text[begin..], URL_BYTES_MAX);
        if begin < out.end || !rest.contains(if is_encoded { "%40" } else { "@" }) {
            continue;
        }
        let rest = rest.split(['"', '\'', '<', '>', '`', '\r', '\n']).next().unwrap_or_default();
        let info = if is_encoded { encoded_user_info(rest) } else { user_info(rest) };
        let Some(info) = info.filter(|info| !info.is_empty() && !is_mask(info)) else { continue };
        if !way.is_made_later(info) {
            out.put(begin, info.len(), &way.mask(info));
            continue;
        }
        for range in literals(info) {
            out.put(begin + range.start, range.len(), &way.mask(&info[range]));
        }
    }
    out.done()
}

/// A text without the secrets of a pattern that says what is before them.
fn replaced<'t>(pattern: &LazyLock<Option<Regex>>, text: &'t str, way: Way) -> Cow<'t, str> {
    let mut out = Replaced::new(text);
    out.put_secrets(pattern, 0..text.len(), way);
    out.done()
}

/// `cookie: sid=***; lang=***`.
fn are_masked_cookies(before: &str, value: &str) -> bool {
    let is_masked = |cookie: &str| cookie.split_once('=').is_some_and(|(_, value)| is_mask(value.trim()));
    before.to_ascii_lowercase().contains("cookie:") && value.split(';').all(is_masked)
}

/// A text without what a value's pattern finds behind names: where `value_in` says, which is given what follows.
fn behind<'t>(
    pattern: &LazyLock<Option<Regex>>,
    text: &'t str,
    way: Way,
    value_in: impl Fn(&Captures<'t>, &str) -> Option<Range<usize>>,
) -> Cow<'t, str> {
    let Some(pattern) = pattern.as_ref() else { return Cow::Borrowed(text) };
    let mut out = Replaced::new(text);
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| whole.end() >= out.end) else { continue };
        let name = percent_encoding::percent_decode_str(&found["name"]).decode_utf8_lossy();
        let name = unescaped(&name);
        // before the value is looked at, which may be long
        if !is_secret_name(&name) {
            continue;
        }
        let rest = &text[whole.end()..];
        let deciding = beginning(rest, DECIDING_BYTES);
        let is_secret = |range: &Range<usize>| way.is_masked(&name, &deciding[range.clone()]);
        let Some(value) = value_in(&found, deciding).filter(is_secret).and_then(|_| value_in(&found, rest))
        else {
            continue;
        };
        let secret = &rest[value.clone()];
        let escape =
            found.name("escape").filter(|_| way != Way::InPlace && !rest[..value.start].contains('"'));
        let mask = match escape {
            Some(escape) => format!("{0}\"{MASK}{0}\"", escape.as_str()),
            None => way.mask(secret),
        };
        out.put(whole.end() + value.start, value.len(), &mask);
    }
    out.done()
}

/// Where the value is that a text of YAML begins with, in quotes or not, and where it ends with its quote.
fn yaml_value(text: &str) -> (Range<usize>, usize) {
    let is_line_end = |c: char| matches!(c, '\r' | '\n');
    let next = |at: usize| text[at..].chars().next();
    // within a text of JSON quotes are escaped
    let escapes = text.len() - text.trim_start_matches('\\').len();
    if let Some(mark) = next(escapes).filter(|mark| escapes > 0 && ['"', '\''].contains(mark)) {
        let begin = escapes + 1;
        let is_end = |at: &usize| {
            let before = &text[begin..*at];
            before.len() - before.trim_end_matches('\\').len() <= escapes
        };
        let line = text[begin..].find(is_line_end).map_or(text.len(), |length| begin + length);
        let close = text[begin..line].match_indices(mark).map(|(at, _)| begin + at).find(is_end);
        let end = close.map_or(line, |at| begin + text[begin..at].trim_end_matches('\\').len());
        return (begin..end, close.map_or(line, |at| at + 1));
    }
    if let Some(mark) = next(0).filter(|mark| ['"', '\''].contains(mark)) {
        let mut at = 1;
        while let Some(c) = next(at).filter(|c| *c != mark && !is_line_end(*c)) {
            let is_escape = c == '\\' && mark == '"';
            at += c.len_utf8();
            at += next(at).filter(|c| is_escape && !is_line_end(*c)).map_or(0, char::len_utf8);
        }
        return (1..at, at + usize::from(next(at) == Some(mark)));
    }
    let ends = |c: char| c.is_whitespace() || "\"',;{}])`".contains(c);
    let cannot_begin = |c: char| ends(c) || "[(|>#*&".contains(c);
    let mut at = 0;
    while let Some(c) = next(at) {
        let hole = text[at..].strip_prefix("${").and_then(|hole| {
            let hole = beginning(hole, DECIDING_BYTES);
            hole.find(|c| c == '}' || is_line_end(c)).filter(|end| hole[*end..].starts_with('}'))
        });
        match hole {
            Some(length) => at += "${}".len() + length,
            None if ends(c) || (at == 0 && cannot_begin(c)) => break,
            None => at += c.len_utf8(),
        }
    }
    (0..at, at)
}

/// A text without the values of parameters: `user%5Bpassword%5D=…`.
fn parameters(text: &str, way: Way) -> Cow<'_, str> {
    behind(&PARAMETER, text, way, |_, rest| Some(PARAMETER_VALUE.as_ref()?.find(rest)?.range()))
}

/// A text without texts and numbers that are values of JSON, which may stand in a text of JSON itself.
fn fields(text: &str, way: Way) -> Cow<'_, str> {
    behind(&FIELD, text, way, |_, rest| {
        let value = FIELD_VALUE.as_ref()?.captures(rest)?;
        let groups = ["inner", "secret", "number"].into_iter();
        groups.filter_map(|group| value.name(group)).next().map(|value| value.range())
    })
}

/// A text without what is within elements of XML, up to their ends.
fn elements(text: &str, way: Way) -> Cow<'_, str> {
    behind(&ELEMENT, text, way, |found, rest| {
        (!found[0].ends_with("/>")).then(|| 0..end_of_element(rest, &found["whole"]))
    })
}

/// A text without the values of attributes of XML.
fn in_tags(text: &str, way: Way) -> Cow<'_, str> {
    let mut out = Replaced::new(text);
    for tag in TAG.as_ref().into_iter().flat_map(|pattern| pattern.find_iter(text)) {
        out.put_secrets(&ATTRIBUTE, tag.range(), way);
    }
    out.done()
}

/// A text without values that stand behind a name and a colon, as in YAML: `{password: ab}`. In prose a colon is no such sign, so
/// that what follows a word, or goes on with words, stays; what is logged has no prose to lose.
fn named(text: &str, way: Way) -> Cow<'_, str> {
    let Some(pattern) = NAMED.as_ref() else { return Cow::Borrowed(text) };
    let mut out = Replaced::new(text);
    // where the value ends that was looked at last
    let mut looked_at = 0;
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| whole.end() >= looked_at) else { continue };
        let name = &found["name"];
        // a word such as `token` alone is one of prose
        let is_name = is_strong(name) || (is_secret_name(name) && name.contains(['_', '-', '.']));
        if !is_name {
            continue;
        }
        let rest = &text[whole.end()..];
        let (value, end) = yaml_value(rest);
        looked_at = whole.end() + end;
        let (begin, is_quoted) = (whole.end() + value.start, value.start > 0);
        let value = &rest[value];
        if value.is_empty() || (found["space"].is_empty() && value.starts_with("//")) {
            continue;
        }
        let before = text[..whole.start() + found["before"].len()].trim_end();
        let is_line = found["before"].contains(['\n', '\\']);
        let follows_a_word = before.ends_with(char::is_alphanumeric) && !is_line;
        let goes_on =
            rest[end..].starts_with(' ') && rest[end..].trim_start().starts_with(char::is_alphanumeric);
        let is_prose = found["quote"].is_empty() && (follows_a_word || goes_on);
        let is_scheme = SCHEMES.contains(&value.to_ascii_lowercase().as_str());
        // those of a header are masked by then, one by one perhaps
        let are_cookies = !is_quoted && name.to_ascii_lowercase().ends_with("cookie");
        if !is_scheme
            && !are_cookies
            && way.is_masked(name, value)
            && (is_quoted || way == Way::Traffic || !is_prose)
        {
            out.put(begin, value.len(), &way.mask(value));
        }
    }
    out.done()
}

/// How many bytes there are before the end tag of an element that has begun; all where it is cut off.
fn end_of_element(text: &str, name: &str) -> usize {
    let is_name = |tag: &str| {
        let of_name = tag.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        of_name && tag[name.len()..].starts_with(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'))
    };
    let (mut at, mut depth) = (0, 1);
    while let Some(found) = text[at..].find('<') {
        let begin = at + found;
        let tag = &text[begin + 1..];
        at = begin + 1;
        if let Some(end) = [("![CDATA[", "]]>"), ("!--", "-->")]
            .iter()
            .find_map(|(from, to)| tag.starts_with(from).then(|| tag.find(to).unwrap_or(tag.len())))
        {
            at += end;
        } else if tag.strip_prefix('/').is_some_and(is_name) {
            depth -= 1;
            if depth == 0 {
                return begin;
            }
        } else if is_name(tag) && !tag.split(['<', '>']).next().is_some_and(|inside| inside.ends_with('/')) {
            depth += 1;
        }
    }
    text.len()
}

/// The beginning of a text, no longer than so many bytes.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text with something else in some places.
struct Replaced<'t> {
    text: &'t str,
    out: String,
    /// Where what was written last ended.
    end: usize,
}

impl<'t> Replaced<'t> {
    fn new(text: &'t str) -> Replaced<'t> {
        Replaced { text, out: String::new(), end: 0 }
    }

    /// What lies in what was replaced before is gone already.
    fn put(&mut self, begin: usize, length: usize, instead: &str) {
        if begin >= self.end {
            self.out.push_str(&self.text[self.end..begin]);
            self.out.push_str(instead);
            self.end = begin + length;
        }
    }

    /// Puts masks in the places of a pattern's secrets within a part of the text.
    fn put_secrets(&mut self, pattern: &LazyLock<Option<Regex>>, part: Range<usize>, way: Way) {
        let Some(pattern) = pattern.as_ref() else { return };
        for found in pattern.captures_iter(&self.text[part.clone()]) {
            let (before, Some(secret)) = (&found["before"], found.name("secret")) else { continue };
            let value = secret.as_str();
            let is_masked = match found.name("name") {
                Some(name) => way.is_masked(name.as_str(), value),
                None => !is_mask(value) && !are_masked_cookies(before, value) && !way.is_made_later(value),
            };
            if is_masked {
                self.put(part.start + secret.start(), value.len(), &way.mask(value));
            }
        }
    }

    fn done(mut self) -> Cow<'t, str> {
        if self.end == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(&self.text[self.end..]);
        Cow::Owned(self.out)
    }
}

/// A text without the leaves of objects and lists of JSON that stand below a secret's name.
fn below(text: &str, way: Way) -> Cow<'_, str> {
    let Some(pattern) = BELOW.as_ref() else { return Cow::Borrowed(text) };
    let (mut out, mut done) = (String::new(), 0);
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| whole.start() >= done) else { continue };
        let name = unescaped(&found["name"]);
        if !is_secret_name(&name) {
            continue;
        }
        out.push_str(&text[done..whole.end()]);
        done = whole.end() + leaves(&name, &text[whole.end()..], way, &mut out);
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Writes what is within an object or list, or its beginning, without its leaves; says how many bytes of the text that was.
fn leaves(name: &str, text: &str, way: Way, out: &mut String) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 1);
    while at < bytes.len() && depth > 0 {
        let begin = at;
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at);
                let inside = &text[at + 1..end];
                let is_name =
                    bytes[end..].iter().skip(1).find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                let kept = is_name || !way.is_masked(name, inside);
                at = (end + 1).min(bytes.len());
                match kept {
                    true => out.push_str(&text[begin..at]),
                    false => out.extend(["\"", &way.mask(inside), &text[end..at]]),
                }
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'-' | b'0'..=b'9' => {
                let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                at += bytes[at..].iter().take_while(|byte| is_number(byte)).count();
                match is_secret(name, &text[begin..at]) {
                    true if way == Way::InPlace => out.push_str(&way.mask(&text[begin..at])),
                    true => out.extend(["\"", MASK, "\""]),
                    false => out.push_str(&text[begin..at]),
                }
                continue;
            }
            _ => {}
        }
        // up to the next letter, which may have several bytes
        at += text[at..].chars().next().map_or(1, char::len_utf8);
        out.push_str(&text[begin..at]);
    }
    at
}

/// Where the quote stands that ends a text, or the end of all.
fn string_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_masked_beside_a_name() {
        for (given, wanted) in [
            ("GET http://me:mine@host/a?b=c HTTP/1.1", "GET http://***@host/a?b=c HTTP/1.1"),
            ("http://u:p@S1@host/a@b", "http://***@host/a@b"),
            ("`http://u:p/S1@h:80/a` is no URL", "`http://***@h:80/a` is no URL"),
            ("'http://u:p S1@h', x@y", "'http://***@h', x@y"),
            ("http://u:p?S1@h http://u:12#S1@h", "http://***@h"),
            ("http://u:/S1@h", "http://***@h"),
            ("http://u:1234567/S1@h", "http://***@h"),
            ("http://u:p@S1:x/S2@h/", "http://***@h/"),
            ("redis://:p/S1@h:1/2", "redis://***@h:1/2"),
            (
                "http://u:123/S1@h http://u:12?S1@h:80/x http://u:1#S1@h",
                "http://***@h http://***@h:80/x http://***@h",
            ),
            ("http://me@corp.example:12/S1@h/x", "http://***@h/x"),
            (
                "http://127.0.0.1:80/a@b http://localhost:80/?to=a@b",
                "http://127.0.0.1:80/a@b http://localhost:80/?to=a@b",
            ),
            (r"http:\/\/u:p@h\/x, http:\/\/u:p\/S1@h", r"http:\/\/***@h\/x, http:\/\/***@h"),
            (r#""http:\\/\\/u:1\\/S1@h""#, r#""http:\\/\\/***@h""#),
            (r"http:\/\/h:80\/@user\/x http:\/\/h\/a@b", r"http:\/\/h:80\/@user\/x http:\/\/h\/a@b"),
            ("/a?to=http%3A%2F%2Fu%3AS1%40h%2Fx&n=5", "/a?to=http%3A%2F%2F***%40h%2Fx&n=5"),
            ("/a?to=http%3a%2f%2fh%2f%40user", "/a?to=http%3a%2f%2fh%2f%40user"),
            (
                r#"{"pin":1234,"cardPin":"S1","ping":5,"cvv2":123}"#,
                r#"{"pin":"***","cardPin":"***","ping":5,"cvv2":"***"}"#,
            ),
            ("/a?pin=1234&pinned=1, --pin=system=0", "/a?pin=***&pinned=1, --pin=system=0"),
            ("db.password = S1;", "db.password = ***"),
            ("export TOKEN = \"S1\"", "export TOKEN = \"***\""),
            ("api_key := S1, PASSWORD => S2", "api_key := *** PASSWORD => ***"),
            ("token == other, count = 5, key = ${k}", "token == other, count = 5, key = ${k}"),
            ("WHERE ycsb_key = $1 AND token = ?", "WHERE ycsb_key = $1 AND token = ?"),
            ("<pin>1234</pin> pin: S1", "<pin>***</pin> pin: ***"),
            ("wss://[::1]:80/@a http://h:80/@user/x", "wss://[::1]:80/@a http://h:80/@user/x"),
            ("http://host/@user/x, http://h/a?b=c@d", "http://host/@user/x, http://h/a?b=c@d"),
            ("see http://h.org, or ask me@host", "see http://h.org, or ask me@host"),
            ("(http://h:80): ask me@host", "(http://h:80): ask me@host"),
            ("http://HOST:PORT/a@b", "http://HOST:PORT/a@b"),
            ("http://${h}:${p}/@a http://me:${pw}@h", "http://${h}:${p}/@a http://me:${pw}@h"),
            ("http://me:S1${x}S2@h http://${u}:S1@h", "http://me:***${x}***@h http://${u}:***@h"),
            ("{user: a, pass: S1}", "{user: a, pass: ***}"),
            (r#"{"otp":123456,"jwt":"S1","pass":true}"#, r#"{"otp":"***","jwt":"***","pass":true}"#),
            ("/a?csrf=S1&cvv=123&smtpPass=S2&compass=n", "/a?csrf=***&cvv=***&smtpPass=***&compass=n"),
            ("X-Session: S1, y", "X-Session: ***, y"),
            ("checks pass: 12 of 13 requests", "checks pass: 12 of 13 requests"),
            ("GET /a?api_key=abcd&page=2", "GET /a?api_key=***&page=2"),
            ("authorization: Bearer abcdef, x", "authorization: Bearer ***, x"),
            ("cookie: a=bcde; f=g", "cookie: ***"),
            ("Authorization: Bearer ***", "Authorization: Bearer ***"),
            ("authorization: Basic abc", "authorization: Basic ***"),
            (r#"got {"access_token": "abc", "n": 2}"#, r#"got {"access_token": "***", "n": 2}"#),
            ("/a?token=${token}", "/a?token=${token}"),
            ("Bearer ${env(\"TOKEN\")}", "Bearer ${env(\"TOKEN\")}"),
            ("GET /a?sig=a1b2c3&signature=x%2Fy&n=2", "GET /a?sig=***&signature=***&n=2"),
            ("`/a?token=abc` is not a URL", "`/a?token=***` is not a URL"),
            ("X-Auth: abc, x-auth-user: me", "X-Auth: ***, x-auth-user: ***"),
            ("x-session-id: 1234 and X-Api-Key: 5678", "x-session-id: *** and X-Api-Key: ***"),
            ("the header Cookie (--set Cookie=…)", "the header Cookie (--set Cookie=…)"),
            ("mean 5 ms at me@host", "mean 5 ms at me@host"),
            ("key_bytes=64KiB token_count=1000", "key_bytes=64KiB token_count=1000"),
            ("GET /bearer HTTP/1.1", "GET /bearer HTTP/1.1"),
            ("said Bearer abcdefgh", "said Bearer ***"),
            (r#"{"token_type": "bearer"}"#, r#"{"token_type": "bearer"}"#),
            (
                r#"{"password":{"plain":"a\"b","n":[12, "ü"]},"n":5}"#,
                r#"{"password":{"plain":"***","n":["***", "***"]},"n":5}"#,
            ),
            (
                r#"{"client_secret":["ab"],"tokens":["cd","ef"]}"#,
                r#"{"client_secret":["***"],"tokens":["***","***"]}"#,
            ),
            (r#"{"password":{"cut":"ab"#, r#"{"password":{"cut":"***"#),
            (r#"{"users":[{"id":"ab"}]}"#, r#"{"users":[{"id":"ab"}]}"#),
            (
                "form-data; name=\"password\"\r\n\r\nhunter2\r\n--b\r\nform-data; name=\"n\"\r\n\r\n5\r\n",
                "form-data; name=\"password\"\r\n\r\n***\r\n--b\r\nform-data; name=\"n\"\r\n\r\n5\r\n",
            ),
            ("<a><password>ab</password><n>5</n></a>", "<a><password>***</password><n>5</n></a>"),
            ("<s:password x=\"1\">ab</s:password>", "<s:password x=\"1\">***</s:password>"),
        ] {
            assert_eq!(masked(given, Way::Scenario), wanted);
        }
    }

    #[test]
    fn values_behind_a_name_and_a_colon_are_masked_and_prose_stays() {
        for (given, wanted) in [
            ("line 3: {password: ab, n: 5}", "line 3: {password: ***, n: 5}"),
            ("- client_secret: 'a b'", "- client_secret: '***'"),
            ("'PASSWORD': \"a b\"", "'PASSWORD': \"***\""),
            ("x\n  api-key: ab", "x\n  api-key: ***"),
            ("X-My-Token: Bearer ab", "X-My-Token: Bearer ***"),
            ("(password: ab)", "(password: ***)"),
            ("auth.password: expected a text", "auth.password: expected a text"),
            ("--set password: the scenario has none", "--set password: the scenario has none"),
            ("cannot read the password: denied", "cannot read the password: denied"),
            ("unexpected token: }", "unexpected token: }"),
            ("token: abc", "token: abc"),
            ("'--password=ab' (token=cd `secret=ef`", "'--password=***' (token=*** `secret=***`"),
            ("curl -u me:ab --cookie 'sid=cd' http://h", "curl -u me:*** --cookie '***' http://h"),
        ] {
            assert_eq!(masked(given, Way::Scenario), wanted);
        }
        let logged = "12:00:01 INFO password: ab user: me";
        assert_eq!(masked(logged, Way::Traffic), "12:00:01 INFO password: *** user: me");
    }

    #[test]
    fn what_is_not_written_down_of_traffic() {
        for (given, wanted) in [
            (
                "GET /a?user[password]=ab&u%5Bsecret%5D=cd&p%61sswd=e&n[key]=f&n[a]=5",
                "GET /a?user[password]=***&u%5Bsecret%5D=***&p%61sswd=***&n[key]=***&n[a]=5",
            ),
            ("user%5Bpassword%5D=ab", "user%5Bpassword%5D=***"),
            ("a=b;token=cd", "a=b;token=***"),
            (
                r#"{"password": 12345678, "pwd":-1.5e3,"token_bytes": 64}"#,
                r#"{"password": "***", "pwd":"***","token_bytes": 64}"#,
            ),
            (r#"{\"password\": 1234}"#, r#"{\"password\": \"***\"}"#),
            (
                r#"{"msg":"{\"password\":\"a\\\"b\",\"n\":1}","n":2}"#,
                r#"{"msg":"{\"password\":\"***\",\"n\":1}","n":2}"#,
            ),
            (r#"{"password":"ab\", cd","n":1}"#, r#"{"password":"***","n":1}"#),
            ("<password><plain>x</plain></password><n>5</n>", "<password>***</password><n>5</n>"),
            ("<password><![CDATA[x</password>]]></password><n>5</n>", "<password>***</password><n>5</n>"),
            ("<pwd><pwd>x</pwd><pwd/><pwd a='b'/>y</pwd><n>5</n>", "<pwd>***</pwd><n>5</n>"),
            ("<a:pwd b='>'><c>x</c>", "<a:pwd b='>'>***"),
            ("<password/><n>5</n><pwd a=\"b\"/><n>5</n>", "<password/><n>5</n><pwd a=\"b\"/><n>5</n>"),
            (
                "<user n=\"5\" password=\"x>\"/><user s:password = 'y' n='5'>5",
                "<user n=\"5\" password=\"***\"/><user s:password = '***' n='5'>5",
            ),
            ("<user password=\"cut of", "<user password=\"***"),
            (r#"{"password":"LEAK***d1"}"#, r#"{"password":"***"}"#),
            (r#"{"password":"LEAK${d2"}"#, r#"{"password":"***"}"#),
            (r#"{"password":"${d2}"}"#, r#"{"password":"***"}"#),
            (r#"{"password":"…d3"}"#, r#"{"password":"***"}"#),
            (r#"{"password":{"a":"LEAKh1 ${x}"}}"#, r#"{"password":{"a":"***"}}"#),
            (r#"{"password":{"a":"b***"}}"#, r#"{"password":{"a":"***"}}"#),
            (r#"{"pass\u0077ord":"LEAKe1"}"#, r#"{"pass\u0077ord":"***"}"#),
            (r#"{"pass\u0077ord":["LEAKe1"]}"#, r#"{"pass\u0077ord":["***"]}"#),
            ("/a?token=${token}&secret=***a", "/a?token=***&secret=***"),
            ("authorization: Bearer ***ab", "authorization: Bearer ***"),
            ("Cookie: sid=***; b=***", "Cookie: sid=***; b=***"),
            ("Cookie: sid=***; b=ab", "Cookie: ***"),
            ("(--set token=***), token=***.", "(--set token=***), token=***."),
            (
                r#"{"query":"mutation { login(user: \"a\", password: \"S1 S2\") { t } }","n":1}"#,
                r#"{"query":"mutation { login(user: \"a\", password: \"***\") { t } }","n":1}"#,
            ),
            (
                r#"{"query":"{\nlogin(\npassword:\"a\\\"b\" n: 1)"}"#,
                r#"{"query":"{\nlogin(\npassword:\"***\" n: 1)"}"#,
            ),
            (
                r#""{\"q\":\"a(password: \\\"S1\\\", n: 5)\"}""#,
                r#""{\"q\":\"a(password: \\\"***\\\", n: 5)\"}""#,
            ),
            (r#"{"query":"a(password: \"cut of"#, r#"{"query":"a(password: \"***"#),
        ] {
            assert_eq!(masked(given, Way::Traffic), wanted);
        }
    }

    #[test]
    fn what_stands_beside_a_name_is_found_with_it() {
        for (given, wanted) in [
            ("GET /a?n=5&api_key=ab", [("api_key", "ab")].as_slice()),
            ("user=a&password=ab&pin=1234", &[("password", "ab"), ("pin", "1234")]),
            (
                r#"{"password":"ü\"b","tokens":["c", 1234567890123]}"#,
                &[("password", r#"ü\"b"#), ("tokens", "c"), ("c", "1234567890123")],
            ),
            ("login(password: \"ab\")", &[("password", "ab")]),
            ("Authorization: Bearer ab", &[("Authorization", "ab")]),
            ("http://me:ab@h/", &[("password", "ab")]),
            ("<a><pwd>ab</pwd></a>", &[("pwd", "ab")]),
            ("token=${t}, token=***, n=5", &[]),
        ] {
            assert_eq!(found(given), wanted, "{given}");
        }
    }

    #[test]
    fn a_scenario_keeps_its_holes_and_its_places() {
        for text in
            ["/a?token=a${env(\"T\")}", r#"{"password": "${pw}", "key": "a ${k}"}"#, "<pwd>${pw}</pwd>"]
        {
            assert_eq!(masked(text, Way::Scenario), text);
        }
        assert_eq!(masked(r#"{"password":"ab${d2"}"#, Way::Scenario), r#"{"password":"***"}"#);
        assert_eq!(
            masked("{\"pwd\": 12, \"token\": \"ab\"}", Way::InPlace),
            "{\"pwd\": **, \"token\": \"**\"}"
        );
    }
}
