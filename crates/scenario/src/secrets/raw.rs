//! What is secret in raw text, before it is a scenario: YAML as people write it, right or wrong.
//!
//! A line that is quoted in a message may not parse, or may stand below a key that nobody knows. So secrets are found by the
//! names beside them, in the whole text, as a value may go on for lines.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::login_without_scheme;
use super::names::{is_secret, is_secret_name, is_strong, may_name_a_secret, scheme, unescaped};
use super::pattern::beginning;
use super::url::{URL_BYTES_MAX, literals, user_info, whole_user_info};
use crate::pieces::{Piece, split};
use crate::yaml::{Content, Node};

/// Names of credentials; below them everything is secret but the user.
const CREDENTIALS: [&str; 3] = ["auth", "basic", "bearer"];
/// Whose value below credentials can be shown.
const OPEN: [&str; 3] = ["user", "username", "none"];
/// What stands below a target or a session, which may be called `auth`, too.
const OF_PLANS: [&str; 3] = ["steps", "url", "service"];
/// Keys of the language that look like a secret's name.
const OF_LANGUAGE: [&str; 2] = ["key", "cookie"];
/// Whose value is a URL.
const OF_URLS: [&str; 2] = ["url", "proxy"];
/// Bytes of a first argument that is looked for secrets where it does not end.
const ARGUMENT_BYTES_MAX: usize = 1 << 10;
/// Bytes of credentials in brackets, which may be a target or a session instead.
const CREDENTIALS_BYTES_MAX: usize = 4 << 10;
/// Functions whose first argument is a name.
const NAMING: [&str; 2] = ["env(", "file("];

/// A key, with what stands before and behind it. Keys with spaces are found by their last word.
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?m)(?:^|[^\w$.\\/:\-])(?:\[|-[ \t]*)?"#,
        r#"(?<key>"(?<double>(?:[^"\\\r\n]|\\[^\r\n]){1,64})"|'(?<single>[^'\r\n]{1,64})'|(?<plain>[\w$][\w$.\-/]{0,63}))"#,
        r#"[ \t]*(?:\r?\n[ \t]*)?:"#
    ))
    .ok()
});

/// An anchor's name.
static ANCHOR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"&(?<name>[^\s,\]}]+)").ok());

