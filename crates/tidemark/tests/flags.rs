//! Flags that `tidemark run` and `tidemark hit` have in common mean the same.

use std::collections::BTreeSet;
use std::fs;

use crate::program::server::Server;
use crate::program::{assert_refused, code, json, run, stderr, stdout};
use serde_json::Value;

const CLOSED: &str = "{users: 3, hold: 30s}";
const OPEN: &str = "{rate: 10/s, hold: 30s}";

/// Writes `s.yaml`: one request at the server, in this load.
fn scenario(folder: &std::path::Path, server: &Server, load: &str) {
    let text = format!(
        "system: {{url: \"{}\"}}\nsessions: {{a: {{steps: [{{GET: /, label: Home}}]}}}}\nload: {load}\n",
        server.url("")
    );
    fs::write(folder.join("s.yaml"), text).unwrap();
}

/// The JSON of a run with these flags, and its exit status.
fn summary(folder: &std::path::Path, flags: &[&str]) -> (i32, Value) {
    let output = run(folder, &[&["run", "s.yaml", "-q", "--json"], flags].concat());
    let summary = json(&output);
    (code(&output), summary)
}

#[test]
fn length_and_rate_are_those_of_hit() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server, CLOSED);
    for flags in [["-d", "1"], ["--for", "1s"], ["--duration", "1s"]] {
        let (_, short) = summary(folder.path(), &flags);
        assert!((0.9..1.5).contains(&short["measured_s"].as_f64().unwrap()), "{short}");
    }
    server.forget();
    summary(folder.path(), &["-d", "1s", "-r", "0.1k"]);
    assert_eq!(server.requests().len(), 100);
}

#[test]
fn users_are_those_of_a_closed_load_and_connections_of_an_open_one() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server, CLOSED);
    summary(folder.path(), &["-d", "1s", "-c", "7", "-t", "1"]);
    // one more may ask whether the server is there
    let connections = BTreeSet::from_iter(server.connections()).len();
    assert!((7..=8).contains(&connections), "{connections}");
    server.forget();
    scenario(folder.path(), &server, OPEN);
    summary(folder.path(), &["-d", "1s", "-r", "100", "-c", "5", "-t", "1"]);
    let connections = BTreeSet::from_iter(server.connections()).len();
    assert!((5..=6).contains(&connections), "{connections}");
}

#[test]
fn objectives_of_the_command_line_decide_as_those_of_the_scenario() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server, OPEN);
    let (status, summary) =
        summary(folder.path(), &["-d", "1s", "--until", "Home max<1us", "--until", "errors=0"]);
    let objectives = summary["objectives"].as_array().unwrap();
    assert_eq!((&objectives[0]["objective"], &objectives[0]["met"]), (&"Home max<1us".into(), &false.into()));
    assert_eq!((&objectives[1]["objective"], &objectives[1]["met"]), (&"errors=0".into(), &true.into()));
    assert_eq!(status, if summary["verdict"]["status"] == "fail" { 1 } else { 3 }, "{summary}");
    assert_refused(
        folder.path(),
        &["run", "s.yaml", "--until", "Hom p99<5ms"],
        "--until (--objective): no request has the label",
    );
    assert_refused(folder.path(), &["run", "s.yaml", "--once", "--until", "p99<5ms"], "--once");
}

#[test]
fn quiet_is_quiet_but_for_errors() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server, "{rate: 200/s, hold: 100ms}");
    let file = folder.path().join("s.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("settings: {{unused: 1}}\n{text}")).unwrap();
    let output = run(folder.path(), &["run", "s.yaml"]);
    assert!(stderr(&output).contains("\"unused\" is never used"), "{}", stderr(&output));
    assert_eq!(stderr(&run(folder.path(), &["run", "s.yaml", "-q"])), "");
    std::fs::write(&file, format!("settings: {{unused: 1}}\nlaod: 1\nx: 2\n{text}")).unwrap();
    let output = run(folder.path(), &["run", "s.yaml", "-q"]);
    assert!(stderr(&output).contains("did you mean load?"), "{}", stderr(&output));
}

#[test]
fn more_percentiles_are_shown_where_they_are_wanted() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server, "{rate: 200/s, hold: 1s}");
    let usual = stdout(&run(folder.path(), &["run", "s.yaml", "-q"]));
    assert!(!usual.contains("requests above"), "{usual}");
    for arguments in [&["run", "s.yaml", "-q", "--latency"][..], &["report", "last", "--latency"]] {
        let text = stdout(&run(folder.path(), arguments));
        // 200 requests have no p99.9
        assert!(
            text.contains("requests above") && text.contains("\n  p99 ") && !text.contains("\n  p99.9 "),
            "{text}"
        );
    }
}
