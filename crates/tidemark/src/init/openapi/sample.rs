//! Values that a document gives as examples, or that fit what it says of them.

use std::collections::HashSet;

use serde_json::Value as Json;
use tidemark_scenario::source::{Map, Scalar, Value, verbatim};

/// Most references that lead to each other.
const REFERENCES_MAX: usize = 16;
/// Deepest value.
const DEPTH_MAX: usize = 8;
/// Most parts of a value.
const PARTS_MAX: usize = 100;
/// Most members of a schema that are looked at.
const MEMBERS_MAX: usize = 1_000;
/// Largest number that is made up.
const NUMBER_MAX: f64 = 1e15;
/// Longest text, characters.
const TEXT_MAX: usize = 200;

static NOTHING: Json = Json::Null;

/// Makes values for what a document describes.
pub(super) struct Samples<'d> {
    document: &'d Json,
}

impl<'d> Samples<'d> {
    pub(super) fn new(document: &'d Json) -> Samples<'d> {
        Samples { document }
    }

    /// What a reference within the document leads to; nothing where it leads nowhere.
    pub(super) fn resolved(&self, mut node: &'d Json) -> &'d Json {
        for _ in 0..REFERENCES_MAX {
            let Some(place) = node["$ref"].as_str() else { return node };
            let found = place.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
            let Some(found) = found else { return &NOTHING };
            node = found;
        }
        &NOTHING
    }

    /// A parameter's value as text without holes; never empty.
    pub(super) fn text(&self, parameter: &'d Json) -> String {
        self.of_parameter(parameter).as_str().to_owned()
    }

    /// A parameter's value.
    pub(super) fn of_parameter(&self, parameter: &'d Json) -> Scalar {
        let mut parts = PARTS_MAX;
        let content = parameter["content"].as_object().and_then(|content| content.values().next());
        match self.example(content.unwrap_or(parameter), 0, &mut parts) {
            Value::Scalar(scalar) if !scalar.is_null() && !scalar.as_str().is_empty() => scalar,
            Value::List(items) => match items.into_iter().next() {
                Some(Value::Scalar(scalar)) if !scalar.is_null() && !scalar.as_str().is_empty() => scalar,
                _ => "1".into(),
            },
            _ => "1".into(),
        }
    }

    /// The value of a body.
    pub(super) fn value(&self, media: &'d Json) -> Value {
        let mut parts = PARTS_MAX;
        self.example(media, 0, &mut parts)
    }

    /// Whether a part of a form is a file: `format: binary` in OpenAPI 3.0, `contentMediaType` in 3.1.
    pub(super) fn is_file(&self, media: &'d Json, name: &str) -> bool {
        let schema = self.resolved(&media["schema"]);
        let parts = schema["allOf"].as_array().into_iter().flatten().take(PARTS_MAX);
        std::iter::once(schema).chain(parts.map(|part| self.resolved(part))).any(|of| {
            let part = self.resolved(&of["properties"][name]);
            let of_file = |of: &Json| of["format"] == "binary" || of["contentMediaType"].is_string();
            of_file(part) || of_file(self.resolved(&part["items"]))
        })
    }

    /// What is given as an example, else what fits the schema.
    fn example(&self, of: &'d Json, depth: usize, parts: &mut usize) -> Value {
        let of = self.resolved(of);
        let named = of["examples"].as_object().and_then(|examples| examples.values().next());
        let named = named.map(|example| &self.resolved(example)["value"]);
        match of.get("example").or(named).filter(|example| !example.is_null()) {
            Some(example) => written(example, depth, parts),
            None => self.fitting(&of["schema"], depth, parts),
        }
    }

    /// A value that fits a schema.
    fn fitting(&self, schema: &'d Json, depth: usize, parts: &mut usize) -> Value {
        let schema = self.resolved(schema);
        let given = [
            &schema["example"],
            &schema["default"],
            &schema["const"],
            &schema["enum"][0],
            &schema["examples"][0],
        ];
        if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
            return written(given, depth, parts);
        }
        if depth >= DEPTH_MAX || *parts == 0 {
            return Value::default();
        }
        *parts -= 1;
        for of in ["oneOf", "anyOf"] {
            if let Some(first) = schema[of].get(0) {
                return self.fitting(first, depth + 1, parts);
            }
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str());
        match kind {
            Some("integer" | "number") => number_for(schema).into(),
            Some("boolean") => true.into(),
            Some("array") => self.list(schema, depth, parts).into(),
            Some("string") => text_for(schema).into(),
            Some("null") => Value::default(),
            _ => self.object(schema, depth, parts),
        }
    }

    /// As many items as there must be, and at least one.
    fn list(&self, schema: &'d Json, depth: usize, parts: &mut usize) -> Vec<Value> {
        let mut items = vec![self.fitting(&schema["items"], depth + 1, parts)];
        let least = schema["minItems"].as_u64().unwrap_or(1);
        while (items.len() as u64) < least && *parts > 0 {
            items.push(self.fitting(&schema["items"], depth + 1, parts));
        }
        items
    }

    /// Its required members; where none is, all.
    fn object(&self, schema: &'d Json, depth: usize, parts: &mut usize) -> Value {
        let mut map = Map::new();
        for part in schema["allOf"].as_array().into_iter().flatten().take(PARTS_MAX) {
            if let Value::Map(members) = self.fitting(part, depth + 1, parts) {
                members.entries().iter().for_each(|entry| map.insert(entry.key.clone(), entry.value.clone()));
            }
        }
        let required = schema["required"].as_array().into_iter().flatten().take(MEMBERS_MAX);
        let required: HashSet<&str> = required.filter_map(Json::as_str).collect();
        let is_wanted = |name: &str| required.is_empty() || required.contains(name);
        for (name, member) in schema["properties"].as_object().into_iter().flatten().take(MEMBERS_MAX) {
            if *parts == 0 {
                break;
            }
            if is_wanted(name) && self.resolved(member)["readOnly"] != true {
                map.insert(cut(name), self.fitting(member, depth + 1, parts));
            }
        }
        map.into()
    }
}

/// 1, or the least number above it that fits.
fn number_for(schema: &Json) -> Scalar {
    let mut number = schema["minimum"].as_f64().unwrap_or(1.0).ceil().max(1.0);
    let above = match &schema["exclusiveMinimum"] {
        // as OpenAPI 3.0 writes it
        Json::Bool(true) => schema["minimum"].as_f64(),
        above => above.as_f64(),
    };
    if let Some(above) = above.filter(|above| number <= *above) {
        number = above.floor() + 1.0;
    }
    if let Some(step) = schema["multipleOf"].as_f64().filter(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    if !number.is_finite() || number >= NUMBER_MAX {
        return schema["minimum"].as_i64().unwrap_or(1).max(1).into();
    }
    if number.fract() == 0.0 { (number as i64).into() } else { Scalar::unquoted(&number.to_string()) }
}

/// A text of the format and length.
fn text_for(schema: &Json) -> String {
    let length = |key: &str| schema[key].as_u64().map(|length| length.min(TEXT_MAX as u64) as usize);
    let mut text = example_of(schema["format"].as_str().unwrap_or_default()).to_owned();
    let missing = length("minLength").unwrap_or(0).saturating_sub(text.len());
    text += &"x".repeat(missing);
    text.truncate(length("maxLength").unwrap_or(TEXT_MAX));
    text
}

fn example_of(format: &str) -> &'static str {
    match format {
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T12:00:00Z",
        "uuid" => "00000000-0000-4000-8000-000000000001",
        "email" => "someone@shop.example",
        "uri" | "url" => "http://shop.example/",
        _ => "x",
    }
}

/// A value as it is given, without holes.
fn written(given: &Json, depth: usize, parts: &mut usize) -> Value {
    if depth >= DEPTH_MAX || *parts == 0 {
        return Value::default();
    }
    *parts -= 1;
    match given {
        Json::Null => Value::default(),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => Scalar::unquoted(&number.to_string()).into(),
        Json::String(text) => cut(text).into(),
        Json::Array(items) => items
            .iter()
            .take(PARTS_MAX)
            .map(|item| written(item, depth + 1, parts))
            .collect::<Vec<_>>()
            .into(),
        Json::Object(members) => {
            let members = members.iter().take(PARTS_MAX);
            members.map(|(name, value)| (cut(name), written(value, depth + 1, parts))).collect::<Map>().into()
        }
    }
}

/// A text of bounded length, without holes.
fn cut(text: &str) -> String {
    verbatim(&text.chars().take(TEXT_MAX).collect::<String>())
}
