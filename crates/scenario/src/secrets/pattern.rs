//! What looks like a secret: by the name that stands beside it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::pieces::{Piece, split};

/// What stands in a secret's place.
pub const MASK: &str = "***";
/// What may stand behind it in a text.
const ENDS: [char; 7] = [')', ']', '}', ',', ';', '.', ':'];
/// Headers whose whole value is secret.
const HEADERS: [&str; 7] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth", "x-session", "x-session-id"];
/// How the names of further such headers begin.
const HEADERS_FROM: &str = "x-auth-";
/// Words of the name of what proves who signed a request.
const SIGNATURES: [&str; 2] = ["sig", "signature"];
/// What makes a name one of a secret, whatever its value is.
const STRONG: [&str; 9] =
    ["secret", "password", "passwd", "passwort", "kennwort", "passphrase", "passcode", "credential", "pwd"];
/// The same where they are a word of it: `otp_code`, not `footpath`.
const STRONG_WORDS: [&str; 6] = ["otp", "jwt", "cvv", "cvc", "csrf", "xsrf"];
/// The same where it ends so: `db_pass`, not `pass_through`.
const STRONG_LAST: &str = "pass";
/// What may stand before it without a mark: `userpass`, not `compass`.
const BEFORE_PASS: [&str; 10] =
    ["user", "db", "login", "admin", "root", "auth", "proxy", "smtp", "key", "store"];
/// Words before what is secret in a header.
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "apikey", "negotiate"];
/// Bytes behind `://` in which the end of a password is looked for.
const URL_BYTES_MAX: usize = 4 << 10;
/// Flags whose next argument is `NAME: VALUE`, or `NAME=VALUE`.
const HEADER_FLAGS: [&str; 2] = ["-H", "--header"];
const SETTING_FLAGS: [&str; 1] = ["--set"];

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
    NAMED r#"(?m)(?<before>^|[^\w$.\\/:\-])[ \t]*(?<quote>['"]?)(?<name>[\w$][\w$.\-]{0,63})['"]?[ \t]*:(?<space>[ \t]*)(?<scheme>(?i:bearer|basic|digest|token|apikey|negotiate)[ \t]+)?(?:"(?<double>(?:[^"\\\r\n]|\\.)+)"?|'(?<single>[^'\r\n]+)'?|(?<secret>(?:\$\{[^}\r\n]*\}|[^\s"',;{}\[\]()|>#*&`])(?:\$\{[^}\r\n]*\}|[^\s"',;{}\])`])*))"#;
    LOGIN r#"(?<before>(?:^|\s)(?:-[uU]|--user|--proxy-user)(?:\s*|=)["']?[^\s:"'/]*:)(?<secret>[^\s"']+)"#;
    CURL_VALUE r#"(?<before>(?:^|\s)(?:--cookie|--oauth2-bearer|--pass|--proxy-pass)(?:\s+|=)["']?)(?<secret>[^\s"']+)"#;
    BEARER r#"(?i)(?<before>(?:^|[^\w/.\-])bearer\s+)(?<secret>[^\s"',]{8,})"#;
}

/// Whether a header, setting, field or parameter of this name holds a secret.
///
/// ```
/// use tidemark_scenario::secrets::is_secret_name;
///
/// assert!(["Authorization", "X-Api-Key", "dbPassword", "access_token", "apikey", "pass_phrase"].iter().all(|name| is_secret_name(name)));
/// assert!(["sig", "X-Amz-Signature", "X-Auth", "x-auth-user", "X-Session-Id"].iter().all(|name| is_secret_name(name)));
/// assert!(["pass", "dbPass", "SMTP_PASS", "userpass", "otp_code", "accessJwt", "X-CSRF", "X-Session"].iter().all(|name| is_secret_name(name)));
/// assert!(!["compass", "bypass", "passenger", "pass_through", "footpath"].iter().any(|name| is_secret_name(name)));
/// assert!(!["keyspace", "signal", "assigned", "X-Authors", "Keep-Alive", "keys_per_page", "Accept"].iter().any(|name| is_secret_name(name)));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    let is_key = |word: String| word.ends_with("key") || SIGNATURES.contains(&word.as_str());
    is_strong(name) || in_one(name).contains("token") || words(name).any(is_key)
}

pub(super) fn is_strong(name: &str) -> bool {
    let begins = name.get(..HEADERS_FROM.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HEADERS_FROM));
    let is_header = begins || HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    is_header
        || STRONG.iter().any(|part| in_one(name).contains(part))
        || words(name).any(|word| STRONG_WORDS.contains(&word.as_str()))
        || words(name).filter(|word| !word.is_empty()).last().is_some_and(|word| is_pass(&word))
}

