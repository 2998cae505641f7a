//! `--trace`: a sample of requests and all that failed, as HAR, without secrets.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::server::Server;
use crate::program::{assert_refused, code, run, stderr, stdout};

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
    let text = fs::read_to_string(file).unwrap();
    for secret in ["t0p-s3cret", "hunter22"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let har: Value = serde_json::from_str(&text).unwrap();
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
    assert!(text.contains("has 10 good requests (1 in 10) and 50 that failed"), "{text}");
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
    assert!(stdout(&output).contains("has 1 good requests and 1 that failed"), "{}", stdout(&output));
    let all = entries(&folder.path().join("once.har"));
    assert_eq!((paths(&all, "/a?"), paths(&all, "/missing"), all.len()), (1, 1, 2));
    let url = server.url("/");
    let output = run(folder.path(), &["hit", &url, "-n", "200", "-c", "2", "-t", "1", "--trace", "hit.har"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(entries(&folder.path().join("hit.har")).len(), 2);
}

#[test]
fn a_trace_that_cannot_be_is_refused_before_anything_is_sent() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    scenario(folder.path(), &server);
    for (file, says) in [("-", "name a file"), (".", "is a folder"), ("no/such/t.har", "cannot write")] {
        assert_refused(folder.path(), &["run", "s.yaml", "-q", "--trace", file], says);
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
        assert!(stderr(&output).contains("the trace in /dev/full is not whole"), "{}", stderr(&output));
        // the rest is there all the same
        assert!(!stdout(&output).is_empty(), "{words:?}");
    }
}
