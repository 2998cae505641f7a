//! The message intake with Apache Kafka in front, which the run starts: needs Java 17 and, the first time, Maven.
//!
//! This is one short case; `tests/matrix kafka` has every fault, under full load.

use std::fs;

use crate::intake::{assert_nothing_lost, ledger, run, write_scenario};
use serde_json::Value;

/// Messages for some seconds, in the middle of which first the intake and then Kafka is killed; then everything is read
/// in the store itself, once it is there.
const KILLED: &str = r#"
system:
  serve: ingest
  durability: synced
  settings: {buffer: kafka, topic: intake, topic_partitions: 2, buffer_timeout_s: 60}
stores:
  kafka: {nodes: 1, heap: 256MiB, durability: synced, ready within: 8m}
faults:
  - {at: 3s, kill: system, restart after: 500ms}
  - {at: 7s, kill: kafka, restart after: 1s}
load: {users: 8, hold: 12s}
verify: {store: embedded, behind: /behind}
"#;

#[test]
fn what_the_intake_acknowledged_is_stored_though_the_intake_and_then_kafka_was_killed() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let folder = folder.path();
    write_scenario(folder, "intake.yaml", KILLED);
    let output = run(folder, &["run", "intake.yaml", "--out", "run", "--json"]);
    assert_nothing_lost(&ledger(&output));
    let events = fs::read_to_string(folder.join("run/events.jsonl")).expect("events");
    for broken in ["kill system", "kill kafka"] {
        assert!(events.contains(broken), "{broken}: {events}");
    }
    // the system is gone, and with it whoever could say that it is behind: that was settled before
    let recipe = fs::read_to_string(folder.join("run/ledger/verify.json")).expect("a recipe");
    let recipe: Value = serde_json::from_str(&recipe).expect("JSON");
    assert_eq!((&recipe["behind"], &recipe["contents"]), (&Value::Null, &Value::Null), "{recipe:#}");
}
