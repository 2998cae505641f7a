//! Bodies of a recording.

use serde_json::Value as Json;
use tidemark_scenario::Secrets;
use tidemark_scenario::secrets::{MASK, is_secret, is_secret_name};
use tidemark_scenario::source::{Map, Request, Scalar, Value, verbatim};
use url::form_urlencoded;

use super::entry::Body;

/// Largest body that is taken over, bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 << 10;
/// Deepest JSON that is written as YAML.
const DEPTH_MAX: usize = 16;
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// Puts a body into a request; `secret` gives the setting that stands for a secret of a name.
pub(super) fn put(body: &Body, request: &mut Request, secret: &mut dyn FnMut(&str) -> String) {
    let pairs = body.params.as_deref().unwrap_or_default();
    let text = body.text.as_deref().unwrap_or_default();
    if text.is_empty() && pairs.is_empty() {
        return;
    }
    let pairs_bytes: usize = pairs.iter().map(|pair| pair.value.as_ref().map_or(0, String::len)).sum();
    let mime = body.mime_type.as_deref().unwrap_or_default().trim();
    let kind = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if text.len().max(pairs_bytes) > BODY_BYTES_MAX || body.encoding.is_some() {
        request.comment = "its body was left out: it is large, or no text".into();
        return;
    }
    let mut usual = "";
    if kind == FORM {
        let fields: Vec<(String, String)> = match text {
            "" => {
                pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone().unwrap_or_default())).collect()
            }
            text => form_urlencoded::parse(text.as_bytes()).into_owned().collect(),
        };
        if let Some(form) = form(&fields, secret) {
            (request.form, usual) = (form, FORM);
        }
    } else if (kind == JSON || kind.ends_with("+json"))
        && let Ok(parsed) = serde_json::from_str::<Json>(text)
        && let Some(json) = json(&parsed, 0, secret)
    {
        (request.json, usual) = (Some(json), JSON);
    }
    if usual.is_empty() {
        if text.is_empty() {
            request.comment = "its body was left out: the recording has only parts of it".into();
            return;
        }
        let masked = Secrets::default().masked(text);
        if masked != text {
            request.comment = format!("secrets in its body were left out: {MASK}");
        }
        request.body = Some(verbatim(&masked).into());
    }
    let is_plain =
        !mime.is_empty() && mime.len() <= 200 && mime.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && mime != usual {
        request.headers.insert("Content-Type", verbatim(mime));
    }
}

/// Fields by name; nothing where one has no name or comes twice.
fn form(fields: &[(String, String)], secret: &mut dyn FnMut(&str) -> String) -> Option<Map> {
    let mut map = Map::new();
    for (name, value) in fields {
        let key = verbatim(name);
        if name.is_empty() || map.get(&key).is_some() {
            return None;
        }
        map.insert(key, if value.is_empty() { String::new() } else { text(name, value, secret) });
    }
    (!map.is_empty()).then_some(map)
}

/// A text, or the setting that stands for it.
fn text(name: &str, value: &str, secret: &mut dyn FnMut(&str) -> String) -> String {
    if is_secret_name(name) { format!("${{{}}}", secret(name)) } else { verbatim(value) }
}

/// JSON as source; nothing where it is too deep.
fn json(value: &Json, depth: usize, secret: &mut dyn FnMut(&str) -> String) -> Option<Value> {
    if depth == DEPTH_MAX {
        return None;
    }
    Some(match value {
        Json::Null => Value::default(),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => Scalar::unquoted(&number.to_string()).into(),
        Json::String(text) => verbatim(text).into(),
        Json::Array(items) => {
            let items: Option<Vec<Value>> = items.iter().map(|item| json(item, depth + 1, secret)).collect();
            items?.into()
        }
        Json::Object(members) => {
            let mut map = Map::new();
            for (name, value) in members {
                let value = match value {
                    Json::String(value) => text(name, value, secret).into(),
                    Json::Number(number) if is_secret(name, &number.to_string()) => {
                        text(name, "", secret).into()
                    }
                    value => json(value, depth + 1, secret)?,
                };
                map.insert(verbatim(name), value);
            }
            map.into()
        }
    })
}
