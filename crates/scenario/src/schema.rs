//! The language as a JSON Schema, so that editors complete and check scenarios.

use serde_json::{Map, Value, json};

use crate::grammar::{Key, Keys, Record, Rule, Scalar, Shape};
use crate::language::SCENARIO;
use crate::language::comparison::COMPARISON;
use crate::steps;

/// Matches texts in which an expression stands, whatever else is expected.
const HOLE: &str = r"\$\{";

/// The schema, draft 2020-12.
///
/// ```
/// let schema = tidemark_scenario::schema::json_schema();
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// ```
pub fn json_schema() -> Value {
    let mut definitions = Map::new();
    let scenario = reference(&SCENARIO, &mut definitions);
    let comparison = reference(&COMPARISON, &mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidemark scenario",
        "type": "object",
        "if": { "required": ["compare"] },
        "then": comparison,
        "else": scenario,
        "$defs": definitions,
    })
}

/// The schema of files that are one record.
pub(crate) fn of_record(title: &str, record: &'static Record) -> Value {
    let mut definitions = Map::new();
    let reference = reference(record, &mut definitions);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "$defs": definitions,
    });
    if let (Value::Object(schema), Value::Object(reference)) = (&mut schema, reference) {
        schema.extend(reference);
    }
    schema
}

type Definitions = Map<String, Value>;

fn shape(shape: &Shape, definitions: &mut Definitions) -> Value {
    match shape {
        Shape::Scalar(kind) => scalar(*kind),
        Shape::Record(of) => reference(of(), definitions),
        Shape::Step => {
            if !definitions.contains_key("step") {
                // Present before its content is made, because steps stand in steps.
                definitions.insert("step".into(), Value::Null);
                let kinds: Vec<Value> =
                    steps::kinds().map(|kind| reference(kind.record(), definitions)).collect();
                definitions.insert("step".into(), json!({ "type": "object", "oneOf": kinds }));
            }
            json!({ "$ref": "#/$defs/step" })
        }
        Shape::Map(keys, of) => map(*keys, of, definitions),
        Shape::List(of, at_least) => {
            json!({ "type": "array", "minItems": at_least, "items": self::shape(of, definitions) })
        }
        Shape::Either(shapes) => {
            let any: Vec<Value> = shapes.iter().map(|of| self::shape(of, definitions)).collect();
            json!({ "anyOf": any })
        }
        Shape::Tree => json!({}),
    }
}

fn reference(of: &'static Record, definitions: &mut Definitions) -> Value {
    if !definitions.contains_key(of.schema) {
        definitions.insert(of.schema.into(), Value::Null);
        let made = record(of, definitions);
        definitions.insert(of.schema.into(), made);
    }
    json!({ "$ref": format!("#/$defs/{}", of.schema) })
}

fn record(of: &'static Record, definitions: &mut Definitions) -> Value {
    let mut properties = Map::new();
    for key in of.verbs.iter().chain(of.keys) {
        properties.insert(key.name.into(), property(key, definitions));
    }
    let required: Vec<&str> = of.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema = json!({
        "description": of.about,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let mut all = Vec::new();
    if !of.verbs.is_empty() {
        all.push(exactly_one(of.verbs.iter().map(|verb| verb.name)));
    }
    match of.rule {
        Rule::Free => {}
        Rule::OneOf(names) => all.push(exactly_one(names.iter().copied())),
        Rule::AtMostOneOf(names) => {
            let pairs =
                names.iter().enumerate().flat_map(|(i, a)| names[i + 1..].iter().map(move |b| [a, b]));
            all.extend(pairs.map(|pair| json!({ "not": { "required": pair } })));
        }
    }
    if !all.is_empty() {
        schema["allOf"] = json!(all);
    }
    schema
}

fn exactly_one<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    json!({ "oneOf": names.map(|name| json!({ "required": [name] })).collect::<Vec<_>>() })
}

fn property(key: &Key, definitions: &mut Definitions) -> Value {
    let mut schema = shape(&key.shape, definitions);
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".into(), key.about.into());
    }
    schema
}

