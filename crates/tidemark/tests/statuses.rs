//! One meaning for each exit status, whichever verb ends with it; and what was stopped is a pass nowhere.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use crate::program::store::{Store, scenario};
use crate::program::{code, json, run, send, stderr, tidemark, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// A place where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_place_where_nobody_answers_is_the_same_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let place = nobody();
    for (url, status, says) in [
        (place.as_str(), 1, "unreachable"),
        ("http://no-such-host.invalid", 2, "no-such-host.invalid"),
        ("http://[::1", 2, "http://[::1"),
    ] {
        scenario(folder.path(), &nobody(), "");
        for arguments in [&["hit", url, "-n", "1"][..], &["run", "s.yaml", "--url", url]] {
            let output = run(folder.path(), arguments);
            assert_eq!(code(&output), status, "{arguments:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
        }
    }
}

/// A file of an earlier run, which was good, says nothing of this one.
#[test]
fn where_nobody_answers_every_result_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let place = nobody();
    scenario(folder.path(), &place, "");
    for verb in [&["hit", place.as_str(), "-n", "1"][..], &["run", "s.yaml"]] {
        for file in ["junit.xml", "run.md", "run.csv"] {
            fs::write(folder.path().join(file), "PASS").unwrap();
        }
        let files = ["--json", "--junit", "junit.xml", "--markdown", "run.md", "--csv", "run.csv"];
        let output = run(folder.path(), &[verb, &files].concat());
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        let said = json(&output);
        assert_eq!(said["verdict"]["status"], "fail");
        assert!(said["verdict"]["reasons"][0].as_str().unwrap().contains("unreachable"), "{said}");
        let junit = fs::read_to_string(folder.path().join("junit.xml")).unwrap();
        assert!(junit.contains("failures=\"1\"") && junit.contains("unreachable"), "{junit}");
        assert!(!folder.path().join("run.md").exists() && !folder.path().join("run.csv").exists());
    }
}

/// Whether a file says that the run is good.
fn passes(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let words = ["PASS", "\"status\":\"pass\"", "\"status\": \"pass\""];
    words.iter().any(|word| text.contains(word))
}

/// Whether this process ignores a signal, as under `nohup`: what it starts ignores it, too.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn what_was_stopped_is_a_pass_nowhere() {
    let signals = [Signal::TERM, Signal::INT, Signal::HUP];
    for signal in signals.into_iter().filter(|signal| !is_ignored(*signal)) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::start(0);
        let url = format!("{}/count", store.url);
        let files = ["--junit", "junit.xml", "--markdown", "run.md", "--save=out"];
        let load = ["-c", "1", "--for", "60s", "--warm-up", "0s", "--until", "errors<50%"];
        let mut child = tidemark(folder.path(), &[&["hit", &url][..], &load, &files].concat())
            .stdout(fs::File::create(folder.path().join("stdout")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // some intervals of it are recorded, each of a second
        let journal = folder.path().join("out/unfinished.journal");
        let mut sizes = std::collections::BTreeSet::new();
        wait_until("the load is on", || {
            sizes.extend(fs::metadata(&journal).map(|data| data.len()));
            sizes.len() > 3
        });
        send(child.id(), signal);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
        for file in ["stdout", "run.md", "junit.xml", "out/run.json"] {
            assert!(!passes(&folder.path().join(file)), "{file} after {signal:?}");
        }
        let junit = fs::read_to_string(folder.path().join("junit.xml")).unwrap();
        assert!(junit.contains("errors=\"1\"") || junit.contains("failures=\"1\""), "{junit}");
        let manifest: Value =
            serde_json::from_str(&fs::read_to_string(folder.path().join("out/run.json")).unwrap()).unwrap();
        let verdict = &manifest["summary"]["verdict"];
        assert_ne!(verdict["status"], "pass", "{verdict}");
        let reasons = verdict["reasons"].as_array().unwrap();
        let says = |reason: &Value| reason.as_str().unwrap().starts_with("incomplete: stopped by the user");
        assert!(reasons.iter().any(says), "{reasons:?}");
        // and shown again it is the same
        for arguments in [&["report", "out"][..], &["report", "out", "--json"]] {
            let again = run(folder.path(), arguments);
            let text = crate::program::stdout(&again);
            assert!(!text.contains("PASS") && !text.contains("\"status\": \"pass\""), "{text}");
        }
    }
}
