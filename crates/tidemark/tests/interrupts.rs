//! Every way out of a run, and that nothing is left behind on any.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use program::{children, is_alive, send, tidemark, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// A long run in its measured phase, and the system that it started.
struct Running {
    child: Child,
    system: u32,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    fn start(folder: &Path) -> Running {
        let arguments = [
            "run",
            "airline",
            "--for",
            "10m",
            "--set",
            "durability=memory",
            "--set",
            "users=2",
            "--out",
            "out",
            "--json",
        ];
        let mut child =
            tidemark(folder, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("hold") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended before it measured");
        }
        let system = children(child.id());
        assert_eq!(system.len(), 1, "one system");
        let group = fs::read_to_string(format!("/proc/{}/stat", system[0])).unwrap();
        let group = group.rsplit(')').next().unwrap().split_whitespace().nth(2).map(str::to_owned);
        assert_eq!(group, Some(system[0].to_string()), "a terminal's Ctrl-C must not reach the system");
        Running { child, system: system[0], stderr }
    }

    /// Waits for the end: status, standard output, the rest of standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut rest) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), out, rest)
    }
}

#[test]
fn one_ctrl_c_stops_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path());
    let system = running.system;
    send(running.child.id(), Signal::INT);
    let (status, out, rest) = running.end();
    assert_eq!(status, Some(130), "{rest}");
    let summary: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(summary["run_dir"], "out");
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("out/run.json")).unwrap()).unwrap();
    assert_eq!(manifest["interrupted"], true);
    assert!(folder.path().join("out/report.html").is_file());
    assert!(!folder.path().join("out/data").exists());
    assert!(rest.contains("stopping"), "{rest}");
    assert!(!is_alive(system));
}

#[test]
fn two_ctrl_c_stop_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path());
    let (id, system) = (running.child.id(), running.system);
    // a system that stands still keeps requests under way, so that the first signal cannot be the end
    send(system, Signal::STOP);
    send(id, Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(300));
    send(id, Signal::INT);
    let (status, out, rest) = running.end();
    assert_eq!((status, out.as_str()), (Some(130), ""), "{rest}");
    assert!(!is_alive(system));
    assert!(rest.contains("tidemark report out"), "{rest}");
    reported(folder.path(), "it was stopped by the user before it came to its end");
}

#[test]
fn a_system_dies_with_a_run_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(folder.path());
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    wait_until("the system ends", || !is_alive(running.system));
    reported(folder.path(), "it was killed, or failed before it came to its end");
}

#[test]
fn a_system_that_dies_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path());
    send(running.system, Signal::KILL);
    let (status, out, rest) = running.end();
    let summary: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{rest}"));
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    assert!(
        reasons.iter().any(|reason| reason.as_str().unwrap().contains("killed by signal 9")),
        "{reasons:?}"
    );
    // invalid if it died before anything was measured
    assert!(matches!(status, Some(1 | 3)), "{status:?} {rest}");
    assert!(folder.path().join("out/report.html").is_file());
}

#[test]
fn ctrl_c_before_the_load_leaves_a_run_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // a system that takes connections and never answers
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let arguments = ["run", "airline", "--url", &url, "--out", "out"];
    let mut child =
        tidemark(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("loading data") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended before it loaded");
    }
    send(child.id(), Signal::TERM);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("stopped"), "{rest}");
    reported(folder.path(), "it was stopped by the user before its load began");
}

/// The run in `out` can be shown in every form, and again, and says how complete it is.
fn reported(folder: &Path, saying: &str) -> Value {
    let json = program::run(folder, &["report", "out", "--json"]);
    assert_eq!(program::code(&json), 0, "{}", program::stderr(&json));
    let summary: Value = serde_json::from_slice(&json.stdout).expect("one object");
    let reasons = summary["verdict"]["reasons"].as_array().expect("reasons");
    assert!(
        saying.is_empty()
            || reasons.iter().any(|reason| reason.as_str().is_some_and(|text| text.contains(saying))),
        "{reasons:?}"
    );
    let text = program::run(folder, &["report", "out"]);
    assert_eq!(program::code(&text), 0, "{}", program::stderr(&text));
    let page = program::run(folder, &["report", "out", "--html", "page.html"]);
    assert_eq!(program::code(&page), 0, "{}", program::stderr(&page));
    assert!(folder.join("page.html").is_file());
    summary
}

/// Interrupts short runs at moments all over their way: while the system starts, its data is loaded, in warm-up, hold and
/// drain, and while files are written. Whenever it is, what stays can be shown.
fn at_many_moments(signal: Signal, may_be: &[Option<i32>]) {
    let mut random = fastrand::Rng::new();
    for case in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let settings = ["durability=buffered", "users=2", "customers=200"];
        let mut arguments = vec!["run", "airline", "--for", "1s", "--out", "out", "--quiet", "--json"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let mut child =
            tidemark(folder.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // the directory is made within the first moments; before that there is no run
        wait_until("the run begins", || folder.path().join("out/unfinished.json").exists());
        // evenly, and each a little off: the whole takes about three seconds, of which start and end are short
        let moment_ms = case * 260 + random.u64(..260);
        std::thread::sleep(std::time::Duration::from_millis(moment_ms));
        let ended = child.try_wait().unwrap();
        if ended.is_none() {
            send(child.id(), signal);
        }
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap().code();
        // a run whose load was over is whole
        let whole = folder.path().join("out/report.html").exists() && matches!(status, Some(0 | 1 | 3));
        assert!(whole || may_be.contains(&status), "after {moment_ms} ms: {status:?} {said}");
        let summary = reported(folder.path(), "");
        if !whole && status.is_none() {
            assert!(
                ["invalid", "pass"].contains(&summary["verdict"]["status"].as_str().unwrap()),
                "{summary}"
            );
        }
    }
}

#[test]
fn ctrl_c_at_any_moment_leaves_a_run_that_can_be_shown() {
    at_many_moments(Signal::INT, &[Some(130)]);
}

#[test]
fn a_run_that_is_killed_at_any_moment_can_be_shown() {
    at_many_moments(Signal::KILL, &[None]);
}
