//! `--trace`: a sample of requests and all that failed, as HAR, without secrets.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::program::server::Server;
use crate::program::{assert_refused, code, run, stderr, stdout, tidemark};

fn scenario(folder: &Path, server: &Server) {
    let text = format!(
        "system: {{url: '{}'}}\nsessions:\n  a:\n    steps:\n      - POST: '/a?token=t0p-s3cret'\n        label: Login\n        json: {{password: \
         hunter22, n: 1}}\n        headers: {{Authorization: Bearer t0p-s3cret}}\n      - GET: /missing\nload: {{users: 1, \
         hold: 60s}}\nlimits: {{sessions: 50}}\n",
        server.url("")
    );
    fs::write(folder.join("s.yaml"), text).unwrap();
}

fn entries(file: &Path) -> Vec<Value> {
    entries_of(&fs::read_to_string(file).unwrap())
}

fn entries_of(text: &str) -> Vec<Value> {
    for secret in ["t0p-s3cret", "hunter22"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let har: Value = serde_json::from_str(text).expect("one HAR and nothing else");
    assert_eq!(har["log"]["version"], "1.2");
    har["log"]["entries"].as_array().unwrap().clone()
}

fn paths(entries: &[Value], path: &str) -> usize {
    let is_of = |entry: &&Value| entry["request"]["url"].as_str().unwrap().contains(path);
    entries.iter().filter(is_of).count()
}

#[test]
fn one_in_so_many_is_kept_and_all_that_failed() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    let file = folder.path().join("t.har");
    let flags = ["run", "s.yaml", "--trace", "t.har", "--trace-every", "10", "-t", "1"];
    let output = run(folder.path(), &flags);
    let text = stdout(&output) + &stderr(&output);
    assert_eq!(code(&output), 1, "half of all fail: {text}");
    let all = entries(&file);
    // each tenth of 100 requests is a good one, as each second is
    assert_eq!((paths(&all, "/a?"), paths(&all, "/missing"), all.len()), (10, 50, 60));
    assert!(text.contains("has 10 good requests (1 in 10) and 50 failed requests"), "{text}");
    let good = &all[paths(&all[..1], "/missing")];
    assert_eq!(good["request"]["method"], "POST");
    assert_eq!(good["request"]["postData"]["text"], "{\"password\":\"***\",\"n\":1}");
    assert_eq!(good["response"]["content"]["text"], "hello");
    assert_eq!(good["_label"], "Login");
    let failed = all.iter().find(|entry| entry["response"]["status"] == 404).unwrap();
    assert_eq!(failed["_outcome"], "status");
    assert!(failed["_error"].as_str().unwrap().contains("status 404"), "{failed}");
    // what init reads is what this writes
    let read = run(folder.path(), &["init", "t.har"]);
    assert_eq!(code(&read), 0, "{}", stderr(&read));
    assert!(stdout(&read).contains("POST: "), "{}", stdout(&read));
}

#[test]
fn once_keeps_all_and_a_hit_has_a_trace_too() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    let output = run(folder.path(), &["run", "s.yaml", "--once", "--trace", "once.har"]);
    assert!(stdout(&output).contains("has 1 good request and 1 failed request"), "{}", stdout(&output));
    let all = entries(&folder.path().join("once.har"));
    assert_eq!((paths(&all, "/a?"), paths(&all, "/missing"), all.len()), (1, 1, 2));
    let url = server.url("/");
    let output = run(folder.path(), &["hit", &url, "-n", "200", "-c", "2", "-t", "1", "--trace", "hit.har"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(entries(&folder.path().join("hit.har")).len(), 2);
}

/// The text goes to standard error, as beside every other output that is a dash.
#[test]
fn as_a_dash_it_is_all_that_standard_output_has() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    let url = server.url("/");
    for (words, says, count) in [
        (&["run", "s.yaml", "-t", "1", "--trace-every", "10"][..], "Throughput", 60),
        (&["run", "s.yaml", "--once", "-v"], "2 requests: 1 failed", 2),
        (&["hit", &url, "-n", "200", "-c", "2", "-t", "1"], "trace: standard output has 2 good", 2),
    ] {
        let output = run(folder.path(), &[words, &["--trace", "-"]].concat());
        let (har, text) = (stdout(&output), stderr(&output));
        assert_eq!(entries_of(&har).len(), count, "{words:?}: {text}");
        // wherever the text breaks its lines
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says) && text.contains("trace: standard output has"), "{words:?}: {text}");
        let quiet = run(folder.path(), &[words, &["--trace", "-", "-q"]].concat());
        assert_eq!((entries_of(&stdout(&quiet)).len(), stderr(&quiet).as_str()), (count, ""), "{words:?}");
    }
}

