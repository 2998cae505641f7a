//! Bodies of a recording.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use tidemark_scenario::secrets::is_secret;
use tidemark_scenario::source::{Map, Request, Scalar, Value, verbatim, verbatim_bytes};
use url::form_urlencoded;

use super::entry::{Body, Pair};
use super::hidden::{has_secret, is_hidden, is_secret_name};
use super::{decoded, short};
use crate::draft::depth;

/// Largest body that is taken over, bytes.
pub(super) const BODY_BYTES_MAX: usize = 64 << 10;
/// Deepest JSON that is written as YAML.
const DEPTH_MAX: usize = 16;
/// What is told of files whose content is not there.
const NO_FILES: &str = "what its files hold is not in the recording: they are sent empty";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
const PARTS: &str = "multipart/form-data";
/// Stands between the parts of a form whose recording does not say what does.
const BOUNDARY: &str = "----tidemark-recorded";

/// Puts a body into a request; `secret` gives the setting that stands for a secret of a name.
pub(super) fn put(body: &Body, request: &mut Request, secret: &mut dyn FnMut(&str) -> String) {
    let pairs = body.params.as_deref().unwrap_or_default();
    let text = body.text.as_deref().unwrap_or_default();
    if text.is_empty() && pairs.is_empty() {
        return;
    }
    let pairs_bytes: usize = pairs.iter().map(Pair::bytes).sum();
    if text.len().max(pairs_bytes) > BODY_BYTES_MAX {
        return note(request, "its body was left out: it is larger than 64 KiB");
    }
    let bytes = match body.encoding.as_deref().unwrap_or_default() {
        "" => Ok(text.as_bytes().to_vec()),
        "base64" => STANDARD.decode(text.trim()).map_err(drop),
        _ => Err(()),
    };
    let Ok(bytes) = bytes else {
        return note(request, "its body was left out: its encoding cannot be read");
    };
    let mime = body.mime_type.as_deref().unwrap_or_default().trim();
    let kind = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut content_type = mime.to_owned();
    let mut usual = "";
    match std::str::from_utf8(&bytes) {
        Ok(text) if kind == FORM => {
            let text = if text.is_empty() { encoded(pairs) } else { text.to_owned() };
            let fields: Vec<(String, String)> =
                form_urlencoded::parse(text.as_bytes()).into_owned().collect();
            if is_map(&fields) {
                (request.form, usual) = (form(&fields, secret), FORM);
            } else {
                request.body = Some(form_text(&text, secret).into());
            }
        }
        Ok(text)
            if (kind == JSON || kind.ends_with("+json"))
                && let Ok(parsed) = serde_json::from_str::<Json>(text)
                && depth(&parsed) <= DEPTH_MAX =>
        {
            (request.json, usual) = (Some(json(&parsed, "value", false, secret)), JSON);
        }
        Ok("") if kind == PARTS => {
            let boundary = boundary(mime).unwrap_or(BOUNDARY);
            if content_type.len() == kind.len() {
                content_type = format!("{PARTS}; boundary={boundary}");
            }
            let is_unknown = |pair: &Pair| {
                pair.file_name.is_some() && pair.value.as_deref().unwrap_or_default().is_empty()
            };
            if pairs.iter().any(is_unknown) {
                note(request, NO_FILES);
            }
            request.body = Some(parts(pairs, boundary, secret).into());
        }
        Ok("") => return note(request, "its body was left out: the recording has only parts of it"),
        Ok(text) if kind == PARTS && boundary(mime).is_some() => {
            let boundary = boundary(mime).unwrap_or_default();
            if has_empty_file(text, boundary) {
                note(request, NO_FILES);
            }
            request.body = Some(parts_of_text(text, boundary, secret).into());
        }
        _ if has_secret(&String::from_utf8_lossy(&bytes)) => {
            return note(request, "its body was left out: there may be a secret in it");
        }
        _ => request.body = Some(verbatim_bytes(&bytes).into()),
    }
    let is_plain = !content_type.is_empty()
        && content_type.len() <= 200
        && content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && content_type != usual {
        request.headers.insert("Content-Type", verbatim(&content_type));
    }
}

/// One more line above a step.
pub(super) fn note(request: &mut Request, line: &str) {
    if !request.comment.is_empty() {
        request.comment.push('\n');
    }
    request.comment.push_str(line);
}

