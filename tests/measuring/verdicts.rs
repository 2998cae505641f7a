//! The verdicts that a person would give, on runs of the program: a server fails by an exact share, in each way. The whole
//! table is in `tidemark_verdict`, in virtual time.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tidemark_truth::{Behaviour, Down, Freeze, Misbehaviour, Refusing, Server};

/// Runs at the same time; each is idle most of the time.
const AT_ONCE: usize = 6;
/// Rows whose runs are done again where they were wrong, at most.
const AGAIN_MAX: usize = 5;
/// A request that is not answered so soon has failed.
const TIMEOUT: &str = "150ms";
const OPEN: &[&str] = &["-r", "80/s"];
const CLOSED: &[&str] = &["-c", "2"];

/// Users who wait from the warm-up on for an answer that never comes: nothing is due in the measured window.
const NOTHING_DUE: &str = "all users hang since the warm-up";
/// A fast machine is through with all users before the window begins.
const HANG: &str = "users hang, and few requests do";

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Pass,
    Fail,
    /// That it cannot be told.
    Invalid,
}
use Says::{Fail, Invalid, Pass};

/// How the server is.
#[allow(clippy::large_enum_variant)] // a row each
enum Serving {
    Behaves(Behaviour),
    Refuses,
}

struct Row {
    name: String,
    serving: Serving,
    load: &'static [&'static str],
    objectives: Vec<&'static str>,
    says: Says,
    /// The share of the requests that fail, where it is exact.
    failing: Option<f64>,
}

fn kinds() -> [Misbehaviour; 10] {
    [
        Misbehaviour::Status(500),
        Misbehaviour::Status(404),
        Misbehaviour::Silence,
        Misbehaviour::HalfClose,
        Misbehaviour::Reset,
        Misbehaviour::ResetMidway,
        Misbehaviour::Close,
        Misbehaviour::HalfAnswer,
        Misbehaviour::LengthTooLong,
        Misbehaviour::NotHttp,
    ]
}

fn failing(fault: Misbehaviour, of: u32) -> Serving {
    Serving::Behaves(Behaviour { faults: fault.of_every(1, of), ..Behaviour::default() })
}

/// Some of the table that `tidemark_verdict` holds in virtual time: each way to fail, and each way to be read from a socket.
fn table() -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, fault) in kinds().into_iter().enumerate() {
        let (model, load) = if number % 2 == 0 { ("open", OPEN) } else { ("closed", CLOSED) };
        rows.push(Row {
            name: format!("{fault} in one of 4, {model}"),
            serving: failing(fault, 4),
            load,
            objectives: vec!["p50 < 10s"],
            says: Fail,
            failing: Some(0.25),
        });
    }
    let mut other = |name: &str, serving, load, objectives: &[&'static str], says| {
        let objectives = objectives.to_vec();
        rows.push(Row { name: name.into(), serving, load, objectives, says, failing: None });
    };
    let right = || Serving::Behaves(Behaviour::default());
    let late = || failing(Misbehaviour::Late(Duration::from_millis(60)), 1);
    for (model, load) in [("open", OPEN), ("closed", CLOSED)] {
        other(&format!("all is well, {model}"), right(), load, &["max < 10s", "errors = 0"], Pass);
        let allowed = &["p50 < 10s", "errors < 90%", "rate > 1/s"];
        other(
            &format!("allowed to fail, {model}"),
            failing(Misbehaviour::Status(500), 4),
            load,
            allowed,
            Pass,
        );
        other(&format!("late, {model}, and it matters"), late(), load, &["p50 < 20ms"], Fail);
    }
    other("refused", Serving::Refuses, OPEN, &[], Fail);
    let at_most = |capacity_per_s| {
        let capacity_per_s = Some(capacity_per_s);
        Serving::Behaves(Behaviour { capacity_per_s, ..Behaviour::default() })
    };
    other("a backlog that grows", at_most(20.0), &["-r", "80/s", "-T", "30s"], &[], Fail);
    let evenly: &[_] = &["-r", "10/s", "-T", "30s", "--for", "8s"];
    // 6.67 each second is what it can do
    other("a small backlog that grows evenly", at_most(20.0 / 3.0), evenly, &[], Fail);
    // each takes 60 ms, so that two connections carry 33 each second
    let two: &[_] = &["-r", "60/s", "-c", "2", "-T", "30s", "--for", "4s"];
    other("what waits for connections drains", late(), two, &[], Invalid);
    let after = Duration::from_millis(2_300);
    let down = Some(Down { after, length: Duration::from_secs(2) });
    let down = Serving::Behaves(Behaviour { down, ..Behaviour::default() });
    other("gone for two seconds", down, &["-c", "1", "--for", "5s"], &[], Fail);
    let freeze = Some(Freeze { after, length: Duration::from_secs(3_600) });
    let silent = Serving::Behaves(Behaviour { freeze, ..Behaviour::default() });
    other("silent for good", silent, &["-c", "2", "--for", "4s", "-T", "6s"], &[], Fail);
    let slow = failing(Misbehaviour::Late(Duration::from_millis(2_500)), 1);
    other("slower than the window is long", slow, &["-r", "40/s", "-c", "200", "-T", "30s"], &[], Invalid);
    // users of whom all but those of a few requests hang
    let hung: &[_] = &["-c", "8", "-T", "6s", "--for", "5s"];
    other(HANG, failing(Misbehaviour::Silence, 400), hung, &[], Fail);
    other(NOTHING_DUE, failing(Misbehaviour::Silence, 1), &["-c", "2", "-T", "3s"], &[], Fail);
    rows
}