#[test]
fn a_reader_of_a_trace_who_has_seen_enough_is_no_error() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    let words = ["run", "s.yaml", "-t", "1", "--trace", "-"];
    let mut command = tidemark(folder.path(), &words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    // half of all fail, and that decides
    assert_eq!(code(&output), 1, "{text}");
    assert!(
        text.contains("trace: standard output was closed before") && !text.contains("internal error"),
        "{text}"
    );
}

#[test]
fn a_trace_that_goes_nowhere_says_so() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let url = server.url("/");
    let mut command = tidemark(folder.path(), &["hit", &url, "-n", "200", "-t", "1", "--trace", "-"]);
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.contains("trace: nothing of it is kept: standard output is closed"), "{text}");
    assert!(!text.contains("standard output has"), "{text}");
}

#[test]
fn a_reader_of_a_trace_who_stands_still_does_not_hold_up_the_run() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let url = server.url("/");
    let flags = ["-n", "2000", "-c", "2", "-t", "1", "--save=out", "--trace", "-", "--trace-every", "1"];
    let mut command = tidemark(folder.path(), &[&["hit", &url][..], &flags].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let unread = child.stdout.take();
    let output = child.wait_with_output().unwrap();
    drop(unread);
    let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code(&output), 74, "{text}");
    assert!(text.contains("the trace in standard output is not whole: its reader took nothing"), "{text}");
    assert!(folder.path().join("out/run.json").is_file());
}

#[test]
fn a_trace_that_cannot_be_is_refused_before_anything_is_sent() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    for (file, says) in [(".", "is a folder"), ("no/such/t.har", "there is no folder")] {
        assert_refused(folder.path(), &["run", "s.yaml", "-q", "--trace", file], says);
    }
    let both = "--json and --trace both want standard output";
    assert_refused(folder.path(), &["run", "s.yaml", "-q", "--json", "--trace", "-"], both);
    assert_refused(folder.path(), &["hit", &server.url("/"), "-q", "--json", "--trace", "-"], both);
    let shown = ["run", "s.yaml", "--tui", "--trace", "-"];
    if cfg!(feature = "tui") {
        assert_refused(folder.path(), &shown, "both want standard output");
    }
    assert_refused(folder.path(), &["run", "s.yaml", "--trace-every", "5"], "--trace");
    let text = "system: {url: 'redis://127.0.0.1:9'}\nsessions: {a: {steps: [{redis: [PING]}]}}\nload: {users: 1, hold: 1s}\n";
    fs::write(folder.path().join("r.yaml"), text).unwrap();
    assert_refused(folder.path(), &["run", "r.yaml", "-q", "--trace", "t.har"], "requests of HTTP");
    assert!(server.requests().is_empty());
}

#[test]
fn a_trace_that_is_not_whole_is_a_result_that_could_not_be_written() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    let url = server.url("/");
    for words in [
        &["run", "s.yaml", "-t", "1"][..],
        &["run", "s.yaml", "--once"],
        &["hit", &url, "-n", "200", "-c", "2", "-t", "1"],
    ] {
        let output = run(folder.path(), &[words, &["--trace", "/dev/full"]].concat());
        assert_eq!(code(&output), 74, "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("--trace: cannot write /dev/full"), "{}", stderr(&output));
        // the rest is there all the same
        assert!(!stdout(&output).is_empty(), "{words:?}");
    }
}