/// Fields as they are sent. Some browsers record them encoded, others decoded; a body is one or the other.
pub(super) fn encoded(pairs: &[Pair]) -> String {
    let value = |pair: &Pair| pair.value.clone().unwrap_or_default();
    let texts = || pairs.iter().flat_map(|pair| [pair.name.clone(), value(pair)]);
    if texts().all(|text| is_encoded(&text)) && texts().any(|text| text.contains('%')) {
        let fields: Vec<String> = pairs.iter().map(|pair| format!("{}={}", pair.name, value(pair))).collect();
        return fields.join("&");
    }
    let mut out = form_urlencoded::Serializer::new(String::new());
    for pair in pairs {
        out.append_pair(&pair.name, &value(pair));
    }
    out.finish()
}

/// Whether a text has nothing that an encoded field does not have.
fn is_encoded(text: &str) -> bool {
    let is_hex = |text: Option<&str>| {
        text.is_some_and(|text| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~*+%!'()".contains(&byte))
        && text.match_indices('%').all(|(at, _)| is_hex(text.get(at + 1..at + 3)))
}

/// What stands between the parts of a form.
fn boundary(mime: &str) -> Option<&str> {
    let mut parameters = mime.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    Some(value.trim().trim_matches('"')).filter(|value| !value.is_empty())
}

/// A form of parts as a browser sends it (RFC 7578).
fn parts(pairs: &[Pair], boundary: &str, secret: &mut dyn FnMut(&str) -> String) -> String {
    let quoted = |text: &str| verbatim(&text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A"));
    let boundary = verbatim(boundary);
    let mut body = String::new();
    for pair in pairs {
        body += &format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&pair.name));
        if let Some(file) = &pair.file_name {
            body += &format!("; filename=\"{}\"", quoted(file));
        }
        let kind = pair.content_type.as_deref().filter(|kind| !kind.is_empty());
        if let Some(kind) = kind.or(pair.file_name.as_ref().map(|_| "application/octet-stream")) {
            body += &format!("\r\nContent-Type: {}", quoted(kind));
        }
        let value = pair.value.as_deref().unwrap_or_default();
        body += &format!("\r\n\r\n{}\r\n", content(&pair.name, value, pair.file_name.is_some(), secret));
    }
    body + &format!("--{boundary}--\r\n")
}

/// Whether a file of a form is recorded by its name only, as Chrome does.
fn has_empty_file(text: &str, boundary: &str) -> bool {
    text.split(&format!("--{boundary}")).any(|part| {
        let content = part.trim_start().split_once("\r\n\r\n");
        content.is_some_and(|(head, content)| {
            let file = head.split_once("filename=\"").map_or("", |(_, name)| name);
            !file.is_empty() && !file.starts_with('"') && content.trim().is_empty()
        })
    })
}

/// The same of a text that has all of it; parts that are secret have settings.
fn parts_of_text(text: &str, boundary: &str, secret: &mut dyn FnMut(&str) -> String) -> String {
    let mark = format!("--{boundary}");
    let part = |part: &str| {
        let ends = ["\r\n", "\n"].into_iter().find_map(|end| {
            let (head, content) = part.split_once(&end.repeat(2))?;
            Some((head, end, content.strip_suffix(end)?))
        });
        let Some((head, end, value)) = ends else { return verbatim(part) };
        let named = |key: &str| head.split(&format!("{key}=\"")).nth(1)?.split('"').next();
        let name = named("; name").or(named(";name")).unwrap_or("value");
        let value = content(name, value, head.contains("filename"), secret);
        format!("{}{end}{end}{value}{end}", verbatim(head))
    };
    text.split(mark.as_str()).map(part).collect::<Vec<_>>().join(&verbatim(&mark))
}

/// What a part holds, or the setting that stands for it. A file is looked through.
fn content(name: &str, value: &str, is_file: bool, secret: &mut dyn FnMut(&str) -> String) -> String {
    if is_hidden(name, value) || is_file && has_secret(value) {
        format!("${{{}}}", secret(name))
    } else {
        verbatim(value)
    }
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
        Json::String(text) if is_hidden(name, text) || is_secret_part && !text.is_empty() => {
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
