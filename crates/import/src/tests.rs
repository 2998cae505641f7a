//! Whatever is read, what is written passes the check, and says nothing that it should not.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value as Json, json};

use super::*;

/// Its text, which has no mistakes.
fn checked(made: &Imported) -> String {
    made.checked().unwrap_or_else(|error| {
        panic!(
            "{error}
{}",
            made.scenario.to_yaml()
        )
    })
}

fn har_of(recording: &Json, hosts: &[&str]) -> Result<Imported, ImportError> {
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
    assert!(text.contains("operations are taken"), "{}", &text[..1_000]);
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
    let said = tidemark_scenario::check_text("by-hand.yaml", &by_hand, Path::new("."), &[]).1;
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
    let text = checked(&har_of(&recording, &["shop.example", "cdn.example"]).unwrap());
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
        "  password: ${env(\"TIDEMARK_PASSWORD\")}",
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

/// A page, the parts that it loads at once, and what is asked for when one of them is there.
#[test]
fn what_was_under_way_together_is_sent_together() {
    let entry = |ms: u64, took: u64, path: &str| {
        json!({"startedDateTime": format!("2026-01-01T00:00:{:02}.{:03}Z", ms / 1_000, ms % 1_000), "time": took,
            "response": {"status": 200}, "request": {"method": "GET", "url": format!("http://h{path}"),
                "headers": [{"name": "Accept", "value": "text/html"}]}})
    };
    let mut entries = vec![entry(0, 100, "/"), entry(110, 90, "/a.css"), entry(120, 300, "/b.js")];
    // the script is on its way still, and yet these came behind the style
    entries.extend([entry(210, 90, "/c"), entry(220, 500, "/d"), entry(1_720, 10, "/last")]);
    entries.extend((0..8).map(|nth| entry(2_000 + nth, 50, &format!("/{nth}"))));
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &[]).unwrap());
    let steps = "    steps:
      - GET: /
        check: {status: 200}
      - parallel:
          - GET: /a.css
            check: {status: 200}
          - GET: /b.js
            check: {status: 200}
      - parallel:
          - GET: /c
            check: {status: 200}
          - GET: /d
            check: {status: 200}
      - think: 1s
      - GET: /last
        check: {status: 200}
      - think: 270ms
      - parallel:
";
    assert!(text.contains(steps), "{text}");
    assert!(
        text.contains("          - GET: /7\n            check: {status: 200}\n        at most: 6\n"),
        "{text}"
    );
    assert!(text.contains("headers: {Accept: text/html}"), "{text}");
}

#[test]
fn what_only_seems_to_be_under_way_together_is_not() {
    let entry = |ms: u64, took: f64, path: &str, leads_to: &str| {
        let status = if leads_to.is_empty() { 200 } else { 302 };
        json!({"startedDateTime": format!("2026-01-01T00:00:00.{ms:03}Z"), "time": took,
            "response": {"status": status, "redirectURL": leads_to},
            "request": {"method": "GET", "url": format!("http://h{path}"), "headers": []}})
    };
    // the times of a recording are whole milliseconds; a redirect is followed once it is there
    let entries =
        [entry(0, 20.9, "/x", ""), entry(20, 10.0, "/login", "/home"), entry(25, 10.0, "/home", "")];
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &[]).unwrap());
    assert!(!text.contains("- parallel:") && text.contains("/home"), "{text}");
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
        "${pin}",
        "${credentials_code}",
        "${tokens}",
        "${passwords_a_b}",
        "${apiKeys_secret}",
        "${pass}",
        "${jwt}",
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
    assert!(of("a=1&pass=hunter2").contains("pass: \"${pass}\""));
    let text = of("a=1&dbpass=hunter2&compass=north");
    assert!(text.contains("dbpass: \"${dbpass}\"") && text.contains("compass: north"), "{text}");
    let text = of(&format!("a=1&a=%24%7Bx%7D&user%5Bpassword%5D=hunter2&b={JWT}"));
    let wanted = "body: a=1&a=%24%7Bx%7D&user%5Bpassword%5D=${url(user_password)}&b=${url(b_secret)}\n";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains("\n  user_password: ${env(\"TIDEMARK_USER_PASSWORD\")}\n"), "{text}");
}

