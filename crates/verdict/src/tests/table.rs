//! The verdicts that a person would give: a server fails by an exact share, in each way, under each kind of load, with and
//! without objectives; each row is a run in virtual time. `tests/measuring/verdicts.rs` has some of them over sockets.

use std::path::Path;

use super::simulated::{Load, Misbehaviour, Server, Span, run};
use super::*;
use tidemark_record::summary::Status;
use tidemark_record::{Outcome, summarize, tell_achieved_due};

const OPEN: Load = Load { rate: Some(80.0), connections: 1_000, timeout_us: 150_000, window_s: 1 };
const CLOSED: Load = Load { rate: None, connections: 2, ..OPEN };
const SECONDS: u64 = 1_000_000;
/// Longer than any run.
const EVER_US: u64 = 3_600 * SECONDS;

struct Row {
    name: String,
    server: Server,
    load: Load,
    objectives: Vec<&'static str>,
    says: Status,
}

fn open(per_s: f64, window_s: u64) -> Load {
    Load { rate: Some(per_s), timeout_us: 30 * SECONDS, window_s, ..OPEN }
}

fn users(connections: usize, window_s: u64) -> Load {
    Load { connections, window_s, ..CLOSED }
}

fn failing(how: Misbehaviour, one_of: u64) -> Server {
    Server { misbehaves: Some((how, one_of)), ..Server::default() }
}

fn late(us: u64) -> Server {
    failing(Misbehaviour::Late(us), 1)
}

fn at_most(per_s: f64) -> Server {
    Server { capacity_per_s: Some(per_s), ..Server::default() }
}

/// From a time on, milliseconds, for a length, microseconds.
fn span(from_ms: u64, length_us: u64) -> Option<Span> {
    Some(Span { from_us: from_ms * 1_000, length_us })
}

fn down(from_ms: u64, length_us: u64) -> Server {
    Server { down: span(from_ms, length_us), ..Server::default() }
}

fn frozen(from_ms: u64, length_us: u64) -> Server {
    Server { frozen: span(from_ms, length_us), ..Server::default() }
}

