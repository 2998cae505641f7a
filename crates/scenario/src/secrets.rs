//! What must not be written down: values from the environment, and what is secret by its name.
//!
//! A plan knows the values of its [`Secrets`]; whoever writes something about a run lets it go through
//! [`Secrets::masked`] first. A value is known by where it came from (`env()`, a setting or a header with a name such as
//! `api_key`), and what stands in a text beside such a name is masked whoever made the text.
//!
//! ```
//! let text = "
//! settings: {api_key: not-for-everyone, items: 100}
//! sessions: {reader: {steps: [{GET: '/items?key=${api_key}&of=${items}'}]}}
//! load: {rate: 500/s, hold: 10s}
//! ";
//! let plan = tidemark_scenario::load_text("items.yaml", text, std::path::Path::new("."), &[])?;
//! assert!(plan.source.contains("{api_key: \"***\", items: 100}"));
//! assert_eq!(plan.secrets.masked("no not-for-everyone in http://me:mine@host"), "no *** in http://***@host");
//! # Ok::<(), tidemark_scenario::Diagnostics>(())
//! ```

mod arguments;
mod names;
mod pattern;
mod raw;
pub(crate) mod source;
mod url;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use self::url::whole_user_info;
use crate::encoding::Encoding;
use crate::expr::base64_of;
use crate::system_url::OF_HTTP;
pub use names::{MASK, is_secret, is_secret_name};
use names::{is_strong, scheme};
use pattern::Way;
pub(crate) use raw::harmless_keys;

/// Characters of the shortest value that is looked for in texts: a shorter one would be found everywhere.
const SHORTEST: usize = 4;
/// Shorter values are only found where they stand alone, not within a word.
const LONG: usize = 8;
/// What stands where a text was cut off.
const CUT: char = '…';
/// Fewest bytes of a value's beginning that are masked where a text is cut off, and most that are looked for.
const BEGINNING: usize = 6;
const BEGINNING_MAX: usize = 4 << 10;
/// Bytes from which on a text of small letters is no word.
const WORD_MAX: usize = 16;
/// Most values of a source that become known; further ones are masked where they stand.
const SOURCE_SECRETS_MAX: usize = 200;
/// Forms in which a value may stand in a text, with the word for each.
const FORMS: [(&str, Encoding); 6] = [
    ("", Encoding::Raw),
    (":url", Encoding::Url),
    (":path", Encoding::Path),
    (":form", Encoding::Form),
    (":json", Encoding::JsonText),
    (":header", Encoding::Header),
];

/// The same by the functions that put it into another alphabet.
const BASE64: [&str; 2] = [":base64", ":base64url"];

/// Where a secret's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable.
    Environment,
    /// A setting of the scenario.
    Setting,
    /// The text of a header in the scenario.
    Header,
}

/// A value that must not be written down.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Of the environment variable, the setting or the header.
    pub name: String,
    /// Where its value comes from.
    pub origin: Origin,
    /// The value.
    pub value: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.origin, self.name)
    }
}

/// All that must not be written down of one scenario.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// The longest first, so that one that is a part of another leaves nothing of it.
    all: Vec<Secret>,
    /// Lines of values that have several, without what surrounds them, the longest first: a log is quoted line by line.
    lines: Vec<String>,
    /// What settings may be by the scenario: such words are in no sentence a secret.
    choices: Vec<String>,
}

impl Secrets {
    /// Takes one more; a value that is known already keeps its name.
    pub fn add(&mut self, name: &str, origin: Origin, value: &str) {
        if value.trim().chars().count() < SHORTEST || self.all.iter().any(|known| known.value == value) {
            return;
        }
        let at = self.all.partition_point(|known| known.value.len() >= value.len());
        self.add_lines(value);
        let (name, value) = (name.to_owned(), value.to_owned());
        self.all.insert(at, Secret { name, origin, value });
    }

