//! Messages whose fields are written into their bytes: what varies is taken out of the rendered JSON, everything else is
//! bytes beforehand. What a field does not take that way goes through JSON, so that both are the same.

use std::collections::BTreeSet;
use std::ops::Range;

use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;
use tidemark_wire::protobuf::push_varint;

use crate::template::{Encoding, Part, Template};

/// What stands around the number of a hole while the JSON is looked at.
const MARK: char = '\u{0}';

/// How a message is written.
#[derive(Debug)]
pub struct Stencil {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// The same bytes each time.
    Fixed(Vec<u8>),
    /// A field with a value of its own.
    Field { key: Vec<u8>, takes: Takes, is_told: bool, of: Vec<Text> },
    /// A message within it.
    Message { key: Vec<u8>, pieces: Vec<Piece> },
}

/// A piece of a text.
#[derive(Debug)]
enum Text {
    Fixed(String),
    /// The hole of this number, in the text.
    Hole(usize),
    /// The same where it is all of the value.
    Value(usize),
}

/// What a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Text,
    Signed { most_bits: u32 },
    Unsigned { most_bits: u32 },
    Bool,
    Double,
}

impl Stencil {
    /// Of a message of this type, written as this JSON; none where something that varies is in a list, a map or a field of
    /// another kind, or the message is none.
    pub(super) fn new(of: &MessageDescriptor, template: &Template) -> Option<Stencil> {
        let mut json = String::new();
        let mut holes = Vec::new();
        for part in &template.parts {
            match part {
                Part::Literal(text) => json.push_str(std::str::from_utf8(text).ok()?),
                Part::Hole(_, encoding) => {
                    let mark = format!("\\u0000{}\\u0000", holes.len());
                    match encoding {
                        Encoding::JsonValue => json.push_str(&format!("\"{mark}\"")),
                        Encoding::JsonText => json.push_str(&mark),
                        _ => return None,
                    }
                    holes.push(*encoding == Encoding::JsonValue);
                }
            }
        }
        let json: Value = serde_json::from_str(&json).ok()?;
        Some(Stencil { pieces: pieces(of, &json, &holes)? })
    }

    /// Appends the bytes of the message that was rendered as this JSON, with its holes there; false where JSON has to be
    /// gone through, and nothing is appended.
    pub fn write(&self, json: &[u8], holes: &[Range<usize>], out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        let is_written = write(&self.pieces, json, holes, out).is_some();
        if !is_written {
            out.truncate(begin);
        }
        is_written
    }
}

fn varies(json: &Value) -> bool {
    match json {
        Value::String(text) => text.contains(MARK),
        Value::Array(items) => items.iter().any(varies),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains(MARK) || varies(value)),
        _ => false,
    }
}

fn pieces(of: &MessageDescriptor, json: &Value, holes: &[bool]) -> Option<Vec<Piece>> {
    if of.full_name().starts_with("google.protobuf.") {
        return None;
    }
    let (mut fixed, mut pieces) = (serde_json::Map::new(), Vec::new());
    let (mut numbers, mut choices) = (BTreeSet::new(), BTreeSet::new());
    for (name, value) in json.as_object()? {
        let field = of.get_field_by_json_name(name).or_else(|| of.get_field_by_name(name))?;
        if !numbers.insert(field.number())
            || !field.containing_oneof().is_none_or(|of| choices.insert(of.name().to_owned()))
        {
            return None;
        }
        if !varies(value) {
            fixed.insert(name.clone(), value.clone());
            continue;
        }
        if field.is_list() || field.is_map() || field.is_group() {
            return None;
        }
        pieces.push(match (field.kind(), value) {
            (Kind::Message(inner), Value::Object(_)) => {
                let pieces = self::pieces(&inner, value, holes)?;
                Piece::Message { key: key(&field, 2), pieces }
            }
            (_, Value::String(text)) => self::field(&field, text, holes)?,
            _ => return None,
        });
    }
    if !fixed.is_empty() {
        let message = DynamicMessage::deserialize(of.clone(), Value::Object(fixed)).ok()?;
        pieces.insert(0, Piece::Fixed(message.encode_to_vec()));
    }
    Some(pieces)
}

