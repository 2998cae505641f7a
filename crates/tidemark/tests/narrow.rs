//! Text fits a terminal of 45 columns, whatever verb says it.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use crate::program::runs::StoredRun;
use crate::program::server::Server;
use crate::program::{code, json, stderr, stdout, tidemark};

const COLUMNS: usize = 45;

fn narrow(folder: &Path, arguments: &[&str]) -> Output {
    tidemark(folder, arguments).env("COLUMNS", COLUMNS.to_string()).output().expect("the program starts")
}

/// Asserts that all that was said fits. A path or a URL stays whole, on a line of its own or behind the name of its line; and so
/// does what was sent and what came, behind `>` and `<`.
fn assert_fits(verb: &str, output: &Output) {
    let is_whole = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let only = match ["Run", "Report", "Runs", "Trials"].contains(&first) {
            true => words.next().unwrap_or_default(),
            false => first,
        };
        let is_place = words.next().is_none() && only.contains('/');
        is_place || [">", "<"].contains(&first)
    };
    for text in [stdout(output), stderr(output)] {
        assert!(!text.contains("panicked"), "{verb}: {text}");
        let wide = text.lines().find(|line| line.chars().count() > COLUMNS && !is_whole(line));
        assert_eq!(wide, None, "{verb}:\n{text}");
    }
}

#[test]
fn what_is_said_without_a_load_fits() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let url = server.url("/");
    let made = narrow(folder.path(), &["init", &url, "-o", "my.yaml"]);
    // commands are there to be copied
    assert!(
        stderr(&made).lines().any(|line| line == "  tidemark run my.yaml --once -v"),
        "{}",
        stderr(&made)
    );
    assert_fits("init", &made);
    let wrong = "system: {url: 'http://127.0.0.1:9'}\nsessions: {a: {steps: [{label: a label of some length, PSOT: /, check: {status: 200}}]}}\n\
                 load: {users: 1, hold: 1s}\n";
    fs::write(folder.path().join("wrong.yaml"), wrong).unwrap();
    let missing = "sessions: {a: {steps: [{GET: '/missing?with=a&query=that&is=longer&than=a&line=is'}]}}\n";
    let missing = format!("system: {{url: '{}'}}\n{missing}load: {{users: 1, hold: 1s}}\n", server.url(""));
    fs::write(folder.path().join("missing.yaml"), missing).unwrap();
    for (arguments, status) in [
        (&[] as &[&str], 0),
        (&["check", "my.yaml"], 0),
        (&["check", "kv-redis"], 0),
        (&["check", "airline"], 0),
        (&["check", "wrong.yaml"], 2),
        (&["check", "nowhere.yaml"], 2),
        (&["init", &url, "-o", "my.yaml"], 2),
        (&["limit", "my.yaml", "--at-least", "x"], 2),
        (&["run", "my.yaml", "-r", "-5"], 2),
        (&["run", "my.yaml", "--no-such-flag", "--set"], 2),
        (&["run", "my.yaml", "--set", "no_such_setting=1"], 2),
        (&["run", "my.yaml", "--once"], 0),
        (&["run", "my.yaml", "--once", "-v"], 0),
        (&["run", "missing.yaml", "--once", "-v"], 1),
        (&["report", "last"], 2),
        (&["history", "nowhere"], 2),
        (&["compare", "a", "b"], 2),
        (&["verify", "last"], 2),
    ] {
        let output = narrow(folder.path(), arguments);
        assert_eq!(code(&output), status, "{arguments:?}: {}", stderr(&output));
        assert_fits(&arguments.join(" "), &output);
    }
}

#[test]
fn a_run_and_what_is_said_of_it_later_fit() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let url = server.url("/");
    assert_eq!(code(&narrow(folder.path(), &["init", &url, "-o", "my.yaml"])), 0);
    // a busy machine may decide otherwise than that it passes
    let ran = |arguments: &[&str]| {
        let output = narrow(folder.path(), arguments);
        assert!([0, 1, 3].contains(&code(&output)), "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).lines().count() > 5, "{arguments:?}");
        assert_fits(&arguments.join(" "), &output);
    };
    ran(&["run", "my.yaml", "--for", "2s", "--out", "r"]);
    ran(&["run", "my.yaml", "--for", "1s", "--latency", "--out", "s"]);
    ran(&["hit", &url, "-d", "1s", "-c", "2"]);
    ran(&["report", "r", "--latency"]);
}