/// A function whose first argument is a key.
static SIGNING: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)\bhmac\w*\s*\(").ok());

/// First characters of keys that hold no secret though they look like it, counted from the begin of the source.
pub(crate) fn harmless_keys(root: &Node) -> HashSet<usize> {
    let mut found = HashSet::new();
    harmless(root, false, &mut found);
    found
}

fn harmless(node: &Node, is_test: bool, found: &mut HashSet<usize>) {
    match &node.content {
        Content::Scalar { .. } => {}
        Content::List(items) => items.iter().for_each(|item| harmless(item, is_test, found)),
        Content::Map(entries) => {
            for (key, value) in entries {
                let name = key.text().unwrap_or_default();
                if is_test || OF_LANGUAGE.contains(&name) {
                    found.insert(key.position.start);
                }
                // a service, a target, a session or a store may be called `auth`
                if let Content::Map(named) = &value.content
                    && ["services", "targets", "sessions", "stores"].contains(&name)
                {
                    found.extend(named.iter().map(|(key, _)| key.position.start));
                }
                // beside what is looked for in answers stands no value of a secret
                let is_test = is_test || ["check", "extract", "until"].contains(&name);
                // the names in these are the author's own
                if is_test
                    || !["json", "form", "args", "headers", "metadata", "message", "settings", "query"]
                        .contains(&name)
                {
                    harmless(value, is_test, found);
                }
            }
        }
    }
}

/// Where secrets stand in a text of YAML, in bytes, in order and apart from each other. `harmless`: [`harmless_keys`].
pub(super) fn secrets(text: &str, harmless: &HashSet<usize>) -> Vec<Range<usize>> {
    found(text, harmless, false)
}

/// The same of remarks: several words beside a name such as `key` are prose.
pub(super) fn secrets_of_remarks(text: &str) -> Vec<Range<usize>> {
    found(text, &HashSet::new(), true)
}

fn found(text: &str, harmless: &HashSet<usize>, is_prose: bool) -> Vec<Range<usize>> {
    // a URL may have a password, too
    if !may_name_a_secret(text) && !text.contains('@') {
        return Vec::new();
    }
    let Some(pattern) = KEY.as_ref() else { return Vec::new() };
    let line_ends = text.match_indices(['\n', '\r']).map(|(at, _)| at).collect();
    let mut raw = Raw { text, line_ends, is_prose, ..Raw::default() };
    let mut flow = Flow::default();
    // characters before a byte, as the source counts them
    let (mut characters, mut counted) = (0, 0);
    for found in pattern.captures_iter(text) {
        let (Some(whole), Some(key)) = (found.get(0), found.name("key")) else { continue };
        let is_quoted = found.name("plain").is_none();
        let inner = ["double", "single", "plain"].iter().find_map(|group| found.name(group));
        let Some(name) = inner.map(|inner| unescaped(inner.as_str())) else { continue };
        if key.start() < raw.covered {
            continue;
        }
        if OF_URLS.contains(&&*name) {
            raw.url(whole.end());
        }
        let of_credentials = CREDENTIALS.contains(&&*name);
        if !of_credentials && !is_secret_name(&name) {
            continue;
        }
        // the space may have been forgotten
        let is_apart = text[whole.end()..].chars().next().is_none_or(char::is_whitespace);
        if !is_apart && !is_quoted && (!is_strong(&name) || text[whole.end()..].starts_with("//")) {
            continue;
        }
        characters += text[counted..key.start()].chars().count();
        counted = key.start();
        if !harmless.contains(&characters) {
            let in_flow = flow.reaches(text, key.start());
            raw.value(&name, key.start(), whole.end(), in_flow);
        }
    }
    raw.aliased();
    raw.signing_keys();
    raw.in_order()
}

/// The brackets of YAML that are open at a byte.
#[derive(Debug, Default)]
struct Flow {
    at: usize,
    depth: usize,
}

impl Flow {
    /// Goes on to a byte; says whether it stands within brackets.
    fn reaches(&mut self, text: &str, until: usize) -> bool {
        let bytes = text.as_bytes();
        while self.at < until {
            let before = self.at.checked_sub(1).map_or(b'\n', |at| bytes[at]);
            let begins = before.is_ascii_whitespace() || matches!(before, b'[' | b'{' | b',' | b':');
            match bytes[self.at] {
                b'#' if before.is_ascii_whitespace() => self.at = line_end(text, self.at),
                // the key may stand in quotes itself
                mark @ (b'"' | b'\'') if begins && quote_end(bytes, self.at, mark) < until => {
                    self.at = quote_end(bytes, self.at, mark);
                }
                b'[' | b'{' if begins || self.depth > 0 => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                // a bracket above was not closed
                byte if before == b'\n' && byte.is_ascii_alphanumeric() => self.depth = 0,
                _ => {}
            }
            self.at += 1;
        }
        self.depth > 0
    }
}

#[derive(Default)]
struct Raw<'t> {
    text: &'t str,
    line_ends: Vec<usize>,
    is_prose: bool,
    /// Where the line begins that was looked at last, and its first `#`.
    remark: (usize, Option<usize>),
    found: Vec<Range<usize>>,
    /// Up to where keys stand in values that were looked at whole.
    covered: usize,
    /// Names of anchors whose values stand beside a secret's name.
    aliases: HashSet<&'t str>,
}

impl<'t> Raw<'t> {
    /// Where a line ends that holds a byte.
    fn line_end(&self, at: usize) -> usize {
        let line = self.line_ends.partition_point(|end| *end < at);
        self.line_ends.get(line).copied().unwrap_or(self.text.len())
    }

    fn line_begin(&self, at: usize) -> usize {
        let line = self.line_ends.partition_point(|end| *end < at);
        line.checked_sub(1).map_or(0, |before| self.line_ends[before] + 1)
    }

    /// Whether a `#` stands before a byte in a line that begins there.
    fn is_behind_mark(&mut self, line: usize, at: usize) -> bool {
        if self.remark.0 != line || line == 0 && self.remark.1.is_none() {
            self.remark = (line, self.text[line..self.line_end(line)].find('#').map(|mark| line + mark));
        }
        self.remark.1.is_some_and(|mark| mark < at)
    }

