//! A run that has already failed is cut short only where that is asked for.

use std::fs;
use std::time::{Duration, Instant};

use crate::program::{code, run, stderr, stdout};
use serde_json::Value;

/// Longer than anything else here takes.
const PLANNED: Duration = Duration::from_secs(120);

fn scenario(objective: &str) -> String {
    format!(
        "name: x\nsystem: {{serve: airline, durability: memory}}\nload: {{rate: 20/s, hold: {}s}}\n\
         objectives:\n  - {objective}\nsessions:\n  one:\n    steps:\n      - GET: /no/such/path\n",
        PLANNED.as_secs()
    )
}

#[test]
fn a_failed_run_is_cut_short_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("asks.yaml"), scenario("{objective: errors = 0, abort early: true}"))
        .unwrap();
    fs::write(folder.path().join("told.yaml"), scenario("errors < 10%")).unwrap();
    for arguments in [
        vec!["run", "asks.yaml", "--json"],
        vec!["run", "told.yaml", "--abort-early", "--for", "12s", "--json"],
    ] {
        let begin = Instant::now();
        let output = run(folder.path(), &arguments);
        assert!(begin.elapsed() < PLANNED, "{arguments:?}");
        let summary: Value =
            serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let reasons = summary["verdict"]["reasons"].to_string();
        assert!(
            reasons.contains("cut short: errors ") && reasons.contains("can no longer be met"),
            "{reasons}"
        );
        // on a busy machine the driver may have been the limit as well; it is no pass and no interruption
        let wanted = if summary["verdict"]["status"] == "fail" { 1 } else { 3 };
        assert_eq!(code(&output), wanted, "{summary}");
        let measured_s = summary["measured_s"].as_f64().unwrap();
        assert!(measured_s < 11.0, "cut short: {measured_s} s");

        let dir = folder.path().join(summary["run_dir"].as_str().unwrap());
        let manifest: Value =
            serde_json::from_str(&fs::read_to_string(dir.join("run.json")).unwrap()).unwrap();
        assert!(manifest["cut_short"].as_str().unwrap().starts_with("errors "), "{manifest}");
        assert_eq!(
            (&manifest["interrupted"], &manifest["objectives"][0]["met"]),
            (&false.into(), &false.into())
        );
        assert!(fs::read_to_string(dir.join("events.jsonl")).unwrap().contains("\"unreachable\""));
        let text = stdout(&run(folder.path(), &["report", "last"]));
        assert!(text.contains("stopped early: the figures are of the part that ran"), "{text}");
    }
}

#[test]
fn nothing_is_cut_short_unasked() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.yaml"), scenario("errors = 0")).unwrap();
    let output = run(folder.path(), &["run", "x.yaml", "--for", "2s", "--json"]);
    let summary: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert!((summary["measured_s"].as_f64().unwrap() - 2.0).abs() < 0.001, "{summary}");
    assert!(!summary["verdict"]["reasons"].to_string().contains("cut short"), "{summary}");
}
