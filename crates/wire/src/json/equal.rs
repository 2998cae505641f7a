//! Whether two values are the same, whatever their layout: numbers by their size, members in any order.

use super::scan;
use super::text::{name_is, write_text};

/// Whether two raw tokens are the same value. Numbers are compared exactly, however many digits they have; of members with
/// one name the first counts.
///
/// ```
/// use tidemark_wire::json::equal;
///
/// assert!(equal(b"[1, {\"a\": 10e1, \"b\": null}]", b"[1.0,{\"b\":null,\"a\":100}]"));
/// assert!(!equal(b"3", b"\"3\"") && !equal(b"18446744073709551616", b"18446744073709551617"));
/// ```
pub fn equal(one: &[u8], other: &[u8]) -> bool {
    match (one.first(), other.first()) {
        (Some(b'"'), Some(b'"')) => same_text(one, other),
        (Some(b'['), Some(b'[')) => {
            let (mut one, mut other) = (Children::of(one), Children::of(other));
            loop {
                match (one.next(), other.next()) {
                    (Some((_, one)), Some((_, other))) if equal(one, other) => {}
                    (None, None) => return true,
                    _ => return false,
                }
            }
        }
        (Some(b'{'), Some(b'{')) => {
            let is_there = |(name, value): (&[u8], &[u8])| {
                let mut name_text = Vec::new();
                write_text(name, &mut name_text);
                let found = Children::of(other).find(|(name, _)| name_is(name, &name_text));
                found.is_some_and(|(_, other)| equal(value, other))
            };
            Children::of(one).count() == Children::of(other).count() && Children::of(one).all(is_there)
        }
        (Some(_), Some(_)) => one == other || is_same_number(one, other),
        _ => false,
    }
}

/// Whether a raw token is a number.
pub fn is_number(token: &[u8]) -> bool {
    matches!(token.first(), Some(b'-' | b'0'..=b'9')) && scan::value(token, 0, 0) == Ok(token.len())
}

/// Whether two raw tokens are numbers of the same size.
pub fn is_same_number(one: &[u8], other: &[u8]) -> bool {
    if !is_number(one) || !is_number(other) {
        return false;
    }
    let (one, other) = (Decimal::of(one), Decimal::of(other));
    match (one.is_zero(), other.is_zero()) {
        (true, true) => true,
        (false, false) => {
            one.is_negative == other.is_negative
                && one.last_power() == other.last_power()
                && one.digits().eq(other.digits())
        }
        _ => false,
    }
}

fn same_text(one: &[u8], other: &[u8]) -> bool {
    if !one.contains(&b'\\') && !other.contains(&b'\\') {
        return one == other;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    write_text(one, &mut first);
    write_text(other, &mut second);
    first == second
}

/// A number as it is written.
#[derive(Clone, Copy)]
struct Decimal<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn of(token: &'a [u8]) -> Decimal<'a> {
        let (is_negative, token) = match token.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (mantissa, exponent) = match token.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&token[..at], &token[at + 1..]),
            None => (token, &token[..0]),
        };
        let (whole, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &mantissa[..0]),
        };
        let is_small = exponent.starts_with(b"-");
        let size = exponent.iter().filter(|byte| byte.is_ascii_digit()).fold(0, |sum: i64, digit| {
            // larger ones differ by nothing that could be told
            sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(i64::MAX / 4)
        });
        Decimal { is_negative, whole, fraction, exponent: if is_small { -size } else { size } }
    }

    fn all(self) -> impl DoubleEndedIterator<Item = &'a u8> {
        self.whole.iter().chain(self.fraction)
    }

    fn is_zero(self) -> bool {
        self.all().all(|digit| *digit == b'0')
    }

    fn zeros_behind(self) -> usize {
        self.all().rev().take_while(|digit| **digit == b'0').count()
    }

    /// The power of ten of the last digit that counts.
    fn last_power(self) -> i64 {
        self.exponent - self.fraction.len() as i64 + self.zeros_behind() as i64
    }

    /// Those that count.
    fn digits(self) -> impl Iterator<Item = &'a u8> {
        let before_zeros = self.whole.len() + self.fraction.len() - self.zeros_behind();
        self.all().take(before_zeros).skip_while(|digit| **digit == b'0')
    }
}

/// The elements of an array, or the members of an object with their raw names.
struct Children<'a> {
    json: &'a [u8],
    at: usize,
    is_object: bool,
}

impl<'a> Children<'a> {
    fn of(token: &'a [u8]) -> Children<'a> {
        Children { json: token, at: scan::blanks(token, 1), is_object: token.starts_with(b"{") }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = (&'a [u8], &'a [u8]);

    /// None at the end, and where it is no JSON.
    fn next(&mut self) -> Option<Self::Item> {
        let (json, mut at) = (self.json, self.at);
        let mut name = &json[..0];
        if self.is_object {
            let (name_end, value) = scan::name(json, at).ok()?;
            name = &json[at..name_end];
            at = value;
        }
        let end = scan::value(json, at, 0).ok()?;
        let behind = scan::blanks(json, end);
        self.at = match json.get(behind) {
            Some(b',') => scan::blanks(json, behind + 1),
            _ => json.len(),
        };
        Some((name, &json[at..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(one: &str, other: &str) -> bool {
        let there = equal(one.as_bytes(), other.as_bytes());
        assert_eq!(there, equal(other.as_bytes(), one.as_bytes()), "{one} {other}");
        there
    }

    #[test]
    fn numbers_are_the_same_by_their_size() {
        for (one, other) in [
            ("3", "3.0"),
            ("300", "3e2"),
            ("0.03", "3E-2"),
            ("-0", "0.000e9"),
            ("1200e-1", "1.2e+2"),
            ("0.1", "1e-1"),
            ("18446744073709551616", "18446744073709551616.0"),
            ("-1.50", "-1.5"),
        ] {
            assert!(both(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("3", "30"),
            ("3", "-3"),
            ("0.1", "0.01"),
            ("0", "1"),
            ("18446744073709551616", "18446744073709551617"),
            ("9007199254740993", "9007199254740992"),
            ("101", "11"),
            ("1e400", "1e401"),
        ] {
            assert!(!both(one, other), "{one} {other}");
        }
    }

    #[test]
    fn types_tell_apart() {
        let all =
            ["3", "\"3\"", "true", "\"true\"", "null", "\"null\"", "[]", "{}", "[3]", "{\"a\":3}", "\"\""];
        for (index, one) in all.iter().enumerate() {
            for (place, other) in all.iter().enumerate() {
                assert_eq!(both(one, other), index == place, "{one} {other}");
            }
        }
    }

    #[test]
    fn lists_keep_their_order_and_objects_do_not() {
        assert!(both("[1, [ ], {\"a\" : \"\\u0062\"}]", "[1.0,[],{\"a\":\"b\"}]"));
        assert!(!both("[1,2]", "[2,1]") && !both("[1]", "[1,2]") && !both("[]", "[null]"));
        assert!(both("{\"a\":1,\"b\":[true]}", "{ \"b\" : [ true ], \"\\u0061\" : 1 }"));
        assert!(!both("{\"a\":1}", "{\"a\":1,\"b\":2}") && !both("{\"a\":1}", "{\"b\":1}"));
        assert!(!both("{\"a\":null}", "{}"));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", "01", "1.", "+1", "0x1", "NaN", "1 ", "\"1\""] {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
        assert!(is_number(b"-12.50e+3") && is_number(b"0"));
    }
}