/// `pass`, `pass2`, `dbpass`.
fn is_pass(word: &str) -> bool {
    let whose = word.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix(STRONG_LAST);
    whose.is_some_and(|whose| whose.is_empty() || BEFORE_PASS.contains(&whose))
}

/// `pass_phrase` as `passphrase`.
fn in_one(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a value of this name is a secret: not the name once more, and beside a name such as `token_bytes` no number, nor
/// the word of a scheme beside one such as `token_type`.
pub fn is_secret(name: &str, value: &str) -> bool {
    let value = value.trim();
    let says_nothing = value.is_empty()
        || is_mask(value)
        || value.eq_ignore_ascii_case(name)
        || ["true", "false", "null", "~"].contains(&value);
    let is_word = || SCHEMES.contains(&value.to_ascii_lowercase().as_str());
    !says_nothing && is_secret_name(name) && (is_strong(name) || !(is_quantity(value) || is_word()))
}

/// Whether this stands in a secret's place, with what ends a sentence or brackets behind it.
fn is_mask(value: &str) -> bool {
    matches!(value.trim_end_matches(ENDS), MASK | "…")
}

/// `1000`, `64KiB`, `1.5s`, `10%`.
fn is_quantity(value: &str) -> bool {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_');
    let is_unit = |c: char| c.is_ascii_alphabetic() || matches!(c, '%' | '/' | ' ');
    unit.len() < value.len() && value.len() <= 12 && unit.len() <= 5 && unit.chars().all(is_unit)
}

/// The words of `api_key`, `X-Api-Key`, `apiKey`, in small letters.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (was_small && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        was_small = c.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.into_iter()
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

/// Whether a value is a word of our own help, `KEY=VALUE` or `NAME:PASSWORD`.
fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 8] = ["COOKIE", "KEY", "NAME", "PASSWORD", "SECRET", "TOKEN", "USER", "VALUE"];
    let value = value.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    !value.is_empty() && value.split([':', '=']).all(|word| WORDS.contains(&word))
}

/// A text of whatever kind without what stands in it beside a secret's name.
pub(super) fn masked(text: &str, way: Way) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if way != Way::InPlace {
        then(&mut text, |text| below(text, way));
    }
    then(&mut text, |text| elements(text, way));
    then(&mut text, |text| in_tags(text, way));
    then(&mut text, |text| user_infos(text, way));
    then(&mut text, |text| parameters(text, way));
    then(&mut text, |text| fields(text, way));
    if way != Way::InPlace {
        // in a source these are found with what goes on below
        then(&mut text, |text| replaced(&HEADER, text, way));
        then(&mut text, |text| named(text, way));
    }
    for pattern in [&PART, &BEARER, &LOGIN, &CURL_VALUE] {
        then(&mut text, |text| replaced(pattern, text, way));
    }
    text
}

fn then(text: &mut Cow<'_, str>, mask: impl FnOnce(&str) -> Cow<'_, str>) {
    let masked = match mask(text) {
        Cow::Owned(masked) => masked,
        Cow::Borrowed(_) => return,
    };
    *text = Cow::Owned(masked);
}

