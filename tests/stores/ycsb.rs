//! YCSB's workloads on a Redis that the run starts, and what becomes of answers that are wrong: needs `redis-server` on the path.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use crate::common::{project, tidemark};
use serde_json::Value;

/// Runs a shipped scenario without its warm-up.
fn run(folder: &Path, arguments: &[&str]) -> (Output, Value) {
    let shipped = project().join(format!("scenarios/{}.yaml", arguments[0]));
    let shipped = std::fs::read_to_string(shipped).expect("a shipped scenario");
    std::fs::write(folder.join("shipped.yaml"), shipped.replace("  warm-up: 2s\n", "")).expect("written");
    let output = tidemark()
        .current_dir(folder)
        .args(["run", "shipped.yaml"])
        .args(&arguments[1..])
        .args(["--out", "run", "--json"])
        .output()
        .expect("tidemark runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout);
    let result = result.unwrap_or_else(|error| panic!("{error}: {told}"));
    std::fs::remove_dir_all(folder.join("run")).expect("a run directory");
    (output, result)
}

fn steps_p50(result: &Value, label: &str) -> Option<f64> {
    let mut steps = result["steps"].as_array().expect("steps").iter();
    steps.find(|step| step["label"] == label)?["response_time_us"]["p50"].as_f64()
}

/// How many requests each label had.
fn counts(result: &Value) -> BTreeMap<String, f64> {
    let steps = result["steps"].as_array().expect("steps");
    let count = |step: &Value| {
        (step["label"].as_str().unwrap_or_default().to_owned(), step["requests"].as_f64().unwrap_or(0.0))
    };
    steps.iter().map(count).collect()
}

/// Each mix is as published, within six standard deviations; nothing fails, and every read finds what was acknowledged.
#[test]
fn each_workload_has_its_mix_and_fails_nowhere() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mixes: [(&str, &[(&str, f64)]); 6] = [
        ("a", &[("READ", 0.5), ("UPDATE", 0.5)]),
        ("b", &[("READ", 0.95), ("UPDATE", 0.05)]),
        ("c", &[("READ", 1.0)]),
        ("d", &[("READ", 0.95), ("INSERT", 0.05)]),
        ("e", &[("SCAN index", 0.95), ("INSERT", 0.05)]),
        // each of the others reads first
        ("f", &[("READ", 2.0 / 3.0), ("UPDATE", 1.0 / 3.0)]),
    ];
    for (workload, mix) in mixes {
        let workload_is = format!("workload={workload}");
        let settings = ["--set", &workload_is, "--set", "records=3000", "--set", "users=8", "--for", "1s"];
        let (output, result) = run(folder.path(), &[&["ycsb"], &settings[..]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{workload}: {result:#}{told}");
        let mut counts = counts(&result);
        let (read, indexed) = (counts.remove("SCAN read"), counts.remove("INSERT index"));
        let all: f64 = counts.values().sum();
        assert!(all > 200.0, "{workload}: {counts:?}");
        assert_eq!(counts.len(), mix.len(), "{workload}: {counts:?}");
        for (label, share) in mix {
            // the two parts of a pair are not drawn by themselves, which makes for a little more
            let deviation = (all * share * (1.0 - share)).sqrt();
            let off = (counts[*label] - all * share).abs();
            assert!(off <= 6.0 * deviation + 16.0, "{workload}: {label} of {counts:?}");
        }
        if workload == "e" {
            // 1 to 100, of 3,000 records that have so many behind them but for the last
            let length = read.unwrap_or(0.0) / counts["SCAN index"];
            assert!((40.0..60.0).contains(&length), "{length}");
            assert!(indexed.is_some());
        }
        // each pair, and each scan with all its reads, has a time of its own
        let group = |name: &str, label: &str| {
            let of = &result["groups"][0];
            assert_eq!(
                (&of["group"], &of["errors"]),
                (&Value::from(name), &Value::Object(Default::default()))
            );
            // a part of each may be due on the other side of the window's edges
            let count = of["count"].as_f64().expect("a count");
            assert!((count - counts[label]).abs() <= 16.0, "{of}: {counts:?}");
            let part = steps_p50(&result, label);
            assert!(part.is_some() && of["response_time_us"]["p50"].as_f64() >= part, "{of}: {part:?}");
        };
        match workload {
            "e" => group("SCAN", "SCAN index"),
            "f" => group("READ-MODIFY-WRITE", "UPDATE"),
            _ => assert!(result["groups"].is_null(), "{result:#}"),
        }
    }
}

/// Every distribution can be asked of every workload.
#[test]
fn another_distribution_and_connections_that_are_shared() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for distribution in ["uniform", "zipfian", "latest", "hotspot", "exponential"] {
        let is = format!("distribution={distribution}");
        let settings = ["--set", &is, "--set", "records=1000", "--set", "pipeline=8", "--for", "1s"];
        let (_, result) = run(folder.path(), &[&["ycsb"], &settings[..]].concat());
        assert_eq!(result["verdict"]["status"], "pass", "{distribution}: {result:#}");
    }
}

const KEYS: &str = "
stores: {redis: {durability: memory}}
system: {store: redis}
keys: {records: 2000}
load: {users: 4, hold: 1s}
objectives: [errors = 0]
";

fn told_of(folder: &Path, text: &str) -> (Option<i32>, String, Value) {
    std::fs::write(folder.join("s.yaml"), text).expect("the scenario is written");
    let output = tidemark()
        .current_dir(folder)
        .args(["run", "s.yaml", "--out", "run"])
        .output()
        .expect("tidemark runs");
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let manifest = std::fs::read_to_string(folder.join("run/run.json")).unwrap_or_default();
    let _ = std::fs::remove_dir_all(folder.join("run"));
    (output.status.code(), told, serde_json::from_str(&manifest).unwrap_or_default())
}

/// Beside those who write and read there is one who changes records behind their backs.
#[test]
fn a_record_that_somebody_else_changes_is_told() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let one = r#"
      - set: {number: "${random(1, inserted(records))}"}
      - redis: [GET, "user${number}"]
        label: READ
        read: records
"#;
    for (change, words) in [
        ("value(number, 1, 64)", "stale: version 1, but version 2 or a later one was acknowledged"),
        ("value(number + 1, 2, 64)", "wrong: the value of key"),
        ("slice(value(number, 2, 64), 0, 60)", "is incomplete or corrupted"),
        ("'mine'", "wrong: not written by this run"),
    ] {
        let text = format!(
            r#"
prepare:
  users: 4
  times: 300
  steps:
    - redis: [SET, "user${{number}}", "${{value(number, version, 64)}}"]
      insert: records
    - redis: [SET, "user${{number}}", "${{value(number, version, 64)}}"]
      write: records
sessions:
  honest:
    weight: 9
    steps:{one}
  other:
    steps:
      - set: {{number: "${{random(1, inserted(records))}}"}}
      - redis: [SET, "user${{number}}", "${{{change}}}"]
{KEYS}"#
        );
        let (status, told, manifest) = told_of(folder.path(), &text);
        assert_eq!(status, Some(1), "{told}");
        assert!(manifest.to_string().contains(words), "{words}: {told}{manifest:#}");
    }
}

#[test]
fn a_load_that_fails_ends_the_run_and_says_how_far_it_came() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "{KEYS}sessions: {{a: {{steps: [{{redis: [PING]}}]}}}}\nprepare:\n  users: 4\n  times: 3000\n  steps:\n    \
         - redis: [SET, \"user${{number}}\", \"${{value(number, version, 64)}}\"]\n      insert: records\n"
    );
    let (status, told, _) = told_of(folder.path(), &text);
    assert_eq!(status, Some(3), "{told}");
    assert!(told.contains("all numbers of these keys are inserted, after 2000 of 3000"), "{told}");
}

