//! What goes wrong in a fleet: agents that are killed with a ledger, that stand still, or whose clock is wrong.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Asked, Nats, begin, command, result, scenario, wait_until};
use crate::common::{Killed, tidemark};
use crate::store::Store;

/// Where Debian has it.
pub(super) const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Writes `s.yaml`: notes for a store, in this load, each entered in the ledger and read back.
pub(super) fn write_notes(folder: &Path, store: &Store, load: &str) {
    let text = format!(
        "name: notes\nsystem: {{url: '{}'}}\nsessions:\n  a:\n    steps:\n      - POST: /notes\n        \
         ledger: {{content: 'note |${{entry}}|${{check}}|', as: note}}\n        body: '${{note}}'\n\
         load: {{{load}}}\nverify: {{contents: {{GET: /all, items: '$.items[*]', next: {{json: $.next}}, as: from}}}}\n",
        store.url
    );
    std::fs::write(folder.join("s.yaml"), text).expect("written");
}

pub(super) fn send(signal: &str, agent: &Killed) {
    let sent = Command::new("kill").args(["-s", signal, &agent.0.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

pub(super) fn number(of: &Value, name: &str) -> u64 {
    of.pointer(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {name} in {of}"))
}

#[test]
fn what_an_agent_was_acknowledged_after_its_last_word_is_neither_lost_nor_found() {
    let (nats, notes) = (Nats::start(), Store::start(0));
    let folder = tempfile::tempdir().expect("a folder");
    write_notes(folder.path(), &notes, "rate: 200/s, hold: 6s");
    let mut agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &[]);
    // within a second, of which nothing was handed over yet
    wait_until("the load has begun", || notes.count() > 500);
    drop(agents.remove(0));
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    assert_eq!(of.pointer("/ledger/broke_off"), Some(&true.into()), "{of}");
    let acknowledged = number(&of, "/ledger/acknowledged");
    let verified = |name: &str| number(&of, &format!("/ledger/{name}"));
    assert_eq!((verified("lost"), verified("different"), verified("duplicated")), (0, 0, 0), "{of}");
    assert_eq!(verified("found"), acknowledged, "{of}");
    // all that is there is told, and what came after the last word is of no known fate
    let unknown = verified("unacknowledged_found");
    assert_eq!(acknowledged + unknown, notes.count() as u64, "{of}");
    assert!(of.to_string().contains("that may have been acknowledged"), "{of}");
    assert!(acknowledged > 500 && (1..300).contains(&unknown), "{of}");
}

#[test]
fn an_agent_that_stands_still_for_seconds_sends_late_and_loses_nothing() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 6);
    let agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &[]);
    wait_until("the load has begun", || asked.count() > 150);
    send("STOP", &agents[0]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    send("CONT", &agents[0]);
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 600, "{of}");
    assert_eq!(number(&of, "/dropped"), 0, "{of}");
    assert!(number(&of, "/response_time_us/max") >= 2_000_000, "what was due meanwhile waited: {of}");
    assert_eq!(asked.count() as u64, 50 + number(&of, "/requests"), "{of}");
    nats.wait_for_idle(2);
}

#[test]
fn an_agent_that_was_given_up_drives_no_more_when_it_comes_back() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 6);
    let agents = nats.with_agents(2);
    let running = begin(folder.path(), &nats.url(), &[]);
    wait_until("the load has begun", || asked.count() > 150);
    send("STOP", &agents[0]);
    let output = running.wait_with_output().expect("it ends");
    let of = result(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    let told = of.to_string();
    assert!(told.contains("incomplete: ") && told.contains("agent a1: nothing came from it"), "{told}");
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 600, "{of}");
    let sent = asked.count();
    send("CONT", &agents[0]);
    nats.wait_for_idle(2);
    // of what was due at it, some 250 are overdue
    assert_eq!(asked.count(), sent, "it sees by the clock that it was given up");
}

#[test]
fn a_clock_that_is_wrong_changes_nothing() {
    if !Path::new(FAKETIME).exists() {
        eprintln!("skipped: there is no {FAKETIME}; Debian: apt-get install libfaketime");
        return;
    }
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 2);
    let start = |name: &str, time: &str| {
        let mut command = tidemark();
        command.args(["agent", "--nats", &nats.url(), "--name", name, "-t", "1"]);
        command
            .envs([
                ("LD_PRELOAD", FAKETIME),
                ("FAKETIME", time),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ("DONT_FAKE_MONOTONIC", "1"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Killed(command.spawn().expect("tidemark agent starts"))
    };
    let _agents = [start("slow", "-2s"), start("fast", "+2s")];
    nats.wait_for_idle(2);
    let output = command(folder.path(), &["--fleet", &nats.url()]).output().expect("it runs");
    let of = result(&output);
    assert!(output.status.success(), "{of}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((asked.count(), number(&of, "/requests")), (250, 200), "{of}");
    let run = std::fs::read_to_string(folder.path().join("run/run.json")).expect("a run");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    let offsets = run.pointer("/summary/driver/agents").and_then(Value::as_array).expect("agents").iter();
    let offsets: Vec<i64> = offsets.filter_map(|agent| agent["clock_offset_us"].as_i64()).collect();
    let is_off = |offset: &i64, by: i64| (offset - by).abs() < 500_000;
    assert!(is_off(&offsets[0], 2_000_000) && is_off(&offsets[1], -2_000_000), "{offsets:?}");
}