fn field(field: &FieldDescriptor, text: &str, holes: &[bool]) -> Option<Piece> {
    let mut of = texts(text)?;
    let is_alone = match of.as_slice() {
        [Text::Hole(hole)] if *holes.get(*hole)? => {
            of = vec![Text::Value(*hole)];
            true
        }
        _ => false,
    };
    let (takes, wire) = match field.kind() {
        Kind::String => (Takes::Text, 2),
        Kind::Int32 => (Takes::Signed { most_bits: 31 }, 0),
        Kind::Int64 => (Takes::Signed { most_bits: 63 }, 0),
        Kind::Uint32 => (Takes::Unsigned { most_bits: 32 }, 0),
        Kind::Uint64 => (Takes::Unsigned { most_bits: 64 }, 0),
        Kind::Bool => (Takes::Bool, 0),
        Kind::Double => (Takes::Double, 1),
        _ => return None,
    };
    if takes != Takes::Text && !is_alone {
        return None;
    }
    Some(Piece::Field { key: key(field, wire), takes, is_told: field.supports_presence(), of })
}

/// A text with marks as its pieces.
fn texts(text: &str) -> Option<Vec<Text>> {
    let mut texts = Vec::new();
    for (at, piece) in text.split(MARK).enumerate() {
        match at % 2 {
            0 if piece.is_empty() => {}
            0 => texts.push(Text::Fixed(piece.to_owned())),
            _ => texts.push(Text::Hole(piece.parse().ok()?)),
        }
    }
    Some(texts)
}

fn key(field: &FieldDescriptor, wire: u32) -> Vec<u8> {
    let mut key = Vec::new();
    push_varint(u64::from(field.number() << 3 | wire), &mut key);
    key
}

/// Puts the length of what was appended since `begin` in front of it.
fn put_length(begin: usize, out: &mut Vec<u8>) {
    let bytes = out.len() - begin;
    push_varint(bytes as u64, out);
    out[begin..].rotate_right(out_length(bytes));
}

