//! Bodies of a recording.

use std::collections::HashSet;

use serde_json::Value as Json;
use tidemark_scenario::secrets::is_secret;
use tidemark_scenario::source::{Map, Request, Scalar, Value, verbatim};
use url::form_urlencoded;

use super::entry::Body;
use super::hidden::{has_secret, is_secret_name, looks_secret};
use super::{decoded, short};

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
    let pairs_bytes: usize =
        pairs.iter().map(|pair| pair.name.len() + pair.value.as_ref().map_or(0, String::len)).sum();
    let mime = body.mime_type.as_deref().unwrap_or_default().trim();
    let kind = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if text.len().max(pairs_bytes) > BODY_BYTES_MAX || body.encoding.is_some() {
        return note(request, "its body was left out: it is large, or no text");
    }
    let mut usual = "";
    if kind == FORM {
        let text = if text.is_empty() { encoded(pairs) } else { text.to_owned() };
        let fields: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        if is_map(&fields) {
            (request.form, usual) = (form(&fields, secret), FORM);
        } else {
            request.body = Some(form_text(&text, secret).into());
        }
    } else if (kind == JSON || kind.ends_with("+json"))
        && let Ok(parsed) = serde_json::from_str::<Json>(text)
        && depth(&parsed) <= DEPTH_MAX
    {
        (request.json, usual) = (Some(json(&parsed, "value", false, secret)), JSON);
    } else if text.is_empty() {
        return note(request, "its body was left out: the recording has only parts of it");
    } else if has_secret(text) {
        return note(request, "its body was left out: there may be a secret in it");
    } else {
        request.body = Some(verbatim(text).into());
    }
    let is_plain =
        !mime.is_empty() && mime.len() <= 200 && mime.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && mime != usual {
        request.headers.insert("Content-Type", verbatim(mime));
    }
}

/// One more line above a step.
pub(super) fn note(request: &mut Request, line: &str) {
    if !request.comment.is_empty() {
        request.comment.push('\n');
    }
    request.comment.push_str(line);
}

/// Fields as they are sent.
fn encoded(pairs: &[super::entry::Pair]) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for pair in pairs {
        out.append_pair(&pair.name, pair.value.as_deref().unwrap_or_default());
    }
    out.finish()
}

/// Whether all have names that differ.
fn is_map(fields: &[(String, String)]) -> bool {
    let mut names = HashSet::new();
    !fields.is_empty() && fields.iter().all(|(name, _)| !name.is_empty() && names.insert(verbatim(name)))
}

/// Fields by name.
fn form(fields: &[(String, String)], secret: &mut dyn FnMut(&str) -> String) -> Map {
    let field = |(name, value): &(String, String)| {
        let value = if is_hidden(name, value) { format!("${{{}}}", secret(name)) } else { verbatim(value) };
        (verbatim(name), value)
    };
    fields.iter().map(field).collect()
}

/// Fields that no mapping can hold, as they are sent.
fn form_text(text: &str, secret: &mut dyn FnMut(&str) -> String) -> String {
    let field = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if is_hidden(&decoded(name), &decoded(value)) {
            format!("{}=${{url({})}}", verbatim(name), secret(&decoded(name)))
        } else {
            verbatim(pair)
        }
    };
    let fields: Vec<String> = text.split('&').map(field).collect();
    fields.join("&")
}

fn is_hidden(name: &str, value: &str) -> bool {
    !value.is_empty() && (is_secret_name(name) || looks_secret(value))
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// JSON as source. `name` is the nearest one above; `is_secret_part` if that, or one above it, is a secret's.
fn json(value: &Json, name: &str, is_secret_part: bool, secret: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Json::Null => Value::default(),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => {
            let number = number.to_string();
            if is_secret_part && is_secret_number(name, &number) {
                format!("${{{}}}", secret(name)).into()
            } else {
                Scalar::unquoted(&number).into()
            }
        }
        Json::String(text) if !text.is_empty() && (is_secret_part || looks_secret(text)) => {
            format!("${{{}}}", secret(name)).into()
        }
        Json::String(text) => verbatim(text).into(),
        Json::Array(items) => {
            let items: Vec<Value> =
                items.iter().map(|item| json(item, name, is_secret_part, secret)).collect();
            items.into()
        }
        Json::Object(members) => {
            let mut map = Map::new();
            for (key, member) in members {
                let is_own = is_secret_name(key);
                let name =
                    if is_secret_part && !is_own { short(&format!("{name}_{key}")) } else { short(key) };
                map.insert(verbatim(key), json(member, &name, is_own || is_secret_part, secret));
            }
            map.into()
        }
    }
}

/// `"pin": 1234`, but not `"token_bytes": 64`.
fn is_secret_number(name: &str, number: &str) -> bool {
    let is_known = tidemark_scenario::secrets::is_secret_name(name);
    is_secret(if is_known { name } else { "password" }, number)
}
