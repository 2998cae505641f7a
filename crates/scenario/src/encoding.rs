//! How a value is written where it is to stand.

use std::io::Write as _;

use crate::slot::{List, Value};

/// How a hole's value is written so that it cannot break out of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is (raw bodies; the author is responsible).
    Raw,
    /// One path segment or query value of a URL, percent-encoded.
    Url,
    /// A path with its slashes and its query, without a fragment (`#…`); only what cannot stand in a request line is encoded.
    Path,
    /// `application/x-www-form-urlencoded`, space as `+`.
    Form,
    /// Inside a JSON string, escaped.
    JsonText,
    /// A JSON value: text quoted and escaped, numbers and truth values bare, missing as null.
    JsonValue,
    /// A header's value: control characters are left out.
    Header,
}

impl Encoding {
    /// Appends `text`, encoded.
    pub fn write_text(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Raw => out.extend_from_slice(text),
            Encoding::Url => text.iter().for_each(|byte| push_url_byte(*byte, out)),
            Encoding::Path => {
                // what follows is never sent
                let sent = text.split(|byte| *byte == b'#').next().unwrap_or_default();
                sent.iter().for_each(|byte| push_path_byte(*byte, out));
            }
            Encoding::Form => text.iter().for_each(|byte| push_form_byte(*byte, out)),
            Encoding::JsonText => push_json_text(text, out),
            Encoding::JsonValue => {
                out.push(b'"');
                push_json_text(text, out);
                out.push(b'"');
            }
            Encoding::Header => out.extend(text.iter().filter(|byte| !byte.is_ascii_control())),
        }
    }

    /// Appends a value, encoded.
    pub fn write_value(self, value: Value<'_>, out: &mut Vec<u8>) {
        let is_json_value = self == Encoding::JsonValue;
        match value {
            Value::Missing if is_json_value => out.extend_from_slice(b"null"),
            Value::Missing => {}
            Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Int(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Value::Real(value) => write_real(value, out),
            Value::Text(text) => self.write_text(text, out),
            Value::List(list) => self.write_list(list, out),
        }
    }

    fn write_list(self, list: List<'_>, out: &mut Vec<u8>) {
        let is_json_value = self == Encoding::JsonValue;
        if is_json_value {
            out.push(b'[');
        }
        for index in 0..list.len() {
            if index > 0 {
                if is_json_value { out.push(b',') } else { self.write_text(b",", out) }
            }
            self.write_text(list.get(index).unwrap_or_default(), out);
        }
        if is_json_value {
            out.push(b']');
        }
    }
}

fn push_percent(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// A byte of a path segment or query value: what RFC 3986 allows in both stays, except what queries give a meaning.
pub(crate) fn push_url_byte(byte: u8, out: &mut Vec<u8>) {
    if byte.is_ascii_alphanumeric() || b"-._~@:!*(),".contains(&byte) {
        out.push(byte);
    } else {
        push_percent(byte, out);
    }
}

/// A byte of a path as its author wrote it.
pub(crate) fn push_path_byte(byte: u8, out: &mut Vec<u8>) {
    if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
        out.push(byte);
    } else {
        push_percent(byte, out);
    }
}

fn push_form_byte(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b' ' => out.push(b'+'),
        b'*' | b'-' | b'.' | b'_' => out.push(byte),
        _ if byte.is_ascii_alphanumeric() => out.push(byte),
        _ => push_percent(byte, out),
    }
}

fn push_json_text(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // Writing to a Vec cannot fail.
            0..0x20 => drop(write!(out, "\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
}

/// Writes a real number in its shortest form.
pub(crate) fn write_real(value: f64, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Slot;

    fn encoded(encoding: Encoding, text: &str) -> String {
        let mut out = Vec::new();
        encoding.write_text(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_encoding_keeps_a_value_in_its_place() {
        let text = "a b&c=d/é\"\\\n\u{1}uid0@x.com";
        assert_eq!(encoded(Encoding::Raw, text), text);
        assert_eq!(encoded(Encoding::Url, text), "a%20b%26c%3Dd%2F%C3%A9%22%5C%0A%01uid0@x.com");
        assert_eq!(encoded(Encoding::Form, text), "a+b%26c%3Dd%2F%C3%A9%22%5C%0A%01uid0%40x.com");
        assert_eq!(encoded(Encoding::JsonText, text), "a b&c=d/é\\\"\\\\\\n\\u0001uid0@x.com");
        assert_eq!(encoded(Encoding::JsonValue, "x\"y"), "\"x\\\"y\"");
        assert_eq!(encoded(Encoding::Path, "/a b/c?d=e/f#top?x"), "/a%20b/c?d=e/f");
        assert_eq!(encoded(Encoding::Header, "a\r\nSet-Cookie: b"), "aSet-Cookie: b");
    }

    #[test]
    fn values_become_json_by_their_type() {
        let mut out = Vec::new();
        for value in [Value::Missing, Value::Bool(true), Value::Int(-3), Value::Real(1.5), Value::Text(b"1")]
        {
            Encoding::JsonValue.write_value(value, &mut out);
            out.push(b' ');
        }
        let mut slot = Slot::default();
        slot.start_list();
        slot.push_item(b"a");
        slot.push_item(b"b");
        Encoding::JsonValue.write_value(slot.value(), &mut out);
        assert_eq!(out, b"null true -3 1.5 \"1\" [\"a\",\"b\"]");
        out.clear();
        Encoding::Form.write_value(slot.value(), &mut out);
        assert_eq!(out, b"a%2Cb");
    }
}
