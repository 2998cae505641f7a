//! `tidemark init` on files and addresses, as a person uses it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::program::{assert_refused, code, json, run, send, stderr, stdout, tidemark};

const RECORDING: &str = r#"{"log": {"version": "1.2", "entries": [
  {"startedDateTime": "2026-01-01T00:00:00.000Z", "time": 20, "request": {"method": "GET", "url": "http://127.0.0.1:1/",
    "headers": [{"name": "Cookie", "value": "sid=geheim"}]}, "response": {"status": 200, "content": {"text": "…"}}}]}}"#;

/// A shipped system that listens.
struct Served {
    child: Child,
    place: String,
}

impl Served {
    fn start(folder: &Path, system: &str) -> Served {
        let arguments = ["serve", system, "--listen", "127.0.0.1:0", "--durability", "memory"];
        let mut child =
            tidemark(folder, &arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.trim().strip_prefix("listening http://").unwrap_or_else(|| panic!("{line:?}"));
        Served { place: place.to_owned(), child }
    }

    /// The body of an answer.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}")).1.to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        send(self.child.id(), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_url_becomes_a_scenario_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "ingest");
    let made = run(folder.path(), &["init", &format!("{}/health", served.place), "-o", "first.yaml"]);
    assert_eq!((code(&made), stdout(&made).as_str()), (0, ""), "{}", stderr(&made));
    let text = fs::read_to_string(folder.path().join("first.yaml")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.trim().starts_with('#')).count();
    assert!(lines <= 15, "{lines} lines:\n{text}");
    assert!(text.lines().any(|line| line.trim().starts_with("# ")), "it explains itself:\n{text}");
    let checked = run(folder.path(), &["check", "first.yaml"]);
    assert_eq!((code(&checked), stderr(&checked).as_str()), (0, ""), "{text}");
    let output = run(folder.path(), &["run", "first.yaml", "-q", "--json", "--for", "1s"]);
    // a busy machine may miss an objective; nothing is wrong with the requests
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    let summary = json(&output);
    assert!(summary["requests"].as_u64() > Some(0) && summary["errors"].get("status").is_none(), "{summary}");
}

#[test]
fn the_shipped_systems_documents_become_scenarios() {
    let folder = tempfile::tempdir().unwrap();
    for system in ["airline", "ingest", "newsfeed", "trade"] {
        let document = Served::start(folder.path(), system).get("/openapi.json");
        let (file, made) = (format!("{system}.json"), format!("{system}.yaml"));
        fs::write(folder.path().join(&file), document).unwrap();
        let output = run(folder.path(), &["init", &file, "-o", &made]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let output = run(folder.path(), &["check", &made]);
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{system}");
    }
}

#[test]
fn a_document_in_yaml_and_a_recording_with_a_mark_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let document = "openapi: 3.0.0\ninfo: {title: Pets}\npaths:\n  /pets/{id}:\n    get:\n      responses:\n        200: {}\n";
    fs::write(folder.path().join("pets.yaml"), document).unwrap();
    let output = run(folder.path(), &["init", "pets.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("- GET: /pets/${id}\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("check: {status: 200}\n"), "{}", stdout(&output));
    fs::write(folder.path().join("a.har"), format!("\u{feff}{RECORDING}")).unwrap();
    let output = run(folder.path(), &["init", "a.har"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stdout(&output).contains("- GET: /\n") && !stdout(&output).contains("geheim"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_file_that_is_there_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.yaml"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("link.yaml")).unwrap();
    for file in ["mine.yaml", "link.yaml"] {
        assert_refused(folder.path(), &["init", "http://127.0.0.1:1/", "-o", file], "is there already");
    }
    assert_eq!(fs::read_to_string(folder.path().join("mine.yaml")).unwrap(), "mine");
    assert!(!folder.path().join("nowhere").exists());
}

#[test]
fn what_cannot_be_read_is_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("broken.json", b"{\"openapi\": \"3.0.0\",\n\"paths\": }");
    write("empty.yaml", b"");
    write("old.json", b"{\"swagger\": \"1.2\"}");
    write("t.jmx", b"<jmeterTestPlan version='1.2'/>");
    write("t.js", b"import http from 'k6/http';");
    write("latin.har", b"{\"log\": \"\xff\"}");
    write("list.json", b"[1, 2]");
    write("deep.json", "[".repeat(100_000).as_bytes());
    write("a.har", RECORDING.as_bytes());
    fs::create_dir(folder.path().join("folder.har")).unwrap();
    for (arguments, says) in [
        (vec!["init"], "URL|FILE"),
        (vec!["init", "none.har"], "cannot read none.har"),
        (vec!["init", "folder.har"], "cannot read folder.har"),
        (vec!["init", "broken.json"], "broken.json:2:10: "),
        (vec!["init", "empty.yaml"], "is empty"),
        (vec!["init", "old.json"], "versions 2 and 3 are read"),
        (vec!["init", "t.jmx"], "t.jmx is a JMeter plan: tidemark import t.jmx"),
        (vec!["limit", "t.js"], "t.js is a k6 script: tidemark run t.js"),
        (vec!["run", "a.har"], "tidemark init FILE"),
        (vec!["init", "none.jmx"], "cannot read none.jmx"),
        (vec!["init", "latin.har"], "UTF-8"),
        (vec!["init", "list.json"], "neither an OpenAPI document"),
        (vec!["init", "curl", "-X", "POST", "http://h/"], "tidemark hit --print-scenario curl"),
        (vec!["init", "curl http://h/"], "tidemark hit --print-scenario curl"),
        (vec!["init", "ws://h/chat"], "give http://h/chat, and write the step `ws connect: /chat`"),
        (vec!["init", "deep.json"], "deep"),
        (vec!["init", "http://"], "write http://HOST"),
        (vec!["init", "ftp://h/"], "http://"),
        (vec!["init", "a.har", "--host", "cdn.example"], "it has 127.0.0.1"),
        (vec!["init", "http://h/", "--host", "h"], "--host is for recordings"),
        (vec!["init", "http://h/", "-o", "no/such/file"], "no such folder"),
    ] {
        assert_refused(folder.path(), &arguments, says);
    }
}

#[test]
fn what_is_not_taken_is_told_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |url: &str, body: &str| {
        format!(
            "{{\"request\": {{\"method\": \"POST\", \"url\": \"{url}\", \"postData\": {{\"mimeType\": \"application/json\", \"text\": \"{body}\"}}}}}}"
        )
    };
    let entries = [
        entry("http://127.0.0.1:1/login", "{\\\"password\\\": \\\"****\\\"}"),
        entry("http://127.0.0.1:1/a", "1"),
        entry("http://ads.example/", "1"),
    ];
    let text = format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(","));
    fs::write(folder.path().join("a.har"), text).unwrap();
    let output = run(folder.path(), &["init", "a.har", "-o", "a.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stderr(&output);
    for part in [
        "2 of 3 requests are taken",
        "ads.example (1)",
        "by the environment variables in the scenario: password",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_refused(folder.path(), &["check", "a.yaml"], "give the setting password with --set");
    let output = run(folder.path(), &["check", "a.yaml", "--set", "password=hunter2"]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{}", stdout(&output));
}
