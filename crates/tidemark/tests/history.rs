//! `tidemark history`: runs of a folder, one of which began something.

use std::fs;
use std::path::Path;

use crate::program::runs::StoredRun;
use crate::program::{assert_refused, code, json, run, stderr, stdout};
use serde_json::Value;

/// Six runs, six that take a fifth longer from another revision on, and one of another machine.
fn write(runs: &Path) {
    for number in 0..12_u64 {
        let slower = number >= 6;
        let us = if slower { 24_000 } else { 20_000 } + number * 7 % 5 * 40;
        let one = StoredRun {
            seconds: 2,
            us: [10_000, us],
            started_at: format!("2026-03-{:02}T10:00:00Z", number + 1),
            revision: if slower { "b" } else { "a" }.repeat(40),
            ..StoredRun::default()
        };
        one.write(&runs.join(format!("{number:02}-shop")));
    }
    StoredRun { seconds: 2, cores: 64, ..StoredRun::default() }.write(&runs.join("99-shop"));
}

#[test]
fn a_change_is_marked_with_its_revisions_and_machines_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("runs"));
    let output = run(folder.path(), &["history", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let history = json(&output);
    let lines = history["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2, "{history}");
    let line = lines.iter().find(|line| line["machine"] == "4 cores").unwrap();
    assert_eq!(line["runs"].as_array().map(Vec::len), Some(12));
    let trends = line["trends"].as_array().unwrap();
    let p99 = trends.iter().find(|trend| trend["figure"] == "p99").unwrap();
    let changes = p99["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{p99}");
    assert_eq!(changes[0]["at"], 6);
    assert_eq!(changes[0]["worse"], true);
    assert_eq!(changes[0]["revisions"], Value::from(vec!["a".repeat(40), "b".repeat(40)]));
    let rate = trends.iter().find(|trend| trend["figure"] == "rate").unwrap();
    assert_eq!(rate["changes"].as_array().map(Vec::len), Some(0));
    assert!(history["notes"].to_string().contains("shop ran on 2 machines"), "{history}");

    let text = stdout(&run(folder.path(), &["history", "runs"]));
    assert!(text.contains("worse from 06-shop on: p99") && text.contains("64 cores"), "{text}");
    let page = run(folder.path(), &["history", "--scenario", "shop", "--html", "history.html"]);
    assert_eq!((code(&page), stdout(&page).as_str()), (0, ""), "{}", stderr(&page));
    let page = fs::read_to_string(folder.path().join("history.html")).unwrap();
    assert!(page.contains("class=\"cut bad\"") && page.contains("06-shop"), "{page}");
    let printed = run(folder.path(), &["history", "--scenario", "shop", "--html", "-"]);
    assert_eq!((code(&printed), stdout(&printed), stderr(&printed)), (0, page, String::new()));
}

#[test]
fn a_folder_without_runs_says_so_and_one_that_is_not_there_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let output = run(folder.path(), &["history"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("no run to show in runs"), "{}", stdout(&output));
    assert_refused(folder.path(), &["history", "nowhere"], "nowhere");
    assert_refused(folder.path(), &["history", "--scenario", "shop"], "no run of \"shop\" in runs");
}
