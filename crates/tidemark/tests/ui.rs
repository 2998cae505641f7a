//! `tidemark ui`: the runs of a folder in a browser, and nothing else of the machine.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::runs::{StoredRun, search};
use crate::program::{
    PATIENCE, assert_refused, begin_silent, code, read_json, run, send, stderr, stdout, tidemark, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use tidemark_truth::{Behaviour, Server};

/// A child that prints where it listens; killed when dropped.
struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    fn start(folder: &Path, arguments: &[&str]) -> Listening {
        let mut child =
            tidemark(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening http://").expect("it listens").to_owned();
        Listening { child, address }
    }

    /// The whole answer to a request as it is.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run of two seconds in `runs`.
fn hit(folder: &Path, address: &str, name: &str) {
    let url = format!("http://{address}/health");
    let save = format!("--save=runs/{name}");
    let output = run(folder, &["hit", &url, "-r", "100", "--for", "2s", "--warm-up", "0s", "--quiet", &save]);
    assert!(folder.join("runs").join(name).join("run.json").is_file(), "{}", stderr(&output));
}

#[test]
fn the_runs_of_a_folder_are_served_live_too_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let system =
        Listening::start(folder.path(), &["serve", "trade", "--listen", "127.0.0.1:0", "--workers", "1"]);
    hit(folder.path(), &system.address, "a first");
    hit(folder.path(), &system.address, "b");
    // what a run says is text, whatever it says
    let nasty = folder.path().join("runs/nasty");
    fs::create_dir(&nasty).unwrap();
    let mut manifest = read_json(folder.path().join("runs/b/run.json"));
    manifest["scenario"] = "<img src=x onerror='throw 1'></script>".into();
    fs::write(nasty.join("run.json"), manifest.to_string()).unwrap();
    // one that is in a history for sure, and a search, whose one trial is a run
    StoredRun::default().write(&folder.path().join("runs/stored"));
    hit(folder.path(), &system.address, "a search/1-50");
    let searches = search("<img src=x onerror='throw 1'></script>", &[("1-50", 50.0, true)]);
    fs::write(folder.path().join("runs/a search/limit.json"), searches.to_json()).unwrap();
    let scenario = format!(
        "system: {{url: 'http://{}'}}\nsessions: {{a: {{steps: [{{GET: /health}}]}}}}\nload: {{rate: 200/s, hold: 10m}}\n",
        system.address
    );
    fs::write(folder.path().join("a.yaml"), scenario).unwrap();
    let mut going = tidemark(folder.path(), &["run", "a.yaml", "--out", "runs/going", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ui = Listening::start(folder.path(), &["ui", "--listen", "127.0.0.1:0"]);
    wait_until("it is followed", || {
        // until there is its folder it is not known
        let answer = ui.get("/api/live/going");
        let live =
            answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<Value>(body).ok());
        let seconds = live.and_then(|live| live["seconds"].as_array().map(Vec::len)).unwrap_or(0);
        going.try_wait().unwrap().is_some() || seconds > 1
    });

    let listing = ui.json("/api/runs");
    let runs = listing["runs"].as_array().unwrap();
    let states: Vec<_> =
        runs.iter().map(|run| (run["name"].as_str().unwrap(), run["state"].as_str().unwrap())).collect();
    assert_eq!(states[0], ("going", "running"));
    assert!(states.contains(&("a first", "finished")) && states.len() == 6, "{states:?}");
    assert!(states.contains(&("a search", "limit")), "{states:?}");
    let live = ui.json("/api/live/going");
    let last = live["seconds"].as_array().unwrap().last().unwrap();
    assert!(last["achieved_per_s"].as_f64().unwrap() > 0.0 && live["running"] == true, "{live}");
    assert!(ui.get("/runs/a%20first/report.html").contains("id=\"run\">{"));
    assert!(ui.get("/runs/going/report.html").starts_with("HTTP/1.1 404 "), "it has no report yet");

    for path in
        ["/runs/..%2f/report.html", "/runs/../../etc/passwd", "/api/live/..", "/run.json", "/runs/b/run.json"]
    {
        assert!(ui.get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    let elsewhere = ui.ask("GET /api/runs HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    assert!(elsewhere.starts_with("HTTP/1.1 421 ") && !elsewhere.contains("going"), "{elsewhere}");
    let posted =
        ui.ask(&format!("POST /api/runs HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", ui.address));
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    let page = ui.get("/");
    assert!(page.contains("X-Frame-Options: DENY") && page.contains("default-src 'none'"), "{page}");

    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/check-ui.mjs");
    let mut visit = Command::new("node");
    visit.arg(check).arg(format!("http://{}", ui.address)).args(["going", "a first", "b", "a search"]);
    if let Ok(dir) = std::env::var("TIDEMARK_SCREENSHOTS") {
        visit.args(["--screenshots", &dir]);
    }
    let output = visit.output().expect("node runs; `make test-needs` installs it");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", stderr(&output));

    // one that has ended is shown as such, and followed no more
    send(going.id(), Signal::INT);
    let mut told = String::new();
    going.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    going.wait().unwrap();
    assert!(ui.get("/api/live/going").starts_with("HTTP/1.1 404 "), "{told}");
    let runs = ui.json("/api/runs");
    let going = runs["runs"].as_array().unwrap().iter().find(|run| run["name"] == "going").unwrap();
    assert_eq!(going["state"], "finished", "{told}");
    assert!(ui.get("/runs/going/report.html").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_search_that_goes_on_is_listed_with_its_sentence_and_its_trials_have_pages() {
    let server = Server::start(Behaviour::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let scenario =
        "sessions: {s: {steps: [{GET: /}]}}\nload: {rate: 50/s, hold: 30s}\nobjectives: [p90 < 5s]\n";
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let url = format!("http://{}", server.address());
    let arguments = ["limit", "s.yaml", "--url", &url, "--out", "runs/search", "--budget", "10m", "--quiet"];
    let mut searching = begin_silent(folder.path(), &arguments);
    let ui = Listening::start(folder.path(), &["ui", "--listen", "127.0.0.1:0"]);
    let listed = || ui.json("/api/runs")["runs"].as_array().unwrap().first().cloned().unwrap_or_default();
    let dir = folder.path().join("runs/search");
    // its signals are the trial's once there is one
    wait_until("a trial is over, and the load of the next one is on", || {
        assert!(searching.try_wait().unwrap().is_none(), "it ended: {}", listed());
        listed()["trials"] == 1 && dir.join("2-100/unfinished.journal").is_file()
    });
    let going = listed();
    assert_eq!(going["name"], "search");
    assert_eq!(going["state"], "running");
    assert!(going["says"][0].as_str().unwrap().starts_with("holds "), "{going}");
    let page = ui.get("/runs/search/report.html");
    assert!(page.contains("running: ") && page.contains("<a href=\"1-50/report.html\">"), "{page}");
    assert!(ui.get("/runs/search/1-50/report.html").contains("id=\"run\">{"));
    assert!(ui.get("/runs/search/2-100/report.html").starts_with("HTTP/1.1 404 "), "it has no report yet");
    assert!(ui.get("/api/live/search").starts_with("HTTP/1.1 404 "));
    // two would write one file
    assert_refused(folder.path(), &arguments, "a search goes on here right now");

    send(searching.id(), Signal::INT);
    assert_eq!(searching.wait().unwrap().code(), Some(130));
    let stopped = listed();
    assert_eq!(stopped["state"], "limit");
    assert_eq!(stopped["trials"], 1);
    assert_eq!(stopped["reasons"][0], "stopped early: stopped by the user");
    let page = ui.get("/runs/search/report.html");
    assert!(page.contains("stopped early") && !page.contains("running: "), "{page}");
    server.stop().unwrap();
}

#[test]
fn the_history_of_a_scenario_is_that_of_tidemark_history() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..12_u64 {
        let us = if number >= 6 { 24_000 } else { 20_000 } + number * 7 % 5 * 40;
        let started_at = format!("2026-03-{:02}T10:00:00Z", number + 1);
        let one = StoredRun { seconds: 2, us: [10_000, us], started_at, ..StoredRun::default() };
        one.write(&folder.path().join("runs").join(format!("{number:02}-shop")));
    }
    let ui = Listening::start(folder.path(), &["ui", "--listen", "127.0.0.1:0"]);
    let page = ui.get("/history?scenario=shop");
    let same = run(folder.path(), &["history", "--scenario", "shop", "--html", "-"]);
    assert_eq!(page.split_once("\r\n\r\n").unwrap().1, stdout(&same), "{}", stderr(&same));
    assert!(page.contains("class=\"cut bad\"") && page.contains("worse from 06-shop on: p99"), "{page}");
    let none = ui.get("/history?scenario=%3Cb%3E");
    assert!(none.starts_with("HTTP/1.1 404 ") && none.contains("there are runs of shop"), "{none}");
    assert!(!none.contains("text/html"), "{none}");
}

#[test]
fn two_runs_compared_are_what_tidemark_compare_says() {
    let folder = tempfile::tempdir().unwrap();
    for (name, us) in [("a", 20_000), ("b", 30_000)] {
        let one = StoredRun { us: [10_000, us], ..StoredRun::default() };
        one.write(&folder.path().join("runs").join(name));
    }
    let ui = Listening::start(folder.path(), &["ui", "--listen", "127.0.0.1:0"]);
    let mut page = ui.get("/compare?a=a&b=b").split_once("\r\n\r\n").unwrap().1.to_owned();
    // the links to both reports are all that is more
    for (side, name) in [("A", "a"), ("B", "b")] {
        let link = format!(", <a href=\"/runs/{name}/report.html\">report of {side}</a>");
        assert_eq!(page.matches(&link).count(), 1, "{page}");
        page = page.replace(&link, "");
    }
    let same = run(folder.path(), &["compare", "a", "b", "--html", "compared.html", "--quiet"]);
    assert_eq!(page, fs::read_to_string(folder.path().join("compared.html")).unwrap(), "{}", stderr(&same));
    assert!(page.contains("B against A"), "{page}");
}

#[test]
fn it_says_what_is_wrong_and_stops_when_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(folder.path(), &["ui"], "there is no folder runs; tidemark run makes it");
    fs::create_dir(folder.path().join("runs")).unwrap();
    let mut first = Listening::start(folder.path(), &["ui", "--listen", "127.0.0.1:0"]);
    let output = run(folder.path(), &["ui", "--listen", &first.address]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("name another with --listen"), "{}", stderr(&output));
    send(first.child.id(), Signal::TERM);
    wait_until("it stops", || first.child.try_wait().unwrap().is_some());
    assert_eq!(first.child.wait().unwrap().code(), Some(0));
}