/// The shipped scenarios of single stores, small: all that is read is what was acknowledged.
#[test]
fn stores_are_read_and_written_sharded_and_with_a_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let small = ["--set", "records=2000", "--set", "users=16", "--set", "reads=80", "--for", "1s"];
    for (scenario, more) in [
        ("kv-redis", &["--set", "shards=2"][..]),
        ("kv-redis", &["--set", "append_only=always", "--set", "keys_chosen=zipfian"]),
        ("kv-memcached", &["--set", "shards=2"]),
    ] {
        let (output, result) = run(folder.path(), &[&[scenario], &small[..], more].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(result["verdict"]["status"], "pass", "{scenario} {more:?}: {result:#}{told}");
        let counts = counts(&result);
        let all: f64 = counts.values().sum();
        let writes =
            counts.iter().find(|(label, _)| label.eq_ignore_ascii_case("set")).map_or(0.0, |(_, n)| *n);
        // of few, on a machine that stands still, the share may be further off
        let off = (writes - 0.2 * all).abs();
        let may_be = (0.05 * all).max(6.0 * (0.16 * all).sqrt());
        assert!(all > 200.0 && off <= may_be, "{scenario}: {counts:?}");
    }
}

/// What is done to a store comes sooner in a shorter run: after a share of it.
#[test]
fn a_kill_a_rewrite_and_a_snapshot_fit_a_short_run() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (scenario, done, more) in [
        ("kv-kill", &["kill one"][..], &["--set", "rate=200/s", "--for", "8s"][..]),
        (
            "kv-rewrite",
            &["rewrite kv", "snapshot kv"],
            &["--set", "records=2000", "--set", "rate=500/s", "--for", "6s"],
        ),
    ] {
        let (output, result) = run(folder.path(), &[&[scenario], more].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        let faults = result["faults"].as_array().unwrap_or_else(|| panic!("{result:#}{told}"));
        assert_eq!(faults.len(), done.len(), "{result:#}");
        for (fault, done) in faults.iter().zip(done) {
            assert!(fault["fault"].as_str().is_some_and(|fault| fault.starts_with(done)), "{fault:#}");
            assert!(fault["begin_us"].is_u64() && fault["error"].is_null(), "{fault:#}");
        }
        assert!(result["ledger"].is_null() || result["ledger"]["lost"] == 0, "{result:#}");
    }
}

