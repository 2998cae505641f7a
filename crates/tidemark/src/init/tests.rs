//! Whatever is read, what is written passes the check, and says nothing that it should not.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value as Json, json};

use super::*;

/// Its text, which has no mistakes.
fn checked(made: &Scenario) -> String {
    let text = made.to_yaml();
    let said = scenario::diagnostics("made.yaml", &text);
    assert!(!said.has_errors(), "{said}\n{text}");
    text
}

fn har_of(recording: &Json, hosts: &[&str]) -> Result<Scenario, Failure> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    har::scenario("shop.har", &recording.to_string(), &hosts)
}

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
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_becomes_a_scenario(document in document()) {
        if let Ok(made) = openapi::scenario("openapi.json", &document) {
            checked(&made);
        }
    }

    #[test]
    fn any_recording_becomes_a_scenario(entries in vec(entry(), 0..6)) {
        if let Ok(made) = har_of(&json!({"log": {"entries": entries}}), &["cdn.h"]) {
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
                checked(&made);
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

#[test]
fn a_document_is_bounded() {
    let parameters =
        vec![json!({"name": "id", "in": "path", "schema": {"enum": ["\u{202e}".repeat(5_000)]}}); 60];
    let example: Vec<String> = (0..150).map(|number| format!("\u{1}{number}").repeat(60)).collect();
    let operation = json!({"parameters": parameters, "requestBody": {"content": {"application/json": {"example": example}}}});
    let paths: Json = (0..400)
        .map(|number| {
            (
                format!("/{number}{}", "/{id}{x}".repeat(number % 60)),
                json!({"get": operation, "post": operation}),
            )
        })
        .collect();
    let text = checked(&openapi::scenario("x", &json!({"openapi": "3.0.0", "paths": paths})).unwrap());
    assert!(text.contains("operations are left out"), "{}", &text[..1_000]);
}

#[test]
fn a_recording_is_bounded() {
    let entry = |number: usize| {
        json!({"request": {"method": "POST", "url": format!("http://h{}/{number}?{}", number % 90, "%00".repeat(2_000)),
            "headers": [{"name": "X-Long", "value": "é".repeat(900)}],
            "postData": {"mimeType": "text/plain", "text": "\u{1}".repeat(9_000)}}, "response": {"status": 200}})
    };
    let entries: Vec<Json> = (0..3_000).map(entry).collect();
    let recording = json!({"log": {"entries": entries}});
    let hosts: Vec<String> = (0..90).map(|number| format!("h{number}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let text = checked(&har_of(&recording, &hosts).unwrap());
    assert!(text.contains("beyond 2000 requests or"), "{}", &text[..1_000]);
}

#[test]
fn an_upload_is_a_form_of_parts() {
    let photo = json!({"properties": {"title": {"type": "string", "example": "Rex"}, "tags": {"type": "object"},
        "photo": {"type": "string", "format": "binary"}, "scan": {"$ref": "#/components/schemas/Scan"},
        "more": {"type": "array", "items": {"type": "string", "format": "binary"}}}});
    let upload = json!({"requestBody": {"content": {"multipart/form-data": {"schema": photo}}}});
    let document = json!({"openapi": "3.1.0", "paths": {"/photos": {"post": upload, "get": upload}},
        "components": {"schemas": {"Scan": {"contentMediaType": "image/png"}}}});
    let text = checked(&openapi::scenario("x.json", &document).unwrap());
    assert!(!text.contains("Content-Type"), "{text}");
    let of_lines = |prefix: &str| {
        let at = text.lines().position(|line| line.starts_with(prefix)).unwrap_or_else(|| panic!("{text}"));
        text.lines().skip(at + 1).take(8).collect::<Vec<_>>().join("\n")
    };
    let post = of_lines("      # - POST: /photos");
    for part in
        ["multipart:", "title: Rex", "photo: {file: FILE}", "scan: {file: FILE}", "more: {file: FILE}"]
    {
        assert!(post.contains(part), "{part}: {text}");
    }
    assert!(text.lines().any(|line| line == "      # # FILE must be there, beside the scenario."), "{text}");
    let get = text.split("- GET: /photos").nth(1).unwrap();
    assert!(
        get.lines().nth(1).is_some_and(|line| line.contains("multipart:") && !line.contains("FILE")),
        "{text}"
    );
}

#[test]
fn what_writes_can_be_taken_in_by_hand() {
    let document = json!({"openapi": "3.0.3", "info": {"title": "Pets"}, "servers": [{"url": "/v2"}], "paths": {
        "/pets": {
            "post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                "responses": {"201": {}}},
            "get": {"parameters": [{"name": "limit", "in": "query", "required": true, "schema": {"type": "integer"}}],
                "responses": {"200": {}}}},
        "/pets/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"example": 7}}],
            "get": {}, "delete": {}},
        "/owners/{id}": {"get": {}}},
        "components": {"schemas": {"Pet": {"required": ["name"], "properties": {
            "name": {"type": "string", "example": "Rex ${x}"}, "parent": {"$ref": "#/components/schemas/Pet"}}}}}});
    let text = checked(&openapi::scenario("pets.json", &document).unwrap());
    for line in [
        "  url: http://127.0.0.1:8080/v2",
        "  id: 7",
        "  owners_id: \"1\"",
        "      - GET: /pets/${id}",
        "      - GET: /owners/${owners_id}",
        "        query: {limit: 1}",
        "      # - POST: /pets",
        "      #   json: {name: \"Rex $${x}\"}",
        "      # - DELETE: /pets/${id}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // nobody forgets to: they are steps as they stand there
    let by_hand: Vec<String> = text
        .lines()
        .filter(|line| !line.contains("# It writes"))
        .map(|line| match line.strip_prefix("      # ") {
            Some(step) if step.starts_with(['-', ' ']) => format!("      {step}"),
            _ => line.to_owned(),
        })
        .collect();
    let by_hand = by_hand.join("\n");
    let said = scenario::diagnostics("by-hand.yaml", &by_hand);
    assert_eq!(said.to_string(), "", "{by_hand}");
    assert!(by_hand.contains("\n      - DELETE: /pets/${id}\n"), "{by_hand}");
}

#[test]
fn secrets_of_a_recording_stay_there() {
    let entry = |second: u64, method: &str, url: &str, body: Json| {
        json!({"startedDateTime": format!("2026-01-01T00:00:{second:02}.000Z"), "time": 500.0, "response": {"status": 200},
            "request": {"method": method, "url": url, "postData": body, "headers": [
                {"name": "Cookie", "value": "sid=hunter2"}, {"name": "Authorization", "value": "Bearer hunter2hunter2"},
                {"name": "X-CSRF-Token", "value": "hunter2"}, {"name": "X-Note", "value": "Bearer hunter2hunter2"},
                {"name": "Accept", "value": "text/html"}, {"name": "User-Agent", "value": "Browser/1"}]}})
    };
    let form = json!({"mimeType": "application/x-www-form-urlencoded", "text": "user=ann&password=hunter2"});
    let body =
        json!({"mimeType": "application/json", "text": "{\"a\": [{\"apiKey\": \"hunter2\", \"n\": 1}]}"});
    let plain = json!({"mimeType": "text/plain", "text": "q=1&password=hunter2"});
    let recording = json!({"log": {"entries": [
        entry(0, "GET", "http://shop.example/", Json::Null),
        entry(1, "GET", "https://shop.example/?access_token=hunter2&q=${x}", Json::Null),
        entry(9, "POST", "https://shop.example/orders", plain),
        entry(3, "POST", "https://shop.example/login", form),
        entry(4, "POST", "https://shop.example/api", body),
        entry(5, "GET", "https://cdn.example/a.js", Json::Null),
        json!({"startedDateTime": "2026-01-01T00:00:10.000Z", "response": {"status": 200}, "request": {
            "method": "PUT", "url": "https://shop.example/x", "bodySize": 33, "postData": {"mimeType": "a/b", "text": ""},
            "headers": [{"name": "Accept", "value": "text/html"}]}}),
    ]}});
    let text = checked(&har_of(&recording, &["cdn.example"]).unwrap());
    assert!(!text.contains("hunter2"), "{text}");
    for line in [
        "  url: https://shop.example",
        "  shop_example: {url: http://shop.example}",
        "  headers: {Accept: text/html}",
        "      - GET: /?q=$${x}",
        "        query: {access_token: \"${access_token}\"}",
        "        form: {user: ann, password: \"${password}\"}",
        "      # its body was left out: there may be a secret in it",
        "      # its body is not in the recording",
        "        at: cdn_example",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}\n{text}"));
    assert!(at("/login") < at("think: 3.5s") && at("think: 3.5s") < at("/orders"), "{text}");
    assert!(text.contains("Authorization, X-CSRF-Token, X-Note"), "{text}");
    // a host that nobody named is not driven
    let text = checked(&har_of(&recording, &[]).unwrap());
    assert!(!text.contains("at: cdn_example") && text.contains("cdn.example (1)"), "{text}");
}

/// The scenario of one request with a body.
fn posted(kind: &str, body: &str) -> String {
    let recording = json!({"log": {"entries": [{"response": {"status": 500}, "request": {
        "method": "POST", "url": "http://h/", "headers": [{"name": "X-Note", "value": JWT}],
        "postData": {"mimeType": kind, "text": body}}}]}});
    let text = checked(&har_of(&recording, &[]).unwrap());
    for secret in ["hunter2", "eyJ", "***"] {
        assert!(!text.contains(secret), "{secret}\n{text}");
    }
    assert!(text.contains("# recorded with status 500"), "{text}");
    text
}

/// A signed token.
const JWT: &str = "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln";

#[test]
fn what_stands_below_a_secrets_name_is_secret() {
    let body = json!({"password": ["hunter2"], "credentials": {"pin": "hunter2", "code": 4711}, "tokens": ["hunter2"],
        "passwords": {"a": [{"b": "hunter2"}]}, "apiKeys": ["hunter2"], "pass": "hunter2", "jwt": "hunter2",
        "note": JWT, "query": "mutation { login(password: \"hunter2\") }", "max_tokens": 64, "name": "ann"});
    let text = posted("application/json", &body.to_string());
    for part in [
        "${password}",
        "${credentials_pin}",
        "${credentials_code}",
        "${tokens}",
        "${passwords_a_b}",
        "${apiKeys_secret}",
        "${pass_secret}",
        "${jwt_secret}",
        "${note_secret}",
        "${query_secret}",
        "max_tokens: 64",
        "name: ann",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn secrets_of_a_form_are_settings_also_where_names_repeat() {
    let of = |body: &str| posted("application/x-www-form-urlencoded", body);
    assert!(of("a=1&pass=hunter2").contains("pass: \"${pass_secret}\""));
    let text = of(&format!("a=1&a=%24%7Bx%7D&user%5Bpassword%5D=hunter2&b={JWT}"));
    let wanted = "body: a=1&a=%24%7Bx%7D&user%5Bpassword%5D=${url(user_password)}&b=${url(b_secret)}\n";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains("\n  user_password: left-out\n"), "{text}");
}

#[test]
fn other_bodies_with_a_secrets_name_are_left_out() {
    let part = "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--b--\r\n";
    for (kind, body) in [
        ("multipart/form-data; boundary=b", part),
        ("application/xml", "<login><password>hunter2</password></login>"),
        ("text/plain", "password: hunter2"),
        ("text/plain", JWT),
        ("application/json", "{\"password\": hunter2"),
    ] {
        let text = posted(kind, body);
        assert!(text.contains("# its body was left out: there may be a secret in it"), "{text}");
    }
    assert!(posted("text/plain", "a note").contains("body: a note\n"));
}

#[test]
fn many_secrets_share_a_setting() {
    let members: Json = (0..3_000).map(|number| (format!("{number}"), json!("hunter2"))).collect();
    let text = posted("application/json", &json!({"credentials": members}).to_string());
    assert!(text.contains("${secret}") && text.lines().count() < 4_000, "{}", &text[..1_000]);
}

#[test]
fn many_hosts_are_counted() {
    let request = |host: usize| json!({"request": {"method": "GET", "url": format!("http://h{host}/")}});
    let entries: Vec<Json> = (0..20_000).map(request).collect();
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &["h19999"]).unwrap());
    assert!(text.contains("at: h19999") && text.contains("and 19978 more"), "{text}");
    assert!(text.len() < 10_000, "{}", text.len());
}

#[test]
fn what_a_document_repeats_is_bounded() {
    let url = format!("http://h/{}", "{a}".repeat(600));
    let server = json!({"url": url, "variables": {"a": {"default": "x".repeat(3 << 20)}}});
    let names: Vec<String> = (0..20_000).map(|number| format!("m{number}")).collect();
    let properties: Json = names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
    let schema = json!({"required": names, "properties": properties});
    let parameter = json!({"in": "query", "name": "q", "required": true, "schema": {"type": "string", "minLength": 1_000_000}});
    let tags =
        json!({"type": "array", "minItems": 1_000_000, "items": {"type": "array", "minItems": 1_000_000}});
    let content =
        |schema: &Json| json!({"requestBody": {"content": {"application/json": {"schema": schema}}}});
    let paths =
        json!({"/": {"get": {"parameters": [parameter]}, "post": content(&schema), "put": content(&tags)}});
    let document = json!({"openapi": "3.0.0", "servers": [server], "paths": paths});
    let text = checked(&openapi::scenario("x.json", &document).unwrap());
    assert!(text.len() < 20_000, "{}", text.len());
}

#[test]
fn samples_fit_what_a_schema_asks_for() {
    let query =
        |name: &str, schema: Json| json!({"in": "query", "name": name, "required": true, "schema": schema});
    let parameters = json!([
        query("word", json!({"type": "string", "minLength": 4})),
        query("mail", json!({"type": "string", "format": "email", "maxLength": 7})),
        query("count", json!({"type": "integer", "exclusiveMinimum": 10})),
        query("step", json!({"type": "integer", "minimum": 5, "multipleOf": 4})),
        query("above", json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true})),
        {"in": "cookie", "name": "sid", "required": true},
    ]);
    let tags = json!({"properties": {"tags": {"type": "array", "minItems": 3, "items": {"type": "string"}}}});
    let post = json!({"requestBody": {"content": {"application/json": {"schema": tags}}}});
    let document =
        json!({"openapi": "3.0.0", "paths": {"/": {"get": {"parameters": parameters}, "post": post}}});
    let text = checked(&openapi::scenario("x.json", &document).unwrap());
    for line in [
        "      # left out, though required: cookie sid",
        "        query: {word: xxxx, mail: someone, count: 11, step: 8, above: 4}",
        "      #   json: {tags: [x, x, x]}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn a_documents_address_says_what_to_do() {
    let text = checked(&page::scenario("http://h/v3/openapi.json").unwrap());
    assert!(text.contains("save it and run tidemark init FILE"), "{text}");
    assert!(!checked(&page::scenario("http://h/").unwrap()).contains("save it"));
}

#[test]
fn what_cannot_be_read_says_why() {
    let refused = |made: Result<Scenario, Failure>| made.unwrap_err().message;
    let of = |document: Json| refused(openapi::scenario("x.json", &document));
    assert!(of(json!({"swagger": "2.0"})).contains("convert it to OpenAPI 3"));
    assert!(of(json!({"openapi": "4.0"})).contains("OpenAPI 4.0"));
    assert!(of(json!({"openapi": "3.0.0"})).contains("no paths"));
    assert!(of(json!([1])).contains("neither an OpenAPI document"));
    assert!(refused(har_of(&json!({"log": {}}), &[])).contains("no requests"));
    let blocked = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}, "response": {"status": 0}}]}});
    assert!(refused(har_of(&blocked, &[])).contains("without an answer"));
    let one = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}}]}});
    assert!(refused(har_of(&one, &["other"])).contains("--host other; it has h"));
    assert!(refused(page::scenario("ftp://h/")).contains("http://"));
    assert!(refused(page::scenario("http://u:p@h/")).contains("leave name and password out"));
    assert!(refused(page::scenario("redis://h")).contains("docs/kv.md"));
    let broken = kind("x.har", "{\"log\":\n [1,}").err().map(|failure| failure.message).unwrap_or_default();
    assert!(broken.starts_with("x.har:2:5: "), "{broken}");
}
