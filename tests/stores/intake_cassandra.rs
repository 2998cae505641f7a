//! The message intake on Apache Cassandra, which the run starts: needs Java 17 and, the first time, Maven.

use std::fs;
use std::path::Path;

use crate::common::{Client, Served, project};
use crate::intake::{assert_nothing_lost, ledger, run, stderr, write_scenario};
use crate::newsfeed_stores::Started;
use serde_json::Value;

/// Messages for some seconds, in the middle of which the store stands still; then everything is read back.
const FROZEN: &str = r#"
system:
  serve: ingest
  durability: synced
  settings: {store: cassandra, keyspace: intake, timeout_s: 60}
stores:
  cassandra: {nodes: 1, heap: 256MiB, durability: synced, ready within: 8m}
faults:
  - {at: 3s, freeze: cassandra, for: 3s}
load: {users: 8, hold: 10s}
verify:
  count: /count
  contents: {for: user, GET: "/messages/${user}", items: "$[*].payload", next: {header: next-cursor}, as: cursor}
"#;

/// The same, in a Cassandra that was there before and is read past the system.
const STRAIGHT: &str = r#"
settings: {contact: ""}
system:
  serve: ingest
  durability: buffered
  settings: {store: cassandra, contact: "${contact}", keyspace: straight, identity: key, timeout_s: 60}
load: {users: 8, hold: 2s}
verify: {store: cassandra}
"#;

#[test]
#[ignore = "takes long: make test-long"]
fn what_the_intake_acknowledged_is_found_in_a_cassandra_that_stood_still() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    write_scenario(folder.path(), "intake.yaml", FROZEN);
    let output = run(folder.path(), &["run", "intake.yaml", "--out", "run", "--json"]);
    // on a machine as busy as that of a test the driver may be the limit, which is not what is asked here
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    assert_nothing_lost(&ledger(&output));
}

