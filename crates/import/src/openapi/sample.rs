//! Values that a document gives as examples, or that fit what it says of them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use serde_json::Value as Json;
use tidemark_scenario::source::{Map, Scalar, Value, verbatim};

use super::style::json_text;

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
/// Most references that lead nowhere and are named.
const LOST_MAX: usize = 100;
/// Longest text, characters.
const TEXT_MAX: usize = 200;

static NOTHING: Json = Json::Null;

/// Makes values for what a document describes.
pub(super) struct Samples<'d> {
    document: &'d Json,
    /// References that lead nowhere, and how often each was met.
    lost: RefCell<BTreeMap<String, usize>>,
}

impl<'d> Samples<'d> {
    pub(super) fn new(document: &'d Json) -> Samples<'d> {
        Samples { document, lost: RefCell::default() }
    }

    /// What a reference within the document leads to; nothing where it leads nowhere.
    pub(super) fn resolved(&self, mut node: &'d Json) -> &'d Json {
        for _ in 0..REFERENCES_MAX {
            let Some(place) = node["$ref"].as_str() else { return node };
            let found = place.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
            let Some(found) = found else {
                self.lose(place);
                return &NOTHING;
            };
            node = found;
        }
        &NOTHING
    }

    fn lose(&self, place: &str) {
        let mut lost = self.lost.borrow_mut();
        let place: String = place.chars().take(TEXT_MAX).collect();
        if lost.len() < LOST_MAX || lost.contains_key(&place) {
            *lost.entry(place).or_default() += 1;
        }
    }

    /// References that lead nowhere: into files that are not there, say.
    pub(super) fn lost(&self) -> Vec<String> {
        self.lost.borrow().keys().cloned().collect()
    }

    /// A parameter's value: a scalar that is not empty, or a list or object with something in it. What stands there as JSON is a
    /// scalar.
    pub(super) fn of_parameter(&self, parameter: &'d Json) -> Value {
        let mut parts = PARTS_MAX;
        let content = parameter["content"].as_object().and_then(|content| content.iter().next());
        let value = self.example(content.map_or(parameter, |(_, media)| media), 0, &mut parts);
        match value {
            Value::Scalar(scalar) if !scalar.is_null() && !scalar.as_str().is_empty() => scalar.into(),
            Value::List(_) | Value::Map(_) if content.is_some() => verbatim(&json_text(&value)).into(),
            Value::List(items) if !items.is_empty() => Value::List(items),
            Value::Map(map) if !map.is_empty() => Value::Map(map),
            _ => "1".into(),
        }
    }

    /// The value of a body.
    pub(super) fn value(&self, media: &'d Json) -> Value {
        let mut parts = PARTS_MAX;
        self.example(media, 0, &mut parts)
    }

    /// A value as it is given.
    pub(super) fn given(&self, given: &Json) -> Value {
        let mut parts = PARTS_MAX;
        written(given, 0, &mut parts)
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
            let mut all = schema[of].as_array().into_iter().flatten().take(PARTS_MAX);
            if let Some(first) = all.find(|one| self.resolved(one)["type"] != "null") {
                let first = self.fitting(first, depth + 1, parts);
                let Value::Map(members) = first else { return first };
                // what stands beside holds for each of them
                let Value::Map(mut map) = self.object(schema, depth, parts) else { return members.into() };
                members.entries().iter().for_each(|entry| map.insert(entry.key.clone(), entry.value.clone()));
                return map.into();
            }
        }
        let kinds = schema["type"].as_array();
        let kind = kinds
            .map_or(&schema["type"], |kinds| kinds.iter().find(|kind| *kind != "null").unwrap_or(&NOTHING));
        let kind = kind.as_str();
        match kind {
            Some("integer" | "number") => number_for(schema).into(),
            Some("boolean") => true.into(),
            Some("array") => self.list(schema, depth, parts).into(),
            Some("string") => text_for(schema).into(),
            Some("null") => Value::default(),
            // of a reference that leads nowhere, nothing is known
            _ if schema.is_null() => Value::default(),
            _ => self.object_or_part(schema, depth, parts),
        }
    }

    /// As many items as there must be, and at least one. A list of what is cut off, as it contains itself, has none.
    fn list(&self, schema: &'d Json, depth: usize, parts: &mut usize) -> Vec<Value> {
        if depth + 1 >= DEPTH_MAX || *parts == 0 {
            return Vec::new();
        }
        let mut items = vec![self.fitting(&schema["items"], depth + 1, parts)];
        let least = schema["minItems"].as_u64().unwrap_or(1);
        while (items.len() as u64) < least && *parts > 0 {
            items.push(self.fitting(&schema["items"], depth + 1, parts));
        }
        items
    }

    /// An object, or what the only part of `allOf` is.
    fn object_or_part(&self, schema: &'d Json, depth: usize, parts: &mut usize) -> Value {
        if let Some([only]) = schema["allOf"].as_array().map(Vec::as_slice)
            && schema["properties"].is_null()
        {
            return self.fitting(only, depth + 1, parts);
        }
        self.object(schema, depth, parts)
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
        "time" => "12:00:00Z",
        "duration" => "P1D",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "hostname" => "shop.example",
        "byte" => "eA==",
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
