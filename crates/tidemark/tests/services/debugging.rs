//! What `run --once -v` says of real services: what is missing, what is easily overlooked, what they say themselves.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{assert_all_good, assert_says, filled, folder, measured, once, once_failed};
use crate::program::{code, run, stderr, stdout};

#[test]
fn a_variable_that_is_not_set_is_named_and_what_the_service_says_is_shown() {
    let told = once_failed(
        r#"
system: {url: "{shop}"}
sessions:
  buyer:
    steps:
      - GET: /items/1
        extract: {article: $.article}
      - DELETE: /items/${article}
      - POST: /items
        label: Half of it
        json: {name: lamp}
        check: {status: 201}
      - GET: /me
        auth: {bearer: not-the-right-one}
        check: {json: {$.name: ann}}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(
        &told,
        &[
            "extracted nothing for article ($.article)",
            "2. DELETE /items/${article}: not sent, FAILED",
            "variable \"article\" is not set",
            "3. Half of it: status 422 in ",
            "> {\"name\":\"lamp\"}",
            // FastAPI's own words
            "Field required",
            "FAILED check status: 201; saw status 422",
            "4. GET /me: status 401 in ",
            "4 requests: 3 failed",
        ],
    );
    assert!(!told.contains("not-the-right-one"), "{told}");
}

#[test]
fn what_was_sent_and_what_came_is_shown_as_it_was() {
    let told = once(
        r#"
system: {url: "{httpbin}"}
sessions:
  sender:
    steps:
      - POST: /anything/a%20b
        query: {q: "über & mehr"}
        form: {kind: "a=b", text: "ein wort"}
        extract: {q: $.args.q, kind: $.form.kind}
        check: {json: {$.form.text: ein wort, $.method: POST}}
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(
        &told,
        &[
            "> POST /anything/a%20b?q=%C3%BCber%20%26%20mehr HTTP/1.1",
            "> Content-Type: application/x-www-form-urlencoded",
            "> kind=a%3Db&text=ein+wort",
            "< Server: gunicorn",
            "extracted q = über & mehr ($.args.q)",
            "extracted kind = a=b ($.form.kind)",
            "held check $.form.text: ein wort; saw \"ein wort\"",
            "variables q = über & mehr, kind = a=b",
            "1 request: all good",
        ],
    );
}

fn entries(file: &Path) -> Vec<Value> {
    let har: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    har["log"]["entries"].as_array().unwrap().clone()
}

/// The answer in a trace is nginx' list of words, sent in gzip.
fn assert_is_words(entry: &Value, url: &str) {
    assert_eq!((&entry["request"]["url"], &entry["response"]["status"]), (&json!(url), &json!(200)));
    let response = &entry["response"];
    // as it is once decoded, and as it was sent
    assert_eq!(response["content"]["size"], 31_893, "{url}");
    assert!(response["content"]["text"].as_str().unwrap().ends_with("there again: 1000\n"), "{url}");
    let sent = response["bodySize"].as_u64().unwrap();
    assert!((100..10_000).contains(&sent), "{sent} bytes");
    let is_gzip = |header: &Value| header["name"] == "Content-Encoding" && header["value"] == "gzip";
    assert!(response["headers"].as_array().unwrap().iter().any(is_gzip), "{}", response["headers"]);
}

#[test]
fn a_trace_has_each_hop_and_both_sizes_of_an_encoded_answer() {
    let folder = folder(
        r#"
system: {url: "{nginx}"}
sessions:
  reader:
    steps:
      - GET: /twice
        label: Twice
        follow: 2
        headers: {Accept-Encoding: gzip}
load: {users: 1, hold: 60s}
limits: {sessions: 3}
"#,
    );
    let (there, words) = (filled("{nginx}/there"), filled("{nginx}/words.txt"));
    let hops = json!([{"status": 302, "location": there}, {"status": 302, "location": words}]);
    let output = run(folder.path(), &["run", "s.yaml", "--once", "--trace", "once.har"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let flags = ["run", "s.yaml", "--trace", "load.har", "--trace-every", "1", "--out", "run"];
    assert_all_good(&measured(folder.path(), &flags));
    for (file, count) in [("once.har", 1), ("load.har", 3)] {
        let entries = entries(&folder.path().join(file));
        assert_eq!(entries.len(), count, "{file}");
        for entry in &entries {
            assert_is_words(entry, &words);
            assert_eq!((&entry["_redirects"], &entry["_label"]), (&hops, &json!("Twice")), "{file}");
        }
    }
    let hit = ["hit", &words, "-H", "Accept-Encoding: gzip", "-n", "20", "-c", "1"];
    let hit = [&hit[..], &["--trace", "hit.har", "--trace-every", "10"]].concat();
    assert_all_good(&measured(folder.path(), &hit));
    let entries = entries(&folder.path().join("hit.har"));
    assert_eq!(entries.len(), 2);
    entries.iter().for_each(|entry| assert_is_words(entry, &words));
}