/// On stores with rows; Cassandra takes a minute to start where the machine is busy.
#[test]
#[cfg(feature = "postgres")]
fn workloads_run_on_postgresql() {
    on_rows("ycsb-postgres", &["a", "d", "e", "f"]);
}

#[test]
#[ignore = "takes long: make test-long"]
fn workloads_run_on_cassandra() {
    on_rows("ycsb-cassandra", &["a", "e"]);
}

fn on_rows(scenario: &str, workloads: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for workload in workloads {
        let workload_is = format!("workload={workload}");
        let settings = ["--set", &workload_is, "--set", "records=300", "--set", "users=8", "--for", "2s"];
        let (output, result) = run(folder.path(), &[&[scenario], &settings[..]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            result["errors"].as_object().is_some_and(|errors| errors.is_empty()),
            "{workload}: {result:#}{told}"
        );
        let counts = counts(&result);
        let expected: &[&str] = match *workload {
            "a" => &["READ", "UPDATE"],
            "d" => &["INSERT", "READ"],
            "e" => &["INSERT", "SCAN"],
            _ => &["READ", "UPDATE"],
        };
        assert_eq!(
            result["groups"][0]["group"] == "READ-MODIFY-WRITE",
            *workload == "f",
            "{workload}: {result:#}"
        );
        assert!(
            expected.iter().all(|label| counts.get(*label).is_some_and(|n| *n > 0.0)),
            "{workload}: {counts:?}"
        );
    }
}