    /// Takes each line of a value that has several; a short one, such as a brace, says nothing.
    fn add_lines(&mut self, value: &str) {
        for line in value.lines().map(str::trim).filter(|line| line.chars().count() >= LONG && *line != value)
        {
            if self.lines.iter().all(|known| known != line) {
                let at = self.lines.partition_point(|known| known.len() >= line.len());
                self.lines.insert(at, line.to_owned());
            }
        }
    }

    /// Takes a value that stands in a text beside this name: as it is, and as the server knows it. One that is a word beside a
    /// name such as `key` is not taken, as it would be found everywhere.
    pub(crate) fn add_literal(&mut self, name: &str, value: &str) {
        let value = scheme(value.trim()).1;
        let decoded = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        let unescaped = serde_json::from_str::<String>(&format!("\"{value}\"")).unwrap_or_default();
        for text in [value, &decoded, &unescaped] {
            if self.choices.iter().any(|choice| choice == text) {
                continue;
            }
            let is_word = text.len() < WORD_MAX && text.bytes().all(|byte| byte.is_ascii_lowercase());
            if !is_word || is_strong(name) {
                self.add(&self.free_name(name), Origin::Setting, text);
            }
        }
        if name.to_ascii_lowercase().ends_with("cookie") {
            self.add_cookies(name, value);
        }
    }

    /// Takes the values of cookies, but for those that would be found everywhere.
    fn add_cookies(&mut self, name: &str, cookies: &str) {
        for (_, value) in cookies.split(';').filter_map(|cookie| cookie.split_once('=')) {
            let value = value.trim().trim_matches('"');
            let decoded = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            for value in [value, &decoded].into_iter().filter(|value| value.chars().count() >= LONG) {
                self.add(&self.free_name(name), Origin::Setting, value);
            }
        }
    }

