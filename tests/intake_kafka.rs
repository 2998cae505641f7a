//! The message intake with Apache Kafka in front, which the run starts: needs Java 17 and, the first time, Maven.
//!
//! The matrix of faults is longer than a check should be, some 15 minutes:
//! `cargo test -p tidemark --features kafka --test intake_kafka -- --ignored --nocapture`

mod common;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{project, tidemark};

/// Longest time that a run may take on a busy machine.
const RUN_PATIENCE: Duration = Duration::from_secs(900);

/// Messages for some seconds, in the middle of which first the intake and then Kafka is killed; then everything is read
/// back, once it is stored.
const SCENARIO: &str = r#"
system:
  serve: ingest
  durability: synced
  settings: {buffer: kafka, topic: intake, topic_partitions: 2, buffer_timeout_s: 60}
stores:
  kafka: {nodes: 1, heap: 256MiB, durability: synced, ready within: 8m}
feeders:
  user: {from: 1, to: 1000, digits: 10}
sessions:
  sender:
    steps:
      - take: user
      - GET: /m
        label: Message
        ledger: {content: "${user}${now()}ABC${entry}${check}41.7127837,42.7127837", as: message}
        query: {c: "${message}"}
        check: {status: 200, body: {equals: OK}}
        timeout: 60s
faults:
  - {at: 3s, kill: system, restart after: 500ms}
  - {at: 7s, kill: kafka, restart after: 1s}
load: {users: 8, hold: 12s}
verify:
  behind: /behind
  count: /count
  contents: {for: user, GET: "/messages/${user}", items: "$[*].payload", next: {header: next-cursor}, as: cursor}
"#;

/// Runs it to its end; what it says, and everything that it told.
fn run(folder: &Path, args: &[&str]) -> (serde_json::Value, String) {
    let mut child = tidemark()
        .arg("run")
        .args(args)
        .args(["--json", "--out", "run"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tidemark run starts");
    let begin = Instant::now();
    while child.try_wait().expect("wait").is_none() {
        assert!(begin.elapsed() < RUN_PATIENCE, "the run does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().expect("output");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{told}", String::from_utf8_lossy(&output.stdout)));
    (result, told)
}

/// That all was found that was acknowledged, whatever the run is worth as a measurement: on a machine as busy as that of
/// a test the driver may be the limit, and what was killed may be back late, which is not what is asked here.
fn nothing_lost(what: &str, result: &serde_json::Value, told: &str) -> u64 {
    let ledger = &result["ledger"];
    let acknowledged = ledger["acknowledged"].as_u64().unwrap_or(0);
    assert!(acknowledged > 0, "{what}: {result:#}{told}");
    for number in ["lost", "different", "duplicated"] {
        assert_eq!(ledger[number], 0, "{what}: {number}: {result:#}{told}");
    }
    assert_eq!(ledger["found"], ledger["acknowledged"], "{what}: {result:#}{told}");
    acknowledged
}

#[test]
fn what_the_intake_acknowledged_is_stored_though_the_intake_and_then_kafka_was_killed() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let folder = folder.path();
    fs::write(folder.join("intake.yaml"), SCENARIO).expect("the scenario is written");
    let (result, told) = run(folder, &["intake.yaml"]);
    nothing_lost("killed", &result, &told);
    let events = fs::read_to_string(folder.join("run/events.jsonl")).expect("events");
    for broken in ["kill system", "kill kafka"] {
        assert!(events.contains(broken), "{broken}: {events}");
    }
}

/// The shipped scenario, under full load, with each fault.
#[test]
#[ignore = "ten runs of a minute and more: see the top of this file"]
fn nothing_is_lost_whatever_breaks() {
    let scenario = project().join("scenarios/ingest.yaml");
    let scenario = scenario.to_str().expect("a path that is text");
    println!("| brokers | durability | fault | acknowledged | lost |\n| --- | --- | --- | --- | --- |");
    for (nodes, durability, fault) in [
        ("1", "synced", "none"),
        ("1", "synced", "kill"),
        ("1", "synced", "freeze"),
        ("1", "synced", "kill-buffer"),
        ("1", "synced", "freeze-buffer"),
        ("3", "synced", "kill"),
        ("3", "synced", "kill-buffer"),
        ("3", "synced", "freeze-buffer"),
        ("1", "buffered", "kill-buffer"),
        ("3", "buffered", "kill-buffer"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let settings = [("nodes", nodes), ("durability", durability), ("fault", fault), ("buffer", "kafka")];
        let settings = settings.map(|(name, value)| format!("{name}={value}"));
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> = [scenario].into_iter().chain(settings).collect();
        let (result, told) = run(folder.path(), &args);
        let acknowledged = nothing_lost(&format!("{nodes} {durability} {fault}"), &result, &told);
        println!("| {nodes} | {durability} | {fault} | {acknowledged} | 0 |");
    }
}