/// Bytes of a number.
fn out_length(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

fn write(pieces: &[Piece], json: &[u8], holes: &[Range<usize>], out: &mut Vec<u8>) -> Option<()> {
    for piece in pieces {
        match piece {
            Piece::Fixed(bytes) => out.extend_from_slice(bytes),
            Piece::Message { key, pieces } => {
                out.extend_from_slice(key);
                let begin = out.len();
                write(pieces, json, holes, out)?;
                put_length(begin, out);
            }
            Piece::Field { key, takes, is_told, of } => {
                let start = out.len();
                out.extend_from_slice(key);
                let token = |hole: usize| json.get(holes.get(hole)?.clone());
                let is_default = match (takes, of.as_slice()) {
                    (_, [Text::Value(hole)]) if token(*hole)? == b"null" => {
                        out.truncate(start);
                        continue;
                    }
                    (Takes::Text, of) => {
                        let begin = out.len();
                        for text in of {
                            match text {
                                Text::Fixed(text) => out.extend_from_slice(text.as_bytes()),
                                Text::Hole(hole) => out.extend_from_slice(plain(token(*hole)?)?),
                                Text::Value(hole) => {
                                    let text = token(*hole)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
                                    out.extend_from_slice(plain(text)?);
                                }
                            }
                        }
                        std::str::from_utf8(&out[begin..]).ok()?;
                        let is_empty = begin == out.len();
                        put_length(begin, out);
                        is_empty
                    }
                    (takes, [Text::Value(hole)]) => number(*takes, token(*hole)?, out)?,
                    _ => return None,
                };
                if is_default && !is_told {
                    out.truncate(start);
                }
            }
        }
    }
    Some(())
}

/// A text of JSON without its quotes, if it has nothing escaped.
fn plain(text: &[u8]) -> Option<&[u8]> {
    (!text.contains(&b'\\')).then_some(text)
}

/// Appends a number or a truth value; whether it is the default.
fn number(takes: Takes, token: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    match (takes, token) {
        (Takes::Bool, b"true" | b"false") => {
            out.push(u8::from(token == b"true"));
            return Some(token == b"false");
        }
        (Takes::Bool, _) => return None,
        _ => {}
    }
    let quoted = token.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let text = std::str::from_utf8(quoted.filter(|_| takes != Takes::Double).unwrap_or(token)).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if takes == Takes::Double {
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        out.extend_from_slice(&number.to_le_bytes());
        return Some(number == 0.0);
    }
    if digits.is_empty()
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
        || (digits.len() > 1 && digits.starts_with('0'))
    {
        return None;
    }
    let number: i128 = text.parse().ok()?;
    let (low, high) = match takes {
        Takes::Signed { most_bits } => (-(1i128 << most_bits), (1i128 << most_bits) - 1),
        Takes::Unsigned { most_bits } => (0, (1i128 << most_bits) - 1),
        Takes::Text | Takes::Bool | Takes::Double => return None,
    };
    if !(low..=high).contains(&number) {
        return None;
    }
    push_varint(number as i64 as u64, out);
    Some(number == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::Expr;
    use crate::protobuf::{Method, MethodName, Types};

    const PROTO: &str = r#"
        syntax = "proto3";
        package t;
        message Inner { string text = 1; int32 number = 300; }
        message M {
          string a = 1; int64 b = 2; bool c = 3; double d = 4; optional string e = 5; Inner f = 6;
          repeated int32 g = 7; uint32 h = 8; bytes i = 9; uint64 j = 10; int32 k = 11;
        }
        service S { rpc Do(M) returns (M); }
    "#;

    fn method() -> Method {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.proto");
        std::fs::write(&file, PROTO).unwrap();
        Types::of_protos(&[file], &[]).unwrap().method(&MethodName::read("t.S/Do").unwrap()).unwrap()
    }

    /// A template of JSON whose holes are `$` (a value) and `%` (in a text).
    fn template(json: &str) -> Template {
        let mut template = Template::default();
        for piece in json.split_inclusive(['$', '%']) {
            template.push_literal(piece.trim_end_matches(['$', '%']).as_bytes());
            match piece.chars().last() {
                Some('$') => template.push_hole(Expr::variable(0), Encoding::JsonValue),
                Some('%') => template.push_hole(Expr::variable(0), Encoding::JsonText),
                _ => {}
            }
        }
        template
    }

    /// The same with these tokens in the holes, and where they are.
    fn rendered(json: &str, tokens: &[String]) -> (Vec<u8>, Vec<Range<usize>>) {
        let (mut text, mut holes, mut tokens) = (Vec::new(), Vec::new(), tokens.iter().cycle());
        for piece in json.split_inclusive(['$', '%']) {
            text.extend_from_slice(piece.trim_end_matches(['$', '%']).as_bytes());
            if piece.ends_with(['$', '%']) {
                let begin = text.len();
                let token = tokens.next().unwrap();
                let token = if piece.ends_with('%') { token.trim_matches('"') } else { token };
                text.extend_from_slice(token.as_bytes());
                holes.push(begin..text.len());
            }
        }
        (text, holes)
    }

    const TEMPLATES: [&str; 8] = [
        r#"{"a":$}"#,
        r#"{"a":"x%y%","b":7,"g":[1,2]}"#,
        r#"{"b":$,"c":true}"#,
        r#"{"c":$,"e":$}"#,
        r#"{"d":$,"h":$}"#,
        r#"{"f":{"text":$,"number":3},"a":"z"}"#,
        r#"{"f":{"number":$},"j":$,"k":$}"#,
        r#"{"e":"%"}"#,
    ];

    #[test]
    fn what_it_is_not_for_goes_through_json() {
        let method = method();
        for json in TEMPLATES {
            assert!(method.stencil(&template(json)).is_some(), "{json}");
        }
        for json in [
            r#"{"g":[$]}"#,
            r#"{"i":$}"#,
            r#"{"f":$}"#,
            r#"{"x":$}"#,
            r#"{"%":1}"#,
            r#"{"a":1,"b":$}"#,
            "[$]",
        ] {
            assert!(method.stencil(&template(json)).is_none(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn it_writes_the_same_message_as_json_does(
            which in 0..TEMPLATES.len(),
            tokens in prop::collection::vec(
                prop_oneof![
                    any::<i64>().prop_map(|number| number.to_string()),
                    (-3i64..3).prop_map(|number| number.to_string()),
                    any::<u64>().prop_map(|number| format!("\"{number}\"")),
                    any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| format!("{number:?}")),
                    "[a-zé 0-9]{0,200}".prop_map(|text| format!("\"{text}\"")),
                    Just("null".to_owned()), Just("true".to_owned()), Just("false".to_owned()),
                    Just("\"\\u0041\\n\"".to_owned()), Just("\"007\"".to_owned()),
                ],
                3,
            ),
        ) {
            let method = method();
            let json = TEMPLATES[which];
            let (text, holes) = rendered(json, &tokens);
            let stencil = method.stencil(&template(json)).unwrap();
            let (mut fast, mut slow) = (b"x".to_vec(), Vec::new());
            let told = method.encode(&text, &mut slow);
            if stencil.write(&text, &holes, &mut fast) {
                prop_assert!(told.is_ok(), "{}: {told:?}", String::from_utf8_lossy(&text));
                let (mut one, mut other) = (Vec::new(), Vec::new());
                method.decode(&fast[1..], &mut one).unwrap();
                method.decode(&slow, &mut other).unwrap();
                prop_assert_eq!(String::from_utf8(one), String::from_utf8(other));
                prop_assert_eq!(fast.len() - 1, slow.len());
            } else {
                prop_assert_eq!(fast, b"x".to_vec(), "nothing is appended");
            }
        }
    }
}
