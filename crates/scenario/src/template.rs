//! Text with holes, compiled: only what varies is written at run time.

use std::io::Write as _;

use crate::context::Context;
use crate::expr::{Expr, Unmet};
use crate::slot::{List, Value};

/// How a hole's value is written so that it cannot break out of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is (raw bodies; the author is responsible).
    Raw,
    /// One path segment or query value of a URL, percent-encoded.
    Url,
    /// A path with its slashes and its query; only what cannot stand in a request line is encoded.
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
            Encoding::Path => text.iter().for_each(|byte| push_path_byte(*byte, out)),
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
            Value::Real(value) => crate::expr::write_real(value, out),
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

/// A piece of a template.
#[derive(Debug, Clone)]
pub enum Part {
    /// Bytes written as they are.
    Literal(Box<[u8]>),
    /// A value, encoded.
    Hole(Expr, Encoding),
}

/// Text with holes.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// In order.
    pub parts: Vec<Part>,
}

impl Template {
    /// A template without holes.
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        Template { parts: vec![Part::Literal(bytes.into().into_boxed_slice())] }
    }

    /// The bytes, if it has no holes.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// Appends bytes that are written as they are.
    pub fn push_literal(&mut self, bytes: &[u8]) {
        if let Some(Part::Literal(last)) = self.parts.last_mut() {
            let mut joined = std::mem::take(last).into_vec();
            joined.extend_from_slice(bytes);
            *last = joined.into_boxed_slice();
        } else if !bytes.is_empty() {
            self.parts.push(Part::Literal(bytes.into()));
        }
    }

    /// Appends a value; a constant becomes bytes at once.
    pub fn push_hole(&mut self, expr: Expr, encoding: Encoding) {
        match expr.as_constant() {
            Some(value) => {
                let mut bytes = Vec::new();
                encoding.write_value(value, &mut bytes);
                self.push_literal(&bytes);
            }
            None => self.parts.push(Part::Hole(expr, encoding)),
        }
    }

    /// Appends another template's parts.
    pub fn append(&mut self, other: Template) {
        for part in other.parts {
            match part {
                Part::Literal(bytes) => self.push_literal(&bytes),
                Part::Hole(expr, encoding) => self.push_hole(expr, encoding),
            }
        }
    }

    /// Appends the text to `out`.
    ///
    /// # Errors
    /// The first hole without a value; then nothing is appended.
    pub fn render(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        let begin = out.len();
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Hole(expr, encoding) => {
                    if let Err(unmet) = expr.write_encoded(cx, *encoding, out) {
                        out.truncate(begin);
                        return Err(unmet);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Shared;
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

    #[test]
    fn literals_join_and_constants_are_written_beforehand() {
        let mut template = Template::default();
        template.push_literal(b"a=");
        template.push_hole(Expr::text("b c"), Encoding::Form);
        template.push_literal(b"&d=");
        template.push_hole(Expr::variable(0), Encoding::Form);
        assert_eq!(template.parts.len(), 2);
        let mut slot = Slot::default();
        slot.set_text(b"x/y");
        let shared = Shared::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[slot], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        template.render(&mut cx, &mut out).unwrap();
        assert_eq!(out, b"a=b+c&d=x%2Fy");
    }
}