    /// A name by which a value can be asked for: no other one has it.
    fn free_name(&self, name: &str) -> String {
        let is_free = |name: &String| self.all.iter().all(|known| known.name != *name);
        let name = if name.is_empty() { "secret" } else { name };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// Takes the password of a URL, as it stands there and as the server knows it.
    pub fn add_password_of(&mut self, url: &str) {
        let Some(password) = password_in(url).filter(|password| !password.contains("${")) else { return };
        self.add("password", Origin::Setting, password);
        let decoded = percent_encoding::percent_decode_str(password).decode_utf8_lossy();
        self.add("password", Origin::Setting, &decoded);
    }

    /// Takes the logins of NATS servers, whose URLs stand with commas: passwords, and tokens, which stand alone before the host.
    pub fn add_logins_of(&mut self, urls: &str) {
        let logins = urls.split(',').filter_map(|url| url.rsplit_once('@'));
        for login in logins.map(|(login, _)| login.rsplit_once("://").map_or(login, |(_, login)| login)) {
            let secret = login.split_once(':').map_or(login, |(_, password)| password);
            let decoded = percent_encoding::percent_decode_str(secret).decode_utf8_lossy();
            for secret in [secret, &decoded].into_iter().filter(|secret| !secret.is_empty()) {
                self.add("password", Origin::Setting, secret);
            }
        }
    }

    /// Takes those of another scenario, too.
    pub fn extend(&mut self, other: &Secrets) {
        other.all.iter().for_each(|secret| self.add(&secret.name, secret.origin, &secret.value));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.all.iter()
    }

    /// A text of a scenario, or about it, without them, and without what looks like one; what it says with holes, `${…}`,
    /// stays.
    pub fn masked(&self, text: &str) -> String {
        let known = self.without_values(text);
        pattern::masked(&known, Way::Scenario).into_owned()
    }

    /// The same of what was sent, answered or logged, in which nothing has a hole.
    pub fn masked_traffic(&self, text: &str) -> String {
        let known = self.without_values(text);
        pattern::masked(&known, Way::Traffic).into_owned()
    }

    /// A text without them in which everything else stands where it stood: a star for each character.
    pub(crate) fn masked_in_place(&self, text: &str) -> String {
        let known = self.replaced(text, &mut |secret, form| stars(&in_form(&secret.value, form)));
        let known = self.without_lines(known, &stars);
        pattern::masked(&known, Way::InPlace).into_owned()
    }

    /// The text of a file as it stands there, right or wrong, without them, and without what stands beside a secret's name,
    /// which becomes known; in its place is a star for each character. `harmless`: first characters of keys that only look
    /// like a secret's name.
    pub(crate) fn masked_source(&mut self, text: &str, harmless: &HashSet<usize>) -> String {
        let found = raw::secrets(text, harmless);
        for range in found.iter().take(SOURCE_SECRETS_MAX) {
            self.add("", Origin::Setting, text[range.clone()].trim_matches(['"', '\'']));
        }
        self.masked_at(text, &found)
    }

    /// The text of remarks without them, and without what stands beside a secret's name; prose such as `the key: its number`
    /// stays.
    fn masked_remarks(&self, text: &str) -> String {
        let known: Vec<Cow<'_, str>> = text.split('\n').map(|line| self.without_values(line)).collect();
        let known = known.join("\n");
        let known = pattern::headers(&known, Way::InPlace);
        self.masked_at(&known, &raw::secrets_of_remarks(&known))
    }

    /// A text without them, and without what stands at these places.
    fn masked_at(&self, text: &str, places: &[Range<usize>]) -> String {
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for range in places {
            out.push_str(&text[done..range.start]);
            out.push_str(&stars(&text[range.clone()]));
            done = range.end;
        }
        out.push_str(&text[done..]);
        self.masked_in_place(&out)
    }

    /// Takes what is secret in a command line by the flag, the header or the parameter that it stands behind, so that it is
    /// known in whatever is said about it.
    pub fn of_command(command: &[String]) -> Secrets {
        let mut secrets = Secrets::default();
        arguments::nats_urls(command).for_each(|urls| secrets.add_logins_of(urls));
        let mut before = "";
        for argument in command {
            for (name, value) in arguments::named_in_argument(before, argument) {
                secrets.add(&name, Origin::Setting, scheme(&value).1);
            }
            // `--key=FILE` names a file
            let of_patterns =
                if argument.starts_with("--key=") { Vec::new() } else { pattern::found(argument) };
            for (name, value) in of_patterns {
                secrets.add_literal(name, value);
            }
            // a URL may have no scheme
            let flag = argument.strip_prefix("--").and_then(|flag| flag.split_once('='));
            let value = flag.map_or(argument.as_str(), |(_, value)| value);
            let is_other = value.contains(['"', '{', '=', ' ']);
            if argument.contains("://") {
                secrets.add_password_of(argument);
            } else if !is_other && value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/') {
                secrets.add_password_of(value);
            }
            before = argument;
        }
        secrets
    }