#[test]
fn other_bodies_with_a_secrets_name_are_left_out() {
    for (kind, body) in [
        ("application/xml", "<login><password>hunter2</password></login>"),
        ("text/plain", "password: hunter2"),
        ("text/plain", JWT),
        ("application/json", "{\"password\": hunter2"),
    ] {
        let text = posted(kind, body);
        assert!(text.contains("# its body was left out: there may be a secret in it"), "{text}");
    }
    let part = "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--b--\r\n";
    let text = posted("multipart/form-data; boundary=b", part);
    assert!(text.contains(r#"name=\"password\"\r\n\r\n${password}\r\n--b--\r\n"#), "{text}");
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
    let text = checked(&har_of(&json!({"log": {"entries": entries}}), &["h0", "h19999"]).unwrap());
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
        "        headers: {Cookie: \"sid=${sid_secret}\"}",
        "        query: {word: xxxx, mail: someone, count: 11, step: 8, above: 4}",
        "      #   json: {tags: [x, x, x]}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn a_documents_address_says_what_to_do() {
    let text = checked(&page::scenario("http://h/v3/openapi.json").unwrap().into());
    assert!(text.contains("save it and run tidemark init FILE"), "{text}");
    assert!(!checked(&page::scenario("http://h/").unwrap().into()).contains("save it"));
    let text = checked(&page::scenario("http://h/a?n=5&api_key=Hunter2xZq&token_bytes=64").unwrap().into());
    assert!(!text.contains("Hunter2xZq") && text.contains("${env("), "{text}");
    assert!(text.contains("/a?n=5&token_bytes=64") && text.contains("{api_key: \"${api_key}\"}"), "{text}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let refused = |made: Result<Imported, ImportError>| made.unwrap_err().to_string();
    let of = |document: Json| refused(openapi::scenario("x.json", &document));
    assert!(of(json!({"swagger": "1.2"})).contains("Swagger 1.2"));
    assert!(of(json!({"openapi": "4.0"})).contains("OpenAPI 4.0"));
    assert!(of(json!({"openapi": "3.0.0"})).contains("no paths"));
    assert!(of(json!([1])).contains("neither an OpenAPI document"));
    assert!(refused(har_of(&json!({"log": {}}), &[])).contains("no requests"));
    let blocked = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}, "response": {"status": 0}}]}});
    assert!(refused(har_of(&blocked, &[])).contains("without an answer"));
    let one = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}}]}});
    assert!(refused(har_of(&one, &["other"])).contains("--host other; it has h"));
    assert!(refused(page::scenario("ftp://h/").map(Into::into)).contains("http://"));
    assert!(refused(page::scenario("http://u:p@h/").map(Into::into)).contains("leave name and password out"));
    assert!(refused(page::scenario("redis://h").map(Into::into)).contains("docs/kv.md"));
    let broken = kind("x.har", "{\"log\":\n [1,}").err().unwrap().to_string();
    assert!(broken.starts_with("x.har:2:5: "), "{broken}");
}

/// An entry of a recording, with more members.
fn entry_of(method: &str, url: &str, status: u64, more: Json) -> Json {
    let mut entry =
        json!({"request": {"method": method, "url": url, "headers": []}, "response": {"status": status}});
    if !more.is_null() {
        merge(&mut entry, more);
    }
    entry
}

fn merge(into: &mut Json, more: Json) {
    match (into, more) {
        (Json::Object(into), Json::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Json::Null), value));
        }
        (into, more) => *into = more,
    }
}

/// The scenario of a recording with these pages and entries.
fn recorded(pages: Json, entries: &[Json], hosts: &[&str]) -> Imported {
    har_of(&json!({"log": {"pages": pages, "entries": entries}}), hosts).unwrap()
}

/// The line with the system's URL.
fn system_of(made: &Imported) -> String {
    let text = checked(made);
    let url =
        text.lines().skip_while(|line| !line.starts_with("system:")).find(|line| line.contains("url: "));
    url.unwrap_or_default().trim().trim_start_matches("url: ").to_owned()
}

#[test]
fn a_recording_is_of_its_page() {
    let get = |url: &str| entry_of("GET", url, 200, Json::Null);
    let document =
        |url: &str| entry_of("GET", url, 200, json!({"_resourceType": "document", "pageref": "page_1"}));
    let moved = |from: &str, to: &str| entry_of("GET", from, 301, json!({"response": {"redirectURL": to}}));
    let titled = |title: &str| json!([{"id": "page_1", "title": title}]);
    let ad = || get("https://ads.example/id");
    let many = || vec![ad(), ad(), ad(), get("https://shop.example/api")];
    let html = json!({"response": {"content": {"mimeType": "text/html; charset=utf-8"}}});
    let fetched =
        |wanted: &str| json!({"request": {"headers": [{"name": "Sec-Fetch-Dest", "value": wanted}]}});
    for (pages, begin, wanted) in [
        // Chrome: the title is the URL
        (
            titled("https://shop.example/#top"),
            vec![ad(), get("https://shop.example/")],
            "https://shop.example",
        ),
        (titled("https://shop.example/gone"), vec![ad()], "https://shop.example"),
        // Firefox and Safari: it is the page's
        (titled("The shop"), vec![ad(), document("https://shop.example/")], "https://shop.example"),
        (
            titled("The shop"),
            vec![
                entry_of("GET", "https://ads.example/frame", 200, fetched("iframe")),
                entry_of("GET", "https://shop.example/", 200, fetched("document")),
            ],
            "https://shop.example",
        ),
        // proxies: there are no pages
        (Json::Null, vec![ad(), entry_of("GET", "https://shop.example/", 200, html)], "https://shop.example"),
        (Json::Null, vec![get("https://shop.example/")], "https://ads.example"),
        // behind redirects
        (
            titled("http://apex.example/"),
            vec![
                moved("http://apex.example/", "https://apex.example/"),
                moved("https://apex.example/", "https://shop.example/"),
                get("https://shop.example/"),
            ],
            "https://shop.example",
        ),
        (
            json!([]),
            vec![
                entry_of(
                    "GET",
                    "https://apex.example/",
                    302,
                    json!({"response": {"headers": [{"name": "location", "value": "//shop.example/"}]}}),
                ),
                get("https://shop.example/"),
            ],
            "https://shop.example",
        ),
        // a login elsewhere is not the page
        (
            titled("https://shop.example/"),
            vec![
                moved("https://shop.example/", "https://login.example/"),
                get("https://login.example/"),
                get("https://shop.example/home"),
            ],
            "https://shop.example",
        ),
    ] {
        let entries: Vec<Json> = begin.into_iter().chain(many()).collect();
        assert_eq!(system_of(&recorded(pages.clone(), &entries, &[])), wanted, "{pages} {entries:?}");
    }
}

