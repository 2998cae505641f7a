//! What is secret in what is read is in no scenario.

use super::*;

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