/// The shipped scenario, whose settings choose the store and what happens to it, with patience for a busy machine.
#[test]
#[ignore = "takes long: make test-long"]
fn what_the_intake_acknowledged_is_found_in_a_cassandra_that_could_not_be_reached_for_a_time() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let shipped = fs::read_to_string(project().join("scenarios/ingest.yaml")).expect("the shipped scenario");
    let patient = shipped
        .replace("  serve: ingest\n", "  serve: ingest\n  ready within: 8m\n")
        .replace("    nodes: ${nodes}\n", "    nodes: ${nodes}\n    heap: 256MiB\n    ready within: 8m\n");
    assert_eq!(patient.matches("ready within").count(), 3, "{patient}");
    fs::write(folder.path().join("ingest.yaml"), patient).expect("the scenario is written");

    let settings = ["--set", "store=cassandra", "--set", "fault=cut-store", "--set", "users=8"];
    let command = ["run", "ingest.yaml", "--for", "18s", "--out", "run", "--json"];
    let output = run(folder.path(), &[&command[..], &settings[..]].concat());
    let told = stderr(&output);
    assert_nothing_lost(&ledger(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cut = &result["faults"][0];
    assert_eq!((&cut["kind"], &cut["target"]), (&"cut".into(), &"cassandra".into()), "{told}");
    assert_eq!(cut["error"], Value::Null, "{told}");
    assert!(cut["healed_us"].as_u64() > cut["begin_us"].as_u64(), "{cut:#}{told}");
    let report = run(folder.path(), &["report", "run"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("cut cassandra"), "{report}");
}

/// All in one, since a Cassandra takes its time to start.
#[test]
fn a_cassandra_that_runs_is_read_past_the_system_and_keeps_the_order_of_two_intakes() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let store = "cassandra: {heap: 256MiB, durability: buffered, ready within: 8m}";
    let stores = Started::start(store, false).expect("Cassandra starts");
    let contact = stores.place("contact");

    crate::airline_stores::no_more_is_promised_than_cassandra_keeps(&contact);
    two_intakes_keep_the_order_of_their_messages_whatever_their_clocks_say(&contact);

    let run = |arguments: &[&str]| run(folder.path(), arguments);
    write_scenario(folder.path(), "straight.yaml", STRAIGHT);
    let set = format!("contact={contact}");
    let output = run(&["run", "straight.yaml", "--set", &set, "--out", "run", "--json"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let first = ledger(&output);
    assert_nothing_lost(&first);
    assert_eq!((&first["foreign"], &first["duplicated"]), (&0.into(), &0.into()), "{first:#}");
    let output = run(&["verify", "run", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(ledger(&output)["found"], first["found"]);

    // a message of the same key takes the place of one that was acknowledged
    let contact = format!("contact={contact}");
    let settings = [
        "--set",
        "store=cassandra",
        "--set",
        "keyspace=straight",
        "--set",
        "identity=key",
        "--set",
        &contact,
    ];
    let mut served = Served::start("ingest", &[&settings[..], &["--durability", "buffered"]].concat());
    let held = Client::connect(&served.authority).get("/messages/0000000001");
    let message = held.json()[0]["payload"].as_str().expect("a message").replace("41.7127837", "41.7127838");
    assert_eq!(Client::connect(&served.authority).get(&format!("/m?c={message}")).status, 200);
    served.stop();
    let output = run(&["verify", "run", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let changed = ledger(&output);
    // another content with its number may be of another run: what was acknowledged is lost
    let of = |name: &str| &changed[name];
    assert_eq!(
        ["lost", "changed", "different"].map(of),
        [1, 1, 1].map(|one: u64| Value::from(one)).each_ref()
    );

    drop(stores);
    let output = run(&["verify", "run", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot reach the store at 127.0.0.1:"), "{}", stderr(&output));
}

/// Clients that take turns at two intakes, each with a key of its own: what was acknowledged last stays. One intake's clock
/// is an hour late; then it is restarted with one that is two.
fn two_intakes_keep_the_order_of_their_messages_whatever_their_clocks_say(contact: &str) {
    const CLIENTS: u32 = 4;
    const ROUNDS: u32 = 50;
    let contact = format!("contact={contact}");
    let settings = [
        "--set",
        "store=cassandra",
        "--set",
        "keyspace=two",
        "--set",
        "identity=key",
        "--set",
        &contact,
        "--durability",
        "buffered",
    ];
    let late = |by| Served::start_in(&clock_set_back(by), "ingest", &settings);
    let right = Served::start("ingest", &settings);
    let mut wrong = late("-1h");
    let send = |intake: &str, client: u32, value: &str| {
        let message = format!("{client:010}1700000000000ABC{value}");
        let answer = Client::connect(intake).get(&format!("/m?c={message}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    let kept = |intake: &str, client: u32| {
        let messages = Client::connect(intake).get(&format!("/messages/{client:010}"));
        messages.json()[0]["payload"].as_str().expect("a message")[26..].to_owned()
    };
    let take_turns = |wrong: &str, named: &str| {
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                scope.spawn({
                    let (send, kept, right) = (&send, &kept, &right);
                    move || {
                        for round in 0..ROUNDS {
                            let intakes = [right.authority.as_str(), wrong];
                            let [one, other] =
                                [0, 1].map(|turn| intakes[((round + client) as usize + turn) % 2]);
                            let value = format!("{named}{round}");
                            send(one, client, &value);
                            assert_eq!(
                                kept(other, client),
                                value,
                                "client {client}: an older message stayed"
                            );
                        }
                    }
                });
            }
        });
    };
    take_turns(&wrong.authority, "first");
    wrong.stop();
    let wrong = late("-2h");
    take_turns(&wrong.authority, "second");
    assert_eq!(Client::connect(&right.authority).get("/count").body, CLIENTS.to_string());
}

/// An environment in which a program reads a clock that was set; none where there is no libfaketime.
fn clock_set_back(by: &str) -> Vec<(&'static str, &str)> {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    if !Path::new(LIBRARY).exists() {
        eprintln!("no {LIBRARY}: both intakes have the same clock");
        return Vec::new();
    }
    vec![("LD_PRELOAD", LIBRARY), ("FAKETIME", by), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]
}