#[test]
fn named_hosts_are_all_that_is_driven_and_what_is_left_out_is_counted() {
    let get = |url: &str| entry_of("GET", url, 200, Json::Null);
    let entries = [
        get("https://shop.example/"),
        get("https://api.shop.example/a"),
        get("https://ads.example/1"),
        get("https://ads.example/2"),
        get("wss://shop.example/live"),
    ];
    let pages = json!([{"id": "p", "title": "https://shop.example/"}]);
    let made = recorded(pages.clone(), &entries, &[]);
    for part in [
        "shop.har: 1 of 5 requests are taken: those to shop.example",
        "left out, 3 to other hosts: ads.example (2), api.shop.example (1); --host HOST",
        "left out, 1: a WebSocket",
    ] {
        assert!(made.remark.contains(part), "{part}\n{}", made.remark);
    }
    assert!(checked(&made).contains("#   ads.example (2), api.shop.example (1)"));
    let made = recorded(pages.clone(), &entries, &["api.shop.example"]);
    assert_eq!(system_of(&made), "https://api.shop.example");
    assert!(made.remark.contains("ads.example (2), shop.example (1)"), "{}", made.remark);
    let made = recorded(pages, &entries, &["shop.example", "*.shop.example"]);
    let text = checked(&made);
    assert!(text.contains("at: api_shop_example") && !text.contains("ads_example"), "{text}");
    let all = recorded(Json::Null, &[get("http://h/a")], &[]);
    assert_eq!(all.remark, "");
}

#[test]
fn what_a_browser_did_not_send_is_left_out() {
    let of = |more: Json| entry_of("GET", "http://h/x", 200, more);
    for (entry, reason) in [
        (of(json!({"_fromCache": "memory"})), "cache"),
        (of(json!({"_fetchType": "Disk Cache"})), "cache"),
        (of(json!({"_fetchedViaServiceWorker": true})), "service worker"),
        (of(json!({"_resourceType": "websocket"})), "a WebSocket"),
        (entry_of("GET", "https://h/x", 101, Json::Null), "a WebSocket"),
        (of(json!({"_resourceType": "eventsource"})), "sse connect"),
        (of(json!({"response": {"content": {"mimeType": "text/event-stream"}}})), "sse connect"),
        (entry_of("OPTIONS", "http://h/x", 204, json!({"_resourceType": "preflight"})), "preflight"),
        (
            entry_of(
                "OPTIONS",
                "http://h/x",
                204,
                json!({"request": {"headers": [{"name": "Access-Control-Request-Method", "value": "PUT"}]}}),
            ),
            "preflight",
        ),
        (entry_of("CONNECT", "http://h:443/", 200, Json::Null), "a tunnel"),
        (
            entry_of("GET", "http://h/x", 0, json!({"response": {"_error": "net::ERR_ABORTED"}})),
            "without an answer",
        ),
        (entry_of("GET", "blob:http://h/1", 200, Json::Null), "not HTTP (data:"),
        (entry_of("GET", "chrome-extension://a/b.js", 200, Json::Null), "not HTTP (data:"),
        (json!({"response": {"status": 200}}), "without a request"),
    ] {
        let made = recorded(Json::Null, &[entry.clone(), entry_of("GET", "http://h/", 200, Json::Null)], &[]);
        let text = checked(&made);
        assert!(text.contains("Left out, 1: ") && text.contains(reason), "{entry}\n{text}");
        assert!(made.remark.contains(reason) && text.matches("- GET: ").count() == 1, "{entry}\n{text}");
    }
}

#[test]
fn what_recorders_write_each_in_their_way_is_read() {
    let h2 = json!({"request": {"httpVersion": "h3", "headers": [
        {"name": ":authority", "value": "h"}, {"name": ":method", "value": "GET"}, {"name": "x-a", "value": "1"},
        {"name": "X-A", "value": "2"}, {"name": "X-Number", "value": 3}, {"name": "X-Mask", "value": "[REDACTED]"}],
        "queryString": [{"name": "a b", "value": "c&d"}], "cookies": [{"name": "sid", "value": "hunter2"}]}});
    let purge = entry_of("PURGE", "http://h/cache", 304, Json::Null);
    let made = recorded(Json::Null, &[entry_of("GET", "http://ann:hunter2@h/", 200, h2), purge], &[]);
    let text = checked(&made);
    for part in [
        "- GET: /?a+b=c%26d",
        "x-a: [\"1\", \"2\"]",
        "X-Number: \"3\"",
        "X-Mask",
        "- REQUEST: /cache\n        method: PURGE\n",
        "auth: {basic: {user: ann, password: \"${password}\"}}",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("hunter2") && !text.contains("304"), "{text}");
}