/// What a run came to: exit status and figures.
fn run(row: &Row) -> (i32, Value) {
    let (mut refusing, mut server) = (None, None);
    let address = match &row.serving {
        Serving::Refuses => refusing.insert(Refusing::start().unwrap()).address().unwrap(),
        Serving::Behaves(behaviour) => server.insert(Server::start(behaviour.clone()).unwrap()).address(),
    };
    let mut command = crate::common::tidemark();
    command.args(["hit", &format!("http://{address}/"), "--json", "-t", "1"]);
    command.args(row.load);
    if !row.load.contains(&"--for") {
        command.args(["--for", "1s"]);
    }
    if !row.load.contains(&"-T") {
        command.args(["-T", TIMEOUT]);
    }
    for objective in &row.objectives {
        command.args(["--until", objective]);
    }
    let output = command.output().unwrap();
    if matches!(row.serving, Serving::Refuses) {
        // there is no run, and the same exit status
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("unreachable"), "{}: {said}", row.name);
        return (output.status.code().unwrap_or(-1), Value::Null);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = serde_json::from_str(&text);
    let summary = summary.unwrap_or_else(|error| {
        panic!("{}: {error}: {text}{}", row.name, String::from_utf8_lossy(&output.stderr))
    });
    drop((refusing, server.map(Server::stop)));
    (output.status.code().unwrap_or(-1), summary)
}

/// What is wrong with what the program says, if anything. `outright`: counts rows that are as they should be, and no driver was
/// held up.
fn wrong(row: &Row, outright: &AtomicUsize) -> Option<String> {
    let (exit, summary) = run(row);
    if summary.is_null() {
        outright.fetch_add(usize::from(exit == 1), Ordering::Relaxed);
        return (exit != 1).then(|| format!("{}: exit {exit}", row.name));
    }
    let status = summary["verdict"]["status"].as_str().unwrap_or("none");
    let reasons = &summary["verdict"]["reasons"];
    let told = format!("{}: {status}, exit {exit}, {reasons}", row.name);
    let count = |name: &str| summary[name].as_u64().unwrap_or(0);
    let due = count("requests") + count("dropped");
    // a wrong status, a refused or a broken connection is no driver's doing, however busy the machine is
    let errors = summary["errors"].as_object().into_iter().flatten();
    let own = errors.filter(|(kind, _)| !matches!(kind.as_str(), "timeout" | "unfinished"));
    let own: u64 = own.filter_map(|(_, count)| count.as_u64()).sum();
    let held_up =
        status == "invalid" && reasons[0].as_str().is_some_and(|why| why.starts_with("driver-bound"));
    let right = match row.says {
        Pass => (status, exit) == ("pass", 0) || held_up,
        Fail => (status, exit) == ("fail", 1) || (held_up && own * 100 <= due),
        Invalid => (status, exit) == ("invalid", 3),
    };
    if !right {
        return Some(told);
    }
    outright.fetch_add(usize::from(!held_up), Ordering::Relaxed);
    if row.name == NOTHING_DUE {
        return (due != 0).then(|| format!("{told}: {due} were due"));
    }
    if due == 0 && row.name == HANG {
        return None;
    }
    if due == 0 || count("failed") + summary["good"]["requests"].as_u64().unwrap_or(0) != due {
        return Some(format!("{told}: the sums do not agree: {summary}"));
    }
    let response = &summary["response_time_us"];
    if count("failed") > 0 && (!response["max"].is_null() || !response["mean"].is_null()) {
        return Some(format!("{told}: a failure took for ever: {response}"));
    }
    let share = count("failed") as f64 / due as f64;
    // the last of a list may be cut off by the end of the run
    row.failing
        .filter(|expected| (share - expected).abs() > 0.12)
        .map(|expected| format!("{told}: {share:.3} failed, not {expected:.3}"))
}

#[test]
fn each_run_has_the_verdict_that_a_person_would_give() {
    let mut rows = table();
    // those that take long stand last
    rows.reverse();
    let (next, outright, mistakes) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(mistake) = wrong(row, &outright) {
                        mistakes.lock().unwrap().push((row, mistake));
                    }
                }
            });
        }
    });
    let mut mistakes = mistakes.into_inner().unwrap();
    // a machine that stands still for longer than the time-out makes failures that the server did not; as long as they are
    // few, each of these gets two more runs, with nothing beside them
    if mistakes.len() <= AGAIN_MAX {
        mistakes.retain_mut(|(row, mistake)| {
            (0..2).all(|_| {
                wrong(row, &outright)
                    .inspect(|again| mistake.push_str(&format!("\n  again: {again}")))
                    .is_some()
            })
        });
    }
    let mistakes: Vec<String> = mistakes.into_iter().map(|(_, mistake)| mistake).collect();
    // a driver that is always held up would be right everywhere
    let outright = outright.into_inner();
    let _ = writeln!(std::io::stderr(), "{} runs, {outright} of them decided outright", rows.len());
    assert!(2 * outright >= rows.len(), "only {outright} of {} rows were decided outright", rows.len());
    assert!(mistakes.is_empty(), "{} of {}:\n{}", mistakes.len(), rows.len(), mistakes.join("\n"));
}