    /// A text without their values.
    pub(crate) fn without_values<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = self.replaced(text, &mut |_, _| MASK.to_owned());
        let text = self.without_lines(text, &|_| MASK.to_owned());
        if text.contains(CUT) { Cow::Owned(self.without_beginnings(&text)) } else { text }
    }

    /// A text with something else in the places of single lines of values.
    fn without_lines<'t>(&self, mut text: Cow<'t, str>, with: &dyn Fn(&str) -> String) -> Cow<'t, str> {
        for line in &self.lines {
            // no form is shorter, and most texts are short
            if line.len() > text.len() {
                continue;
            }
            for (_, form) in forms(line) {
                if let Some(replaced) = replaced(&text, &form, &mut || with(&form)) {
                    text = Cow::Owned(replaced);
                }
            }
        }
        text
    }

    /// A text without the beginnings of values that stand where it was cut off.
    fn without_beginnings(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for part in text.split_inclusive(CUT) {
            let Some(before) = part.strip_suffix(CUT) else {
                out.push_str(part);
                continue;
            };
            let values = self.all.iter().map(|secret| &secret.value).chain(&self.lines);
            let values = values.flat_map(|value| forms(value));
            let longest = values.filter_map(|(_, value)| beginning_at_end(before, &value)).max().unwrap_or(0);
            out.push_str(&before[..before.len() - longest]);
            if longest > 0 {
                out.push_str(MASK);
            }
            out.push(CUT);
        }
        out
    }

    /// A text with something else in their places. `with` is told the secret, and a word for the form in which it stands
    /// there: none for the value as it is.
    pub fn replaced<'t>(
        &self,
        text: &'t str,
        with: &mut dyn FnMut(&Secret, &'static str) -> String,
    ) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.all {
            for (form, value) in forms(&secret.value) {
                if let Some(replaced) = replaced(&text, &value, &mut || with(secret, form)) {
                    text = Cow::Owned(replaced);
                }
            }
        }
        text
    }

    /// A command without them, and without the logins of NATS servers.
    pub fn masked_command(&self, command: &[String]) -> Vec<String> {
        let mut of_nats = Secrets::default();
        arguments::nats_urls(command).for_each(|urls| of_nats.add_logins_of(urls));
        let mut before = None;
        let masked = command.iter().map(|argument| {
            let text = arguments::masked_argument(before, argument);
            before = Some(argument.as_str());
            self.masked(&of_nats.masked(&text))
        });
        masked.collect()
    }
}

/// Whether what was looked at there is secret by its name: a cookie, a header such as Authorization, a field `$.token`.
pub fn comes_from_a_secret(place: &str) -> bool {
    let words = place.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    place.starts_with("cookie ") || words.filter(|word| !word.is_empty()).any(is_secret_name)
}

/// The password in a URL, as it stands there. The URL may be wrong, and lack its scheme or a slash.
pub fn password_in(url: &str) -> Option<&str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        let (_, password) = login_without_scheme(url)?.split_once(':')?;
        // of `http:/me:…@h`
        let inner = password.strip_prefix('/').and_then(|rest| rest.split_once(':'));
        return Some(inner.map_or(password, |(_, inner)| inner)).filter(|password| !password.is_empty());
    };
    let of_login = password_of_login(scheme, rest);
    of_login.or_else(|| password_in_query(rest).filter(|_| !OF_HTTP.contains(&scheme)))
}

/// The password that stands before the host.
fn password_of_login<'u>(scheme: &str, rest: &'u str) -> Option<&'u str> {
    let login = match OF_HTTP.contains(&scheme) {
        true => whole_user_info(rest)?,
        // what speaks no HTTP has no @ in its path: whatever stands before one is of a login, also where it is wrong
        false => rest.rsplit_once('@')?.0,
    };
    login.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

/// The password among the parameters of a database's URL: `postgres://u@db/x?password=…`.
fn password_in_query(rest: &str) -> Option<&str> {
    let (_, query) = rest.split_once('?')?;
    let value = |pair: &'_ str| -> Option<(usize, usize)> {
        let (name, value) = pair.split_once('=')?;
        let is_password =
            name.to_ascii_lowercase().ends_with("password") || name.eq_ignore_ascii_case("pass");
        (is_password && !value.is_empty()).then(|| (pair.len() - value.len(), pair.len()))
    };
    query.split('&').find_map(|pair| value(pair).map(|(begin, end)| &pair[begin..end]))
}

/// User and password of what should be a URL, and has no `://`.
fn login_without_scheme(url: &str) -> Option<&str> {
    let (login, host) = url.rsplit_once('@')?;
    // `localhost:80/a@b` names somebody in its path
    let (_, password) = login.split_once(':')?;
    let port = password.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_path = port.starts_with('/') && port.len() < password.len();
    (!is_path && !password.is_empty() && !host.is_empty()).then_some(login)
}