#[test]
fn a_form_is_sent_as_it_was() {
    let posted = |post_data: Json| {
        let more = json!({"request": {"postData": post_data}});
        checked(&recorded(Json::Null, &[entry_of("POST", "http://h/", 200, more)], &[]))
    };
    let form =
        |params: Json| posted(json!({"mimeType": "application/x-www-form-urlencoded", "params": params}));
    // encoded, as Chrome records it
    assert!(
        form(json!([{"name": "item%5B1%5D", "value": "a%20b+c"}])).contains("form: {\"item[1]\": a b c}")
    );
    // decoded
    let text = form(json!([{"name": "item[1]", "value": "a b"}, {"name": "share", "value": "100%"}]));
    assert!(text.contains("form: {\"item[1]\": a b, share: 100%}"), "{text}");
    assert!(form(json!([{"name": "a", "value": "1+1"}])).contains("form: {a: 1+1}"));
    let parts = json!([{"name": "title", "value": "hello"}, {"name": "password", "value": "hunter2"},
        {"name": "file", "fileName": "a.csv", "contentType": "text/csv", "value": "1,2"}]);
    let text = posted(json!({"mimeType": "multipart/form-data; boundary=----x", "params": parts}));
    for part in [
        r#"------x\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nhello\r\n"#,
        r#"name=\"password\"\r\n\r\n${password}\r\n"#,
        r#"name=\"file\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n1,2\r\n------x--\r\n"#,
        "Content-Type: multipart/form-data; boundary=----x",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text =
        posted(json!({"mimeType": "multipart/form-data", "params": [{"name": "f", "fileName": "a.png"}]}));
    assert!(
        text.contains("boundary=----tidemark-recorded") && text.contains("# what its files hold"),
        "{text}"
    );
    // Chrome leaves out what files hold, in the text and in the parts
    let mime = "multipart/form-data; boundary=----x";
    let file = |name: &str, content: &str| {
        posted(json!({"mimeType": mime, "text": format!(
            "------x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\
             Content-Type: image/png\r\n\r\n{content}\r\n------x--\r\n"
        )}))
    };
    assert!(file("a.png", "").contains("# what its files hold"));
    assert!(!file("a.png", "x").contains("# what") && !file("", "").contains("# what"));
    let text = posted(json!({"mimeType": mime, "params": [{"name": "f", "fileName": "a.png", "value": ""}]}));
    assert!(text.contains("# what its files hold"), "{text}");
    // proxies record bytes
    let text = posted(json!({"mimeType": "text/plain", "text": "aGVsbG8=", "encoding": "base64"}));
    assert!(text.contains("body: hello\n"), "{text}");
    let text = posted(json!({"mimeType": "application/octet-stream", "text": "/wA=", "encoding": "base64"}));
    assert!(text.contains("base64_decode('/wA=')"), "{text}");
    assert!(
        posted(json!({"mimeType": "a/b", "text": "?", "encoding": "base64"}))
            .contains("# its body was left out")
    );
}

#[test]
fn a_masked_value_asks_for_its_setting() {
    for masked in [
        "****",
        "[REDACTED]",
        "<redacted>",
        "\u{2022}\u{2022}\u{2022}\u{2022}",
        "***REDACTED***",
        "[FILTERED]",
    ] {
        let body = json!({"user": "ann", "code": masked}).to_string();
        let text = posted("application/json", &body);
        assert!(text.contains("json: {user: ann, code: \"${code_secret}\"}"), "{masked}\n{text}");
    }
    let text = posted("application/x-www-form-urlencoded", "user=ann&password=&note=&token=");
    assert!(text.contains("form: {user: ann, password: \"${password}\", note: \"\", token: \"\"}"), "{text}");
    // nothing stands in for it: a run without it is refused
    let more =
        json!({"request": {"postData": {"mimeType": "application/json", "text": "{\"password\": \"***\"}"}}});
    let made = recorded(Json::Null, &[entry_of("POST", "http://h/", 200, more)], &[]);
    let text = made.scenario.to_yaml();
    let told = tidemark_scenario::check_text("made.yaml", &text, Path::new("."), &[]).1.to_string();
    assert!(
        told.contains("TIDEMARK_PASSWORD is not set; set it, or give the setting password with --set"),
        "{told}"
    );
    for plain in ["*", "a**", "removed", "xxx", "[1]", "()"] {
        let body = json!({ "code": plain }).to_string();
        assert!(!posted("application/json", &body).contains("${code"), "{plain}");
    }
}

/// The lines of a document's scenario.
fn documented(document: &Json) -> String {
    checked(&openapi::scenario("x.json", document).unwrap())
}

fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found.trim() == *line), "{line}\n{text}");
    }
}

