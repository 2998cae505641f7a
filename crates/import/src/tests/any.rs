//! Whatever is read becomes a scenario, or is refused.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// What means something to a document, a URL, YAML or the language.
const PIECES: &[&str] = &[
    "",
    " ",
    "/",
    "//",
    "{",
    "}",
    "{id}",
    "{a-b}",
    "${",
    "${a}",
    "$",
    "$$",
    "\n",
    "\r",
    "\t",
    "\0",
    "'",
    "\"",
    "\\",
    ": ",
    " #",
    "#",
    "?",
    "&",
    "=",
    "%",
    "%41",
    "é",
    "🌊",
    "\u{202e}",
    "\u{feff}",
    "password",
    "token",
    "key",
    "x",
    "a",
    "1",
    "0",
    "-1",
    "null",
    "true",
    "and",
    "users",
    "application/json",
    "text/plain",
    "get",
    "http://h:1/",
    "[",
    "]",
    "<",
    ">",
    "|",
    "*",
    "@",
];

/// Keys of documents.
const KEYS: &[&str] = &[
    "type",
    "format",
    "properties",
    "required",
    "items",
    "oneOf",
    "anyOf",
    "allOf",
    "enum",
    "example",
    "examples",
    "default",
    "const",
    "minimum",
    "schema",
    "$ref",
    "value",
    "readOnly",
    "content",
    "name",
    "in",
    "url",
    "variables",
];

fn text() -> BoxedStrategy<String> {
    vec(select(PIECES), 0..5).prop_map(|pieces| pieces.concat()).boxed()
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        text().prop_map(Json::from),
        select(&["string", "integer", "object", "array", "#/paths", "#", "#/x"][..]).prop_map(Json::from),
    ];
    let key = prop_oneof![3 => select(KEYS).prop_map(str::to_owned), 1 => text()].boxed();
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::from),
            vec((key.clone(), inner), 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn parameter() -> impl Strategy<Value = Json> {
    let place = select(&["path", "query", "header", "cookie"][..]);
    let name = prop_oneof![select(&["id", "a-b", "X-Id", "password"][..]).prop_map(str::to_owned), text()];
    (name, place, any_json(), option::of(any_json())).prop_map(|(name, place, schema, example)| {
        json!({"name": name, "in": place, "required": true, "schema": schema, "example": example})
    })
}

fn operation() -> impl Strategy<Value = Json> {
    let kind = select(
        &[
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "text/plain",
            "a\nb",
        ][..],
    );
    let statuses = vec(select(&["200", "201", "404", "default"][..]), 0..3);
    (vec(parameter(), 0..4), kind, any_json(), any_json(), statuses).prop_map(
        |(parameters, kind, schema, example, statuses)| {
            let responses: Json = statuses.into_iter().map(|status| (status.to_owned(), json!({}))).collect();
            let content: Json =
                [(kind.to_owned(), json!({"schema": schema, "example": example}))].into_iter().collect();
            json!({"parameters": parameters, "requestBody": {"content": content}, "responses": responses})
        },
    )
}

fn document() -> impl Strategy<Value = Json> {
    let item = vec((select(&["get", "post", "put", "patch", "delete"][..]), operation()), 0..3).prop_map(
        |operations| -> Json { operations.into_iter().map(|(key, of)| (key.to_owned(), of)).collect() },
    );
    let paths = vec((text().prop_map(|path| format!("/{path}")), item), 1..5);
    let server = prop_oneof![text(), text().prop_map(|path| format!("https://h/{path}"))];
    (paths, server, text(), any_json()).prop_map(|(paths, server, title, security)| {
        let paths: Json = paths.into_iter().collect();
        json!({"openapi": "3.1.0", "info": {"title": title}, "servers": [{"url": server}], "paths": paths, "security": security})
    })
}

fn pairs() -> impl Strategy<Value = Json> {
    let name = prop_oneof![
        select(&["Accept", "Content-Type", "X-Api-Key", "Cookie", ":path", "password", "Host", "X-A"][..])
            .prop_map(str::to_owned),
        text(),
    ];
    vec((name, text()), 0..4).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect::<Vec<_>>()
            .into()
    })
}