/// A URL without its password.
pub fn without_password(url: &str) -> String {
    let Some(password) = password_in(url) else { return url.to_owned() };
    let at = password.as_ptr() as usize - url.as_ptr() as usize;
    [&url[..at], MASK, &url[at + password.len()..]].concat()
}

/// A star for each character; lines stay lines.
fn stars(hidden: &str) -> String {
    hidden.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { '*' }).collect()
}

/// How many bytes of a value's beginning a text ends with, where those are too many to be chance.
fn beginning_at_end(text: &str, value: &str) -> Option<usize> {
    let lengths =
        value.char_indices().map(|(at, _)| at).filter(|at| (BEGINNING..=BEGINNING_MAX).contains(at));
    lengths.rev().find(|length| text.ends_with(&value[..*length]))
}

/// A value in a form of which [`Secrets::replaced`] told the word.
pub fn in_form(value: &str, form: &str) -> String {
    match form {
        ":base64" => return base64_of(value, false),
        ":base64url" => return base64_of(value, true),
        _ => {}
    }
    let encoding =
        FORMS.iter().find(|(word, _)| *word == form).map_or(Encoding::Raw, |(_, encoding)| *encoding);
    let mut out = Vec::new();
    encoding.write_text(value.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The forms of a value that differ.
fn forms(value: &str) -> Vec<(&'static str, String)> {
    let mut forms: Vec<(&str, String)> = Vec::new();
    for word in FORMS.into_iter().map(|(word, _)| word).chain(BASE64) {
        let text = in_form(value, word);
        if forms.iter().all(|(_, known)| *known != text) {
            forms.push((word, text));
        }
    }
    forms
}

/// A text with a value replaced wherever it stands; none where it does not.
fn replaced(text: &str, value: &str, with: &mut dyn FnMut() -> String) -> Option<String> {
    let alone = value.len() < LONG;
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut out = String::new();
    let (mut done, mut from) = (0, 0);
    if value.is_empty() {
        return None;
    }
    while let Some(found) = text[from..].find(value) {
        let at = from + found;
        let end = at + value.len();
        from = end;
        if alone && (is_word(text[..at].chars().next_back()) || is_word(text[end..].chars().next())) {
            continue;
        }
        out.push_str(&text[done..at]);
        out.push_str(&with());
        done = end;
    }
    if done == 0 {
        return None;
    }
    out.push_str(&text[done..]);
    Some(out)
}

#[cfg(test)]
mod hostile_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_value_is_masked_where_a_text_was_cut_off() {
        let known = secrets(&["Zq8vT3mLr9XwPb2NcK7d"]);
        assert_eq!(
            known.masked("302 to http://h/aaa/Zq8vT3mLr9X…, and more"),
            "302 to http://h/aaa/***…, and more"
        );
        assert_eq!(
            known.masked("abc Zq8v… Zq8vT3mLr9X"),
            "abc Zq8v… Zq8vT3mLr9X",
            "too short, or not cut off"
        );
        assert_eq!(known.masked("Zq8vT3mLr9XwPb2NcK7d…"), "***…");
    }

    #[test]
    fn a_form_without_a_character_is_looked_for_nowhere() {
        // of a path nothing is left of the first, of a header nothing of the second
        let known = secrets(&["#hunter2", "\u{1}\u{2}\u{3}\u{4}"]);
        assert_eq!(known.masked("log in by #hunter2 at /a"), "log in by *** at /a");
    }

    #[test]
    fn the_password_of_a_url_is_known_as_it_stands_and_as_the_server_knows_it() {
        let mut secrets = Secrets::default();
        for url in [
            "redis://:horse%40battery@h:1/2",
            "redis://me@h",
            "redis://:horse%40battery@h/x",
            "http://h/a:b@c",
            "redis://:${env('PW')}@h",
            "h:80/a@b",
            "me@h",
        ] {
            secrets.add_password_of(url);
        }
        assert_eq!(secrets.iter().count(), 2);
        assert_eq!(secrets.masked("you are horse@battery, not horse%40battery"), "you are ***, not ***");
    }

    #[test]
    fn a_url_is_told_without_its_password() {
        for (url, told) in [
            ("redis://redis:redis@h", "redis://redis:***@h"),
            ("http://u:p@S1@h/@a", "http://u:***@h/@a"),
            ("http://u:p/\"S1@h/a", "http://u:***@h/a"),
            ("http://127.0.0.1:80/a:b@c", "http://127.0.0.1:80/a:b@c"),
            ("http://u:123/S1@h/x", "http://u:***@h/x"),
            ("http://u:p@S1 S2@h/a", "http://u:***@h/a"),
            ("http://h/?a:b@c", "http://h/?a:b@c"),
            ("me:p@h", "me:***@h"),
            ("//me:p@S1@h", "//me:***@h"),
            ("http:/me:p@h", "http:/me:***@h"),
            ("http//me:p@h", "http//me:***@h"),
        ] {
            assert_eq!(without_password(url), told);
        }
    }

    #[test]
    fn what_comes_from_a_secret_is_known_by_its_name() {
        for place in ["cookie sid", "header authorization", "$.token", "$.user.apiKey", "all of $.secrets[*]"]
        {
            assert!(comes_from_a_secret(place), "{place}");
        }
        for place in ["$.id", "header location", "the body", "count of $.items"] {
            assert!(!comes_from_a_secret(place), "{place}");
        }
    }

    fn secrets(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        values.iter().for_each(|value| secrets.add("NAME", Origin::Environment, value));
        secrets
    }

    #[test]
    fn values_are_masked_wherever_they_stand_and_however_they_are_written() {
        let secrets = secrets(&["pa ss/w\"rd", "longer-pa ss/w\"rd"]);
        for text in ["xpa ss/w\"rdx", "xpa%20ss%2Fw%22rdx", "xpa+ss%2Fw%22rdx", r#"xpa ss/w\"rdx"#] {
            assert_eq!(secrets.masked(text), "x***x", "{text}");
        }
        assert_eq!(secrets.masked("longer-pa ss/w\"rd"), "***");
        // as base64() and base64url() have it
        assert_eq!(secrets.masked("X-Key: cGEgc3MvdyJyZA==, cGEgc3MvdyJyZA."), "X-Key: ***, ***.");
    }

    #[test]
    fn lines_of_a_value_are_masked_one_by_one() {
        let known = secrets(&["aaaaaaaa1\r\n  bbbbbbbb2-and-more\n{\n"]);
        assert_eq!(
            known.masked_traffic("  | aaaaaaaa1\n  | bbbbbbbb2-and-more\n  | {"),
            "  | ***\n  | ***\n  | {"
        );
        assert_eq!(known.masked_traffic("  | bbbbbbbb2-…"), "  | ***…", "where it is cut off, too");
        assert_eq!(known.masked_in_place("xaaaaaaaa1x"), "x*********x");
        // whoever names what was taken out, to put it back, has whole values only
        assert_eq!(known.replaced("aaaaaaaa1", &mut |_, _| "x".into()), "aaaaaaaa1");
        assert_eq!(known.iter().count(), 1);
    }

    #[test]
    fn short_values_are_masked_where_they_stand_alone() {
        let secrets = secrets(&["test", "abc"]);
        assert_eq!(secrets.masked("the latest test: abc, test."), "the latest ***: abc, ***.");
    }

    #[test]
    fn what_is_secret_on_a_command_line_is_known_wherever_it_is_quoted() {
        for given in [
            "run|s|--set|password=S3CRET1",
            "run|s|--set=api_key=S3CRET1",
            "run|s|--set|password:S3CRET1",
            "run|s|--set|password|S3CRET1",
            "run|s|--pasword|x|--admin-password|S3CRET1",
            "hit|-H|Authorization: S3CRET1",
            "hit|-H|Authorization: Bearer S3CRET1",
            "hit|-HX-Api-Key:S3CRET1",
            "hit|--header=Authorization S3CRET1",
            "hit|-u|me:S3CRET1",
            "hit|-ume:S3CRET1",
            "hit|curl|--user|me:S3CRET1|http://h",
            "hit|http://me:S3CRET1@h/",
            "hit|me:S3CRET1@h/a",
            "hit|--proxy=http://me:S3CRET1@h/",
            "hit|-H|Cookie; sid=S3CRET1",
            "hit|-HCookie;S3CRET1",
            "hit|--header=X-Session, S3CRET1",
            "hit|ws:/h/?a=b&access_token=S3CRET1",
            "run|airline|--watch|http://u:S3CRET1@h:9100/metrics",
            "run|airline|--url=me:S3CRET1@h:1",
            "run|airline|--url|//me:S3CRET1@h",
            "hit|:80/|-b|{\"password\":\"S3CRET1\"}",
            "hit|:80/|-b|user=a&password=S3CRET1",
            "hit|curl|:80/|-d|password=S3CRET1",
            "run|s|--fleet|nats://S3CRET1@h:4222",
            "run|s|--fleet=nats://a@h,tls://me:S3CRET1@i",
            "agent|--nats|me:S3CRET1@h",
            "hit|curl|:80/|-d|{\"q\": \"a(password: \\\"S3CRET1\\\")\"}",
        ] {
            let command: Vec<String> = given.split('|').map(str::to_owned).collect();
            let told = Secrets::of_command(&command).masked("invalid value 'S3CRET1': at S3CRET1, not one");
            assert_eq!(told, "invalid value '***': at ***, not one", "{given}");
        }
        let given = ["hit", "http://me:S3/CR\"ET 1@h/a", "you:S4/CRET@h/a"].map(str::to_owned);
        let told =
            Secrets::of_command(&given).masked(&format!("`{}` and `{}` are no URLs", given[1], given[2]));
        assert_eq!(told, "`http://***@h/a` and `you:***@h/a` are no URLs");
        for given in
            ["hit|--key|client-key.pem", "hit|--key=client-key.pem", "run|s|--set|n=5|--out|client-key.pem"]
        {
            let command: Vec<String> = given.split('|').map(str::to_owned).collect();
            let told = "cannot read client-key.pem: no such file";
            assert_eq!(Secrets::of_command(&command).masked(told), told, "{given}");
        }
    }

    #[test]
    fn a_command_keeps_its_names() {
        let command = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let secrets = secrets(&["from-outside"]);
        for (given, wanted) in [
            (
                "hit|-H|Authorization: Bearer abc|-H|Accept: text/html",
                "hit|-H|Authorization: Bearer ***|-H|Accept: text/html",
            ),
            ("hit|-HX-Api-Key: abc|--header=Cookie: a=b", "hit|-HX-Api-Key: ***|--header=Cookie: ***"),
            (
                "run|--set|api_key=abc|--set=token=x|--set|n=5",
                "run|--set|api_key=***|--set=token=***|--set|n=5",
            ),
            ("hit|http://me:mine@host/?token=abc&n=5", "hit|http://***@host/?token=***&n=5"),
            ("hit|-d|{\"password\": \"a\\\"b\", \"n\": 1}", "hit|-d|{\"password\": \"***\", \"n\": 1}"),
            ("hit|-d|user=me&password=mine", "hit|-d|user=me&password=***"),
            ("serve|--admin-password|mine|--port|80", "serve|--admin-password|***|--port|80"),
            ("serve|--name=from-outside", "serve|--name=***"),
            ("run|s|--fleet|nats://me:mine@h,nats://s3same@i:4222", "run|s|--fleet|nats://***@i:4222"),
            ("run|s|--fleet|nats://s3same@i:4222", "run|s|--fleet|nats://***@i:4222"),
        ] {
            assert_eq!(secrets.masked_command(&command(given)), command(wanted));
        }
    }
}