#[test]
fn parameters_are_written_in_their_style() {
    let query = |name: &str, more: Json| {
        let mut parameter = json!({"in": "query", "name": name, "required": true});
        merge(&mut parameter, more);
        parameter
    };
    let object = json!({"R": 100, "G": 200});
    for (parameter, wanted) in [
        (query("ids", json!({"example": [1, 2]})), "/s?ids=1&ids=2"),
        (query("ids", json!({"style": "form", "explode": false, "example": ["a", "b c"]})), "/s?ids=a,b%20c"),
        (
            query("ids", json!({"style": "spaceDelimited", "explode": false, "example": [1, 2]})),
            "/s?ids=1%202",
        ),
        (
            query("ids", json!({"style": "pipeDelimited", "explode": false, "example": [1, 2]})),
            "/s?ids=1%7C2",
        ),
        (query("ids", json!({"style": "pipeDelimited", "example": [1, 2]})), "/s?ids=1%7C2"),
        (
            query("ids", json!({"schema": {"type": "array", "minItems": 2, "items": {"type": "integer"}}})),
            "/s?ids=1&ids=1",
        ),
        (query("c", json!({"example": object})), "/s?R=100&G=200"),
        (query("c", json!({"explode": false, "example": object})), "/s?c=R,100,G,200"),
        (
            query("c", json!({"style": "deepObject", "explode": true, "example": {"a": {"b": "1"}}})),
            "/s?c%5Ba%5D%5Bb%5D=1",
        ),
        (query("q", json!({"examples": {"one": {"value": ["x"]}}})), "/s?q=x"),
    ] {
        let document = json!({"openapi": "3.0.3", "paths": {"/s": {"get": {"parameters": [parameter]}}}});
        has_lines(&documented(&document), &[&format!("- GET: {wanted}")]);
    }
    let json_text = query("q", json!({"content": {"application/json": {"example": {"a": "${x}"}}}}));
    let document = json!({"openapi": "3.0.3", "paths": {"/s": {"get": {"parameters": [json_text]}}}});
    has_lines(&documented(&document), &["query: {q: '{\"a\":\"$${x}\"}'}"]);
    let path = |more: Json| {
        let mut parameter = json!({"in": "path", "name": "id", "required": true});
        merge(&mut parameter, more);
        json!({"openapi": "3.0.3", "paths": {"/s/{id}": {"get": {"parameters": [parameter]}}}})
    };
    for (more, wanted) in [
        (json!({"example": 7}), "/s/${id}"),
        (json!({"style": "label", "example": 7}), "/s/.${id}"),
        (json!({"style": "matrix", "example": 7}), "/s/;id=${id}"),
        (json!({"example": [3, 4]}), "/s/3,4"),
        (json!({"style": "label", "explode": true, "example": [3, 4]}), "/s/.3.4"),
        (json!({"style": "matrix", "example": [3, 4]}), "/s/;id=3,4"),
        (json!({"style": "matrix", "explode": true, "example": [3, 4]}), "/s/;id=3;id=4"),
        (json!({"explode": true, "example": object}), "/s/R=100,G=200"),
        (json!({"example": object}), "/s/R,100,G,200"),
    ] {
        has_lines(&documented(&path(more)), &[&format!("- GET: {wanted}")]);
    }
    for (example, wanted) in [("x y/z", "id: x%20y%2Fz"), ("50%", "id: 50%25"), ("a:b@c", "id: a:b@c")] {
        let text = documented(&path(json!({"example": example})));
        assert!(text.contains(wanted), "{text}");
    }
    let header = json!({"in": "header", "name": "X-Ids", "required": true, "example": [1, 2]});
    let document = json!({"openapi": "3.0.3", "paths": {"/s": {"get": {"parameters": [header]}}}});
    has_lines(&documented(&document), &["headers: {X-Ids: \"1,2\"}"]);
}

#[test]
fn a_stream_of_events_is_left_out_and_told() {
    let of = |answer: Json| {
        documented(
            &json!({"openapi": "3.0.3", "paths": {"/feed": {"get": {"responses": {"200": answer}}}, "/a": {"get": {}}}}),
        )
    };
    let text = of(json!({"content": {"text/event-stream": {}}}));
    assert!(!text.contains("GET: /feed") && text.contains("- GET: /a"), "{text}");
    let both = of(json!({"content": {"text/event-stream": {}, "application/json": {}}}));
    assert!(both.contains("- GET: /feed"), "{both}");
}