    /// The value of a key that begins at a byte, with a `:` before `at`.
    fn value(&mut self, name: &str, key: usize, at: usize, in_flow: bool) {
        let line = self.line_begin(key);
        let is_remark = !in_flow && self.is_behind_mark(line, key);
        let end = self.line_end(at);
        let mut begin = end - self.text[at..end].trim_start_matches([' ', '\t']).len();
        // anchors and tags
        while self.text[begin..].starts_with(['&', '!']) {
            begin += self.text[begin..].split_whitespace().next().map_or(1, str::len);
            let rest = &self.text[begin..self.line_end(begin)];
            begin += rest.len() - rest.trim_start().len();
        }
        // brackets may begin below, and within brackets everything may
        let next = self.text.len() - self.text[begin..].trim_start().len();
        if self.line_end(begin) == begin && (in_flow || self.text[next..].starts_with(['{', '['])) {
            begin = next;
        }
        let end = self.line_end(begin);
        let rest = &self.text[begin..end];
        match rest.bytes().next() {
            Some(mark @ (b'"' | b'\'')) => {
                let close = quote_end(self.text.as_bytes(), begin, mark);
                // one that is not closed is cut off, or a mistake
                self.secret(name, begin + 1..if close < self.text.len() { close } else { end });
            }
            Some(b'{' | b'[') => self.leaves(name, begin),
            Some(b'*') => {
                let alias = rest[1..].split(|c: char| c.is_whitespace() || ",]}".contains(c)).next();
                self.aliases.extend(alias);
            }
            None | Some(b'#' | b'|' | b'>') if is_remark => {}
            Some(b'|' | b'>') => self.below(name, key - line, end, true),
            None | Some(b'#') => self.below(name, key - line, end, false),
            Some(_) => {
                let ends = in_flow.then(|| rest.find([',', '}', ']'])).flatten();
                let mut length = ends.unwrap_or(rest.len());
                length = rest[..length].find(" #").unwrap_or(length);
                if in_flow {
                    // a hole has brackets of its own
                    length = rest[..length].rfind("${").map_or(length, |hole| {
                        rest[hole..].find('}').map_or(rest.len(), |end| length.max(hole + end + 1))
                    });
                }
                self.secret(name, begin..begin + rest[..length].trim_end().len());
                if !in_flow && !is_remark && length == rest.len() {
                    self.below(name, key - line, end, true);
                }
            }
        }
    }

    /// User and password of a URL that stands behind a `:`, whatever is in them.
    fn url(&mut self, at: usize) {
        let end = self.line_end(at);
        let begin = end - self.text[at..end].trim_start().len();
        let (value, of): (_, fn(&str) -> Option<&str>) = match self.text.as_bytes().get(begin) {
            Some(mark @ (b'"' | b'\'')) => {
                (begin + 1..quote_end(self.text.as_bytes(), begin, *mark).min(end), whole_user_info)
            }
            // more may stand behind it
            _ => (begin..end, user_info),
        };
        let value = beginning(self.text.get(value).unwrap_or_default(), URL_BYTES_MAX);
        let info = match value.split_once("://") {
            Some((_, rest)) => of(rest),
            None => login_without_scheme(self.line_of_url(value, begin)),
        };
        let Some(info) = info else { return };
        let at = info.as_ptr() as usize - self.text.as_ptr() as usize;
        if info.contains("${") {
            self.found.extend(literals(info).into_iter().map(|range| at + range.start..at + range.end));
        } else if !info.is_empty() {
            self.found.push(at..at + info.len());
        }
    }

