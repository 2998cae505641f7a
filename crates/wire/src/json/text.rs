//! From raw tokens to text.

/// Appends a token's text to `out`: a string without its quotes and escapes, anything else as it is written.
///
/// Half of a surrogate pair becomes U+FFFD, for there is no text with it.
pub fn write_text(raw_token: &[u8], out: &mut Vec<u8>) {
    let inner = raw_token.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    match inner {
        Some(inner) => unescape(inner, out),
        None => out.extend_from_slice(raw_token),
    }
}

/// Whether a member's raw name, with its quotes, is `wanted`.
pub(super) fn name_is(raw_name: &[u8], wanted: &[u8]) -> bool {
    let inner = &raw_name[1..raw_name.len() - 1];
    if inner == wanted {
        // A backslash in both: the raw one is an escape and means something else.
        return memchr::memchr(b'\\', inner).is_none();
    }
    // Escapes only make a name longer.
    inner.len() > wanted.len() && memchr::memchr(b'\\', inner).is_some() && {
        let mut name = Vec::with_capacity(inner.len());
        unescape(inner, &mut name);
        name == wanted
    }
}

fn unescape(inner: &[u8], out: &mut Vec<u8>) {
    out.reserve(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((&kind, behind)) = rest.split_first() else { return };
        rest = behind;
        match kind {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => rest = write_unicode(rest, out),
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
}

/// The digits behind `\u`, and the second half of a pair if it follows; returns what is left.
fn write_unicode<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((unit, mut rest)) = code_unit(rest) else {
        out.extend_from_slice("\u{FFFD}".as_bytes());
        return rest;
    };
    let mut code = unit;
    if (0xD800..0xDC00).contains(&unit)
        && let Some((low, behind)) = rest.strip_prefix(b"\\u").and_then(code_unit)
        && (0xDC00..0xE000).contains(&low)
    {
        code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        rest = behind;
    }
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    rest
}

/// Four hexadecimal digits.
fn code_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let unit = digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | (digit as char).to_digit(16)?))?;
    Some((unit, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> String {
        let mut out = b">".to_vec();
        write_text(raw.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_lose_quotes_and_escapes() {
        assert_eq!(text(r#""plain""#), ">plain");
        assert_eq!(text(r#""""#), ">");
        assert_eq!(text(r#""\"\\\/\b\f\n\r\t|""#), ">\"\\/\u{8}\u{c}\n\r\t|");
        assert_eq!(text(r#""\u00e9\u20AC\ud83c\udf0a!""#), ">é€🌊!");
    }

    #[test]
    fn halves_of_pairs_are_replaced() {
        assert_eq!(text(r#""\ud83c""#), ">\u{FFFD}");
        assert_eq!(text(r#""\ud83cx""#), ">\u{FFFD}x");
        assert_eq!(text(r#""\ud83c\u0041""#), ">\u{FFFD}A");
        assert_eq!(text(r#""\udf0a\ud83c\udf0a""#), ">\u{FFFD}🌊");
    }

    #[test]
    fn other_tokens_stay_as_they_are() {
        for raw in ["12.50", "true", "null", "[1, \"a\"]", "{\"a\": \"\\n\"}"] {
            assert_eq!(text(raw), format!(">{raw}"));
        }
    }

    #[test]
    fn what_is_no_token_does_no_harm() {
        for raw in ["\"", "\"\\\"", "\"\\u\"", "\"\\u12\"", "\"\\ud800\\u1\"", ""] {
            text(raw);
        }
    }

    #[test]
    fn names_are_compared_by_their_meaning() {
        assert!(name_is(br#""id""#, b"id"));
        assert!(name_is(br#""\u0069d""#, b"id"));
        assert!(name_is(br#""a\\n""#, br"a\n"));
        assert!(!name_is(br#""a\n""#, br"a\n"));
        assert!(!name_is(br#""idx""#, b"id"));
        assert!(!name_is(br#""""#, b"id"));
    }
}