#[test]
fn a_body_has_its_media_type() {
    let of = |content: Json| {
        documented(
            &json!({"openapi": "3.0.3", "paths": {"/a": {"post": {"requestBody": {"content": content}}}}}),
        )
    };
    let schema =
        json!({"schema": {"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}}}});
    let text = of(json!({"application/vnd.api+json": {"example": {"data": {"type": "articles"}}}}));
    has_lines(
        &text,
        &["#   headers: {Content-Type: application/vnd.api+json}", "#   json: {data: {type: articles}}"],
    );
    has_lines(&of(json!({"application/merge-patch+json": schema})), &["#   json: {v: 1}"]);
    for any in ["*/*", "application/*", "application/*+json", "application/json; charset=utf-8"] {
        has_lines(&of(Json::from_iter([(any.to_owned(), schema.clone())])), &["#   json: {v: 1}"]);
    }
    let two = of(json!({"application/problem+json": {"example": 1}, "application/json": schema}));
    assert!(two.contains("json: {v: 1}") && !two.contains("problem"), "{two}");
    has_lines(&of(json!({"application/json": {"example": "{\"a\": [1]}"}})), &["#   json: {a: [1]}"]);
    has_lines(&of(json!({"text/csv": {"example": "a,b"}})), &["#   body: a,b"]);
    // of several, one with an example; what cannot be made is told
    let two = of(json!({"application/octet-stream": {}, "text/csv": {"example": "a,b"}}));
    has_lines(&two, &["#   headers: {Content-Type: text/csv}", "#   body: a,b"]);
    for kind in ["application/octet-stream", "application/xml"] {
        let media = if kind.ends_with("xml") { schema.clone() } else { json!({}) };
        let told = format!("# # Its body is a placeholder: put one of {kind} here.");
        has_lines(&of(Json::from_iter([(kind.to_owned(), media)])), &[&told, "#   body: x"]);
    }
    let form = json!({"example": {"amount": 5, "tags": ["a", "b c"], "metadata": {"order": "7"}},
        "encoding": {"metadata": {"style": "deepObject", "explode": true}}});
    let text = of(json!({ "application/x-www-form-urlencoded": form }));
    has_lines(&text, &["#   body: amount=5&tags=a&tags=b%20c&metadata%5Border%5D=7"]);
    let text = of(json!({"multipart/form-data": {"example": {"a": "x", "b": {"c": [1]}}}}));
    has_lines(&text, &["#   multipart: {a: x, b: {text: '{\"c\":[1]}', type: application/json}}"]);
}

#[test]
fn the_nearest_server_counts() {
    let at = |url: &str| json!([{ "url": url }]);
    let document = json!({"openapi": "3.0.3", "servers": at("https://h.test/v1"), "paths": {
        "/a": {"get": {}, "head": {}},
        "/b": {"servers": at("https://path.test/"), "get": {}, "post": {"servers": at("/v2")}},
        "/c": {"get": {"servers": [{"url": "https://{region}.h.test", "variables": {"region": {"enum": ["eu"]}}}]}}}});
    let text = documented(&document);
    has_lines(
        &text,
        &[
            "url: https://h.test/v1",
            "- HEAD: /a",
            "path_test: {url: https://path.test}",
            "eu_h_test: {url: https://eu.h.test}",
            "at: path_test",
            "# - POST: https://h.test/v2/b",
            "at: eu_h_test",
        ],
    );
    // where no operation is at the document's, the first is the system
    let document =
        json!({"openapi": "3.0.3", "paths": {"/a": {"servers": at("https://path.test"), "get": {}}}});
    let text = documented(&document);
    assert!(text.contains("url: https://path.test\n") && !text.contains("at: "), "{text}");
}

#[test]
fn who_comes_is_a_setting_and_a_login_gives_its_token() {
    let schemes = json!({"securitySchemes": {
        "bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        "query": {"type": "apiKey", "in": "query", "name": "key"}, "sid": {"type": "apiKey", "in": "cookie", "name": "SID"},
        "oauth": {"type": "oauth2", "flows": {}}, "digest": {"type": "http", "scheme": "digest"}}});
    let of = |security: Json| {
        let get = json!({"security": security});
        documented(&json!({"openapi": "3.0.3", "components": schemes, "paths": {"/a": {"get": get}}}))
    };
    for (security, line) in [
        (json!([{"bearer": []}]), "auth: {bearer: \"${token}\"}"),
        (json!([{"oauth": ["read"]}]), "auth: {bearer: \"${token}\"}"),
        (
            json!([{"digest": []}, {"basic": []}]),
            "auth: {basic: {user: \"${user}\", password: \"${password}\"}}",
        ),
        (json!([{"key": []}]), "headers: {X-Api-Key: \"${X_Api_Key}\"}"),
        (json!([{"query": []}]), "query: {key: \"${key}\"}"),
        (json!([{"sid": []}]), "headers: {Cookie: \"SID=${SID_key}\"}"),
        (json!([{"digest": []}]), "# it requires digest, which is not sent: add it by hand"),
    ] {
        has_lines(&of(security), &[line]);
    }
    // nobody is asked for what only a comment needs
    let post = json!({"openapi": "3.0.3", "components": schemes, "security": [{"bearer": []}], "paths": {"/a": {"post": {}}}});
    let made = openapi::scenario("x.json", &post).unwrap();
    has_lines(&checked(&made), &["#   auth: {bearer: '${env(\"TIDEMARK_TOKEN\")}'}"]);
    assert!(made.secrets().is_empty());
    for open in [json!([]), json!([{}, {"bearer": []}])] {
        assert!(!of(open).contains("auth:"));
    }
    let login = json!({"security": [], "requestBody": {"content": {"application/json": {"schema": {"type": "object",
        "properties": {"user": {"type": "string", "example": "ann"}, "password": {"type": "string"}}}}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"properties": {"accessToken": {"type": "string"}}}}}}}});
    let document = json!({"openapi": "3.0.3", "components": schemes, "security": [{"bearer": []}],
        "paths": {"/a": {"get": {}}, "/auth/login": {"post": login}}});
    let text = documented(&document);
    has_lines(
        &text,
        &[
            "- POST: /auth/login",
            "user: ann",
            "json: {user: \"${user}\", password: \"${password}\"}",
            "extract: {token: $.accessToken}",
            "auth: {bearer: \"${token}\"}",
            "rate: ${rate}",
        ],
    );
    assert!(text.find("/auth/login") < text.find("- GET: /a"), "{text}");
    assert!(!text.contains("TIDEMARK_TOKEN") && text.contains("TIDEMARK_PASSWORD"), "{text}");
}

