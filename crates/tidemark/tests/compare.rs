//! Scenarios that are compared, with the real executable.

use std::fs;
use std::path::Path;

use crate::program::{bills, code, json, run, stderr, stdout, write_prices};
use serde_json::Value;

/// A session of one request, so that there is an equal rate; and two of it that are compared.
fn write(folder: &Path, more: &str) {
    let scenario = "settings: {users: 1, path: /health}\nsystem: {serve: ingest, durability: memory}\n\
                    sessions: {s: {steps: [{GET: '${path}', label: Ask}]}}\nload: {users: '${users}', hold: 1s}\n";
    fs::write(folder.join("ask.yaml"), scenario).unwrap();
    let compare =
        format!("compare:\n  One: ask.yaml\n  Two: {{scenario: ask.yaml, set: {{users: 2}}}}\n{more}");
    fs::write(folder.join("both.yaml"), compare).unwrap();
}

#[test]
fn all_run_and_the_last_word_is_how_they_compare() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "equal rate: 10%\n");
    write_prices(folder.path());
    let output = run(folder.path(), &["run", "both.yaml", "--prices", "prices.yaml", "--json"]);
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    for announced in ["1 of 4: One", "2 of 4: Two", "3 of 4: One, at ", "4 of 4: Two, at "] {
        assert!(stderr(&output).contains(announced), "{announced}: {}", stderr(&output));
    }
    let compared = json(&output);
    let [own, equal] = [0, 1].map(|part| &compared["parts"][part]["variants"]);
    let answered = |of: &Value, index: usize| of[index]["answered_per_s"].as_f64().unwrap();
    let slowest = answered(own, 0).min(answered(own, 1));
    let rate = compared["equal_rate_per_s"].as_f64().unwrap();
    assert!((rate - slowest / 10.0).abs() < slowest * 0.01, "{rate} of {slowest}");
    let offered = equal[1]["offered_per_s"].as_f64().unwrap();
    assert!((offered - rate).abs() < rate * 0.05, "{offered} of {rate}");
    assert!(own[0]["system_cpu_us_per_request"].as_f64().unwrap() > 0.0);

    // each side has a bill, once for each load; the system's machine is an m.large
    let bills = bills(folder.path(), "last");
    assert_eq!(compared["bills"], bills);
    let bills: Vec<_> =
        bills.as_array().unwrap().iter().map(|of| (of["name"].as_str(), &of["bill"])).collect();
    let equal_rate = ["One", "Two"].map(|side| format!("{side}, at the rate that all have"));
    let names = [Some("One"), Some("Two"), Some(equal_rate[0].as_str()), Some(equal_rate[1].as_str())];
    assert_eq!(bills.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    assert!(bills.iter().all(|(_, bill)| bill["whole"]["per_hour"] == "0.1"), "{bills:?}");
    let shown = run(folder.path(), &["report", "last", "--prices", "prices.yaml"]);
    assert!(stdout(&shown).contains("example, made up"), "{}{}", stdout(&shown), stderr(&shown));

    // the same again from the directory, for a person
    let again = run(folder.path(), &["report", "last"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    let text = stdout(&again);
    assert!(text.contains("Each with its own load") && text.contains("Two / One"), "{text}");
    let page =
        fs::read_to_string(folder.path().join(compared["run_dir"].as_str().unwrap()).join("report.html"));
    let page = page.unwrap();
    assert!(page.contains("1-one/report.html") && page.contains("example, made up"));
    // and one of its runs as any other
    let dir = own[1]["run_dirs"][0].as_str().unwrap();
    assert!(folder.path().join(dir).join("report.html").is_file(), "{dir}");
    assert_eq!(code(&run(folder.path(), &["report", dir])), 0);
    assert_eq!(code(&run(folder.path(), &["verify", "last"])), 2, "which of them?");
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "");
    for (arguments, says) in [
        (&["run", "both.yaml", "--set", "userz=3"][..], "--set userz"),
        (&["run", "both.yaml", "--junit", "r.xml"], "--junit is of one run"),
        (&["run", "both.yaml", "--for", "1ms"], "One: 1ms is too short"),
        (&["run", "both.yaml", "--prices", "none.yaml"], "cannot read the price file"),
        (&["check", "both.yaml", "--set", "path=${"], "ask.yaml"),
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        assert!(!folder.path().join("runs").exists(), "{arguments:?}");
    }
    let output = run(folder.path(), &["check", "both.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("compares\nOne: ask.yaml: no mistakes"), "{}", stdout(&output));
}
