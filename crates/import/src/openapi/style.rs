//! Parameters that are lists or objects, written as their style says.

use serde_json::Value as Json;
use tidemark_scenario::source::{Scalar, Value};

use crate::as_json;
use crate::percent::encoded;

/// Style and whether each item stands alone; `usual` is the style of its place.
fn style<'d>(parameter: &'d Json, usual: &'d str) -> (&'d str, bool) {
    let style = parameter["style"].as_str().unwrap_or(usual);
    (style, parameter["explode"].as_bool().unwrap_or(style == "form"))
}

/// A value as text, without the signs that keep a scenario from reading holes in it.
fn plain(value: &Value) -> String {
    match value {
        Value::Scalar(scalar) if scalar.is_null() => String::new(),
        Value::Scalar(scalar) => scalar.as_str().replace("$${", "${"),
        other => json_text(other),
    }
}

/// A value as JSON, as it is meant.
pub(super) fn json_text(value: &Value) -> String {
    as_json(value).to_string().replace("$${", "${")
}

/// The names and values of an object, each as text.
fn members(value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Map(map) => {
            map.entries().iter().map(|entry| (entry.key.replace("$${", "${"), plain(&entry.value))).collect()
        }
        _ => Vec::new(),
    }
}

fn items(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(plain).collect(),
        _ => Vec::new(),
    }
}

/// A list or an object as parameters of a query, or as fields of a form, `name=value` each, encoded.
pub(super) fn query(name: &str, parameter: &Json, value: &Value) -> Vec<String> {
    let (style, explode) = style(parameter, "form");
    let pair = |name: &str, value: &str| format!("{}={}", encoded(name), encoded(value));
    let joined = |texts: Vec<String>| {
        let mark = match style {
            "spaceDelimited" => "%20",
            "pipeDelimited" => "%7C",
            super::swagger::TAB_DELIMITED => "%09",
            _ => ",",
        };
        let texts: Vec<String> = texts.iter().map(encoded).collect();
        vec![format!("{}={}", encoded(name), texts.join(mark))]
    };
    match value {
        Value::Scalar(_) => vec![pair(name, &plain(value))],
        Value::Map(_) if style == "deepObject" => deep(name, value),
        Value::Map(_) if explode => members(value).iter().map(|(name, value)| pair(name, value)).collect(),
        Value::Map(_) => joined(members(value).into_iter().flat_map(|(name, value)| [name, value]).collect()),
        _ if explode || style == "deepObject" => items(value).iter().map(|item| pair(name, item)).collect(),
        _ => joined(items(value)),
    }
}

/// `name[member]=value`, also of objects in objects.
fn deep(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Map(map) => {
            let member = |key: &str| format!("{name}[{}]", key.replace("$${", "${"));
            map.entries().iter().flat_map(|entry| deep(&member(&entry.key), &entry.value)).collect()
        }
        Value::List(items) => items.iter().flat_map(|item| deep(name, item)).collect(),
        Value::Scalar(_) => vec![format!("{}={}", encoded(name), encoded(plain(value)))],
    }
}

/// What stands in front of a plain value in a path.
pub(super) fn before(name: &str, parameter: &Json) -> String {
    match style(parameter, "simple").0 {
        "label" => ".".into(),
        "matrix" => format!(";{}=", encoded(name)),
        _ => String::new(),
    }
}

/// A plain value of a path as one segment: what may not stand there is percent-encoded.
pub(super) fn segment(value: Scalar) -> Scalar {
    let may_stand = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c);
    let text = value.as_str().replace("$${", "${");
    if text.chars().all(may_stand) { value } else { encoded(&text).as_str().into() }
}

/// A list or an object as a part of a path, encoded.
pub(super) fn path(name: &str, parameter: &Json, value: &Value) -> String {
    let (style, explode) = style(parameter, "simple");
    let name = encoded(name);
    let of_matrix = style == "matrix";
    let texts: Vec<String> = match value {
        Value::Map(_) => {
            let mut members = members(value);
            members
                .iter_mut()
                .for_each(|(name, value)| (*name, *value) = (encoded(&*name), encoded(&*value)));
            match explode {
                true => members.iter().map(|(name, value)| format!("{name}={value}")).collect(),
                false => members.into_iter().flat_map(|(name, value)| [name, value]).collect(),
            }
        }
        _ if of_matrix && explode => {
            items(value).iter().map(|item| format!("{name}={}", encoded(item))).collect()
        }
        _ => items(value).iter().map(encoded).collect(),
    };
    match (style, explode) {
        ("label", true) => format!(".{}", texts.join(".")),
        ("label", false) => format!(".{}", texts.join(",")),
        ("matrix", true) => format!(";{}", texts.join(";")),
        ("matrix", false) => format!(";{name}={}", texts.join(",")),
        _ => texts.join(","),
    }
}

/// A list or an object as the value of a header.
pub(super) fn header(parameter: &Json, value: &Value) -> String {
    let (_, explode) = style(parameter, "simple");
    let texts: Vec<String> = match value {
        Value::Map(_) if explode => {
            members(value).iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
        Value::Map(_) => members(value).into_iter().flat_map(|(name, value)| [name, value]).collect(),
        _ => items(value),
    };
    texts.join(",")
}