/// A text without what stands in URLs before the last `@` of who serves them.
fn user_infos(text: &str, way: Way) -> Cow<'_, str> {
    let mut out = Replaced::new(text);
    // where the next @ stands, so that a text with many URLs is gone through once
    let mut next = 0;
    for (at, mark) in text.match_indices("://") {
        let begin = at + mark.len();
        if next < begin {
            let Some(found) = text[begin..].find('@') else { break };
            next = begin + found;
        }
        if begin < out.end || next - begin > URL_BYTES_MAX {
            continue;
        }
        let mut end = text.len().min(begin + URL_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let rest = text[begin..end].split(['"', '\'', '<', '>', '`', '\r', '\n']).next().unwrap_or_default();
        let Some(info) = user_info(rest).filter(|info| !info.is_empty() && !is_mask(info)) else { continue };
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

/// What stands behind the first colon beside holes; nothing where there are none.
pub(super) fn literals(info: &str) -> Vec<Range<usize>> {
    let mut is_password = false;
    let mut found = Vec::new();
    if !info.contains("${") {
        return found;
    }
    for piece in split(info).unwrap_or_default() {
        let Piece::Literal(literal) = piece else { continue };
        let at = literal.as_ptr() as usize - info.as_ptr() as usize;
        let begin = if is_password { Some(0) } else { literal.find(':').map(|colon| colon + 1) };
        is_password |= begin.is_some();
        found
            .extend(begin.filter(|begin| *begin < literal.len()).map(|begin| at + begin..at + literal.len()));
    }
    found
}

/// User and password of a URL, of which this is what stands behind `://`. Where it has no host that can be, as `/`, `?`, `#`
/// or a space is in a password, they go up to the last `@` of all.
pub(super) fn user_info(rest: &str) -> Option<&str> {
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#')).unwrap_or(rest.len());
    let (info, host) = match rest[..end].rsplit_once('@') {
        Some((info, host)) => (Some(info), host),
        None => (None, &rest[..end]),
    };
    // a port would stand there
    let is_cut = host.ends_with(':') && rest[end..].starts_with(['/', '?', '#']);
    match (is_host(host) && !is_cut) || host.contains("${") {
        true => info,
        false => rest.rsplit_once('@').map(|(info, _)| info),
    }
}

/// The same where this is a URL to its end, in which no space can be.
pub(super) fn whole_user_info(rest: &str) -> Option<&str> {
    let (info, _) = rest.rsplit_once('@')?;
    if info.contains(char::is_whitespace) { Some(info) } else { user_info(rest) }
}

/// Whether this may be `HOST`, `HOST:PORT` or `[::1]:PORT`, with what ends a sentence behind it.
fn is_host(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', ';', ':', ')', ']', '}', '…']);
    let port = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']').map_or("", |(_, port)| port),
        None => text.find(':').map_or("", |colon| &text[colon..]),
    };
    let is_port = |port: &str| {
        port.eq_ignore_ascii_case("port")
            || (port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    port.strip_prefix(':').map_or(port.is_empty(), is_port)
}

/// A text without the secrets of a pattern that says what is before them.
fn replaced<'t>(pattern: &LazyLock<Option<Regex>>, text: &'t str, way: Way) -> Cow<'t, str> {
    let Some(pattern) = pattern.as_ref().filter(|pattern| pattern.is_match(text)) else {
        return Cow::Borrowed(text);
    };
    pattern.replace_all(text, |found: &Captures<'_>| {
        let (before, secret) = (&found["before"], &found["secret"]);
        let is_masked = match found.name("name") {
            Some(name) => way.is_masked(name.as_str(), secret),
            None => !is_mask(secret) && !are_masked_cookies(before, secret) && !way.is_made_later(secret),
        };
        match is_masked {
            true => {
                found[0].replacen(&format!("{before}{secret}"), &format!("{before}{}", way.mask(secret)), 1)
            }
            false => found[0].to_owned(),
        }
    })
}

/// `cookie: sid=***; lang=***`.
fn are_masked_cookies(before: &str, value: &str) -> bool {
    let is_masked = |cookie: &str| cookie.split_once('=').is_some_and(|(_, value)| is_mask(value.trim()));
    before.to_ascii_lowercase().contains("cookie:") && value.split(';').all(is_masked)
}

/// A text without the values of parameters: `user%5Bpassword%5D=…`.
fn parameters(text: &str, way: Way) -> Cow<'_, str> {
    let (Some(pattern), Some(of_value)) = (PARAMETER.as_ref(), PARAMETER_VALUE.as_ref()) else {
        return Cow::Borrowed(text);
    };
    let mut out = Replaced::new(text);
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| whole.end() >= out.end) else { continue };
        let name = percent_encoding::percent_decode_str(&found["name"]).decode_utf8_lossy();
        // before the value is looked at, which may be long
        if !is_secret_name(&name) {
            continue;
        }
        let Some(value) = of_value.find(&text[whole.end()..]).map(|value| value.as_str()) else { continue };
        if way.is_masked(&name, value) {
            out.put(whole.end(), value.len(), &way.mask(value));
        }
    }
    out.done()
}

/// A text without values that stand behind a name and a colon, as in YAML: `{password: ab}`. In prose a colon is no such sign, so
/// that what follows a word, or goes on with words, stays; what is logged has no prose to lose.
fn named(text: &str, way: Way) -> Cow<'_, str> {
    let Some(pattern) = NAMED.as_ref() else { return Cow::Borrowed(text) };
    let mut out = Replaced::new(text);
    for found in pattern.captures_iter(text) {
        let groups = [found.name("double"), found.name("single"), found.name("secret")];
        let Some((whole, value)) = found.get(0).zip(groups.into_iter().flatten().next()) else { continue };
        let name = &found["name"];
        let is_quoted = found.name("secret").is_none();
        // a word such as `token` alone is one of prose
        let is_name = is_strong(name) || (is_secret_name(name) && name.contains(['_', '-', '.']));
        if !is_name || (found["space"].is_empty() && value.as_str().starts_with("//")) {
            continue;
        }
        let before = text[..whole.start() + found["before"].len()].trim_end();
        let follows_a_word = before.ends_with(char::is_alphanumeric) && !found["before"].contains('\n');
        let goes_on = text[whole.end()..].starts_with(' ')
            && text[whole.end()..].trim_start().starts_with(char::is_alphanumeric);
        let is_prose = found["quote"].is_empty() && (follows_a_word || goes_on);
        let is_scheme = SCHEMES.contains(&value.as_str().to_ascii_lowercase().as_str());
        // those of a header are masked by then, one by one perhaps
        let are_cookies = !is_quoted && name.to_ascii_lowercase().ends_with("cookie");
        if !is_scheme
            && !are_cookies
            && way.is_masked(name, value.as_str())
            && (is_quoted || way == Way::Traffic || !is_prose)
        {
            out.put(value.start(), value.len(), &way.mask(value.as_str()));
        }
    }
    out.done()
}

