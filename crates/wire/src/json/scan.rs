//! Passing over JSON: from the first byte of something to the first byte behind it, checking what is passed.

use super::{JsonError, MAX_DEPTH};

fn error<T>(offset: usize, reason: &'static str) -> Result<T, JsonError> {
    Err(JsonError { offset, reason })
}

/// The first byte at or behind `at` that is no blank.
#[inline]
pub(super) fn blanks(json: &[u8], mut at: usize) -> usize {
    // a byte order mark, which stands in front of all
    if at == 0 && json.starts_with(b"\xef\xbb\xbf") {
        at = 3;
    }
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = json.get(at) {
        at += 1;
    }
    at
}

/// A byte that must be there.
pub(super) fn expect(json: &[u8], at: usize, byte: u8, reason: &'static str) -> Result<usize, JsonError> {
    match json.get(at) {
        Some(&found) if found == byte => Ok(at + 1),
        _ => error(at, reason),
    }
}

/// A member's name with its quotes; returns where it ends and where the member's value begins.
pub(super) fn name(json: &[u8], at: usize) -> Result<(usize, usize), JsonError> {
    if json.get(at) != Some(&b'"') {
        return error(at, "expected a name in quotes");
    }
    let end = string(json, at)?;
    let value = expect(json, blanks(json, end), b':', "expected `:` behind the name")?;
    Ok((end, blanks(json, value)))
}

/// A string from its opening quote on.
pub(super) fn string(json: &[u8], at: usize) -> Result<usize, JsonError> {
    debug_assert_eq!(json[at], b'"');
    let mut at = at + 1;
    loop {
        at = plain(json, at);
        match json.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape(json, at)?,
            Some(_) => return error(at, "a control character in a string"),
            None => return error(at, "the text ends in a string"),
        }
    }
}

/// The first byte at or behind `at` that is a quote, a backslash or a control character. Eight bytes at a time: most
/// strings are short, and calling a vectorised search would cost more than it saves.
#[inline]
fn plain(json: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(chunk) = json.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        // A high bit for each byte that is zero after the XOR, or below 0x20. Borrows can only mark bytes behind a
        // true one, and the first one is what is wanted.
        let marks = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let marks = marks & HIGHS;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(&byte) = json.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

/// An escape from its backslash on.
fn escape(json: &[u8], at: usize) -> Result<usize, JsonError> {
    match json.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match json.get(at + 2..at + 6) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(at + 6),
            _ => error(at, "`\\u` without four hexadecimal digits"),
        },
        _ => error(at, "an unknown escape in a string"),
    }
}

fn digits(json: &[u8], mut at: usize) -> Result<usize, JsonError> {
    let start = at;
    while let Some(b'0'..=b'9') = json.get(at) {
        at += 1;
    }
    if at == start { error(at, "expected a digit") } else { Ok(at) }
}

fn number(json: &[u8], at: usize) -> Result<usize, JsonError> {
    let mut at = if json.get(at) == Some(&b'-') { at + 1 } else { at };
    at = match json.get(at) {
        Some(b'0') => at + 1,
        _ => digits(json, at)?,
    };
    if json.get(at) == Some(&b'.') {
        at = digits(json, at + 1)?;
    }
    if let Some(b'e' | b'E') = json.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = json.get(at) {
            at += 1;
        }
        at = digits(json, at)?;
    }
    Ok(at)
}

fn word(json: &[u8], at: usize, word: &[u8]) -> Result<usize, JsonError> {
    if json[at..].starts_with(word) { Ok(at + word.len()) } else { error(at, "expected a value") }
}

/// The arrays and objects that one is inside of, innermost in the lowest bit; set for objects.
#[derive(Default)]
struct Nest {
    kinds: u128,
    depth: usize,
}

const _: () = assert!(MAX_DEPTH <= u128::BITS as usize);

/// A value of any kind, from its first byte on, when already `depth` arrays and objects are around it.
pub(super) fn value(json: &[u8], mut at: usize, depth: usize) -> Result<usize, JsonError> {
    let mut nest = Nest::default();
    loop {
        at = match json.get(at) {
            Some(b'"') => string(json, at)?,
            Some(b'-' | b'0'..=b'9') => number(json, at)?,
            Some(b't') => word(json, at, b"true")?,
            Some(b'f') => word(json, at, b"false")?,
            Some(b'n') => word(json, at, b"null")?,
            Some(&open @ (b'{' | b'[')) => {
                if depth + nest.depth >= MAX_DEPTH {
                    return error(at, "nested deeper than 128 levels");
                }
                let is_object = open == b'{';
                at = blanks(json, at + 1);
                match json.get(at) {
                    Some(b'}') if is_object => at + 1,
                    Some(b']') if !is_object => at + 1,
                    _ => {
                        nest.kinds = nest.kinds << 1 | u128::from(is_object);
                        nest.depth += 1;
                        if is_object {
                            at = name(json, at)?.1;
                        }
                        continue;
                    }
                }
            }
            Some(_) => return error(at, "expected a value"),
            None => return error(at, "the text ends where a value is expected"),
        };
        // Behind a value: out of what it closes, or on to the next one.
        loop {
            if nest.depth == 0 {
                return Ok(at);
            }
            let is_object = nest.kinds & 1 == 1;
            at = blanks(json, at);
            match json.get(at) {
                Some(b',') => {
                    at = blanks(json, at + 1);
                    if is_object {
                        at = name(json, at)?.1;
                    }
                    break;
                }
                Some(b'}') if is_object => {}
                Some(b']') if !is_object => {}
                _ => return error(at, after_value(is_object)),
            }
            at += 1;
            nest.kinds >>= 1;
            nest.depth -= 1;
        }
    }
}

pub(super) fn after_value(is_object: bool) -> &'static str {
    if is_object { "expected `,` or `}`" } else { "expected `,` or `]`" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        for text in [
            "\"\"",
            "\"a long string of more than eight bytes \\\" and more\"",
            "\"größer\"",
            "0",
            "-0",
            "-12.5e+3",
            "true",
            "[]",
            "[ ]",
            "{}",
            "{ \"a\" : [ { } , \"]\" ] }",
        ] {
            for tail in ["", " ", ",", "]", "}"] {
                let json = format!("{text}{tail}");
                assert_eq!(value(json.as_bytes(), 0, 0), Ok(text.len()), "{json}");
            }
        }
    }

    #[test]
    fn what_is_no_value() {
        for text in [
            "",
            " ",
            "x",
            "tru",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "\"",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "\"12345678\u{1}\"",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[1}",
            "[,]",
            "{",
            "{]",
            "{a:1}",
            "{\"a\"}",
            "{\"a\" 1}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1]",
        ] {
            assert!(value(text.as_bytes(), 0, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn every_byte_at_every_place_of_a_string() {
        for place in 0..20 {
            for byte in 0..=255u8 {
                let mut json = [b'x'; 22];
                (json[0], json[21], json[1 + place]) = (b'"', b'"', byte);
                let expected = match byte {
                    b'"' => Some(place + 2),
                    0..0x20 => None,
                    b'\\' => {
                        // The byte behind is `x` or the closing quote: no escape, or no end.
                        None
                    }
                    _ => Some(22),
                };
                assert_eq!(string(&json, 0).ok(), expected, "{byte} at {place}");
            }
        }
    }
}