    /// A value that begins at a byte, up to what stands behind it.
    fn line_of_url(&self, value: &'t str, begin: usize) -> &'t str {
        match self.text[begin..].starts_with(['"', '\'']) {
            true => value,
            false => value.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default(),
        }
    }

    /// Texts in the first arguments of functions that sign, also where an expression is wrong.
    fn signing_keys(&mut self) {
        let Some(pattern) = SIGNING.as_ref() else { return };
        for call in pattern.find_iter(self.text) {
            let text = beginning(self.text, call.end() + ARGUMENT_BYTES_MAX);
            let (mut at, mut depth) = (call.end(), 0_usize);
            let mut end = line_end(text, at);
            while at < text.len() {
                if at > end {
                    end = line_end(text, at);
                }
                let rest = &text[at..];
                match rest.as_bytes()[0] {
                    b',' | b')' | b'}' if depth == 0 => break,
                    b'(' | b'[' => depth += 1,
                    b')' | b']' => depth = depth.saturating_sub(1),
                    b'\\' | b'"' | b'\'' => {
                        // as it may stand in quotes of YAML itself
                        let marks = ["\\\"", "''", "\"", "'"];
                        let is_empty = rest
                            .strip_prefix("''")
                            .is_some_and(|rest| rest.trim_start().starts_with([',', ')']));
                        let is_there = |mark: &&str| rest.starts_with(mark) && !(is_empty && *mark == "''");
                        let Some(mark) = marks.into_iter().find(is_there) else {
                            at += 1;
                            continue;
                        };
                        let inside = at + mark.len();
                        let close = text[inside..end].find(mark).map_or(end, |length| inside + length);
                        let before = text[call.start()..at].trim_end();
                        if inside < close && !NAMING.iter().any(|naming| before.ends_with(naming)) {
                            self.found.push(inside..close);
                        }
                        at = if close == end { end } else { close + mark.len() };
                        continue;
                    }
                    _ => {}
                }
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    /// What goes on in the lines below, as they are indented more than the key. `is_text`: all of it, or what stands behind
    /// keys and dashes.
    fn below(&mut self, name: &str, column: usize, mut end: usize, is_text: bool) {
        let is_open = |line: &str| OF_PLANS.iter().any(|key| line.starts_with(&format!("{key}:")));
        let credentials = CREDENTIALS.contains(&name);
        let mut found = Vec::new();
        while end < self.text.len() {
            let begin = end + if self.text[end..].starts_with("\r\n") { 2 } else { 1 };
            end = line_end(self.text, begin.min(self.text.len()));
            let line = &self.text[begin..end];
            let inner = line.trim_start();
            if inner.is_empty() {
                continue;
            }
            let indent = line.len() - inner.len();
            if indent < column || (indent == column && (is_text || !inner.starts_with('-'))) {
                break;
            }
            if credentials && is_open(inner) {
                return;
            }
            let mut rest = inner;
            if !is_text {
                while let Some(item) = rest.strip_prefix("- ") {
                    rest = item.trim_start();
                }
                if let Some((key, value)) = rest.split_once(':') {
                    let key = key.trim().trim_matches(['"', '\'']);
                    let is_key = value.is_empty() || value.starts_with([' ', '\t']);
                    if is_key && credentials && OPEN.contains(&key) {
                        continue;
                    }
                    rest = if is_key { value.trim_start() } else { rest };
                }
            }
            let begin = end - rest.len();
            let length = rest.trim_end().len();
            let quoted = rest.trim_end().trim_matches(['"', '\'']);
            match quoted.len() + 2 == length && !is_text {
                true => found.push(begin + 1..begin + 1 + quoted.len()),
                false => found.push(begin..begin + length),
            }
        }
        found.into_iter().for_each(|range| self.secret(name, range));
        self.covered = self.covered.max(end);
    }

    /// What stands in brackets that begin at a byte, but for keys.
    fn leaves(&mut self, name: &str, begin: usize) {
        let bytes = self.text.as_bytes();
        let (mut at, mut depth, mut key) = (begin, 0_usize, "");
        let mut found = Vec::new();
        let credentials = CREDENTIALS.contains(&name);
        let most = if credentials { begin + CREDENTIALS_BYTES_MAX } else { bytes.len() };
        while at < bytes.len().min(most) {
            let start = at;
            let range = match bytes[at] {
                b'[' | b'{' => {
                    (depth, key) = (depth + 1, "");
                    at += 1;
                    continue;
                }
                b']' | b'}' => {
                    depth -= 1;
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                    continue;
                }
                mark @ (b'"' | b'\'') => {
                    let end = quote_end(bytes, at, mark);
                    at = (end + 1).min(bytes.len());
                    start + 1..end
                }
                byte if byte == b',' || byte.is_ascii_whitespace() => {
                    key = if byte == b',' { "" } else { key };
                    at += 1;
                    continue;
                }
                b':' => {
                    at += 1;
                    continue;
                }
                _ => {
                    let rest = &self.text[at..];
                    let ends = |(at, c): (usize, char)| {
                        let is_colon = c == ':' && rest[at + 1..].starts_with(|c: char| c.is_whitespace());
                        (is_colon || "[]{},\r\n".contains(c)).then_some(at)
                    };
                    at += rest.char_indices().find_map(ends).unwrap_or(rest.len()).max(1);
                    start..start + self.text[start..at].trim_end().len()
                }
            };
            if self.text[at..].trim_start_matches([' ', '\t']).starts_with(':') {
                key = &self.text[range];
                if credentials && OF_PLANS.contains(&key) {
                    return;
                }
            } else if !(credentials && OPEN.contains(&key)) {
                found.push(range);
            }
        }
        found.into_iter().for_each(|range| self.secret(name, range));
        self.covered = self.covered.max(at);
    }

    /// A value without its holes, the names in which stay, and without the name of its scheme.
    fn secret(&mut self, name: &str, range: Range<usize>) {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let of_credentials = CREDENTIALS.contains(&name) && text != "none";
        if text.is_empty() || !(of_credentials || is_secret(name, text)) {
            return;
        }
        let words = scheme(text.trim()).1;
        if self.is_prose
            && !is_strong(name)
            && text.len() < ARGUMENT_BYTES_MAX
            && let Some((first, _)) = words.split_once(' ')
        {
            // words have no digits
            if first.contains(|c: char| c.is_ascii_digit()) {
                let at = first.as_ptr() as usize - self.text.as_ptr() as usize;
                self.found.push(at..at + first.trim_end_matches([',', ';', '.']).len());
            }
            return;
        }
        self.covered = self.covered.max(range.end);
        let Ok(pieces) = split(text) else { return self.found.push(range) };
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => {
                    let at = range.start + (literal.as_ptr() as usize - text.as_ptr() as usize);
                    let skipped =
                        literal.len() - literal.trim_start_matches(|c: char| c.is_whitespace()).len();
                    let begin = skipped.max(scheme(literal).0.len());
                    let length = literal.trim_end().len();
                    if begin < length {
                        self.found.push(at + begin..at + length);
                    }
                }
                Piece::Hole { offset, text: hole } => self.texts_in(hole, range.start + offset),
            }
        }
    }

    /// The texts within an expression that begins at a byte, but for names of what it asks for.
    fn texts_in(&mut self, hole: &str, at: usize) {
        let bytes = hole.as_bytes();
        let mut from = 0;
        while let Some(begin) = hole[from..].find(['"', '\'']).map(|found| from + found) {
            let end = quote_end(bytes, begin, bytes[begin]);
            if begin + 1 < end && !NAMING.iter().any(|call| hole[..begin].trim_end().ends_with(call)) {
                self.found.push(at + begin + 1..at + end);
            }
            from = (end + 1).min(hole.len());
        }
    }

    /// The values of anchors that are named beside a secret's name.
    fn aliased(&mut self) {
        let aliases = std::mem::take(&mut self.aliases);
        let Some(pattern) = ANCHOR.as_ref().filter(|_| !aliases.is_empty()) else { return };
        let mut flow = Flow::default();
        self.covered = 0;
        for found in pattern.captures_iter(self.text).filter(|found| aliases.contains(&found["name"])) {
            let Some(at) = found.get(0).map(|anchor| anchor.start()).filter(|at| *at >= self.covered) else {
                continue;
            };
            let line = self.line_begin(at);
            let indent = self.text[line..at].trim_start_matches([' ', '-']);
            let in_flow = flow.reaches(self.text, at);
            // what names it is a secret's name, whatever stands beside the anchor
            self.value("password", at - indent.len(), at, in_flow);
        }
    }

    fn in_order(mut self) -> Vec<Range<usize>> {
        self.found.sort_by_key(|range| (range.start, range.end));
        let mut apart: Vec<Range<usize>> = Vec::new();
        for range in self.found {
            match apart.last_mut().filter(|last| range.start < last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => apart.push(range),
            }
        }
        apart
    }
}

/// Where a line ends that holds a byte.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find(['\n', '\r']).map_or(text.len(), |found| at + found)
}

/// Where the quote stands that ends a text begun at a byte, or the end of all.
fn quote_end(bytes: &[u8], begin: usize, mark: u8) -> usize {
    let mut at = begin + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if mark == b'"' => at += 1,
            // two of them stand for one
            byte if byte == mark && mark == b'\'' && bytes.get(at + 1) == Some(&mark) => at += 1,
            byte if byte == mark => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