/// A text without texts and numbers that are values of JSON, which may stand in a text of JSON itself.
fn fields(text: &str, way: Way) -> Cow<'_, str> {
    let (Some(pattern), Some(of_value)) = (FIELD.as_ref(), FIELD_VALUE.as_ref()) else {
        return Cow::Borrowed(text);
    };
    let mut out = Replaced::new(text);
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| whole.end() >= out.end) else { continue };
        let name = unescaped(&found["name"]);
        if !is_secret_name(&name) {
            continue;
        }
        let Some(value) = of_value.captures(&text[whole.end()..]) else { continue };
        let number = value.name("number");
        let Some(secret) = value.name("inner").or_else(|| value.name("secret")).or(number) else { continue };
        if !way.is_masked(&name, secret.as_str()) {
            continue;
        }
        let mask = match number {
            Some(_) if way != Way::InPlace => format!("{0}\"{MASK}{0}\"", &found["escape"]),
            _ => way.mask(secret.as_str()),
        };
        out.put(whole.end() + secret.start(), secret.len(), &mask);
    }
    out.done()
}

/// A text without what is within elements of XML, up to their ends.
fn elements(text: &str, way: Way) -> Cow<'_, str> {
    let Some(pattern) = ELEMENT.as_ref() else { return Cow::Borrowed(text) };
    let mut out = Replaced::new(text);
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| !whole.as_str().ends_with("/>")) else { continue };
        if whole.end() < out.end || !is_secret_name(&found["name"]) {
            continue;
        }
        let inside = &text[whole.end()..];
        let inside = &inside[..end_of_element(inside, &found["whole"])];
        if way.is_masked(&found["name"], inside) {
            out.put(whole.end(), inside.len(), &way.mask(inside));
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

/// A text without the values of attributes of XML.
fn in_tags(text: &str, way: Way) -> Cow<'_, str> {
    let Some(pattern) = TAG.as_ref().filter(|pattern| pattern.is_match(text)) else {
        return Cow::Borrowed(text);
    };
    pattern.replace_all(text, |tag: &Captures<'_>| replaced(&ATTRIBUTE, &tag[0], way).into_owned())
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

    fn done(mut self) -> Cow<'t, str> {
        if self.end == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(&self.text[self.end..]);
        Cow::Owned(self.out)
    }
}

/// A name of JSON without its escapes, `pass\u0077ord`; also where it stands in a text of JSON, and has them twice.
pub(super) fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return Cow::Borrowed(name);
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        rest = after.trim_start_matches('\\');
        let code = rest.strip_prefix('u').and_then(|code| code.get(..4));
        if let Some(code) = code.and_then(|code| u32::from_str_radix(code, 16).ok()) {
            out.extend(char::from_u32(code));
            rest = &rest[5..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
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
                    false => out.extend(["\"", MASK, &text[end..at]]),
                }
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'-' | b'0'..=b'9' => {
                let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                at += bytes[at..].iter().take_while(|byte| is_number(byte)).count();
                match is_secret(name, &text[begin..at]) {
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

/// `Bearer ` and what follows it.
pub(super) fn scheme(text: &str) -> (&str, &str) {
    match text.split_once(' ') {
        Some((word, rest)) if SCHEMES.contains(&word.to_ascii_lowercase().as_str()) => {
            (&text[..=word.len()], rest.trim())
        }
        _ => ("", text),
    }
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
        ] {
            assert_eq!(masked(given, Way::Traffic), wanted);
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

    #[test]
    fn a_header_keeps_its_scheme_and_its_holes() {
        assert_eq!(masked_value("Bearer abc"), "Bearer ***");
        assert_eq!(masked_value("Bearer ${env(\"TOKEN\")}"), "Bearer ${env(\"TOKEN\")}");
        assert_eq!(masked_value("session=${s}; theme=dark"), "***${s}***");
        assert_eq!(masked_value("abc"), "***");
    }

    #[test]
    fn a_value_that_says_nothing_is_no_secret() {
        assert!(is_secret("password", "1234") && is_secret("token", "a1b2"));
        assert!(!is_secret("password", "password") && !is_secret("token", "10s") && !is_secret("n", "x"));
        assert!(!is_secret("token_type", "Bearer") && is_secret("password", "bearer"));
        assert!(!is_secret("Access-Control-Allow-Credentials", "true"));
    }
}
