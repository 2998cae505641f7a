//! What a Redis says of itself while it is driven, and what its rewrites and snapshots cost.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Redis, run};
use crate::common::tidemark;

/// So much is written that the file doubles every few seconds.
const SESSIONS: &str = r#"
sessions:
  a:
    steps:
      - set: {k: "${random(1, 2000)}"}
      - redis: [SET, "k:${k}", "VALUE"]
        label: Set
      - redis: [GET, "k:${k}"]
        label: Get
"#;

fn sessions() -> String {
    SESSIONS.replace("VALUE", &"v".repeat(500))
}

/// What was done in a run, of a kind.
fn done<'r>(result: &'r Value, kind: &str) -> Vec<&'r Value> {
    let all = result["maintenance"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(|one| one["kind"] == kind).collect()
}

fn figure<'r>(result: &'r Value, store: &str, name: &str) -> &'r Value {
    let stores = result["stores_figures"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_store = stores.iter().find(|of| of["store"] == store);
    &of_store.unwrap_or_else(|| panic!("no {store}: {result:#}"))["figures"][name]
}

fn report(folder: &Path) -> String {
    let output = tidemark().current_dir(folder).args(["report", "run"]).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// At a URL: one rewrite and one snapshot of the scenario, and those that the server begins by itself.
#[test]
fn rewrites_and_snapshots_are_events_with_what_was_felt_of_them_whoever_asked() {
    let redis = Redis::start(&[
        "--requirepass",
        "s3cret",
        "--appendonly",
        "yes",
        "--auto-aof-rewrite-min-size",
        "1mb",
        "--auto-aof-rewrite-percentage",
        "100",
    ]);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "system: {{url: \"redis://:s3cret@127.0.0.1:{}/1?protocol=3\"}}{}load: {{rate: 500/s, warm-up: 1s, hold: 14s}}\n\
         limits: {{connections: 4}}\nfaults:\n  - {{at: 4s, rewrite: system}}\n  - {{at: 8s, snapshot: system}}\n",
        redis.port,
        sessions()
    );
    fs::write(folder.path().join("s.yaml"), &text).expect("written");
    let output = tidemark()
        .current_dir(folder.path())
        .args(["run", "s.yaml", "--out", "run", "--json"])
        .output()
        .expect("tidemark runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));

    for fault in result["faults"].as_array().expect("faults") {
        assert!(
            fault["begin_us"].is_u64() && fault["healed_us"].is_u64() && fault["error"].is_null(),
            "{fault:#}"
        );
    }
    let (rewrites, snapshots) = (done(&result, "rewrite"), done(&result, "snapshot"));
    let asked = |all: &[&Value], fault: &str| all.iter().filter(|one| one["fault"] == fault).count();
    assert_eq!(
        (asked(&rewrites, "rewrite system"), asked(&snapshots, "snapshot system")),
        (1, 1),
        "{result:#}"
    );
    assert_eq!(snapshots.len(), 1);
    let by_itself: Vec<_> = rewrites.iter().filter(|one| one["fault"].is_null()).collect();
    assert!(!by_itself.is_empty(), "the server was to rewrite its file by itself: {result:#}");
    for one in rewrites.iter().chain(&snapshots) {
        assert_eq!(one["store"], "system");
        assert!(
            one["fork_us"].as_u64() > Some(0) && one["end_us"].as_u64() >= one["begin_us"].as_u64(),
            "{one:#}"
        );
    }
    for one in rewrites.iter().filter(|one| one["begin_us"].as_u64() > Some(4_000_000)) {
        assert!(one["size_before_bytes"].as_u64() > one["size_after_bytes"].as_u64(), "{one:#}");
        assert!(one["dip"]["before_per_s"].as_f64() > Some(0.0), "{one:#}");
        assert!(one["latency"]["before_p99_us"].as_u64() > Some(0), "{one:#}");
        assert!(one["latency"]["highest_p99_us"].as_u64() > Some(0), "{one:#}");
    }

    for (name, least) in [("keyspace_hits_per_s", 1.0), ("used_memory", 500_000.0), ("is_master", 1.0)] {
        let of = figure(&result, "system", name);
        assert!(
            of["mean"].as_f64() >= Some(least) && of["max"].as_f64() >= of["last"].as_f64(),
            "{name}: {of:#}"
        );
    }
    let events = fs::read_to_string(folder.path().join("run/events.jsonl")).expect("events");
    let of_kind =
        |kind: &str| events.lines().filter(|line| line.contains(&format!("\"kind\":\"{kind}\""))).count();
    // each with its begin and its end, but for one that is under way when the load ends
    assert!(of_kind("rewrite") + 1 >= 2 * rewrites.len() && of_kind("snapshot") == 2, "{events}");
    assert!(folder.path().join("run/stores.parquet").is_file());

    let report = report(folder.path());
    assert!(report.contains("Rewrites and snapshots of stores") && report.contains("p99 "), "{report}");
    let page = fs::read_to_string(folder.path().join("run/report.html")).expect("a page");
    assert!(page.contains("\"figure\":\"instantaneous_ops_per_sec\"") && page.contains("\"maintenance\":["));
    for name in ["run.json", "events.jsonl", "report.html"] {
        let text = fs::read_to_string(folder.path().join("run").join(name)).expect(name);
        assert!(!text.contains("s3cret"), "{name} has the password");
    }
}

/// Started by the run, by its name; errors during a rewrite are errors.
#[test]
fn a_store_of_the_run_is_asked_by_its_name_and_a_kill_meanwhile_is_survived() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "stores: {{cache: {{product: redis}}}}\nsystem: {{store: cache}}{}load: {{rate: 200/s, hold: 12s}}\n\
         limits: {{connections: 2}}\nfaults:\n  - {{at: 2s, rewrite: cache}}\n  - {{at: 4s, kill: cache, restart after: 1s}}\n  \
         - {{at: 9s, snapshot: cache}}\n",
        sessions()
    );
    let (output, result) = run(folder.path(), &text);
    let told = String::from_utf8_lossy(&output.stderr);
    let kinds: Vec<_> = result["faults"].as_array().expect("faults").iter().map(|of| &of["kind"]).collect();
    assert_eq!(kinds, ["rewrite", "kill", "snapshot"], "{result:#}{told}");
    assert_eq!((done(&result, "rewrite").len(), done(&result, "snapshot").len()), (1, 1), "{result:#}");
    assert!(figure(&result, "cache", "aof_current_size")["max"].as_f64() > Some(0.0));
    let notes = result["notes"].to_string();
    assert!(notes.contains("cache could not be asked for its own figures"), "it was down: {notes}");
}

#[test]
fn nobody_is_asked_for_what_he_has_not() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = "system: {url: \"http://127.0.0.1:1\"}\nsessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 9s}\n\
                faults: [{at: 1s, rewrite: system}]\n";
    fs::write(folder.path().join("s.yaml"), text).expect("written");
    let output = tidemark().current_dir(folder.path()).args(["check", "s.yaml"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("is that of a store"), "{told}");
}
