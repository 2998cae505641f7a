//! What a session's own steps, and the scenario's own bounds, do to the verdict.

use std::path::Path;

use super::*;
use tidemark_record::{Outcome, ThreadInterval, summarize};
use tidemark_scenario::Expr;
use tidemark_scenario::plan::{LoadModel, Objective, Op, SessionKind, Spacing};

use crate::silence::FailedBy;

use crate::test_plan::series;

const OPEN: LoadModel = LoadModel::Open(Spacing::Poisson);
const CLOSED: LoadModel = LoadModel::Closed;
const WELL: &[(u64, u32)] = &[(3_000, 40)];

/// Ten measured seconds.
#[derive(Clone, Copy)]
struct Ran<'a> {
    model: LoadModel,
    objectives: &'a [&'a str],
    /// Good answers: after so many microseconds, so many.
    good: &'a [(u64, u32)],
    /// Those that failed after a second.
    failed: &'a [(Outcome, u32)],
    dropped: u64,
    failed_steps: u64,
    computing_ms: u64,
    unconnected: &'a [(Option<u16>, u64)],
    connections: Option<usize>,
    thinks: bool,
    is_part: bool,
    system_ended: Option<&'a str>,
    outages: &'a [Outage],
}

const RAN: Ran<'static> = Ran {
    model: OPEN,
    objectives: &[],
    good: WELL,
    failed: &[],
    dropped: 0,
    failed_steps: 0,
    computing_ms: 0,
    unconnected: &[],
    connections: None,
    thinks: false,
    is_part: false,
    system_ended: None,
    outages: &[],
};

fn kind(ops: Vec<Op>) -> SessionKind {
    let (name, slot_names) = ("a".into(), Vec::new());
    SessionKind { name, weight: 1, slots: 0, slot_names, keep_cookies: false, ops, script: None }
}

fn judged(ran: &Ran<'_>) -> (Verdict, Vec<ObjectiveResult>, Summary) {
    let mut plan = crate::test_plan::plan(ran.model);
    plan.objectives = ran.objectives.iter().map(|text| Objective::read(text).unwrap()).collect();
    if ran.thinks {
        plan.sessions.push(kind(vec![Op::Think(Expr::int(1)), Op::End]));
    }
    plan.limits.connections_named = ran.connections.is_some();
    plan.limits.connections = ran.connections.unwrap_or(1_000);
    let mut interval = ThreadInterval::empty(0, 1_000_000, 11_000_000);
    interval.in_window = true;
    let good = ran.good.iter().map(|&(us, count)| series(0, Outcome::Ok, us, count));
    let failed = ran.failed.iter().map(|&(outcome, count)| series(0, outcome, 1_000_000, count));
    interval.series = good.chain(failed).collect();
    (interval.dropped, interval.measured_dropped) = (ran.dropped, ran.dropped);
    let ended: u64 = interval.series.iter().map(|of| of.response_time_us.len()).sum();
    interval.measured_offered = ended + ran.dropped;
    interval.sessions_begun = vec![(0, ended)];
    interval.counters[tidemark_record::Counter::FailedSteps] = ran.failed_steps;
    interval.counters[tidemark_record::Counter::ComputingUs] = ran.computing_ms * 1_000;
    interval.unconnected = ran.unconnected.to_vec();
    let mut totals = Totals::new(&plan.labels);
    totals.add_interval(&interval);
    let summary = summarize(&totals, Path::new("x"));
    let evidence = Evidence {
        is_part: ran.is_part,
        system_ended: ran.system_ended,
        outages: ran.outages,
        ..Evidence::of(&plan, &totals, &summary)
    };
    let (verdict, results) = judge(&evidence);
    (verdict, results, summary)
}

#[test]
fn a_step_that_fails_is_an_error_and_no_request() {
    let (verdict, results, summary) = judged(&Ran { failed_steps: 20, objectives: &["p90 < 5ms"], ..RAN });
    assert_eq!(verdict.status, Status::Fail, "{verdict:?}");
    assert!(results[0].met, "{results:?}");
    assert_eq!(
        verdict.reasons,
        [
            "errors < 0.1% missed: 33.3%; 20 steps of sessions failed and sent no request: see `variable` under Failures"
        ]
    );
    assert_eq!((summary.offered_per_s, summary.requests, summary.failed_steps), (4.0, 40, 20));
    assert_eq!((summary.steps[0].requests, summary.failed), (40, 0));
    assert!(summary.response_time_us.p90.is_some_and(|us| us < 3_010), "of requests that were due");
    for (objective, says) in [
        ("errors = 0", Status::Fail),
        ("errors < 20", Status::Fail),
        ("errors < 21", Status::Pass),
        ("errors < 33%", Status::Fail),
        ("errors < 34%", Status::Pass),
    ] {
        let (verdict, ..) = judged(&Ran { failed_steps: 20, objectives: &[objective], ..RAN });
        assert_eq!(verdict.status, says, "{objective}: {verdict:?}");
    }
    let (verdict, ..) = judged(&Ran { failed_steps: 20, good: &[], ..RAN });
    assert_eq!(verdict.status, Status::Invalid, "no request was due: {verdict:?}");
}

