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
    assert!(!folder.path().join("out").exists(), "nothing was kept");
}

#[test]
fn a_system_dies_with_a_run_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(folder.path());
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    wait_until("the system ends", || !is_alive(running.system));
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
fn ctrl_c_before_the_load_leaves_nothing() {
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
    assert!(!folder.path().join("out").exists());
}