#[test]
fn a_login_that_sets_a_cookie_comes_first_and_a_logout_last() {
    let form = json!({"application/x-www-form-urlencoded": {"schema": {"required": ["login", "password"], "properties": {
        "login": {"type": "string", "example": "ann"}, "password": {"type": "string", "example": "open-sesame"}}}}});
    let secured = json!({"security": [{"session": []}]});
    let document = json!({"openapi": "3.0.3", "paths": {
            "/api/login/logout": {"get": {}}, "/api/login": {"post": {"requestBody": {"content": form}}}, "/mine": {"get": secured}},
        "components": {"securitySchemes": {"session": {"type": "apiKey", "in": "cookie", "name": "sid"}}}});
    let made = openapi::scenario("x.json", &document).unwrap();
    let text = checked(&made);
    has_lines(&text, &["password: open-sesame", "form: {login: \"${login}\", password: \"${password}\"}"]);
    assert!(made.secrets().is_empty() && !text.contains("Cookie"), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}\n{text}"));
    assert!(at("- POST: /api/login") < at("- GET: /mine") && at("- GET: /mine") < at("logout"), "{text}");
}

#[test]
fn a_document_of_swagger_2_is_read() {
    let document = json!({"swagger": "2.0", "host": "h.test", "basePath": "/v2", "schemes": ["https", "http"],
        "securityDefinitions": {"b": {"type": "basic"}}, "consumes": ["application/json"],
        "parameters": {"limit": {"in": "query", "name": "limit", "required": true, "type": "integer", "minimum": 5}},
        "definitions": {"Pet": {"required": ["name"], "properties": {"name": {"type": "string", "example": "Rex"}}}},
        "paths": {"/pets": {
            "get": {"security": [{"b": []}], "parameters": [{"$ref": "#/parameters/limit"},
                {"in": "query", "name": "tags", "required": true, "type": "array", "collectionFormat": "multi", "minItems": 2, "items": {"type": "string"}},
                {"in": "query", "name": "tabs", "required": true, "type": "array", "collectionFormat": "tsv", "minItems": 2, "items": {"type": "string"}}]},
            "post": {"parameters": [{"in": "body", "name": "pet", "schema": {"$ref": "#/definitions/Pet"}}]},
            "put": {"consumes": ["multipart/form-data"], "parameters": [{"in": "formData", "name": "photo", "type": "file"}]}}}});
    has_lines(
        &documented(&document),
        &[
            "url: https://h.test/v2",
            "- GET: /pets?tags=x&tags=x&tabs=x%09x",
            "query: {limit: 5}",
            "auth: {basic: {user: \"${user}\", password: \"${password}\"}}",
            "#   json: {name: Rex}",
            "#   multipart: {photo: {file: FILE}}",
        ],
    );
}

#[test]
fn samples_are_of_openapi_3_1_and_end() {
    let of = |schema: Json| {
        let content = json!({"application/json": {"schema": schema}});
        let post = json!({"requestBody": {"content": content}});
        documented(&json!({"openapi": "3.1.0", "paths": {"/a": {"post": post}}, "components": {"schemas": {
            "Node": {"required": ["next", "name"], "properties": {"name": {"const": "n"}, "next": {"$ref": "#/components/schemas/Node"}}}}}}))
    };
    let typed = |schema: Json| json!({"properties": {"v": schema}});
    for (schema, wanted) in [
        (json!({"type": ["null", "integer"]}), "1"),
        (json!({"anyOf": [{"type": "null"}, {"type": "string", "examples": ["e"]}]}), "e"),
        (json!({"oneOf": [{"const": 4}, {"const": 5}]}), "4"),
        (json!({"allOf": [{"type": "string", "enum": ["a", "b"]}]}), "a"),
        (json!({"type": "string", "format": "ipv4"}), "192.0.2.1"),
        (
            json!({"properties": {"a": {"const": 1}}, "oneOf": [{"properties": {"b": {"const": 2}}}]}),
            "{a: 1, b: 2}",
        ),
    ] {
        has_lines(&of(typed(schema)), &[&format!("#   json: {{v: {wanted}}}")]);
    }
    let text = of(json!({"$ref": "#/components/schemas/Node"}));
    assert!(text.contains("name: n") && text.len() < 5_000, "{text}");
}

#[test]
fn other_files_of_the_folder_are_read_and_what_is_not_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    write(
        "parts/pet.yaml",
        "Pet:\n  properties:\n    name: {$ref: 'name.json'}\n    mother: {$ref: '#/Own'}\nOwn: {const: Ada}\n",
    );
    write("parts/name.json", "{\"const\": \"Rex\"}");
    write(
        "api.yaml",
        "openapi: 3.0.0\npaths:\n  /a:\n    post:\n      requestBody: {content: {application/json: {schema: {$ref: 'parts/pet.yaml#/Pet'}}}}\n  \
         /b: {$ref: 'none.yaml'}\n  /c:\n    get: {parameters: [{$ref: 'https://h/p.yaml#/P'}, {$ref: '../up.yaml'}]}\n",
    );
    let file = folder.path().join("api.yaml");
    let made = scenario(&file.display().to_string(), &[]).unwrap();
    let text = checked(&made);
    has_lines(&text, &["#   json: {name: Rex, mother: Ada}"]);
    for part in ["none.yaml", "https://h/p.yaml#/P", "../up.yaml", "as they write: 1 operation."] {
        assert!(made.remark.contains(part), "{part}\n{}", made.remark);
    }
}

