//! The quick form against real services: ramps, lists of requests, other tools' formats, bodies, results.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{assert_all_good, filled, measured, of};
use crate::program::{code, run, stderr, stdout};

/// A hit whose requests all end well.
fn hit(folder: &Path, arguments: &[&str]) -> Value {
    let summary = measured(folder, &[&["hit"], arguments].concat());
    assert_all_good(&summary);
    summary
}

#[test]
fn a_ramp_goes_evenly_from_one_rate_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let summary = measured(folder.path(), &["hit", &filled("{nginx}/"), "-r", "50:350", "-d", "4s"]);
    assert_eq!(summary["errors"], serde_json::json!({}), "{summary}");
    let due = summary["requests"].as_u64().unwrap() + summary["dropped"].as_u64().unwrap();
    assert!((780..=820).contains(&due), "{due} where 800 are due");
    assert!(summary["run"]["load"].as_str().unwrap().starts_with("open"), "{}", summary["run"]["load"]);
}

#[test]
fn each_line_of_a_list_has_its_method_its_body_and_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let list =
        "GET /items/1\n/items?limit=3\nPOST /items {\"name\": \"lamp\", \"price\": 2}\nPUT /raw some words\n";
    fs::write(folder.path().join("list"), list).unwrap();
    let summary = hit(folder.path(), &[&filled("{shop}/"), "--urls", "list", "-n", "40", "-c", "2"]);
    for label in ["GET /items/1", "GET /items?limit=3", "POST /items", "PUT /raw"] {
        assert_eq!(of(&summary, "steps", "label", label)["requests"], 10, "{label}");
    }
    assert_eq!(summary["statuses"], serde_json::json!({"200": 30, "201": 10}));
}

#[test]
fn vegetas_targets_and_lines_of_curl_reach_a_service_as_those_would_send_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("item.json"), "{\"name\": \"lamp\", \"price\": 2}").unwrap();
    let targets = filled(
        "GET {shop}/items/3\n\nPOST {shop}/items\nContent-Type: application/json\n@item.json\n\nPUT {shop}/raw\n@item.json\n",
    );
    fs::write(path.join("targets"), targets).unwrap();
    let summary = hit(path, &["--urls", "targets", "-n", "30", "-c", "1"]);
    assert_eq!(summary["statuses"], serde_json::json!({"200": 20, "201": 10}));
    // {"name":"chair","price":3}
    let json = r#"{"method": "POST", "url": "{shop}/items", "header": {"Content-Type": ["application/json"]}, "body": "eyJuYW1lIjoiY2hhaXIiLCJwcmljZSI6M30="}"#;
    fs::write(path.join("targets.json"), filled(json)).unwrap();
    assert_eq!(hit(path, &["--urls", "targets.json", "-n", "5", "-c", "1"])["statuses"]["201"], 5);

    fs::write(path.join("picture.png"), [0, 0xff, b'$', b'{', 0xfe]).unwrap();
    let lines = [
        ("curl -F note=hello -F 'file=@picture.png;type=image/png' {shop}/uploads", "200"),
        ("curl --json '{\"name\": \"lamp\", \"price\": 2}' {shop}/items", "201"),
        ("curl -d username=ann --data-urlencode 'password=password of ann' {shop}/login", "200"),
        ("curl -T picture.png {shop}/raw", "200"),
        ("curl -u ann:plum '{httpbin}/basic-auth/ann/plum' --compressed", "200"),
        (
            "curl -G --data-urlencode 'q=ein wort' -A browser -e http://a.test/ -b 'a=b; c=d' {httpbin}/cookies",
            "200",
        ),
        ("curl -L {httpbin}/redirect/2", "200"),
        ("curl -I {nginx}/words.txt", "200"),
        ("curl --cacert {certificate} --http2 {secure}/", "200"),
    ];
    for (line, status) in lines {
        let summary = hit(path, &["-n", "3", "-c", "1", &filled(line)]);
        assert_eq!(summary["statuses"][status], 3, "{line}: {summary}");
    }
}

#[test]
fn a_body_of_any_bytes_comes_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    fs::write(folder.path().join("body"), &bytes).unwrap();
    let url = filled("{shop}/raw");
    hit(folder.path(), &[&url, "-m", "PUT", "-b", "@body", "-n", "20", "-c", "2"]);
    let printed =
        run(folder.path(), &["hit", &url, "-m", "PUT", "-b", "@body", "-n", "1", "--print-scenario"]);
    assert!(stdout(&printed).contains("PUT: /raw"), "{}", stdout(&printed));
    fs::write(folder.path().join("s.yaml"), stdout(&printed)).unwrap();
    let output = run(folder.path(), &["run", "s.yaml", "--once", "-v"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).contains("\"size\":50000"), "{}", stdout(&output));
}

#[test]
fn results_go_to_files_or_one_of_them_alone_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let url = filled("{httpbin}/get");
    let hit = |more: &[&str]| {
        let output = run(folder.path(), &[&["hit", &url, "-n", "20", "-c", "2", "--latency"], more].concat());
        assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
        (stdout(&output), stderr(&output))
    };
    let (csv, text) = hit(&["--csv", "-", "--junit", "junit.xml", "--markdown", "a.md", "--hlog", "a.hlog"]);
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(columns > 5 && csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
    assert!(text.contains("Latency"), "{text}");
    for (file, says) in
        [("junit.xml", "<testcase"), ("a.md", "| GET /get |"), ("a.hlog", "#[Histogram log format version")]
    {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains(says), "{file}: {text}");
    }
    let (junit, _) = hit(&["--junit", "-", "-q"]);
    assert!(junit.starts_with("<?xml") && junit.trim_end().ends_with("</testsuites>"), "{junit}");
    let (json, text) = hit(&["--json", "--until", "p50<20s", "-q"]);
    let summary: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((text.as_str(), summary["objectives"][0]["met"].as_bool()), ("", Some(true)), "{json}");
}