#[test]
fn a_run_whose_sessions_only_compute_is_not_decided() {
    let hurt: &[(Outcome, u32)] = &[(Outcome::Timeout, 30), (Outcome::Reset, 3)];
    for model in [OPEN, CLOSED] {
        for (computing_ms, failed, says) in [
            (1_000, &[][..], Status::Pass),
            (1_001, &[], Status::Invalid),
            (9_700, &[], Status::Invalid),
            (9_700, hurt, Status::Invalid),
            (0, hurt, Status::Fail),
            (900, hurt, Status::Fail),
        ] {
            let (verdict, ..) = judged(&Ran { model, computing_ms, failed, ..RAN });
            assert_eq!(verdict.status, says, "{model:?} {computing_ms} {failed:?}: {verdict:?}");
            let begin = "sessions only computed for ";
            assert_eq!(says == Status::Invalid, verdict.reasons.iter().any(|told| told.starts_with(begin)));
        }
    }
    let (verdict, ..) = judged(&Ran { computing_ms: 9_700, ..RAN });
    assert!(
        verdict.reasons[0].starts_with("sessions only computed for 97% of the window: is there an endless")
    );
    let (verdict, ..) = judged(&Ran { computing_ms: 9_700, good: &[], ..RAN });
    assert!(verdict.reasons[0].starts_with("sessions only computed for 97%"), "nothing due: {verdict:?}");
    let ended = Ran { computing_ms: 9_700, system_ended: Some("the system ended by itself"), ..RAN };
    assert_eq!(judged(&ended).0.status, Status::Fail, "that is certain");
}

#[test]
fn what_was_not_sent_for_want_of_a_connection_is_the_scenarios_bound() {
    // 2 connections, 40 answers each second of which each takes 100 ms: four are needed
    let short = Ran {
        good: &[(100_000, 190)],
        failed: &[(Outcome::Timeout, 200), (Outcome::Unfinished, 10)],
        unconnected: &[(Some(0), 210)],
        connections: Some(2),
        ..RAN
    };
    let (verdict, results, _) = judged(&short);
    assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
    assert_eq!(
        verdict.reasons[0],
        "the scenario's `limits: connections: 2` was the bound: 210 requests failed that waited for one; give more"
    );
    assert!(results.iter().all(|of| of.undecided_by == Some(Undecided::Connections)), "{results:?}");
    assert!(
        results[0].measured.ends_with("as measured, 0% without what waited for a connection"),
        "{results:?}"
    );
    let silent = |failed_by| Outage {
        reason: "the system stopped answering".into(),
        time: tidemark_record::Window { start_us: 2_000_000, end_us: 10_000_000 },
        failed_by,
        unheard_share: 0.0,
        counts_as_heard: true,
    };
    let (timed_out, refused) = ([silent(FailedBy::TimedOut)], [silent(FailedBy::Refused)]);
    let thinking = Ran { good: &[(1_000, 190)], thinks: true, ..short };
    let rows: &[(&str, Ran<'_>, Status)] = &[
        ("a time", Ran { objectives: &["p99 < 150ms"], ..short }, Status::Invalid),
        ("a time that the answers miss, too", Ran { objectives: &["p50 < 50ms"], ..short }, Status::Fail),
        ("allowed", Ran { objectives: &["errors < 90%", "rate > 5/s"], ..short }, Status::Pass),
        ("nobody named a number", Ran { connections: None, ..short }, Status::Fail),
        ("they were sent", Ran { unconnected: &[], ..short }, Status::Fail),
        ("half of them were sent", Ran { unconnected: &[(Some(0), 100)], ..short }, Status::Fail),
        (
            "wrong answers, too",
            Ran { failed: &[(Outcome::Timeout, 210), (Outcome::Status, 20)], ..short },
            Status::Fail,
        ),
        // the system was fast enough for two connections, and became slow
        ("a slow system", Ran { good: &[(1_000, 1), (100_000, 189)], ..short }, Status::Fail),
        ("fast answers, nobody thinks", Ran { good: &[(1_000, 190)], ..short }, Status::Fail),
        ("as if it were silent", Ran { outages: &timed_out, ..short }, Status::Invalid),
        ("it refuses", Ran { outages: &refused, ..short }, Status::Fail),
        ("connections held for think time", thinking, Status::Invalid),
        (
            "the same, and a request with one failed",
            Ran { unconnected: &[(Some(0), 209)], ..thinking },
            Status::Fail,
        ),
        ("a trial of a search", Ran { is_part: true, ..short }, Status::Fail),
        (
            "dropped, as no more may wait",
            Ran { failed: &[], dropped: 210, unconnected: &[(None, 210)], ..short },
            Status::Invalid,
        ),
        (
            "dropped for another reason",
            Ran { failed: &[], dropped: 210, unconnected: &[], ..short },
            Status::Fail,
        ),
        ("no good answer", Ran { good: &[], ..short }, Status::Fail),
    ];
    for (name, ran, says) in rows {
        let (verdict, ..) = judged(ran);
        assert_eq!(verdict.status, *says, "{name}: {verdict:?}");
        let is_told =
            verdict.reasons.iter().any(|reason| reason.contains("`limits: connections: 2` was the bound"));
        // beside what failed by itself it may be told, too
        assert!(is_told == (*says == Status::Invalid) || *says == Status::Fail, "{name}: {verdict:?}");
    }
}
