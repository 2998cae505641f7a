//! Values that say of which key and version they are, and whether they are whole.
//!
//! A value is `KEY|VERSION|letters|checksum`, of any size from the first three on: digits of the version, letters that differ
//! from value to value, and eight hexadecimal digits that check all before them. It is text that no format has to escape.

use std::fmt;

/// Largest value, bytes.
pub const VALUE_MAX: usize = 16 << 20;
/// What the checksum takes, with the mark before it.
const CHECK: usize = 9;
/// Odd, and with as many ones as zeros (the golden ratio's).
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Appends a value of just this size. False, and nothing is appended, where it is too small for what it has to say, or too
/// large, or the key has a `|`, `"` or `\` or no text in it.
pub fn write(key: &[u8], version: u64, size: usize, out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    let mut digits = itoa::Buffer::new();
    let version = digits.format(version).as_bytes();
    let head = key.len() + version.len() + 2;
    let is_key = !key.is_empty() && key.iter().all(|byte| is_plain(*byte));
    if !is_key || head + CHECK > size || size > VALUE_MAX {
        return false;
    }
    out.reserve(size);
    out.extend_from_slice(key);
    out.push(b'|');
    out.extend_from_slice(version);
    out.push(b'|');
    let mut state = sum(&out[begin..]);
    let letters = size - head - CHECK;
    let end = out.len() + letters;
    while out.len() < end {
        state = state.wrapping_add(MIX);
        let random = folded(state, state ^ MIX);
        // A to P and a to p
        let eight = ((random & 0x2F2F_2F2F_2F2F_2F2F) + 0x4141_4141_4141_4141).to_le_bytes();
        let left = (end - out.len()).min(8);
        out.extend_from_slice(&eight[..left]);
    }
    let check = check_of(&out[begin..]);
    out.push(b'|');
    out.extend_from_slice(&check);
    true
}

fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'|' | b'"' | b'\\') && byte >= b' '
}

/// What a value says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its version.
    pub version: u64,
}

/// Reads a value; none if it is none, or not whole: torn, cut off, or changed.
pub fn read(value: &[u8]) -> Option<Told<'_>> {
    let (all, check) = value.split_at_checked(value.len().checked_sub(CHECK)?)?;
    let (mark, digits) = check.split_first()?;
    if *mark != b'|' || check_of(all) != *digits {
        return None;
    }
    told(all)
}

/// What a value says of itself, whether it is whole or not.
fn told(value: &[u8]) -> Option<Told<'_>> {
    let at = memchr::memchr(b'|', value)?;
    let (key, rest) = (&value[..at], &value[at + 1..]);
    let version = std::str::from_utf8(&rest[..memchr::memchr(b'|', rest)?]).ok()?.parse().ok()?;
    Some(Told { key, version })
}

/// What is wrong with an answer that is to hold values of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong<'a> {
    /// This is no whole value.
    Broken(&'a [u8]),
    /// It is whole, but of this key.
    Other(&'a [u8]),
    /// It holds so many whole values of the key.
    Few(u32),
    /// The newest version in it is older than the one that it must have.
    Stale(u64),
    /// It holds none, though there must be.
    Gone,
}

/// For a person, behind what it is of.
impl fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Broken(value) => match told(value) {
                Some(Told { key, version }) => {
                    let key = String::from_utf8_lossy(key);
                    write!(f, "wrong: version {version} of {key} is incomplete or corrupted")
                }
                None => write!(f, "wrong: not written by this run"),
            },
            Wrong::Other(key) => write!(f, "wrong: the value of key {}", String::from_utf8_lossy(key)),
            Wrong::Few(values) => write!(f, "wrong: {values} intact values"),
            Wrong::Stale(version) => write!(f, "stale: version {version}"),
            Wrong::Gone => write!(f, "gone: no value"),
        }
    }
}

/// Judges an answer that is to hold `values` values of a key, none of another, and among them one that is not older than the
/// version `least`, where that is above 0; else it may be empty. It is one value, or JSON whose texts are looked at if a `|` is
/// in them.
///
/// # Errors
/// What is wrong with it.
pub fn judge<'a>(body: &'a [u8], key: &[u8], least: u64, values: u32) -> Result<(), Wrong<'a>> {
    let (mut found, mut newest) = (0, 0);
    let mut one = |value: &'a [u8]| {
        let Some(told) = read(value) else { return Err(Wrong::Broken(value)) };
        if told.key != key {
            return Err(Wrong::Other(told.key));
        }
        found += 1;
        newest = newest.max(told.version);
        Ok(())
    };
    match body {
        body if is_empty(body) && least == 0 => return Ok(()),
        body if is_empty(body) => return Err(Wrong::Gone),
        [b'[' | b'{', ..] => {
            texts(body).filter(|text| memchr::memchr(b'|', text).is_some()).try_for_each(one)?;
        }
        value => one(value)?,
    }
    match found == values {
        false => Err(Wrong::Few(found)),
        true if newest < least => Err(Wrong::Stale(newest)),
        true => Ok(()),
    }
}

/// Whether nothing is there: no byte, or JSON with nothing but nulls in it.
fn is_empty(body: &[u8]) -> bool {
    body.iter().all(|byte| matches!(byte, b'[' | b']' | b'{' | b'}' | b',' | b' ' | b'n' | b'u' | b'l'))
}

