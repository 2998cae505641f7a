//! The operations of the news feed told to Apache Kafka, which the run starts: needs Java 17 and, the first time, Maven.

use std::fs;
use std::path::Path;

use crate::intake::{run, stderr};
use serde_json::Value;
use tidemark_record::{Operation, OperationsReader, Outcome, Run};

/// Posts for some seconds, each to one friend, in the middle of which Kafka is killed.
const SCENARIO: &str = r#"
system: {serve: newsfeed, durability: buffered, settings: {events: kafka}}
stores:
  kafka: {nodes: 1, heap: 256MiB, durability: buffered, ready within: 8m}
faults:
  - {at: 4s, kill: kafka, restart after: 500ms}
sessions:
  poster:
    steps:
      - {POST: /participant, label: Participant, json: {name: a}, extract: {from: $.id}}
      - {POST: /participant, label: Participant, json: {name: b}, extract: {to: $.id}}
      - {POST: "/participant/${from}/friends", label: Friend, json: {to: "/participant/${to}"}}
      - repeat: 1000000
        steps:
          - {POST: "/participant/${from}/outbound", label: Post, json: {subject: s, story: a story}}
          - think: 10ms
load: {users: 4, hold: 16s}
"#;

/// How many operations of a kind were over within each second of the run.
fn seconds(run_dir: &Path, entity: &str, operation: &str) -> Vec<u64> {
    let reader = OperationsReader::open(run_dir).expect("a file").expect("operations");
    let mut seconds = Vec::new();
    let count = |of: Operation<'_>| {
        if (of.entity, of.operation) == (entity, operation) {
            assert_eq!(of.status, 200, "a Kafka that is down fails no request");
            let second = (of.at_us / 1_000_000) as usize;
            seconds.resize(seconds.len().max(second + 1), 0);
            seconds[second] += 1;
        }
    };
    reader.visit(count).expect("the operations");
    seconds
}

#[test]
fn operations_go_through_kafka_and_one_that_is_killed_loses_some_and_fails_nothing() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let folder = folder.path();
    fs::write(folder.join("feed.yaml"), SCENARIO).expect("the scenario is written");
    let output = run(folder, &["run", "feed.yaml", "--out", "run", "--json"]);
    let told = stderr(&output);
    let _: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    let run_dir = folder.join("run");
    let run = Run::open(&run_dir).expect("a run");
    let label = run.manifest.labels.iter().position(|label| label == "Post").expect("posts");
    let count = |is: fn(Outcome) -> bool| -> u64 {
        let of = run.series.iter().filter(|series| usize::from(series.label) == label && is(series.outcome));
        of.map(|series| series.count).sum()
    };
    let failed = count(|outcome| !matches!(outcome, Outcome::Ok | Outcome::Unfinished));
    assert_eq!(failed, 0, "{told}");
    let posts = seconds(&run_dir, "Outbound", "post");
    let (good, there) = (count(|outcome| outcome == Outcome::Ok), posts.iter().sum::<u64>());
    assert!(posts[1] > 0 && posts[posts.len() - 1] > 0, "before and after: {posts:?}");
    assert!(there <= good + 4, "{there} of {good}");
    let stored = seconds(&run_dir, "Inbound", "store").iter().sum::<u64>();
    // those of a post are sent apart
    assert!(stored > 0 && stored <= good + 4, "{stored} of {good}");
    let notes = run.manifest.notes.join("\n");
    // whoever lost some says so
    assert!(
        there >= good || notes.contains("are missing in operations.parquet"),
        "{there} of {good}: {notes}"
    );
}