fn entry() -> impl Strategy<Value = Json> {
    let url = (
        select(&["http://h", "https://h", "http://h:1", "https://cdn.h:8443", "ws://h", "data:"][..]),
        text(),
        text(),
    );
    let url = url.prop_map(|(origin, path, query)| format!("{origin}/{path}?{query}"));
    let kind = select(
        &["application/json", "application/x-www-form-urlencoded; charset=UTF-8", "text/plain", ""][..],
    );
    let body = prop_oneof![text(), any_json().prop_map(|json| json.to_string())];
    let started = select(&["2026-01-01T00:00:00.000Z", "2026-01-01T01:00:09+01:00", "yesterday", ""][..]);
    let method = select(&["GET", "POST", "get", "TRACE"][..]);
    let status = select(&[0, 200, 304, 404, 999, -1][..]);
    let all =
        (url, kind, option::of(body), started, method, status, pairs(), option::of(pairs()), any::<f64>());
    all.prop_map(|(url, kind, body, started, method, status, headers, params, time)| {
        json!({"startedDateTime": started, "time": time, "response": {"status": status}, "request": {
            "method": method, "url": url, "headers": headers,
            "postData": {"mimeType": kind, "text": body, "params": params}}})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_becomes_a_scenario(document in document()) {
        if let Ok(made) = openapi::scenario("openapi.json", &document) {
            checked(&made);
        }
    }

    #[test]
    fn any_recording_becomes_a_scenario(entries in vec(entry(), 0..6)) {
        if let Ok(made) = har_of(&json!({"log": {"entries": entries}}), &["h", "cdn.h"]) {
            checked(&made);
        }
        if let Ok(made) = har_of(&json!({"log": {"entries": entries}}), &[]) {
            checked(&made);
        }
    }

    #[test]
    fn any_url_becomes_a_scenario(url in text(), host in text()) {
        for text in [format!("http://h/{url}"), format!("{host}/{url}"), url] {
            if let Ok(made) = page::scenario(&text) {
                checked(&made.into());
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in vec(select(PIECES), 0..40), head in select(&["{", "{\"log\":", "openapi: 3.0.0\npaths:\n  ", ""][..])) {
        let text = format!("{head}{}", text.concat());
        let _ = kind("x", &text).and_then(|kind| match kind {
            Kind::Recording => har::scenario("x", &text, &[]),
            Kind::Json => openapi::scenario("x", &json("x", &text)?),
            Kind::Yaml => openapi::scenario("x", &yaml("x", &text)?),
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A collection or a script in which something was changed anywhere is refused, or becomes a scenario without mistakes.
    #[test]
    fn changed_plans_are_read(
        which in 0usize..16,
        changes in vec((any::<prop::sample::Index>(), 0usize..40, any::<prop::sample::Index>(), 0usize..40), 1..4),
    ) {
        let names = [
            "postman/shop.json", "postman/scripts.json", "postman/told.json", "postman/bodies.json", "postman/auth.json",
            "postman/environment.json", "postman/folders.json", "postman/answers.json", "artillery/shop.yml",
            "artillery/loops.yml", "artillery/socket.yml", "artillery/told.yml", "artillery/bodies.yml",
            "artillery/sent.yml", "artillery/captures.yml", "artillery/ensure.yml",
        ];
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(names[which]);
        let mut text: Vec<char> = std::fs::read_to_string(&file).unwrap().chars().collect();
        for (to, length, from, taken) in changes {
            let from = from.index(text.len());
            let piece: Vec<char> = text[from..(from + taken).min(text.len())].to_vec();
            let to = to.index(text.len());
            let end = (to + length).min(text.len());
            text.splice(to..end, piece);
            prop_assume!(!text.is_empty());
        }
        let text: String = text.into_iter().collect();
        let folder = file.parent().unwrap();
        if let Ok(made) = plan_of(&file, &text, &PlanOptions::default(), folder) {
            let checked = made.checked_in(folder);
            prop_assert!(checked.is_ok(), "{}\n{text}", checked.unwrap_err());
        }
    }
}