/// The texts of JSON as they stand between their quotes; a quote behind a backslash is a part of one.
fn texts(mut json: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let begin = memchr::memchr(b'"', json)? + 1;
        let mut end = begin;
        loop {
            end += memchr::memchr2(b'"', b'\\', json.get(end..)?)?;
            if json[end] == b'"' {
                break;
            }
            end += 2;
        }
        let text = &json[begin..end];
        json = &json[end + 1..];
        Some(text)
    })
}

fn check_of(bytes: &[u8]) -> [u8; 8] {
    let sum = sum(bytes);
    std::array::from_fn(|at| b"0123456789abcdef"[(sum >> (4 * at) & 15) as usize])
}

/// A checksum, eight bytes at a time.
fn sum(bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let sum = eights.iter().fold(bytes.len() as u64, |sum, eight| {
        folded(sum ^ u64::from_le_bytes(*eight), MIX).wrapping_add(sum.rotate_left(23))
    });
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    folded(sum ^ u64::from_le_bytes(last), MIX ^ sum.rotate_left(17))
}

/// The two halves of a product, one upon the other.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &str, version: u64, size: usize) -> Vec<u8> {
        let mut out = b"before".to_vec();
        assert!(write(key.as_bytes(), version, size, &mut out), "{key} {version} {size}");
        out.split_off(6)
    }

    #[test]
    fn a_value_has_its_size_and_says_what_it_is() {
        for size in (15..300).chain([4096, 1 << 20]) {
            let value = value("k:7", 1, size);
            assert_eq!(value.len(), size);
            assert_eq!(read(&value), Some(Told { key: b"k:7", version: 1 }));
        }
        let mut out = Vec::new();
        for (key, size) in [("k:7", 14), ("", 100), ("a|b", 100), ("a\"", 100), ("k", VALUE_MAX + 1)] {
            assert!(!write(key.as_bytes(), 1, size, &mut out) && out.is_empty(), "{key} {size}");
        }
    }

    #[test]
    fn whatever_is_changed_shows() {
        let whole = value("17", 23, 100);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(read(&changed), None, "byte {at}, bit {bit}");
            }
            assert_eq!(read(&whole[..at]), None, "cut off at {at}");
            // torn: the first part of one version, the rest of the next
            let mut torn = whole[..at].to_vec();
            torn.extend_from_slice(&value("17", 24, 100)[at..]);
            // some begin or end alike: then it is one of the two
            let is_one = torn == whole || torn == value("17", 24, 100);
            assert_eq!(read(&torn).is_some(), is_one, "torn at {at}");
        }
    }

    #[test]
    fn answers_are_judged() {
        let one = value("7", 5, 40);
        assert_eq!(judge(&one, b"7", 5, 1), Ok(()));
        assert_eq!(judge(&one, b"7", 6, 1), Err(Wrong::Stale(5)));
        assert_eq!(judge(&one, b"8", 0, 1), Err(Wrong::Other(b"7")));
        assert_eq!(judge(&one[1..], b"7", 0, 1), Err(Wrong::Broken(&one[1..])));
        assert_eq!(judge(b"", b"7", 0, 1), Ok(()), "it may not be there yet");
        assert_eq!(judge(b"", b"7", 1, 1), Err(Wrong::Gone));
        for none in ["[]", "{}", "null", "[null]", "[null, null]", "[[],null]"] {
            assert_eq!(judge(none.as_bytes(), b"7", 0, 2), Ok(()), "{none}");
            assert_eq!(judge(none.as_bytes(), b"7", 1, 2), Err(Wrong::Gone), "{none}");
        }
        assert_eq!(judge(b"[1,2]", b"7", 0, 2), Err(Wrong::Few(0)));
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let fields = |a: &[u8], b: &[u8]| format!(r#"["f0","{}","f1","{}"]"#, text(a), text(b)).into_bytes();
        let newer = value("7", 9, 40);
        assert_eq!(judge(&fields(&one, &newer), b"7", 9, 2), Ok(()), "the newest counts");
        assert_eq!(judge(&fields(&one, &newer), b"7", 10, 2), Err(Wrong::Stale(9)));
        assert_eq!(judge(&fields(&one, &newer), b"7", 9, 3), Err(Wrong::Few(2)));
        assert_eq!(judge(&fields(&one, b""), b"7", 0, 2), Err(Wrong::Few(1)));
        assert!(matches!(judge(&fields(&one, &newer[2..]), b"7", 0, 2), Err(Wrong::Broken(_))));
        // quotes and backslashes of others' texts
        for note in [r#"say \"hi"#, r#"\""#, r"C:\\", r#"\\\""#, "ü\\n"] {
            let body = format!(r#"[{{"note":"{note}","v":"{}"}}]"#, text(&one));
            assert_eq!(judge(body.as_bytes(), b"7", 5, 1), Ok(()), "{body}");
        }
        for cut in [r#"["a"#, r#"["a\"#, r#"["a\""#, "[\""] {
            assert_eq!(judge(cut.as_bytes(), b"7", 0, 1), Err(Wrong::Few(0)), "{cut}");
        }
    }
}
