//! Names beside which a secret stands, and which values say nothing.

use std::borrow::Cow;

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
/// The same where they are a word of it, a number behind it perhaps: `otp_code` and `cvv2`, not `footpath`.
const STRONG_WORDS: [&str; 11] =
    ["otp", "totp", "jwt", "cvv", "cvc", "csrf", "xsrf", "pin", "pincode", "mpin", "mfa"];
/// The same where it ends so: `db_pass`, not `pass_through`.
const STRONG_LAST: &str = "pass";
/// What may stand before it without a mark: `userpass`, not `compass`.
const BEFORE_PASS: [&str; 10] =
    ["user", "db", "login", "admin", "root", "auth", "proxy", "smtp", "key", "store"];
/// What is called a token, and says only where a list goes on, or how a text is taken apart.
const NO_TOKENS: [&str; 5] = ["pagetoken", "nexttoken", "continuationtoken", "synctoken", "tokeniz"];
/// Words before what is secret in a header.
pub(super) const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "token", "apikey", "negotiate"];

/// Whether a header, setting, field or parameter of this name holds a secret.
///
/// ```
/// use tidemark_scenario::secrets::is_secret_name;
///
/// assert!(["Authorization", "X-Api-Key", "dbPassword", "access_token", "apikey", "pass_phrase"].iter().all(|name| is_secret_name(name)));
/// assert!(["sig", "X-Amz-Signature", "X-Auth", "x-auth-user", "X-Session-Id"].iter().all(|name| is_secret_name(name)));
/// assert!(["pass", "dbPass", "SMTP_PASS", "userpass", "otp_code", "accessJwt", "X-CSRF", "X-Session"].iter().all(|name| is_secret_name(name)));
/// assert!(["pin", "cardPin", "PIN", "pin_code", "cvv2"].iter().all(|name| is_secret_name(name)));
/// assert!(!["ping", "pinned", "spin", "opinion", "shipping"].iter().any(|name| is_secret_name(name)));
/// assert!(!["compass", "bypass", "passenger", "pass_through", "footpath"].iter().any(|name| is_secret_name(name)));
/// assert!(!["page_token", "nextPageToken", "continuation-token", "tokenize"].iter().any(|name| is_secret_name(name)));
/// assert!(!["keyspace", "signal", "assigned", "X-Authors", "Keep-Alive", "keys_per_page", "Accept"].iter().any(|name| is_secret_name(name)));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    let is_key = |word: String| word.ends_with("key") || SIGNATURES.contains(&word.as_str());
    is_strong(name) || is_token(name) || words(name).any(is_key)
}

/// What every name of a secret has in it, the headers and schemes among them, and what a call that signs is called.
const STEMS: [&str; 22] = [
    "secret",
    "pass",
    "kennwort",
    "credential",
    "pwd",
    "otp",
    "jwt",
    "cvv",
    "cvc",
    "csrf",
    "xsrf",
    "pin",
    "mfa",
    "token",
    "key",
    "sig",
    "auth",
    "cookie",
    "xsession",
    "bearer",
    "basic",
    "hmac",
];

/// Whether a secret's name may stand in a text. In most texts none can, and they need not be searched for one.
pub(super) fn may_name_a_secret(text: &str) -> bool {
    let is_escape = |bytes: &[u8]| bytes[0] == b'%' && bytes[1..].iter().all(u8::is_ascii_hexdigit);
    if text.contains('\\') || text.as_bytes().windows(3).any(is_escape) {
        return true;
    }
    let text = in_one(text);
    STEMS.iter().any(|stem| text.contains(stem))
}

fn is_token(name: &str) -> bool {
    let name = in_one(name);
    let rest = NO_TOKENS.iter().fold(name, |name, of| name.replace(of, ""));
    rest.contains("token")
}

pub(super) fn is_strong(name: &str) -> bool {
    let begins = name.get(..HEADERS_FROM.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(HEADERS_FROM));
    let is_header = begins || HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    is_header
        || STRONG.iter().any(|part| in_one(name).contains(part))
        || words(name).any(|word| STRONG_WORDS.contains(&without_digits(&word)))
        || words(name).filter(|word| !word.is_empty()).last().is_some_and(|word| is_pass(&word))
}

