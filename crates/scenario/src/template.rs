//! Text with holes, compiled: only what varies is written at run time.

use crate::context::Context;
use crate::expr::Expr;

/// How a hole's value is written so that it cannot break out of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is (raw bodies; the author is responsible).
    Raw,
    /// One path segment or query value of a URL, percent-encoded.
    Url,
    /// `application/x-www-form-urlencoded`, space as `+`.
    Form,
    /// Inside a JSON string, escaped.
    JsonText,
    /// A JSON value: text quoted and escaped, numbers and truth values bare, missing as null.
    JsonValue,
    /// A header's value: control characters are left out.
    Header,
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

    /// Appends the text to `out`.
    pub fn render(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Hole(expr, _encoding) => expr.write(cx, out),
            }
        }
    }
}
