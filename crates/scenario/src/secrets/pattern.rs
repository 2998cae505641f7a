//! What looks like a secret: by the name that stands beside it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::pieces::{Piece, split};

/// What stands in a secret's place.
pub const MASK: &str = "***";
/// Headers whose whole value is secret.
const HEADERS: [&str; 6] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth", "x-session-id"];
/// How the names of further such headers begin.
const HEADERS_FROM: &str = "x-auth-";
/// Words of the name of what proves who signed a request.
const SIGNATURES: [&str; 2] = ["sig", "signature"];
/// What makes a name one of a secret, whatever its value is.
const STRONG: [&str; 6] = ["secret", "password", "passwd", "passphrase", "credential", "pwd"];
/// Words before what is secret in a header.
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "apikey", "negotiate"];
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
    USER_INFO r#"(?<before>://)(?<secret>[^\s/?#@"'<>]+)@"#;
    PARAMETER r#"(?<before>(?:^|[?&\s;])(?:--)?(?<name>[A-Za-z0-9_.\-]{1,64})=)(?<secret>[^&\s"'`#]+)"#;
    FIELD r#"(?<before>"(?<name>[^"\\\s]{1,64})\\?"\s*:\s*\\?")(?<secret>(?:[^"\\]|\\[^"]|\\"[^,}\]\s])+)"#;
    HEADER r#"(?i)(?<before>\b(?:proxy-)?authorization:\s*(?:(?:bearer|basic|digest|token|apikey|negotiate)\s+)?|\b(?:set-)?cookie:\s*|\bx-(?:auth(?:-[a-z0-9_-]+)?|session-id|api-key):\s*)(?<secret>[^\s"',;]+(?:;\s*[^\s"',;]+)*)"#;
    PART r#"(?is)(?<before>;\s*name="(?<name>[^"\r\n]{1,64})"[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n)(?<secret>.+?)(?:\r?\n--|$)"#;
    ELEMENT r#"(?<before><(?:[A-Za-z0-9_.\-]{1,64}:)?(?<name>[A-Za-z0-9_.\-]{1,64})(?:\s[^<>]*)?>)(?<secret>[^<]+)(?:</|$)"#;
    BELOW r#""(?<name>[^"\\\s]{1,64})"\s*:\s*[\[{]"#;
    BEARER r#"(?i)(?<before>(?:^|[^\w/.\-])bearer\s+)(?<secret>[^\s"',]{8,})"#;
}

/// Whether a header, setting, field or parameter of this name holds a secret.
///
/// ```
/// use tidemark_scenario::secrets::is_secret_name;
///
/// assert!(["Authorization", "X-Api-Key", "dbPassword", "access_token", "apikey", "pass_phrase"].iter().all(|name| is_secret_name(name)));
/// assert!(["sig", "X-Amz-Signature", "X-Auth", "x-auth-user", "X-Session-Id"].iter().all(|name| is_secret_name(name)));
/// assert!(!["keyspace", "signal", "assigned", "X-Authors", "Keep-Alive", "keys_per_page", "Accept"].iter().any(|name| is_secret_name(name)));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    let is_key = |word: String| word.ends_with("key") || SIGNATURES.contains(&word.as_str());
    is_strong(name) || in_one(name).contains("token") || words(name).any(is_key)
}

fn is_strong(name: &str) -> bool {
    let begins = name.get(..HEADERS_FROM.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HEADERS_FROM));
    let is_header = begins || HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    is_header || STRONG.iter().any(|part| in_one(name).contains(part))
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
        || value.contains(MASK)
        || value.starts_with('…')
        || value.eq_ignore_ascii_case(name)
        || ["true", "false", "null", "~"].contains(&value);
    let is_word = || SCHEMES.contains(&value.to_ascii_lowercase().as_str());
    !says_nothing && is_secret_name(name) && (is_strong(name) || !(is_quantity(value) || is_word()))
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

/// A text of whatever kind without what stands in it beside a secret's name.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let mask = |_: &str| MASK.to_owned();
    match below(text) {
        Cow::Borrowed(text) => masked_as(text, &mask),
        Cow::Owned(text) => Cow::Owned(masked_as(&text, &mask).into_owned()),
    }
}

/// The same with something else in a secret's place.
pub(super) fn masked_as<'t>(text: &'t str, mask: &dyn Fn(&str) -> String) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    for pattern in [&USER_INFO, &PARAMETER, &FIELD, &HEADER, &PART, &ELEMENT, &BEARER] {
        let Some(pattern) = pattern.as_ref() else { continue };
        if !pattern.is_match(&text) {
            continue;
        }
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            let secret = &found["secret"];
            let named = found.name("name").is_none_or(|name| is_secret(name.as_str(), secret));
            match named && !secret.contains("${") && !secret.contains(MASK) {
                true => found[0].replacen(
                    &format!("{}{secret}", &found["before"]),
                    &format!("{}{}", &found["before"], mask(secret)),
                    1,
                ),
                false => found[0].to_owned(),
            }
        });
        if let Cow::Owned(replaced) = replaced {
            text = Cow::Owned(replaced);
        }
    }
    text
}

/// A text without the leaves of objects and lists of JSON that stand below a secret's name.
fn below(text: &str) -> Cow<'_, str> {
    let Some(pattern) = BELOW.as_ref() else { return Cow::Borrowed(text) };
    let (mut out, mut done) = (String::new(), 0);
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0).filter(|whole| whole.start() >= done) else { continue };
        if !is_secret_name(&found["name"]) {
            continue;
        }
        out.push_str(&text[done..whole.end()]);
        done = whole.end() + leaves(&found["name"], &text[whole.end()..], &mut out);
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Writes what is within an object or list, or its beginning, without its leaves; says how many bytes of the text that was.
fn leaves(name: &str, text: &str, out: &mut String) -> usize {
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
                let kept = is_name || inside.contains("${") || !is_secret(name, inside);
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
            assert_eq!(masked(given), wanted);
        }
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