/// `pass`, `pass2`, `dbpass`.
fn is_pass(word: &str) -> bool {
    let whose = without_digits(word).strip_suffix(STRONG_LAST);
    whose.is_some_and(|whose| whose.is_empty() || BEFORE_PASS.contains(&whose))
}

/// `pass2` as `pass`.
fn without_digits(word: &str) -> &str {
    word.trim_end_matches(|c: char| c.is_ascii_digit())
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
        || ["true", "false", "null", "~"].contains(&value)
        || is_of_cores(name, value);
    let is_word = || SCHEMES.contains(&value.to_ascii_lowercase().as_str());
    !says_nothing && is_secret_name(name) && (is_strong(name) || !(is_quantity(value) || is_word()))
}

/// Whether this is `--pin system=0` or `--pin 0-3`, which names cores. A PIN has four digits or more.
fn is_of_cores(name: &str, value: &str) -> bool {
    let is_core =
        |core: &str| (1..=3).contains(&core.len()) && core.bytes().all(|byte| byte.is_ascii_digit());
    let sides = ["system=", "driver="];
    name.trim_start_matches('-') == "pin"
        && (sides.iter().any(|side| value.starts_with(side)) || value.split([',', '-']).all(is_core))
}

/// Whether this stands in a secret's place, with what ends a sentence or brackets behind it.
pub(super) fn is_mask(value: &str) -> bool {
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

/// Whether a value is a word of our own help, `KEY=VALUE` or `NAME:PASSWORD`.
pub(super) fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 9] =
        ["COOKIE", "FILE", "KEY", "NAME", "PASSWORD", "SECRET", "TOKEN", "USER", "VALUE"];
    let value = value.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    !value.is_empty() && value.split([':', '=', ',']).all(|word| WORDS.contains(&word))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is a secret's name is not overlooked, wherever it stands.
        #[test]
        fn a_text_with_a_secrets_name_may_have_one(
            parts in prop::collection::vec(
                prop::sample::select(
                    [&STRONG[..], &STRONG_WORDS, &HEADERS, &SIGNATURES, &BEFORE_PASS, &SCHEMES, &["pass", "key", "x-auth-", "a", "-", "_", "2"]]
                        .concat(),
                ),
                1..4,
            ),
            is_large in any::<bool>(),
            around in "[ -~]{0,12}",
        ) {
            let name = parts.concat();
            let name = if is_large { name.to_ascii_uppercase() } else { name };
            if is_secret_name(&name) {
                prop_assert!(may_name_a_secret(&format!("{around}{name}: {around}")), "{name}");
            }
        }
    }

    #[test]
    fn a_text_may_name_a_secret_only_where_a_part_of_such_a_name_stands() {
        assert!(!may_name_a_secret("system: {url: http://127.0.0.1:80/}\nload: {users: 100}\nerrors < 0.1%"));
        assert!(
            may_name_a_secret("p%61ss=1")
                && may_name_a_secret(r"p\u0061ss")
                && may_name_a_secret("Pass-Word")
        );
    }

    #[test]
    fn a_value_that_says_nothing_is_no_secret() {
        assert!(is_secret("password", "1234") && is_secret("token", "a1b2"));
        assert!(is_placeholder("VALUE,VALUE") && is_placeholder("FILE") && !is_placeholder("VALUE,geheim"));
        assert!(!is_secret("password", "password") && !is_secret("token", "10s") && !is_secret("n", "x"));
        assert!(is_secret("pin", "1234") && !is_secret("--pin", "system=0-1"));
        assert!(!is_secret("--pin", "0,2-3") && is_secret("--pin", "12-3456"));
        assert!(!is_secret("token_type", "Bearer") && is_secret("password", "bearer"));
        assert!(!is_secret("Access-Control-Allow-Credentials", "true"));
    }
}
