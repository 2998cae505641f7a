//! What a scenario measures itself, from its text to every report.

use std::fs;

use crate::program::{code, json, run, stderr};

const SCENARIO: &str = "
system: {serve: airline, durability: memory, settings: {customers: 10}}
sessions:
  guest:
    steps:
      - POST: /rest/api/login
        label: Login
        form: {login: uid0@email.com, password: password}
        extract: {status: status}
        measure: {code: '${status}', logins: {counter: 2, unit: points}}
      - measure: {words: 'code ${status}'}
load: {users: 1, hold: 1s}
objectives: [code p99 = 200, code count > 0, logins rate > 0/s, code max < 100, words count = 0]
ratios:
  points each: {of: logins, per: [Login]}
  half: {of: Login, per: logins, as: percent}
";

#[test]
fn they_are_in_every_report_and_objectives_are_held_against_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), SCENARIO).unwrap();
    let output = run(folder.path(), &["run", "a.yaml", "--out", "out", "--json", "--quiet"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let summary = json(&output);
    let [codes, logins, words] = &summary["metrics"].as_array().unwrap()[..] else { panic!("{summary}") };
    let count = codes["count"].as_u64().unwrap();
    assert!(count > 0, "{summary}");
    for (figure, value) in [("min", 200.0), ("p50", 200.0), ("p99", 200.0), ("mean", 200.0), ("max", 200.0)] {
        assert_eq!(codes["values"][figure], value, "{codes}");
    }
    assert_eq!((&logins["kind"], &logins["unit"]), (&"counter".into(), &"points".into()));
    assert_eq!(logins["sum"].as_f64(), Some(2.0 * count as f64));
    let ratios = serde_json::json!([
        {"name": "points each", "of": ["logins"], "per": ["Login"], "value": 2.0, "as": "plain"},
        {"name": "half", "of": ["Login"], "per": ["logins"], "value": 0.5, "as": "percent"},
    ]);
    assert_eq!(summary["ratios"], ratios);
    assert_eq!(words["count"], 0);
    assert!(words["no_number"].as_u64().unwrap() > 0, "{words}");
    let told = "words: ";
    let note = summary["notes"].as_array().unwrap().iter().find_map(|note| note.as_str()?.strip_prefix(told));
    assert!(note.unwrap().ends_with("code ${status}: it is \"code 200\", no number"), "{note:?}");
    let met: Vec<(&str, bool)> = summary["objectives"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|of| of["default"].is_null())
        .map(|of| (of["objective"].as_str().unwrap(), of["met"].as_bool().unwrap()))
        .collect();
    // that no word was a number is known only of those that were none
    let expected = [
        ("code p99 = 200", true),
        ("code count > 0", true),
        ("logins rate > 0/s", true),
        ("code max < 100", false),
        ("words count = 0", false),
    ];
    assert_eq!(met, expected, "{summary}");
    let reasons = summary["verdict"]["reasons"].to_string();
    assert!(reasons.contains("code max < 100 missed: 200"), "{reasons}");

    // and the same again of what is stored
    let report = ["report", "out", "--json", "--markdown", "a.md", "--csv", "a.csv", "--html", "a.html"];
    let output = run(folder.path(), &report);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let again = json(&output);
    assert_eq!((&again["metrics"], &again["ratios"]), (&summary["metrics"], &ratios));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("a.md").contains("| logins (points) |"), "{}", read("a.md"));
    assert!(read("a.md").contains("| half | 50.0% | Login | logins |"), "{}", read("a.md"));
    assert!(read("a.csv").lines().next().unwrap().contains("own_code_p99"), "{}", read("a.csv"));
    assert!(read("a.html").contains("\"metric\":\"logins\""));
    assert!(folder.path().join("out/metrics.parquet").is_file());
}

#[test]
fn a_scenario_that_measures_nothing_has_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = "system: {serve: airline, durability: memory}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let output = run(folder.path(), &["run", "a.yaml", "--out", "out", "--json", "--quiet"]);
    let summary = json(&output);
    assert!(summary.get("metrics").is_none() && summary.get("ratios").is_none(), "{summary}");
    assert!(!folder.path().join("out/metrics.parquet").exists());
}
