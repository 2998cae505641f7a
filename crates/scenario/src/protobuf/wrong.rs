//! What is wrong with a message that is written as JSON, and where in it.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::WrongMessage;
use crate::diagnostic::did_you_mean;
use crate::encoding::Encoding;
use crate::template::{Part, Template};

/// How the names of types begin whose JSON has a form of its own.
const OWN_FORM: &str = "google.protobuf.";
/// What stands in a text that varies: nobody writes it.
const VARIES: char = '\0';
/// Names that an error lists.
const SHOWN: usize = 20;
/// Characters of a value that an error shows.
const SHOWN_CHARS: usize = 40;

/// The first of these names.
pub(super) fn listed(names: &[String]) -> String {
    let more = if names.len() > SHOWN { ", …" } else { "" };
    match names.len().min(SHOWN) {
        0 => "none".to_owned(),
        shown => format!("{}{more}", names[..shown].join(", ")),
    }
}

/// The JSON that a template becomes, with a mark where a value varies; none where that is no JSON.
pub(super) fn with_marks(template: &Template) -> Option<Value> {
    let mut json = Vec::new();
    for part in &template.parts {
        match part {
            Part::Literal(text) => json.extend_from_slice(text),
            Part::Hole(_, Encoding::JsonValue) => json.extend_from_slice(br#""\u0000""#),
            Part::Hole(..) => json.extend_from_slice(br"\u0000"),
        }
    }
    serde_json::from_slice(&json).ok()
}

/// What is wrong with a value as a message of this type; what varies is passed over.
pub(super) fn find(of: &MessageDescriptor, value: &Value) -> Option<WrongMessage> {
    if of.full_name().starts_with(OWN_FORM) {
        return None;
    }
    let mut way = Vec::new();
    let words = in_message(of, value.as_object()?, &mut way)?;
    Some(WrongMessage { way, words })
}

/// The way leads to the message, and then to what is wrong in it.
fn in_message(of: &MessageDescriptor, entries: &Map<String, Value>, way: &mut Vec<String>) -> Option<String> {
    let known = |name: &str| of.get_field_by_json_name(name).or_else(|| of.get_field_by_name(name));
    for (name, value) in entries {
        // an extension's name stands in brackets
        if name.contains(VARIES) || name.starts_with('[') {
            continue;
        }
        way.push(name.clone());
        let wrong = match known(name) {
            Some(field) => in_field(of, &field, value, way),
            None => Some(no_field(of, name, way)),
        };
        if wrong.is_some() {
            return wrong;
        }
        way.pop();
    }
    let mut chosen: Vec<(String, &str)> = Vec::new();
    for (name, _) in entries.iter().filter(|(_, value)| !value.is_null() && !varies(value)) {
        let Some(choice) = known(name).and_then(|field| field.containing_oneof()) else { continue };
        if let Some((_, other)) = chosen.iter().find(|(of, _)| of == choice.name()) {
            way.push(name.clone());
            let (choice, of) = (choice.name(), of.full_name());
            return Some(format!(
                "{}: {other} and {name} are both in the oneof `{choice}` of {of}; give one",
                path(way)
            ));
        }
        chosen.push((choice.name().to_owned(), name.as_str()));
    }
    None
}

fn in_field(
    of: &MessageDescriptor,
    field: &FieldDescriptor,
    value: &Value,
    way: &mut Vec<String>,
) -> Option<String> {
    match (value, field.kind()) {
        (Value::Null, _) => None,
        _ if varies(value) => None,
        (Value::Array(items), kind) if field.is_list() => {
            for (at, item) in items.iter().enumerate() {
                way.push(at.to_string());
                let wrong = in_value(of, (field, &kind), item, Value::Array(vec![item.clone()]), way);
                if wrong.is_some() {
                    return wrong;
                }
                way.pop();
            }
            None
        }
        (Value::Object(entries), Kind::Message(entry)) if field.is_map() => {
            let kind = entry.map_entry_value_field().kind();
            for (key, item) in entries.iter().filter(|(key, _)| !key.contains(VARIES)) {
                way.push(key.clone());
                let wrong = in_value(of, (field, &kind), item, object(key, item.clone()), way);
                if wrong.is_some() {
                    return wrong;
                }
                way.pop();
            }
            None
        }
        (_, kind) if field.is_list() => {
            Some(refused(of, &format!("a list of {}", wanted(&kind)), value, way))
        }
        _ if field.is_map() => Some(refused(of, "a mapping", value, way)),
        (_, kind) => in_value(of, (field, &kind), value, value.clone(), way),
    }
}

/// Looks at one value of a field, which takes it in the form of `alone`.
fn in_value(
    of: &MessageDescriptor,
    (field, kind): (&FieldDescriptor, &Kind),
    value: &Value,
    alone: Value,
    way: &mut Vec<String>,
) -> Option<String> {
    match (kind, value) {
        (Kind::Message(inner), Value::Object(entries)) if !inner.full_name().starts_with(OWN_FORM) => {
            return in_message(inner, entries, way);
        }
        _ if varies(value) => return None,
        _ => {}
    }
    let json = object(field.json_name(), alone).to_string();
    // something in it varies
    if json.contains(r"\u0000") {
        return None;
    }
    DynamicMessage::deserialize(of.clone(), &mut serde_json::Deserializer::from_str(&json)).err()?;
    let mut words = refused(of, &wanted(kind), value, way);
    if let (Kind::Enum(of), Value::String(name)) = (kind, value) {
        let names: Vec<String> = of.values().map(|value| value.name().to_owned()).collect();
        words.push_str(&did_you_mean(name, names.iter().map(String::as_str)));
    }
    Some(words)
}

fn no_field(of: &MessageDescriptor, name: &str, way: &[String]) -> String {
    let names: Vec<String> = of.fields().map(|field| field.json_name().to_owned()).collect();
    let mut hint = did_you_mean(name, names.iter().map(String::as_str));
    if hint.is_empty() {
        hint = format!("; it has {}", listed(&names));
    }
    let place = if way.len() > 1 { format!("{}: ", path(way)) } else { String::new() };
    format!("{place}{} has no field {name}{hint}", of.full_name())
}

fn refused(of: &MessageDescriptor, wanted: &str, value: &Value, way: &[String]) -> String {
    let text = value.to_string();
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{} of {} takes {wanted}, not {shown}{more}", path(way), of.full_name())
}

/// What a field of this kind takes.
fn wanted(kind: &Kind) -> String {
    match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => format!("{kind:?} ({} to {})", i32::MIN, i32::MAX),
        Kind::Uint32 | Kind::Fixed32 => format!("{kind:?} (0 to {})", u32::MAX),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => format!("{kind:?} (a whole number)"),
        Kind::Uint64 | Kind::Fixed64 => format!("{kind:?} (a whole number, 0 or more)"),
        Kind::Float | Kind::Double => format!("{kind:?} (a number)"),
        Kind::Bool => "bool (true or false)".into(),
        Kind::String => "string (a text)".into(),
        Kind::Bytes => "bytes (a text in base64)".into(),
        Kind::Enum(of) => {
            let names: Vec<String> = of.values().map(|value| value.name().to_owned()).collect();
            format!("{} ({})", of.full_name(), listed(&names))
        }
        Kind::Message(of) => match of.full_name() {
            name @ "google.protobuf.Timestamp" => format!("{name} (a time like 2025-01-02T03:04:05Z)"),
            name @ "google.protobuf.Duration" => format!("{name} (a time like 1.5s)"),
            name => name.to_owned(),
        },
    }
}

/// Whether a value is not known beforehand.
fn varies(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains(VARIES))
}

fn object(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}

/// `item.parts[0].name`
fn path(way: &[String]) -> String {
    let mut path = String::new();
    for part in way {
        let is_place = part.bytes().all(|byte| byte.is_ascii_digit());
        match (is_place, path.is_empty()) {
            (true, _) => path.push_str(&format!("[{part}]")),
            (false, true) => path.push_str(part),
            (false, false) => path.push_str(&format!(".{part}")),
        }
    }
    path
}