#[test]
fn each_class_of_good_statuses_is_checked() {
    for (codes, check) in [
        (&["200"][..], "check: {status: 200}"),
        (&["2XX"], "check: {status: 2xx}"),
        (&["2xx", "404"], "check: {status: 2xx}"),
        (&["200", "2XX"], "check: {status: 2xx}"),
        (&["default"], "check: {status: 2xx}"),
        (&["404", "default"], "check: {status: 2xx}"),
        (&["201", "default"], "check: {status: 201}"),
        (&["200", "304", "204"], "check: {status: [200, 204]}"),
        (&["302", "404"], "check: {status: 302}"),
        (&["3XX"], "check: {status: 3xx}"),
        (&["404"], ""),
        (&["2\u{e9}", "x-a", "20", "2000"], ""),
    ] {
        let responses: serde_json::Map<String, Json> =
            codes.iter().map(|code| ((*code).to_owned(), json!({"description": ""}))).collect();
        let text =
            documented(&json!({"openapi": "3.0.3", "paths": {"/a": {"get": {"responses": responses}}}}));
        assert_eq!(text.contains("check:"), !check.is_empty(), "{codes:?}\n{text}");
        assert!(text.contains(check), "{codes:?}\n{text}");
    }
}

#[test]
fn secret_parameters_become_settings() {
    let parameter = |place: &str, name: &str, example: &str| json!({"in": place, "name": name, "required": true, "example": example});
    let parameters = json!([
        parameter("query", "api_key", "abc123secret"),
        parameter("query", "page", "7"),
        parameter("query", "state", "eyJhbGciOi.eyJzdWIi.c2ln"),
        parameter("header", "Authorization", "Bearer abc123secret"),
        parameter("header", "X-Api-Token", "abc123secret"),
        parameter("header", "X-Region", "eu"),
        parameter("header", "Sec-WebSocket-Key", "dGhlIHNhbXBsZQ=="),
        parameter("cookie", "visit", "abc123secret"),
        parameter("path", "token", "abc123secret"),
    ]);
    let get = json!({"parameters": parameters});
    let document = json!({"openapi": "3.0.3", "paths": {"/r/{token}": {"get": get, "delete": get}, "/w": {"post": get}}});
    let text = documented(&document);
    assert!(!text.contains("abc123secret") && !text.contains("eyJ"), "{text}");
    for hole in [
        "api_key: \"${api_key}\"",
        "page: \"7\"",
        "X-Region: eu",
        "/r/${token}",
        "visit=${visit_secret}",
        "Sec-WebSocket-Key: dGhl",
    ] {
        assert!(text.contains(hole), "{hole}\n{text}");
    }
    for setting in ["api_key", "state_secret", "Authorization", "X_Api_Token", "visit_secret", "token"] {
        let variable = format!("${{env(\"TIDEMARK_{}\")}}", setting.to_uppercase());
        assert!(text.contains(&variable), "{variable}\n{text}");
    }
    // what only a comment would use makes no setting
    let post = json!({"openapi": "3.0.3", "paths": {"/w": {"post": get}}});
    let made = openapi::scenario("x.json", &post).unwrap();
    assert!(made.secrets().is_empty());
    assert!(!checked(&made).contains("abc123secret"));
    // what the security names is put in once
    let schemes = json!({"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "api_key"}, "me": {"type": "http", "scheme": "bearer"}}});
    let both = json!({"openapi": "3.0.3", "components": schemes, "security": [{"key": [], "me": []}], "paths": {"/a": {"get": {
        "parameters": [parameter("query", "api_key", "abc123secret"), parameter("header", "authorization", "x")]}}}});
    let made = openapi::scenario("x.json", &both).unwrap();
    assert_eq!(made.secrets().len(), 2, "{}", checked(&made));
}

#[test]
fn files_of_a_plan_are_named_from_where_the_scenario_lies() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(of("plans/a")).unwrap();
    std::fs::create_dir_all(of("mine/b")).unwrap();
    for (plans, beside, says) in [
        ("plans", "plans", ""),
        ("plans", "", "plans/"),
        ("plans/a", "plans", "a/"),
        ("", "mine", "../"),
        ("plans/a", "mine/b", "../../plans/a/"),
        ("none", "mine", ""),
    ] {
        assert_eq!(prefix(&of(plans), &of(beside)), says, "{plans} from {beside}");
    }
}

/// What is made of a file is what lies beside it: what is told, then the scenario.
pub(crate) fn assert_as_expected(
    folder: &Path,
    name: &str,
    end: &str,
    read: impl Fn(&str, &str) -> Result<Imported, ImportError>,
) {
    let file = format!("{name}.{end}");
    let text = std::fs::read_to_string(folder.join(&file)).unwrap();
    let made = read(&file, &text).unwrap_or_else(|error| panic!("{error}"));
    let yaml = made.checked_in(folder).unwrap_or_else(|error| panic!("{error}\n{}", made.scenario.to_yaml()));
    let mark = |is_request| if is_request { "#!" } else { "# " };
    let told: String = made.left_out.iter().map(|one| format!("{} {one}\n", mark(one.is_request))).collect();
    let all = format!("{told}{yaml}");
    let expected = folder.join(format!("{name}.expected"));
    if std::env::var_os("TIDEMARK_WRITE_EXPECTED").is_some() {
        std::fs::write(&expected, &all).unwrap();
    }
    let expected = std::fs::read_to_string(expected).unwrap_or_default();
    assert_eq!(all, expected, "{file}: read the difference; TIDEMARK_WRITE_EXPECTED=1 takes it over");
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
