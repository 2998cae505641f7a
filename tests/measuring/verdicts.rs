//! The verdicts that a person would give: a server fails by an exact share, in each way, under each kind of load, with and
//! without objectives; each row is a run of the program.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tidemark_truth::{Behaviour, Down, Freeze, Misbehaviour, Refusing, Server};

/// Runs at the same time; each is idle most of the time.
const AT_ONCE: usize = 4;
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

fn table() -> Vec<Row> {
    let mut rows = Vec::new();
    let loads = [("open", OPEN), ("closed", CLOSED)];
    for fault in kinds() {
        for (model, load) in loads {
            let row = |name: &str, of: u32, objectives: &[&'static str], says| Row {
                name: format!("{fault} in one of {of}, {model}, {name}"),
                serving: failing(fault, of),
                load,
                objectives: objectives.to_vec(),
                says,
                failing: Some(1.0 / f64::from(of)),
            };
            rows.push(row("no objective", 4, &[], Fail));
            rows.push(row("a percentile within the good ones", 4, &["p50 < 10s"], Fail));
            rows.push(row("a percentile beyond them", 4, &["p99 < 10s", "errors < 90%", "rate > 1/s"], Fail));
            rows.push(row("allowed", 4, &["p50 < 10s", "errors < 90%", "rate > 1/s"], Pass));
        }
    }
    let mut other = |name: &str, serving, load, objectives: &[&'static str], says| {
        let objectives = objectives.to_vec();
        rows.push(Row { name: name.into(), serving, load, objectives, says, failing: None });
    };
    let right = || Serving::Behaves(Behaviour::default());
    let late = || failing(Misbehaviour::Late(Duration::from_millis(60)), 1);
    for (model, load) in loads {
        other(&format!("all is well, {model}"), right(), load, &[], Pass);
        other(
            &format!("all is well, {model}, every bound"),
            right(),
            load,
            &["max < 10s", "errors = 0"],
            Pass,
        );
        other(&format!("late, {model}, nobody minds"), late(), load, &[], Pass);
        other(&format!("late, {model}, and it matters"), late(), load, &["p50 < 20ms"], Fail);
        other(&format!("refused, {model}"), Serving::Refuses, load, &[], Fail);
        other(&format!("refused, {model}, latency only"), Serving::Refuses, load, &["p99 < 10s"], Fail);
        let half = Down { after: Duration::from_millis(1_300), length: Duration::from_millis(600) };
        let down = Serving::Behaves(Behaviour { down: Some(half), ..Behaviour::default() });
        other(&format!("down for a while, {model}"), down, load, &["p50 < 10s"], Fail);
    }
    let slow = || Serving::Behaves(Behaviour { capacity_per_s: Some(20.0), ..Behaviour::default() });
    other("a backlog that grows", slow(), &["-r", "80/s", "-T", "30s"], &[], Fail);
    other("a backlog that grows, rate", slow(), &["-r", "80/s", "-T", "30s"], &["rate > 60/s"], Fail);
    // 6.67 each second is what it can do
    let slower = || Serving::Behaves(Behaviour { capacity_per_s: Some(20.0 / 3.0), ..Behaviour::default() });
    let evenly: &[_] = &["-r", "10/s", "-T", "30s", "--for", "8s"];
    other("a small backlog that grows evenly", slower(), evenly, &[], Fail);
    other("a rate that it can do", slower(), &["-r", "5/s", "-T", "30s", "--for", "8s"], &[], Pass);
    // each takes 60 ms, so that two connections carry 33 each second
    let two: &[_] = &["-r", "60/s", "-c", "2", "-T", "30s", "--for", "4s"];
    other("what waits for connections drains", late(), two, &[], Invalid);
    other("as fast as it can", slow(), CLOSED, &["errors = 0"], Pass);
    let ever = Duration::from_secs(3_600);
    let after = Duration::from_millis(2_300);
    for (name, length) in [("gone for good", ever), ("gone for two seconds", Duration::from_secs(2))] {
        let down = Serving::Behaves(Behaviour { down: Some(Down { after, length }), ..Behaviour::default() });
        other(name, down, &["-c", "1", "--for", "5s"], &[], Fail);
    }
    for (name, length) in [("silent for good", ever), ("silent beyond the end", Duration::from_secs(4))] {
        let freeze = Some(Freeze { after, length });
        let silent = Serving::Behaves(Behaviour { freeze, ..Behaviour::default() });
        other(name, silent, &["-c", "2", "--for", "4s", "-T", "6s"], &[], Fail);
    }
    // wherever seconds begin, and though nobody allows more to fail than by default may
    let ms = Duration::from_millis;
    let down = |after, length| {
        let down = Some(Down { after: ms(after), length });
        Serving::Behaves(Behaviour { down, ..Behaviour::default() })
    };
    let silent = |after, length| {
        let freeze = Some(Freeze { after: ms(after), length });
        Serving::Behaves(Behaviour { freeze, ..Behaviour::default() })
    };
    other("gone in the last but one second", down(2_500, ever), &["-c", "4", "--for", "3s"], &[], Fail);
    let strict = &["errors < 0.1%", "p50 < 10s"];
    other("gone over a second's edge", down(2_300, ms(1_500)), &["-c", "4", "--for", "4s"], strict, Fail);
    let patient: &[_] = &["-c", "4", "--for", "4s", "-T", "1600ms"];
    other("silent over a second's edge", silent(2_300, ms(1_750)), patient, &[], Fail);
    let to_the_end: &[_] = &["-c", "4", "--for", "3s", "-T", "3s"];
    other("silent from the last moments on", silent(3_600, ever), to_the_end, &[], Fail);
    let slow = failing(Misbehaviour::Late(Duration::from_millis(2_500)), 1);
    other("slower than the window is long", slow, &["-r", "40/s", "-c", "200", "-T", "30s"], &[], Invalid);
    let slow = || failing(Misbehaviour::Late(Duration::from_millis(1_500)), 1);
    let lasting: &[_] = &["-r", "40/s", "-c", "200", "-T", "30s", "--for", "6s"];
    other("slower than a half of a window is long", slow(), lasting, &["errors = 0"], Pass);
    let few: &[_] = &["-r", "20/s"];
    other("too few for a percentile", right(), few, &["p99.9 < 10s"], Invalid);
    other("too few, and slower than the bound", late(), few, &["p99.9 < 20ms"], Fail);
    other("few, by its slowest", right(), few, &["max < 10s"], Pass);
    let allowed: &[_] = &["errors < 50%", "p50 < 10s"];
    other("allowed to fail, and so not achieved", failing(Misbehaviour::Silence, 4), OPEN, allowed, Pass);
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

/// What is wrong with what the program says, if anything.
fn wrong(row: &Row) -> Option<String> {
    let (exit, summary) = run(row);
    if summary.is_null() {
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
    let rows = table();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let (next, mistakes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(mistake) = wrong(row) {
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
                wrong(row).inspect(|again| mistake.push_str(&format!("\n  again: {again}"))).is_some()
            })
        });
    }
    let mistakes: Vec<String> = mistakes.into_iter().map(|(_, mistake)| mistake).collect();
    let _ = writeln!(std::io::stderr(), "{} runs", rows.len());
    assert!(mistakes.is_empty(), "{} of {}:\n{}", mistakes.len(), rows.len(), mistakes.join("\n"));
}
