//! Statements to a Cassandra that the run starts: needs Java 17, and what `tests/needs` fetches.

use crate::common::{assert_refused, report, run, tidemark};

const SCENARIO: &str = r#"
stores: {db: {product: cassandra, durability: buffered}}
system: {store: db}
prepare:
  - cql: "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
  - cql: "CREATE TABLE IF NOT EXISTS ks.t (k text PRIMARY KEY, v blob, n int, big bigint, id uuid, ok boolean, x double, at timestamp, tags list<text>)"
    timeout: 60s
  - cql: CREATE TABLE ks.notes (k int PRIMARY KEY, note text)
    timeout: 60s
  - repeat: 3
    as: n
    steps:
      - cql: "INSERT INTO ks.t (k, n) VALUES (?, ?)"
        with: ["first:${n}", "${n}"]
sessions:
  a:
    steps:
      - set: {k: "k${count(n)}"}
      - set: {value: "v-${k}\r\n\"-ü"}
      - set: {id: "${uuid()}"}
      - cql: "INSERT INTO ks.t (k, v, n, big, id, ok, x, at, tags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ['a', 'b'])"
        with: ["${k}", "0x00ff", -7, 1099511627776, "${id}", true, 1.5, "${now()}"]
        label: Insert
        check: {status: 200}
      - cql: "SELECT n, big, id, ok, x, v, tags FROM ks.t WHERE k = ?"
        with: ["${k}"]
        label: Read
        extract: {got: "$[0].id"}
        check:
          json: {"$[0].n": "-7", "$[0].big": "1099511627776", "$[0].ok": "true", "$[0].x": "1.5", "$[0].v": "0x00ff", "$[0].tags[1]": b}
          that: got == id
      - cql: "SELECT n FROM ks.t WHERE k = ?"
        with: ["first:2"]
        label: First
        check: {body: '[{"n":2}]'}
      - cql: "SELECT v FROM ks.t WHERE k = ?"
        with: [none]
        label: None
        check: {status: 204, body: "[]"}
      - cql: "INSERT INTO ks.t (k, n) VALUES (?, ?) IF NOT EXISTS"
        with: ["${k}", 1]
        label: Late
        check: {json: {"$[0]['[applied]']": "false"}}
      - repeat: 30
        steps:
          - set: {m: "${count(m)}"}
          - group: Both
            steps:
              - cql: INSERT INTO ks.notes (k, note) VALUES (?, ?)
                with: ["${m}", "${note}"]
                ledger: {content: "note ${entry}|${check}|", as: note}
              - cql: SELECT note FROM ks.notes WHERE k = ?
                with: ["${m}"]
      - cql: "UPDATE ks.t SET n = ? WHERE k = ?"
        with: ["${k}", "${k}"]
        label: Wrong
  b:
    weight: 0
    steps:
      - cql: "SELECT * FROM ks.missing WHERE k = ?"
        with: [a]
        label: Missing
load: {users: 16, hold: 60s}
limits: {connections: 8, sessions: 200}
verify: {store: cassandra, cql: SELECT note FROM ks.notes}
objectives: [lost = 0, errors < 5%, group Both errors = 0, group Both p50 < 1h]
"#;

/// Its keyspace and tables are made by the run itself; values that are none of their types are not sent. What is read back has
/// more rows than a page; and the Cassandra ends with the run. In one, since it takes its time to start.
#[test]
fn what_is_written_and_acknowledged_is_read_back() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (output, result) = run(folder.path(), SCENARIO);
    let told = String::from_utf8_lossy(&output.stderr);
    // each label is judged, too, and all of one fail
    assert_eq!(output.status.code(), Some(1), "{result:#}{told}");
    assert!(result["verdict"]["reasons"].to_string().contains("Wrong"), "{result:#}");
    assert_eq!(result["errors"], serde_json::json!({"variable": 200}), "{result:#}{told}");
    assert_eq!(result["statuses"], serde_json::json!({"200": 12_800, "204": 200}), "{result:#}{told}");
    let ledger = &result["ledger"];
    assert_eq!((&ledger["found"], &ledger["foreign"]), (&6000.into(), &0.into()), "{ledger:#}");
    assert_eq!(result["groups"][0]["count"], 6000, "{result:#}");
    let report = report(folder.path());
    assert!(report.contains("value 1 of a statement: this is not a whole number"), "{report}");
    let again = tidemark().current_dir(folder.path()).args(["verify", "run"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(2) && told.contains("stopped it with its end"), "{told}");
}

#[test]
fn errors_and_a_server_that_dies_are_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = "stores: {db: {product: cassandra, durability: buffered}}\nsystem: {store: db}\nsessions:\n  a:\n    steps:\n      \
                - {cql: 'SELECT * FROM ks.missing WHERE k = ?', with: [a], label: Missing}\n      \
                - {cql: 'SELECT release_version FROM system.local', label: Version, timeout: 2s}\n      - think: 20ms\n\
                load: {users: 4, hold: 8s}\nfaults: [{at: 3s, kill: db, restart after: 500ms}]\n";
    let (_, result) = run(folder.path(), text);
    assert!(result["errors"]["connect"].as_u64() > Some(0), "{result:#}");
    assert!(result["errors"]["status"].as_u64() > Some(10), "{result:#}");
    let count = |name: &str| result["statuses"][name].as_u64().unwrap_or_default();
    assert!(count("200") > 10 && count("500") > 10, "{result:#}");
    let report = report(folder.path());
    assert!(report.contains("Missing: an error: 0x2200:"), "{report}");
}

#[test]
fn mistakes_are_told_when_a_scenario_is_checked() {
    let system = "{url: 'cql://127.0.0.1/ks'}";
    for (system, rest, step, expected) in [
        (system, "", "{set: {k: 1}}, {cql: 'SELECT ${k}'}", "put its place there, and its value into `with`"),
        (system, "", "{cql: 'USE ks'}", "the keyspace stands in the URL"),
        (system, "", "{GET: /}", "the server is Cassandra"),
        (system, "limits: {pipeline: 2}", "{cql: 'SELECT 1'}", "in any order"),
        ("{url: 'cql://127.0.0.1?consistency=most'}", "", "{cql: 'SELECT 1'}", "is not a consistency"),
        ("{url: 'http://127.0.0.1'}", "", "{cql: 'SELECT 1'}", "begins with cql://"),
    ] {
        assert_refused(system, rest, step, expected);
    }
}