fn table() -> Vec<Row> {
    use Status::{Fail, Invalid, Pass};
    let mut rows = Vec::new();
    let mut row = |name: String, server, load, objectives: &[&'static str], says| {
        rows.push(Row { name, server, load, objectives: objectives.to_vec(), says });
    };
    let right = Server::default();
    let kinds = [
        Misbehaviour::Fails(Outcome::Status),
        Misbehaviour::Fails(Outcome::Check),
        Misbehaviour::Fails(Outcome::Reset),
        Misbehaviour::Fails(Outcome::Connect),
        Misbehaviour::Fails(Outcome::Protocol),
        Misbehaviour::Silent,
    ];
    let loads = [("open", OPEN), ("closed", CLOSED)];
    for (model, load) in loads {
        for how in kinds {
            for of in [2, 4, 8] {
                let name = |what: &str| format!("{how:?} in one of {of}, {model}, {what}");
                let server = failing(how, of);
                row(name("no objective"), server, load, &[], Fail);
                row(name("a percentile within the good ones"), server, load, &["p50 < 10s"], Fail);
                let beyond = &["p99 < 10s", "errors < 90%", "rate > 1/s"];
                row(name("a percentile beyond them"), server, load, beyond, Fail);
                let within = if of == 2 { "p30 < 10s" } else { "p50 < 10s" };
                row(name("allowed"), server, load, &[within, "errors < 90%", "rate > 1/s"], Pass);
            }
        }
        let name = |what: &str| format!("{what}, {model}");
        row(name("all is well"), right, load, &[], Pass);
        row(name("all is well, every bound"), right, load, &["max < 10s", "errors = 0"], Pass);
        row(name("late, nobody minds"), late(60_000), load, &[], Pass);
        row(name("late, and it matters"), late(60_000), load, &["p50 < 20ms"], Fail);
        row(name("refused"), down(0, EVER_US), load, &[], Fail);
        row(name("refused, latency only"), down(0, EVER_US), load, &["p99 < 10s"], Fail);
        row(name("down for a while"), down(1_300, 600_000), load, &["p50 < 10s"], Fail);
    }
    let mut other = |name: &str, server, load, objectives: &[&'static str], says| {
        row(name.into(), server, load, objectives, says);
    };
    other("a backlog that grows", at_most(20.0), open(80.0, 1), &[], Fail);
    other("a backlog that grows, rate", at_most(20.0), open(80.0, 1), &["rate > 60/s"], Fail);
    let slower = at_most(20.0 / 3.0);
    other("a small backlog that grows evenly", slower, open(10.0, 8), &[], Fail);
    other("a rate that it can do", slower, open(5.0, 8), &[], Pass);
    let two = Load { connections: 2, ..open(60.0, 4) };
    other("what waits for connections drains", late(60_000), two, &[], Invalid);
    other("as fast as it can", at_most(20.0), CLOSED, &["errors = 0"], Pass);
    other("gone for good", down(2_300, EVER_US), users(1, 5), &[], Fail);
    other("gone for two seconds", down(2_300, 2 * SECONDS), users(1, 5), &[], Fail);
    let patient = |connections, window_s, timeout_us| Load { timeout_us, ..users(connections, window_s) };
    other("silent for good", frozen(2_300, EVER_US), patient(2, 4, 6 * SECONDS), &[], Fail);
    other("silent beyond the end", frozen(2_300, 4 * SECONDS), patient(2, 4, 6 * SECONDS), &[], Fail);
    other("gone in the last but one second", down(2_500, EVER_US), users(4, 3), &[], Fail);
    let strict = &["errors < 0.1%", "p50 < 10s"];
    other("gone over a second's edge", down(2_300, 1_500_000), users(4, 4), strict, Fail);
    other("silent over a second's edge", frozen(2_300, 1_750_000), patient(4, 4, 1_600_000), &[], Fail);
    other("silent from the last moments on", frozen(3_600, EVER_US), patient(4, 3, 3 * SECONDS), &[], Fail);
    let many = |window_s| Load { connections: 200, ..open(40.0, window_s) };
    other("slower than the window is long", late(2_500_000), many(1), &[], Invalid);
    other("slower than a half of a window is long", late(1_500_000), many(6), &["errors = 0"], Pass);
    let few = Load { rate: Some(20.0), ..OPEN };
    other("too few for a percentile", right, few, &["p99.9 < 10s"], Invalid);
    other("too few, and slower than the bound", late(60_000), few, &["p99.9 < 20ms"], Fail);
    other("few, by its slowest", right, few, &["max < 10s"], Pass);
    let allowed: &[_] = &["errors < 50%", "p50 < 10s"];
    other("allowed to fail, and so not achieved", failing(Misbehaviour::Silent, 4), OPEN, allowed, Pass);
    let hung = patient(8, 5, 6 * SECONDS);
    other("users hang, and few requests do", failing(Misbehaviour::Silent, 20_000), hung, &[], Fail);
    let hung = patient(2, 1, 3 * SECONDS);
    other("all users hang since the warm-up", failing(Misbehaviour::Silent, 1), hung, &[], Fail);
    rows
}

fn plan(row: &Row) -> Plan {
    let Load { rate, connections, timeout_us, window_s } = row.load;
    let load = rate.map_or_else(|| format!("users: {connections}"), |rate| format!("rate: {rate}/s"));
    let text = format!(
        "system: {{url: http://h}}\nsessions: {{a: {{steps: [{{GET: /}}]}}}}\nlimits: {{connections: {connections}}}\n\
         defaults: {{timeout: {timeout_us}us}}\nload: {{{load}, warm-up: 1s, hold: {window_s}s}}\nobjectives: {:?}\n",
        row.objectives
    );
    let (plan, said) = tidemark_scenario::check_text("row.yaml", &text, Path::new("."), &[]);
    plan.unwrap_or_else(|| panic!("{}: {said}", row.name))
}

fn judged(row: &Row) -> Verdict {
    let plan = plan(row);
    let mut totals = Totals::new(&plan.labels);
    let mut heard = silence::Silence::new(judges_errors(&plan));
    for interval in run(row.load, row.server) {
        totals.add_interval(&interval);
        heard.add(&interval);
    }
    let mut summary = summarize(&totals, Path::new("x"));
    if has_a_rate(&plan.load) {
        tell_achieved_due(&mut summary, &totals);
    }
    let (single, joined) = judged_by_silence(&plan);
    let outages = heard.outages(&single, &joined);
    crate::judge(&Evidence { outages: &outages, ..Evidence::of(&plan, &totals, &summary) }).verdict
}

#[test]
fn each_run_has_the_verdict_that_a_person_would_give() {
    let rows = table();
    assert!(rows.len() > 150, "{} rows", rows.len());
    let wrong = rows.iter().filter_map(|row| {
        let verdict = judged(row);
        (verdict.status != row.says)
            .then(|| format!("{}: {:?} {:?}", row.name, verdict.status, verdict.reasons))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