fn map(keys: Keys, of: &Shape, definitions: &mut Definitions) -> Value {
    let names = match keys {
        Keys::Name(_) | Keys::Variable => json!({ "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        Keys::JsonPath => json!({ "pattern": "^\\$" }),
        Keys::Text(_) => json!({ "minLength": 1 }),
    };
    json!({ "type": "object", "propertyNames": names, "additionalProperties": shape(of, definitions) })
}

fn scalar(kind: Scalar) -> Value {
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": format!("{pattern}|{HOLE}") });
    let number_or = |least: u64, text: &str| {
        json!({ "anyOf": [
            { "type": "integer", "minimum": least },
            { "type": "string", "pattern": format!("{text}|{HOLE}") },
        ] })
    };
    const TIME: &str = r"([0-9][0-9._]*\s*(ns|us|µs|μs|ms|s|sec|m|min|h|d)\s*)+";
    const RATE: &str = r"[0-9][0-9._]*\s*[kKMG]?\s*/\s*(s|sec|second|m|min|minute|h|hour|d|day)";
    const STEPS: &str = r"(\s+in\s+[0-9_]+\s*steps)?";
    const COUNT: &str = r"[0-9][0-9._]*[kKMG]?";
    match kind {
        Scalar::Text | Scalar::Template | Scalar::Feeder | Scalar::Keys(_) => {
            json!({ "type": ["string", "number", "boolean"] })
        }
        Scalar::Value => json!({ "type": ["string", "number", "boolean", "null"] }),
        Scalar::Code => json!({ "type": "string" }),
        Scalar::Condition => json!({ "type": ["string", "number", "boolean"] }),
        Scalar::Number => number_or(0, "^$"),
        Scalar::Whole(least) => number_or(least, &format!("^{COUNT}$")),
        Scalar::Bool => json!({ "anyOf": [{ "type": "boolean" }, { "type": "string", "pattern": HOLE }] }),
        Scalar::Share => pattern(r"^\s*[0-9][0-9._]*\s*%\s*$"),
        Scalar::Duration => pattern(&format!(r"^\s*{TIME}$")),
        Scalar::Moment => pattern(&format!(r"^\s*({TIME}|[0-9][0-9._]*\s*%\s*)$")),
        Scalar::Decimal => json!({ "anyOf": [
            { "type": "number", "minimum": 0 },
            { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]{1,9})?\s*$" },
        ] }),
        Scalar::Size => pattern(r"^\s*[0-9][0-9._]*\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)\s*$"),
        Scalar::Bandwidth => pattern(r"^\s*[0-9][0-9._]*\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)/s\s*$"),
        Scalar::Users => number_or(0, &format!(r"^\s*{COUNT}(\s+to\s+{COUNT}{STEPS})?\s*$")),
        Scalar::Rate => pattern(&format!(r"^\s*{RATE}(\s+to\s+{RATE}{STEPS})?\s*$")),
        Scalar::Word(["true"]) => json!({ "const": true }),
        Scalar::Word(words) => json!({ "anyOf": [
            { "enum": words.iter().flat_map(|word| as_read(word)).collect::<Vec<_>>() },
            { "type": "string", "pattern": HOLE },
        ] }),
        Scalar::JsonPath => pattern(r"^\$"),
        Scalar::Regex => json!({ "type": ["string", "number"] }),
        Scalar::Status => json!({ "anyOf": [
            { "type": "integer", "minimum": 100, "maximum": 599 },
            { "type": "string", "pattern": format!(r"^([1-5]xx|[1-5][0-9][0-9](\s*-\s*[1-5][0-9][0-9])?)$|{HOLE}") },
        ] }),
        Scalar::Each => json!({ "type": "string", "pattern": r"^\s*[A-Za-z_][A-Za-z0-9_]* in " }),
        Scalar::Objective => {
            pattern(r"(p[0-9.]+|mean|median|min|max|errors|rate|count|sum|dropped|lost)\s*(<=|>=|==|<|>|=)")
        }
        Scalar::Variable => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
    }
}
/// A word as an editor reads it: `2` is a number to it.
fn as_read(word: &str) -> impl Iterator<Item = Value> {
    let number = serde_json::from_str(word).ok().filter(Value::is_number);
    std::iter::once(json!(word)).chain(number)
}
