//! Every way out of a run, and that nothing is left behind on any.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use crate::program::{begin, children, is_alive, send, tidemark, wait_until, write_airline};
use rustix::process::Signal;
use serde_json::Value;

/// Users at once: more than a system's threads could have requests in their hands.
const USERS: usize = 20;

/// A long run in its measured phase, and the system that it started.
struct Running {
    child: Child,
    system: u32,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    fn start(folder: &Path) -> Running {
        write_airline(folder);
        let arguments = [
            "run",
            "airline.yaml",
            "--for",
            "10m",
            "--set",
            "durability=memory",
            "--set",
            &format!("users={USERS}"),
            "--out",
            "out",
            "--json",
        ];
        let mut child = begin(folder, &arguments);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        heard(&mut stderr, "hold");
        let system = children(child.id());
        assert_eq!(system.len(), 1, "one system");
        let group = fs::read_to_string(format!("/proc/{}/stat", system[0])).unwrap();
        let group = group.rsplit(')').next().unwrap().split_whitespace().nth(2).map(str::to_owned);
        assert_eq!(group, Some(system[0].to_string()), "a terminal's Ctrl-C must not reach the system");
        Running { child, system: system[0], stderr }
    }

    /// Stops the system in its tracks, and waits until a request has come that it will not look at. From then on the run
    /// has something under way whatever it is told.
    fn freeze(&self) {
        send(self.system, Signal::STOP);
        wait_until("a request waits for the frozen system", || {
            is_stopped(self.system) && has_unread(self.system)
        });
    }

    /// Waits for the end: status, standard output, the rest of standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut rest) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), out, rest)
    }
}

/// Reads on until a line that begins with these words.
fn heard(stderr: &mut BufReader<ChildStderr>, words: &str) {
    let (mut line, mut all) = (String::new(), String::new());
    while !line.starts_with(words) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended and never said {words:?}: {all}");
        all.push_str(&line);
    }
}

/// Whether a process stands still by a signal, with all its threads.
fn is_stopped(id: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let states: Vec<_> = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok()).collect();
    !states.is_empty() && states.iter().all(|stat| stat.contains(") T "))
}

/// Whether bytes have come over a connection of a process that it has not read.
fn has_unread(id: u32) -> bool {
    let files = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    let sockets: HashSet<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    // columns: number, own end, other end, state (01 is connected), bytes to send:bytes to read, …, inode
    let table = fs::read_to_string(format!("/proc/{id}/net/tcp")).unwrap_or_default();
    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|columns| {
        columns.len() > 9
            && columns[3] == "01"
            && sockets.contains(columns[9])
            && columns[4].rsplit(':').next().is_some_and(|unread| unread.contains(|digit| digit != '0'))
    })
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
    let mut running = Running::start(folder.path());
    let (id, system) = (running.child.id(), running.system);
    // a system that stands still keeps requests under way, so that the first signal cannot be the end
    running.freeze();
    send(id, Signal::INT);
    // two that come before one was looked at are one
    heard(&mut running.stderr, "stopping");
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
    reported(folder.path(), "it was killed, or failed before ");
}

#[test]
fn ctrl_c_before_the_load_leaves_a_run_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // a system that takes connections and never answers
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let arguments = ["run", "airline", "--url", &url, "--out", "out"];
    let mut child = begin(folder.path(), &arguments);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    heard(&mut stderr, "loading data");
    send(child.id(), Signal::TERM);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("stopped"), "{rest}");
    reported(folder.path(), "it was stopped by the user before its load began");
}

/// The run in `out` can be shown in every form, and again, and says how complete it is.
fn reported(folder: &Path, saying: &str) -> Value {
    let json = crate::program::run(folder, &["report", "out", "--json"]);
    assert_eq!(crate::program::code(&json), 0, "{}", crate::program::stderr(&json));
    let summary = crate::program::json(&json);
    let reasons = summary["verdict"]["reasons"].as_array().expect("reasons");
    assert!(
        saying.is_empty()
            || reasons.iter().any(|reason| reason.as_str().is_some_and(|text| text.contains(saying))),
        "{reasons:?}"
    );
    let text = crate::program::run(folder, &["report", "out"]);
    assert_eq!(crate::program::code(&text), 0, "{}", crate::program::stderr(&text));
    let page = crate::program::run(folder, &["report", "out", "--html", "page.html"]);
    assert_eq!(crate::program::code(&page), 0, "{}", crate::program::stderr(&page));
    assert!(folder.join("page.html").is_file());
    summary
}

/// Interrupts short runs at moments all over their way: while the system starts, its data is loaded, in hold and drain, and
/// while files are written. Whenever it is, what stays can be shown.
fn at_many_moments(signal: Signal, may_be: &[Option<i32>]) {
    let mut random = fastrand::Rng::new();
    for case in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        write_airline(folder.path());
        let settings = ["durability=buffered", "users=2", "customers=200"];
        let mut arguments = vec!["run", "airline.yaml", "--for", "1s", "--out", "out", "--quiet", "--json"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let mut child =
            tidemark(folder.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // the directory is made within the first moments; before that there is no run
        wait_until("the run begins", || folder.path().join("out/unfinished.json").exists());
        // evenly, and each a little off: the whole takes about three seconds, of which start and end are short
        let moment_ms = case * 390 + random.u64(..390);
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
            // nothing failed, but on a busy machine the system may have been slower than the scenario wants it
            let verdict = &summary["verdict"];
            let missed = |reason: &Value| reason.as_str().is_some_and(|text| text.starts_with("p90 < "));
            let slow = verdict["reasons"].as_array().is_some_and(|reasons| reasons.iter().all(missed));
            assert!(slow || verdict["status"] == "invalid", "{summary}");
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
