//! A document of OpenAPI 2 (Swagger) as one of OpenAPI 3, as far as it is read.

use serde_json::{Map as Object, Value as Json, json};

/// Keys of a parameter that are of its schema in OpenAPI 3.
const OF_SCHEMA: [&str; 17] = [
    "type",
    "format",
    "items",
    "enum",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "multipleOf",
    "pattern",
    "x-example",
    "uniqueItems",
];
/// Most references that lead to each other.
const REFERENCES_MAX: usize = 16;

/// The same in the words of OpenAPI 3. What references name stays where it is.
pub(super) fn as_3(document: &Json) -> Json {
    let mut out = document.clone();
    let consumes = &document["consumes"];
    for (_, item) in out["paths"].as_object_mut().into_iter().flatten() {
        let shared = item["parameters"].take();
        let Some(operations) = item.as_object_mut() else { continue };
        operations.remove("parameters");
        for (_, operation) in operations.iter_mut().filter(|(_, operation)| operation.is_object()) {
            let own = operation["parameters"].take();
            let all: Vec<Json> = [&shared, &own]
                .into_iter()
                .flat_map(|of| of.as_array().into_iter().flatten())
                .map(|parameter| resolved(document, parameter).clone())
                .collect();
            let consumes = match &operation["consumes"] {
                Json::Null => consumes.clone(),
                own => own.clone(),
            };
            if let Some(body) = body(&all, &consumes) {
                operation["requestBody"] = body;
            }
            operation["parameters"] = all.iter().filter_map(parameter).collect();
        }
    }
    out["servers"] = servers(document);
    let mut schemes = document["securityDefinitions"].clone();
    for (_, scheme) in schemes.as_object_mut().into_iter().flatten() {
        if scheme["type"] == "basic" {
            *scheme = json!({"type": "http", "scheme": "basic"});
        }
    }
    out["components"] = json!({ "securitySchemes": schemes });
    out
}

fn resolved<'d>(document: &'d Json, mut node: &'d Json) -> &'d Json {
    for _ in 0..REFERENCES_MAX {
        let place = node["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
        let Some(found) = place.and_then(|pointer| document.pointer(pointer)) else { break };
        node = found;
    }
    node
}

fn servers(document: &Json) -> Json {
    let base = document["basePath"].as_str().unwrap_or_default();
    let scheme = document["schemes"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let scheme = scheme.filter(|scheme| ["https", "http"].contains(scheme)).max().unwrap_or("http");
    match document["host"].as_str() {
        Some(host) => json!([{"url": format!("{scheme}://{host}{base}")}]),
        None => json!([{ "url": base }]),
    }
}

/// The style of `collectionFormat: tsv`, which OpenAPI 3 has no name for.
pub(super) const TAB_DELIMITED: &str = "tabDelimited";

/// A parameter that is no part of a body.
fn parameter(of: &Json) -> Option<Json> {
    if of["in"] == "body" || of["in"] == "formData" {
        return None;
    }
    let mut out = of.clone();
    out["schema"] = schema(of);
    let (style, explode) = match of["collectionFormat"].as_str() {
        Some("multi") => ("form", true),
        Some("ssv") => ("spaceDelimited", false),
        Some("tsv") => (TAB_DELIMITED, false),
        Some("pipes") => ("pipeDelimited", false),
        _ if of["in"] == "query" => ("form", false),
        _ => ("simple", false),
    };
    out["style"] = style.into();
    out["explode"] = explode.into();
    if let Some(example) = of.get("x-example") {
        out["example"] = example.clone();
    }
    Some(out)
}

fn schema(of: &Json) -> Json {
    let keys = OF_SCHEMA.iter().filter_map(|key| Some(((*key).to_owned(), of.get(*key)?.clone())));
    let mut schema: Object<String, Json> = keys.collect();
    if of["type"] == "file" {
        schema = Object::from_iter([("type".into(), "string".into()), ("format".into(), "binary".into())]);
    }
    Json::Object(schema)
}

/// The body that a parameter is, or that fields of a form are.
fn body(all: &[Json], consumes: &Json) -> Option<Json> {
    let kinds = || consumes.as_array().into_iter().flatten().filter_map(Json::as_str);
    if let Some(body) = all.iter().find(|parameter| parameter["in"] == "body") {
        let kind =
            kinds().find(|kind| kind.contains("json")).or(kinds().next()).unwrap_or("application/json");
        return Some(json!({"required": body["required"], "content": {kind: {"schema": body["schema"]}}}));
    }
    let fields: Vec<&Json> = all.iter().filter(|parameter| parameter["in"] == "formData").collect();
    if fields.is_empty() {
        return None;
    }
    let has_file = fields.iter().any(|field| field["type"] == "file");
    let is_multipart = has_file || kinds().next() == Some("multipart/form-data");
    let kind = if is_multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" };
    let name = |field: &Json| field["name"].as_str().unwrap_or_default().to_owned();
    let required: Vec<String> =
        fields.iter().filter(|field| field["required"] == true).map(|field| name(field)).collect();
    let properties: Object<String, Json> = fields.iter().map(|field| (name(field), schema(field))).collect();
    let schema = json!({"type": "object", "required": required, "properties": properties});
    Some(json!({"content": {kind: {"schema": schema}}}))
}