#[test]
fn comparisons_and_histories_fit() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..8_u64 {
        let us = if number < 4 { 20_000 } else { 24_000 } + number % 3 * 40;
        let started_at = format!("2026-03-{:02}T10:00:00Z", number + 1);
        let one = StoredRun { us: [10_000, us], started_at, ..StoredRun::default() };
        one.write(&folder.path().join(format!("runs/{number:02}-a-run-of-the-shop")));
    }
    for arguments in [
        &["history"][..],
        &["compare", "runs/00-a-run-of-the-shop", "runs/05-a-run-of-the-shop"],
        &["report", "runs/00-a-run-of-the-shop"],
    ] {
        let output = narrow(folder.path(), arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
        assert_fits(&arguments.join(" "), &output);
    }
}

#[test]
fn a_search_and_its_progress_fit() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let text = "sessions: {s: {steps: [{GET: /}]}}\nload: {rate: 50/s, hold: 30s}\nobjectives: [p90 < 1s]\n";
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    let url = server.url("");
    let output = narrow(folder.path(), &["limit", "s.yaml", "--url", &url, "--budget", "8s", "--out", "out"]);
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    assert!(stderr(&output).contains("trial 1: "), "{}", stderr(&output));
    assert_fits("limit", &output);
    assert_fits("report of a search", &narrow(folder.path(), &["report", "out"]));
}

/// What an ordinary first run says of a service that is well: nothing that asks for doubt. What the machine did to the driver
/// meanwhile is no fault of the service and none of the program: those notes alone may stand.
#[test]
fn a_clean_run_has_no_note() {
    use tidemark_truth::{Behaviour, Delay, Server};
    const OF_A_BUSY_MACHINE: [&str; 6] = [
        "the driving threads were ready to run",
        "the load generator was at its limit",
        "the load generator itself was suspended",
        "the hypervisor took",
        "this system does not tell how long a thread waited",
        "about ",
    ];
    let folder = tempfile::tempdir().unwrap();
    let delays = vec![Delay::Fixed(Duration::from_millis(5))];
    let server = Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap();
    let url = format!("http://{}/", server.address());
    assert_eq!(code(&narrow(folder.path(), &["init", &url, "-o", "my.yaml"])), 0);
    for (number, arguments) in [
        &["run", "my.yaml", "--for", "2s", "-q"][..],
        &["hit", &url, "-d", "2s", "-q"],
        &["hit", &url, "-d", "2s", "-r", "200", "-q"],
        &["run", "airline", "--for", "2s", "--set", "durability=memory", "--set", "users=2", "-q"],
    ]
    .into_iter()
    .enumerate()
    {
        let output = tidemark(folder.path(), &[arguments, &["--json"]].concat()).output().unwrap();
        let all = json(&output);
        assert!(all["requests"].as_u64() > Some(0) && all["failed"] == 0, "{number}: {all}");
        let notes = all["notes"].as_array().cloned().unwrap_or_default();
        let is_of_machine = |note: &str| OF_A_BUSY_MACHINE.iter().any(|begins| note.starts_with(begins));
        let notes: Vec<&str> = notes.iter().filter_map(serde_json::Value::as_str).collect();
        // who shares cores is a note where the load generator lacked some, and only there
        let lacked = notes.iter().any(|note| is_of_machine(note));
        let is_expected =
            |note: &str| is_of_machine(note) || lacked && note.contains("shared the machine's cores");
        let others: Vec<&&str> = notes.iter().filter(|note| !is_expected(note)).collect();
        assert!(others.is_empty(), "{arguments:?}: {others:?}");
    }
}
