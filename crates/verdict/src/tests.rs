//! The verdicts that a person would give.

use std::path::Path;
use std::time::Duration;

use super::*;
use tidemark_record::manifest::Undecided;
use tidemark_record::summary::{Latency, Status, Verified};
use tidemark_record::{CoreWaits, Outcome, RunWriter, Sample, ThreadInterval, summarize};
use tidemark_scenario::plan::{About, FileBody, LoadModel, Objective, RequestKind, Spacing, UploadPiece};

use crate::silence::Silence;
use crate::test_plan::series;

const OPEN: LoadModel = LoadModel::Open(Spacing::Poisson);
const CLOSED: LoadModel = LoadModel::Closed;

/// Ten measured seconds: what ended, how, after how long, and how many were dropped.
struct Ran<'a> {
    ended: &'a [(Outcome, u64, u32)],
    dropped: u64,
    in_flight: u64,
    offered: Option<u64>,
    limits: &'a [&'a str],
}

const RAN: Ran<'static> = Ran { ended: &[], dropped: 0, in_flight: 0, offered: None, limits: &[] };

/// The verdict before the ledger is held against the store, and what came of each objective.
fn judge(evidence: &Evidence<'_>) -> (Verdict, Vec<ObjectiveResult>) {
    let judgement = crate::judge(evidence);
    (judgement.without_ledger, judgement.objectives)
}

fn plan(model: LoadModel, objectives: &[&str]) -> Plan {
    let parse = |text: &&str| Objective::read(text).unwrap_or_else(|error| panic!("{error}"));
    Plan { objectives: objectives.iter().map(parse).collect(), ..crate::test_plan::plan(model) }
}

fn totals(plan: &Plan, ran: &Ran<'_>) -> Totals {
    totals_with(plan, ran, &[])
}

/// The same with looks at processes.
fn totals_with(plan: &Plan, ran: &Ran<'_>, samples: &[Sample]) -> Totals {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(folder.path(), &plan.labels, "").unwrap();
    let mut interval = ThreadInterval::empty(0, 1_000_000, 11_000_000);
    interval.in_window = true;
    (interval.dropped, interval.measured_dropped) = (ran.dropped, ran.dropped);
    interval.in_flight = ran.in_flight;
    let ended: u64 = ran.ended.iter().map(|(.., count)| u64::from(*count)).sum();
    interval.measured_offered = ran.offered.unwrap_or(ended + ran.dropped);
    interval.sessions_begun = vec![(0, ended)];
    interval.series = ran.ended.iter().map(|&(outcome, us, count)| series(0, outcome, us, count)).collect();
    writer.add_interval(&interval).unwrap();
    writer.add_samples(samples).unwrap();
    writer.totals().clone()
}

fn judged(model: LoadModel, objectives: &[&str], ran: &Ran<'_>) -> (Verdict, Vec<ObjectiveResult>) {
    let plan = plan(model, objectives);
    let totals = totals(&plan, ran);
    let mut summary = summarize(&totals, Path::new("x"));
    summary.driver.limits = ran.limits.iter().map(|limit| (*limit).to_owned()).collect();
    judge(&Evidence::of(&plan, &totals, &summary))
}

fn status(model: LoadModel, objectives: &[&str], ran: &Ran<'_>) -> Status {
    judged(model, objectives, ran).0.status
}

const fn ok(us: u64, count: u32) -> (Outcome, u64, u32) {
    (Outcome::Ok, us, count)
}

#[test]
fn a_percentile_is_of_all_that_was_due() {
    // 40 % time out; of the survivors every percentile is 3 ms
    let ran = Ran { ended: &[ok(3_000, 600), (Outcome::Timeout, 1_000_000, 400)], ..RAN };
    let (verdict, results) = judged(OPEN, &["p99 < 50ms", "p50 < 50ms", "max < 1h", "mean < 1h"], &ran);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(
        results.iter().map(|of| of.met).collect::<Vec<_>>(),
        [false, true, false, false, false, false]
    );
    assert_eq!(results[0].measured, "not reached: 40% had no good answer");
    assert_eq!(verdict.reasons[0], "p99 < 50ms missed: not reached: 40% had no good answer");
    // 7.6 %: p90 is a figure
    let ran = Ran { ended: &[ok(2_430, 924), (Outcome::Timeout, 1_000_000, 76)], ..RAN };
    let (_, results) = judged(OPEN, &["p90 < 50ms", "p95 < 50ms"], &ran);
    assert_eq!((results[0].met, results[1].met), (true, false));
    assert_eq!(results[1].measured, "not reached: 7.6% had no good answer");
}

#[test]
fn an_objective_on_a_percentile_that_there_are_too_few_requests_for_says_so() {
    let ran = Ran { ended: &[ok(3_000, 59), ok(40_000, 1)], ..RAN };
    let (verdict, results) = judged(OPEN, &["p99.9 < 50ms", "p99 < 20ms", "p90 < 20ms", "max < 50ms"], &ran);
    assert_eq!(verdict.status, Status::Fail);
    let told: Vec<_> = results.iter().take(4).map(|of| (of.met, of.measured.as_str())).collect();
    assert_eq!(
        told,
        [
            (false, "40ms (the slowest of 60; p99.9 needs 1000 requests); measure for at least 167s"),
            (false, "40ms (the slowest of 60; p99 needs 100 requests); measure for at least 17s"),
            (true, "3ms"),
            (true, "40ms"),
        ]
    );
    // slower than the bound: a larger share than may be; all within it: nobody knows
    assert_eq!([results[0].undecided, results[1].undecided], [true, false]);
    assert_eq!(results[0].undecided_by, Some(Undecided::TooFew));
    let (verdict, _) = judged(OPEN, &["p99.9 < 50ms"], &ran);
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons[0].starts_with("p99.9 < 50ms is not decided: 40ms"), "{verdict:?}");
    assert_eq!(status(OPEN, &["max < 50ms"], &ran), Status::Pass, "any number has a slowest");
    let enough = Ran { ended: &[ok(3_000, 1_000)], ..RAN };
    assert_eq!(status(OPEN, &["p99.9 < 50ms"], &enough), Status::Pass);
    // what was not reached says that
    let ran = Ran { ended: &[ok(3_000, 50), (Outcome::Timeout, 1_000_000, 10)], ..RAN };
    let (_, results) = judged(OPEN, &["p99 < 20ms"], &ran);
    assert_eq!(results[0].measured, "not reached: 16.7% had no good answer");
}

/// An open load in which a server that answers after 3 s, or refuses, takes this part of what is due; how it is judged, and
/// what held the driver up.
fn starved(ran: &Ran<'_>, objectives: &[&str], spin: bool, change: impl Fn(&mut Summary)) -> Verdict {
    let plan = plan(OPEN, objectives);
    let totals = totals(&plan, ran);
    let mut summary = summarize(&totals, Path::new("x"));
    summary.driver.lag_us.max = Some(10_000);
    summary.driver.read_lag_us = Some(Latency { p99: Some(1_000), max: Some(10_000), ..Latency::default() });
    change(&mut summary);
    summary.driver.limits = driver_limits(&summary, &totals, &plan.load, spin);
    judge(&Evidence { spin, ..Evidence::of(&plan, &totals, &summary) }).0
}

#[test]
fn an_open_load_that_fell_behind_a_driver_with_nothing_left_is_not_decided() {
    let ran = Ran { ended: &[ok(3_000_000, 30)], dropped: 970, ..RAN };
    let judged = |spin, change: &dyn Fn(&mut Summary)| starved(&ran, &["p99 < 50ms"], spin, change);
    let wanted = |share: f64| move |s: &mut Summary| s.driver.wanted_share = Some(share);
    let waited = |share: f64| move |s: &mut Summary| s.driver.waited_share = Some(share);
    let verdict = judged(false, &wanted(0.96));
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons.iter().any(|reason| reason.contains("never idle")), "{verdict:?}");
    assert_eq!(judged(false, &wanted(0.95)).status, Status::Fail, "it had some time left");
    assert_eq!(judged(true, &wanted(1.0)).status, Status::Fail, "who spins is never idle");
    let verdict = judged(true, &waited(0.51));
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons.iter().any(|reason| reason.contains("waited for a core for 51%")), "{verdict:?}");
    assert_eq!(judged(false, &waited(0.5)).status, Status::Fail);
    // what the server said itself is no doing of the driver
    let refused = Ran { ended: &[ok(3_000_000, 10), (Outcome::Status, 1_000, 20)], ..ran };
    assert_eq!(starved(&refused, &[], false, wanted(0.97)).status, Status::Fail);
}

/// A store that has a third of a core, beside a driver with room: the rest of the machine is others'.
#[test]
fn what_a_store_without_a_core_misses_in_time_is_the_machines_doing() {
    let judged = |model, ran: &Ran<'_>, core_wait_share| {
        let plan = plan(model, &["p99 < 50ms", "max < 1h"]);
        let totals = totals(&plan, ran);
        let mut summary = summarize(&totals, Path::new("x"));
        let (name, cpu_share) = ("kv".to_owned(), 0.33);
        summary.processes = vec![tidemark_record::summary::Process {
            name,
            cpu_share,
            core_wait_share: Some(core_wait_share),
            ..Default::default()
        }];
        judge(&Evidence::of(&plan, &totals, &summary))
    };
    let behind = Ran { ended: &[ok(300_000, 600)], offered: Some(1_000), ..RAN };
    let (verdict, results) = judged(OPEN, &behind, 0.67);
    assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
    assert_eq!(verdict.reasons[0], "machine-bound: p99 < 50ms is not decided: 300ms");
    assert!(verdict.reasons[1].starts_with("machine-bound: achieved > 99% of offered is not decided"));
    assert!(verdict.reasons[2].starts_with("machine-bound: kv was never idle"), "{verdict:?}");
    let told: Vec<_> = results.iter().take(2).map(|of| (of.met, of.undecided)).collect();
    assert_eq!(told, [(false, true), (true, false)]);
    let (verdict, _) = judged(OPEN, &behind, 0.5);
    assert_eq!(verdict.status, Status::Fail, "it had time left");
    assert!(!verdict.reasons.iter().any(|reason| reason.starts_with("machine-bound")));
    assert_eq!(
        judged(CLOSED, &behind, 0.67).0.status,
        Status::Fail,
        "users wait for it, and it has no rate to keep"
    );
    // no want of a core makes an answer wrong
    let wrong = Ran { ended: &[ok(300_000, 600), (Outcome::Check, 9, 400)], ..RAN };
    assert_eq!(judged(OPEN, &wrong, 0.67).0.status, Status::Fail);
}

#[test]
fn a_busy_driver_that_kept_up_excuses_nothing() {
    let slow = Ran { ended: &[ok(3_000_000, 995)], dropped: 5, ..RAN };
    for busy in [0.97, 1.0] {
        let change = |s: &mut Summary| {
            s.driver.wanted_share = Some(busy);
            // late by a little more than is always accepted
            (s.driver.lag_us.p99, s.good.response_time_us.p99) = (Some(2_000), Some(10_000));
        };
        assert_eq!(starved(&slow, &["p99 < 50ms", "errors < 2%"], false, change).status, Status::Fail);
    }
}

/// Users of five seconds of whom all failed so in the last three, while the driver waited for a core for so long in each.
fn fell_silent(outcome: Outcome, waited_us: u64) -> Outage {
    let mut silence = Silence::new(true);
    for second in 0..5 {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        let is_silent = second >= 2;
        let (outcome, waited_us) = if is_silent { (outcome, waited_us) } else { (Outcome::Ok, 900_000) };
        interval.in_window = true;
        interval.last_good_us = if is_silent { 1_999_999 } else { interval.end_us - 1 };
        interval.failed_us = is_silent.then_some((interval.start_us, interval.end_us - 1));
        interval.core_waits = Some(CoreWaits { waited_us, sleeps: 20 });
        interval.series = vec![series(0, outcome, 1_000, 50)];
        silence.add(&interval);
    }
    silence.outage().expect("a silence")
}

#[test]
fn a_silence_that_a_driver_without_a_core_did_not_hear_is_never_a_pass() {
    let plan = plan(CLOSED, &[]);
    let totals = totals(&plan, &Ran { ended: &[ok(9, 100)], ..RAN });
    let mut summary = summarize(&totals, Path::new("x"));
    // what counts are the silent seconds
    summary.driver.waited_share = Some(0.6);
    let judged = |outcome, waited_us, system_ended| {
        let outage = fell_silent(outcome, waited_us);
        judge(&Evidence {
            outages: std::slice::from_ref(&outage),
            system_ended,
            ..Evidence::of(&plan, &totals, &summary)
        })
        .0
    };
    let told = "the system stopped answering: in the last 3.0s no request succeeded and 150 failed, most of them by timeout";
    // it was on its core
    for waited_us in [0, 190_000] {
        let verdict = judged(Outcome::Timeout, waited_us, None);
        assert_eq!((verdict.status, verdict.in_words("\n")), (Status::Fail, told.to_owned()));
    }
    for (waited_us, percent) in [(250_000, 25), (900_000, 90)] {
        let verdict = judged(Outcome::Timeout, waited_us, None);
        let expected = format!(
            "driver-bound: the load generator was the bottleneck: {told}; or the load generator missed the answers: it had no core for up to {percent}% of that time"
        );
        assert_eq!((verdict.status, verdict.in_words("\n")), (Status::Invalid, expected));
    }
    assert_eq!(judged(Outcome::Timeout, 900_000, Some("killed")).reasons, ["killed"]);
    // refused connections are heard by whoever is there at times, answers that were read were heard
    assert_eq!(judged(Outcome::Connect, 250_000, None).status, Status::Fail);
    assert_eq!(judged(Outcome::Connect, 600_000, None).status, Status::Invalid);
    let verdict = judged(Outcome::Check, 900_000, None);
    assert_eq!((verdict.status, verdict.reasons.len()), (Status::Fail, 1), "{verdict:?}");
}

#[test]
fn what_is_proven_is_a_fail_though_the_driver_did_not_hear_a_silence() {
    let plan = plan(CLOSED, &[]);
    let outage = fell_silent(Outcome::Timeout, 900_000);
    let judged = |ran: &Ran<'_>| {
        let totals = totals(&plan, ran);
        let summary = summarize(&totals, Path::new("x"));
        judge(&Evidence { outages: std::slice::from_ref(&outage), ..Evidence::of(&plan, &totals, &summary) })
            .0
    };
    let wrong = judged(&Ran { ended: &[ok(9, 100), (Outcome::Check, 9, 100)], ..RAN });
    assert_eq!(wrong.status, Status::Fail);
    let undecided = judged(&Ran { ended: &[ok(9, 100)], ..RAN });
    assert_eq!(undecided.status, Status::Invalid);
    let verified = Some(Verified { lost: 1, ..Verified::default() });
    let gone = Ledger { acknowledged: 9, verified, ..Ledger::default() };
    let verdict = ledger::judge(&undecided, &[], &mut [], Some(&gone), true);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(verdict.reasons[0], "lost: 1 of 9 acknowledged writes are gone");
}

#[test]
fn a_silence_of_a_store_without_a_core_is_the_machines_doing() {
    let plan = plan(CLOSED, &[]);
    let judged = |outcome, core_wait_share| {
        // before the silence it has its core
        let sample = |second: u64| Sample {
            at_us: second * 1_000_000,
            process: "kv".into(),
            cpu_share: 0.33,
            core_wait_share: if second > 2 { core_wait_share } else { 0.0 },
            ..Sample::default()
        };
        let samples: Vec<Sample> = (1..=11).map(sample).collect();
        let totals = totals_with(&plan, &Ran { ended: &[ok(9, 100)], ..RAN }, &samples);
        let summary = summarize(&totals, Path::new("x"));
        let outage = fell_silent(outcome, 0);
        judge(&Evidence { outages: std::slice::from_ref(&outage), ..Evidence::of(&plan, &totals, &summary) })
            .0
    };
    let verdict = judged(Outcome::Timeout, 0.67);
    assert_eq!((verdict.status, verdict.reasons.len()), (Status::Invalid, 2), "{verdict:?}");
    assert!(verdict.reasons[0].starts_with("machine-bound: the system stopped answering"), "{verdict:?}");
    assert!(verdict.reasons[1].starts_with("machine-bound: kv was never idle"), "{verdict:?}");
    assert_eq!(judged(Outcome::Timeout, 0.5).status, Status::Fail, "it had time left");
    assert_eq!(judged(Outcome::Connect, 0.67).status, Status::Fail, "no want of a core refuses a connection");
}

#[test]
fn a_group_that_only_fails_or_never_ends_is_told() {
    let plan = Plan { groups: vec!["Buy".into()], ..plan(CLOSED, &[]) };
    let with = |outcome, count, good| {
        let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, 90_000)], ..RAN });
        totals.set_groups(&plan.groups);
        let mut drain = ThreadInterval::empty(0, 11_000_000, 12_000_000);
        drain.groups = vec![series(0, outcome, 1_000, count), series(0, Outcome::Ok, 1_000, good)];
        totals.add_interval(&drain);
        let summary = summarize(&totals, Path::new("x"));
        judge(&Evidence::of(&plan, &totals, &summary)).0
    };
    let never = "group `Buy` never ended within the load and its drain, 36 times";
    assert_eq!(with(Outcome::Unfinished, 36, 0).reasons, [never]);
    assert_eq!(with(Outcome::Check, 36, 0).reasons, ["all 36 groups `Buy` failed"]);
    assert_eq!(with(Outcome::Unfinished, 36, 1).status, Status::Pass);
    assert_eq!(with(Outcome::Unfinished, 9, 0).status, Status::Pass, "may be chance");
}

#[test]
fn a_rate_of_what_only_fails_is_no_matter_of_the_driver() {
    let limits = &["its busiest thread was on a CPU for 99 % of the time"];
    let of = |outcome| {
        let ran = Ran { ended: &[(outcome, 1_000, 500)], limits, ..RAN };
        let (_, results) = judged(CLOSED, &["rate > 1/s"], &ran);
        (results[0].met, results[0].undecided)
    };
    assert_eq!(of(Outcome::Status), (false, false));
    assert_eq!(of(Outcome::Check), (false, false));
    assert_eq!(of(Outcome::Timeout), (false, true), "which may be its own");
}

#[test]
fn each_kind_of_failure_fails_a_run_without_objectives() {
    for outcome in Outcome::ALL.into_iter().filter(|outcome| outcome.is_error()) {
        for model in [OPEN, CLOSED] {
            let ran = Ran { ended: &[ok(1_000, 998), (outcome, 1_000, 2)], ..RAN };
            let (verdict, results) = judged(model, &[], &ran);
            assert_eq!(verdict.status, Status::Fail, "{outcome:?}");
            assert_eq!(verdict.reasons[0], "errors < 0.1% missed: 0.2%");
            assert!(results.iter().all(|of| of.default));
            let ran = Ran { ended: &[ok(1_000, 1_999), (outcome, 1_000, 1)], ..RAN };
            assert_eq!(status(model, &[], &ran), Status::Pass, "one in two thousand");
        }
    }
    let dropped = Ran { ended: &[ok(1_000, 998)], dropped: 2, ..RAN };
    assert_eq!(status(OPEN, &[], &dropped), Status::Fail);
}

#[test]
fn an_objective_on_the_matter_takes_the_place_of_a_default() {
    let ran = Ran { ended: &[ok(1_000, 950), (Outcome::Status, 1_000, 50)], ..RAN };
    assert_eq!(status(CLOSED, &[], &ran), Status::Fail);
    assert_eq!(status(CLOSED, &["errors < 10%"], &ran), Status::Pass);
    assert_eq!(status(OPEN, &["errors < 10%"], &ran), Status::Pass, "what may fail need not be achieved");
    assert_eq!(status(OPEN, &["errors < 10%", "achieved > 99% of offered"], &ran), Status::Fail);
    let dropped = Ran { ended: &[ok(1_000, 800)], dropped: 200, ..RAN };
    assert_eq!(status(OPEN, &["errors < 10%"], &dropped), Status::Fail);
    assert_eq!(status(OPEN, &["errors <= 100%"], &dropped), Status::Fail, "it was never asked");
    let failed = Ran { ended: &[ok(1_000, 700), (Outcome::Status, 1_000, 300)], ..RAN };
    assert_eq!(status(OPEN, &["errors <= 100%"], &failed), Status::Pass);
    assert_eq!(status(OPEN, &["errors < 10%", "achieved > 90% of offered"], &ran), Status::Pass);
    assert_eq!(status(OPEN, &["errors < 10%", "rate > 90/s"], &ran), Status::Pass);
    assert_eq!(status(CLOSED, &["p50 < 10ms"], &ran), Status::Fail, "not on the matter");
    let left = defaults(&plan(OPEN, &["errors < 10%", "rate < 9k/s"]));
    assert_eq!(left.len(), 1, "nor is the other side of it");
    assert_eq!(status(CLOSED, &["errors > 0"], &ran), Status::Fail);
}

#[test]
fn a_rate_is_of_good_answers() {
    let ran = Ran { ended: &[ok(1_000, 520), (Outcome::Status, 1_000, 480)], ..RAN };
    let (verdict, results) = judged(CLOSED, &["rate > 90/s", "errors < 100%"], &ran);
    assert_eq!((verdict.status, results[0].measured.as_str()), (Status::Fail, "52/s"));
}

#[test]
fn a_backlog_is_not_what_was_achieved() {
    // 100/s offered; 25/s answered within ten seconds, after seven seconds: no failure at all
    let ran = Ran { ended: &[ok(7_000_000, 250)], offered: Some(1_000), ..RAN };
    let (verdict, _) = judged(OPEN, &[], &ran);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(verdict.reasons[0], "achieved > 99% of offered missed: 25% of offered");
    assert_eq!(status(CLOSED, &[], &ran), Status::Pass, "nothing was due that was not asked for");
}

#[test]
fn what_was_under_way_at_the_end_is_achieved_as_far_as_it_was_in_time() {
    // 10/s for 10 s, each takes a second: the last ten end behind the window
    let plan = plan(OPEN, &[]);
    let mut all =
        totals(&plan, &Ran { ended: &[ok(1_000_000, 90)], in_flight: 10, offered: Some(100), ..RAN });
    let mut drain = ThreadInterval::empty(0, 11_000_000, 12_000_000);
    drain.series = vec![series(0, Outcome::Ok, 1_000_000, 10)];
    all.add_interval(&drain);
    assert!((all.achieved_share() - 1.0).abs() < 1e-9);
    let mut slow =
        totals(&plan, &Ran { ended: &[ok(100_000, 60)], in_flight: 40, offered: Some(100), ..RAN });
    drain.series = vec![series(0, Outcome::Ok, 100_000, 40)];
    slow.add_interval(&drain);
    // sixty, and what is in service of 6/s that take 0.1 s
    assert!((slow.achieved_share() - 0.606).abs() < 1e-4, "{}", slow.achieved_share());
}

/// One under way at the end, and none halfway, is no backlog that grew: the next is answered as soon.
#[test]
fn one_request_that_ends_behind_the_window_is_no_backlog() {
    let second = |index: u64, good: u32, in_flight: u64| ThreadInterval {
        in_window: index < 4,
        measured_offered: if index < 4 { 8 } else { 0 },
        in_flight,
        series: vec![series(0, Outcome::Ok, 9_000, good)],
        ..ThreadInterval::empty(0, index * 1_000_000, (index + 1) * 1_000_000)
    };
    let share = |under_way: u32| {
        let mut totals = Totals::new(&["A".into()]);
        let seconds = [(8, 0), (8, 0), (8, 0), (8 - under_way, u64::from(under_way)), (under_way, 0)];
        let seconds = seconds.into_iter().zip(0..);
        seconds.for_each(|((good, in_flight), at)| totals.add_interval(&second(at, good, in_flight)));
        totals.achieved_share()
    };
    assert_eq!((share(1), share(3)), (1.0, 1.0));
    assert!(share(8) < 0.9, "{}", share(8));
}

/// What was answered in the window had been due before it; what is due in it waits.
#[test]
fn answers_to_what_was_due_before_the_window_are_not_what_was_achieved() {
    let plan = plan(OPEN, &[]);
    let mut totals = totals(&plan, &Ran { in_flight: 300, offered: Some(300), ..RAN });
    let mut before = ThreadInterval { in_window: true, ..ThreadInterval::empty(0, 2_000_000, 3_000_000) };
    before.series =
        vec![tidemark_record::Series { measured: false, ..series(0, Outcome::Ok, 2_000_000, 300) }];
    totals.add_interval(&before);
    let mut drain = ThreadInterval::empty(0, 11_000_000, 12_000_000);
    drain.series = vec![series(0, Outcome::Ok, 3_000_000, 300)];
    totals.add_interval(&drain);
    assert!(totals.achieved_share() < 0.5, "{}", totals.achieved_share());
}

#[test]
fn a_label_that_only_fails_is_told_however_rare_it_is() {
    let plan = Plan { labels: vec!["List".into(), "Pay".into()], ..plan(CLOSED, &[]) };
    let with = |bad, good| {
        let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, 90_000)], ..RAN });
        let mut rare = ThreadInterval { in_window: true, ..ThreadInterval::empty(0, 2_000_000, 3_000_000) };
        rare.series = vec![series(1, Outcome::Status, 1_000, bad), series(1, Outcome::Ok, 1_000, good)];
        totals.add_interval(&rare);
        let summary = summarize(&totals, Path::new("x"));
        judge(&Evidence::of(&plan, &totals, &summary)).0
    };
    assert_eq!(with(36, 0).reasons, ["all 36 requests of `Pay` failed"]);
    assert_eq!(with(36, 1).status, Status::Fail);
    assert_eq!(with(7, 0).reasons, ["all 7 requests of `Pay` failed"]);
    assert_eq!(with(1, 0).status, Status::Pass, "may be chance");
    assert_eq!(with(1, 99).status, Status::Pass, "so may this");
    let verdict = with(8, 92);
    assert_eq!(
        verdict.reasons,
        ["8 of 100 requests of `Pay` failed (8%), which is more than `errors < 0.1%` allows, beyond chance"]
    );
}

#[test]
fn fail_comes_before_invalid() {
    let limits = &["its busiest thread was on a CPU for 99 % of the time"];
    // 94 % are refused: no driver makes a server do that
    let ran = Ran { ended: &[ok(1_000, 60), (Outcome::Connect, 100, 940)], limits, ..RAN };
    let (verdict, _) = judged(OPEN, &[], &ran);
    assert_eq!(verdict.status, Status::Fail);
    assert!(verdict.reasons[0].starts_with("errors < 0.1% missed: 94%"), "{:?}", verdict.reasons);
    // nor does it make one answer wrongly
    let wrong = Ran { ended: &[ok(1_000, 930), (Outcome::Status, 100, 70)], limits, ..RAN };
    let (verdict, _) = judged(OPEN, &["errors < 5%"], &wrong);
    assert_eq!((verdict.status, verdict.reasons.len()), (Status::Fail, 2), "{:?}", verdict.reasons);
    // time-outs of a driver that was held up may be its own
    let ran = Ran { ended: &[ok(1_000, 60), (Outcome::Timeout, 100, 940)], limits, ..RAN };
    let (verdict, results) = judged(CLOSED, &[], &ran);
    assert_eq!(verdict.status, Status::Invalid);
    assert!(results[0].undecided && !results[0].met);
    assert_eq!(
        verdict.reasons,
        [
            "driver-bound: the load generator was the bottleneck: errors < 0.1% is not decided: 94% as measured, 0% with the load generator's own share taken out",
            "driver-bound: its busiest thread was on a CPU for 99 % of the time"
        ]
    );
}

#[test]
fn what_took_much_longer_than_the_driver_was_late_is_not_its_doing() {
    let plan = plan(OPEN, &["p99 < 50ms"]);
    // 8 % have no answer within a second
    let totals = totals(&plan, &Ran { ended: &[ok(2_000, 920), (Outcome::Timeout, 1_000_000, 80)], ..RAN });
    let mut summary = summarize(&totals, Path::new("x"));
    summary.driver.limits = vec!["requests left late".into()];
    let judged = |summary: &Summary| judge(&Evidence::of(&plan, &totals, summary)).0;
    let times = |max| Latency { p99: Some(max), max: Some(max), ..Latency::default() };
    // some milliseconds late
    (summary.driver.lag_us, summary.driver.read_lag_us) = (times(5_000), Some(times(5_000)));
    let verdict = judged(&summary);
    assert_eq!(verdict.status, Status::Fail, "{:?}", verdict.reasons);
    assert_eq!(verdict.reasons.len(), 3, "{:?}", verdict.reasons);
    // as late as the time-out is long
    summary.driver.lag_us = times(900_000);
    assert_eq!(judged(&summary).status, Status::Invalid);
    // nobody knows when answers came
    (summary.driver.lag_us, summary.driver.read_lag_us) = (times(5_000), None);
    assert_eq!(judged(&summary).status, Status::Invalid);
}

#[test]
fn where_every_objective_is_decided_either_way_the_verdict_stands() {
    let limits = &["answers lay unread"];
    let ran = Ran { ended: &[ok(2_000, 1_000)], limits, ..RAN };
    for model in [OPEN, CLOSED] {
        assert_eq!(status(model, &[], &ran), Status::Pass);
        // what it made is the least that the system can
        assert_eq!(status(model, &["rate > 90/s", "p99 < 10ms"], &ran), Status::Pass);
        let (verdict, results) = judged(model, &["rate > 200/s"], &ran);
        assert_eq!(verdict.status, Status::Invalid);
        assert_eq!(
            results[0].measured,
            "100/s as measured, maybe more with the load generator's own share taken out"
        );
    }
    let free = Ran { limits: &[], ..ran };
    assert_eq!(status(CLOSED, &["rate > 200/s"], &free), Status::Fail);
}

#[test]
fn nothing_measured_is_invalid() {
    for model in [OPEN, CLOSED] {
        let (verdict, results) = judged(model, &[], &RAN);
        assert_eq!(verdict.status, Status::Invalid);
        assert!(verdict.reasons[0].starts_with("nothing measured: no request was due"), "{verdict:?}");
        assert!(results.iter().all(|of| !of.met));
    }
    let (verdict, _) = judged(CLOSED, &["p99 < 1s"], &RAN);
    assert_eq!(verdict.status, Status::Fail, "somebody asked for it");
}

#[test]
fn nothing_measured_by_a_driver_without_a_core_decides_nothing() {
    let limit = "its threads waited for a core for 100 % of the time";
    for model in [OPEN, CLOSED] {
        let ran = Ran { limits: &[limit], ..RAN };
        let (verdict, results) = judged(model, &["errors = 0", "p99 < 1s", "rate > 9/s"], &ran);
        assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
        assert!(results.iter().take(3).all(|of| of.undecided && !of.met));
        let told = verdict.reasons.iter().any(|of| of.ends_with("errors = 0 is not decided: not measured"));
        assert!(told, "{verdict:?}");
        // also where nobody asked for anything
        let (verdict, _) = judged(model, &[], &ran);
        let told = verdict.reasons.last().unwrap();
        assert!(told.starts_with("driver-bound: ") && told.ends_with(limit), "{told}");
    }
    let (verdict, _) = judged(OPEN, &["lost = 0"], &Ran { limits: &[limit], ..RAN });
    assert!(!verdict.reasons.iter().any(|of| of.contains("lost = 0")), "the ledger decides it: {verdict:?}");
}

#[test]
fn nothing_was_due_because_nothing_was_answered() {
    let plan = plan(CLOSED, &[]);
    let judged = |outcome, waited_us, limits: &[&str]| {
        let mut phases = crate::test_plan::plan(CLOSED).load;
        phases.phases.push(crate::test_plan::phase("hold", 10.0, 1.0, true));
        let plan = Plan { load: phases, ..plan.clone() };
        let mut totals = totals(&plan, &RAN);
        let mut drain = ThreadInterval::empty(0, 11_000_000, 12_000_000);
        drain.series = vec![tidemark_record::Series { measured: false, ..series(0, outcome, waited_us, 2) }];
        totals.add_interval(&drain);
        let mut summary = summarize(&totals, Path::new("x"));
        summary.driver.limits = limits.iter().map(|limit| (*limit).to_owned()).collect();
        judge(&Evidence::of(&plan, &totals, &summary)).0
    };
    let long = [Outcome::Unfinished, Outcome::Connect, Outcome::Reset, Outcome::Status];
    let long = long.map(|outcome| (outcome, 11_500_000));
    for (outcome, waited_us) in [(Outcome::Timeout, 3_000_000)].into_iter().chain(long) {
        let verdict = judged(outcome, waited_us, &[]);
        assert_eq!(verdict.status, Status::Fail);
        assert_eq!(
            verdict.reasons,
            [
                "the system gave no good answer in the measured window of 10.0s: 2 requests sent before it were still waiting and failed"
            ]
        );
        let verdict = judged(outcome, waited_us, &["it stood still"]);
        assert_eq!(verdict.status, Status::Invalid);
        assert!(verdict.reasons[1] == "driver-bound: it stood still", "{:?}", verdict.reasons);
    }
    // stopped before the window was over, refused at once, or answered at last
    let other = [(Outcome::Unfinished, 2_000_000), (Outcome::Connect, 1_000), (Outcome::Ok, 11_500_000)];
    for (outcome, waited_us) in other {
        let verdict = judged(outcome, waited_us, &[]);
        assert_eq!(verdict.status, Status::Invalid);
        assert!(verdict.reasons[0].starts_with("nothing measured"), "{:?}", verdict.reasons);
    }
}

#[test]
fn what_faults_did_is_left_out_of_what_nobody_asked_for() {
    let plan = plan(CLOSED, &[]);
    let broken = totals(&plan, &Ran { ended: &[ok(9, 100), (Outcome::Connect, 1, 900)], ..RAN });
    let undisturbed = totals(&plan, &Ran { ended: &[ok(9, 100)], ..RAN });
    let nothing = totals(&plan, &RAN);
    let mut summary = summarize(&broken, Path::new("x"));
    let judged = |summary: &Summary, undisturbed: Option<&Totals>| {
        judge(&Evidence { undisturbed, ..Evidence::of(&plan, &broken, summary) }).0
    };
    assert_eq!(judged(&summary, None).status, Status::Fail);
    assert_eq!(judged(&summary, Some(&undisturbed)).status, Status::Pass);
    assert_eq!(judged(&summary, Some(&nothing)).status, Status::Fail, "nothing else to judge by");
    summary.faults = vec![tidemark_record::FaultEvent {
        fault: "freeze system for 1s".into(),
        error: Some("it cannot be frozen".into()),
        ..Default::default()
    }];
    let verdict = judged(&summary, Some(&undisturbed));
    assert_eq!(verdict.status, Status::Invalid);
    assert_eq!(verdict.reasons, ["no `freeze system for 1s`: it cannot be frozen"]);
    let results =
        judge(&Evidence { undisturbed: Some(&undisturbed), ..Evidence::of(&plan, &broken, &summary) }).1;
    assert_eq!(results[0].measured, "0%, outside of faults; 90% with them");
    let results =
        judge(&Evidence { undisturbed: Some(&nothing), ..Evidence::of(&plan, &broken, &summary) }).1;
    assert_eq!(results[0].measured, "90%, all of it within faults");
}

#[test]
fn a_run_that_ends_before_what_was_killed_is_ready_again_says_nothing() {
    let fault = tidemark_scenario::plan::Fault {
        at: Duration::ZERO,
        share: None,
        target: "cassandra".into(),
        kind: tidemark_scenario::plan::FaultKind::Kill,
        lasts: Some(Duration::from_secs(1)),
    };
    let plan = Plan { faults: vec![fault], ..plan(CLOSED, &[]) };
    let totals = totals(&plan, &Ran { ended: &[ok(9, 100)], ..RAN });
    let mut summary = summarize(&totals, Path::new("x"));
    let mut status = |ready_us| {
        let fault = "kill cassandra, restart after 1s".into();
        let (kind, target) = ("kill".into(), "cassandra".into());
        let begun = tidemark_record::FaultEvent {
            fault,
            kind,
            target,
            ready_us,
            begin_us: Some(1),
            ..Default::default()
        };
        summary.faults = vec![begun];
        judge(&Evidence::of(&plan, &totals, &summary)).0
    };
    assert_eq!(status(Some(2)).status, Status::Pass);
    let verdict = status(None);
    assert_eq!(verdict.status, Status::Invalid);
    assert!(
        verdict.reasons[0].contains("was not ready again before the load ended"),
        "{:?}",
        verdict.reasons
    );
}

#[test]
fn a_system_that_ended_fails_the_run() {
    let plan = plan(CLOSED, &[]);
    let totals = totals(&plan, &Ran { ended: &[ok(9, 100)], ..RAN });
    let summary = summarize(&totals, Path::new("x"));
    let system_ended = Some("killed by signal 9");
    let (verdict, _) = judge(&Evidence { system_ended, ..Evidence::of(&plan, &totals, &summary) });
    assert_eq!(verdict.status, Status::Fail);
    assert!(verdict.reasons[0].contains("killed by signal 9"));
}

#[test]
fn what_was_never_measured_is_never_met_and_the_ledger_decides_later() {
    let ran = Ran { ended: &[ok(9, 100)], ..RAN };
    let (verdict, results) = judged(CLOSED, &["lost = 0"], &ran);
    assert_eq!((results[0].met, results[0].measured.as_str()), (false, "not measured"));
    assert_eq!(verdict.status, Status::Pass, "until it was held against the store");
    let mut plan = plan(CLOSED, &["p99 < 1h"]);
    plan.objectives[0].about = About::Label(9);
    let totals = totals(&plan, &ran);
    let summary = summarize(&totals, Path::new("x"));
    let (verdict, results) = judge(&Evidence::of(&plan, &totals, &summary));
    assert_eq!((verdict.status, results[0].measured.as_str()), (Status::Fail, "not measured"));
}

#[test]
fn numbers_are_for_persons() {
    for (us, text) in [
        (0.0, "0µs"),
        (0.5, "0.5µs"),
        (870.0, "870µs"),
        (999.9, "1ms"),
        (71_234.0, "71.2ms"),
        (999_700.0, "1s"),
        (1_254_000.0, "1.25s"),
        (100_000_000.0, "100s"),
    ] {
        assert_eq!(duration_text(us), text);
    }
    assert_eq!(text::significant(0.000_123_4), "0.000123");
    assert_eq!(text::significant(12_783.4), "12783");
}

#[test]
fn a_body_whose_file_became_shorter_is_no_fault_of_the_system() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(100).unwrap();
    let mut plan = plan(OPEN, &[]);
    let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    plan.requests = tidemark_scenario::load_text("t.yaml", text, Path::new("."), &[]).unwrap().requests;
    let RequestKind::Http(http) = &mut plan.requests[0].ask else { panic!("an HTTP request") };
    http.upload = vec![UploadPiece::File(FileBody::open(file.path()).unwrap())];
    let totals = totals(&plan, &Ran { ended: &[(Outcome::Reset, 1_000, 100)], ..RAN });
    let summary = summarize(&totals, Path::new("x"));
    let judged = || judge(&Evidence::of(&plan, &totals, &summary)).0;
    assert_eq!(judged().status, Status::Fail);
    file.as_file().set_len(50).unwrap();
    let verdict = judged();
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons[0].contains("had 100 bytes when the run began and has 50 now"), "{verdict:?}");
    // a longer one is sent as far as it was to be
    file.as_file().set_len(200).unwrap();
    assert_eq!(judged().status, Status::Fail);
    let changed = plan.changed_files();
    assert!(changed.len() == 1 && !changed[0].is_shorter, "{changed:?}");
}

/// An open load of so many seconds at 20/s without a warm-up; each answer takes so long, and is waited for.
fn young(window_s: u64, answer_us: u64, objectives: &[&str]) -> (Verdict, Totals) {
    let plan = plan(OPEN, objectives);
    let mut totals = Totals::new(&plan.labels);
    let answer_s = answer_us / 1_000_000;
    for second in 0..window_s + answer_s {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = second < window_s;
        interval.measured_offered = if interval.in_window { 20 } else { 0 };
        interval.in_flight = 20 * (second + 1).min(answer_s).min(window_s + answer_s - second);
        if second >= answer_s {
            interval.series = vec![series(0, Outcome::Ok, answer_us, 20)];
        }
        totals.add_interval(&interval);
    }
    let summary = summarize(&totals, Path::new("x"));
    (judge(&Evidence::of(&plan, &totals, &summary)).0, totals)
}

#[test]
fn a_window_that_is_shorter_than_the_answers_take_says_so() {
    for window_s in [2, 3, 4] {
        let (verdict, _) = young(window_s, 4_000_000, &[]);
        assert_eq!(verdict.status, Status::Invalid, "{window_s} s: {verdict:?}");
        let told = format!(
            "the measured window of {window_s}s is too short beside answers that take 4s; measure for at least 12s"
        );
        assert!(verdict.reasons.iter().any(|reason| reason.contains(&told)), "{verdict:?}");
    }
    let (verdict, totals) = young(12, 4_000_000, &[]);
    assert_eq!(verdict.status, Status::Pass, "{verdict:?}");
    let plan = plan(OPEN, &[]);
    assert!(
        warnings(&plan, &totals, &[])[0]
            .starts_with("33% of the good answers came after the measured window of 12s")
    );
    let (verdict, totals) = young(12, 1_000_000, &[]);
    assert_eq!((verdict.status, warnings(&plan, &totals, &[]).len()), (Status::Pass, 0));
    // one figure, wherever it is told
    let summary = summarize(&totals, Path::new("x"));
    assert_eq!(summary.achieved_share, Some(totals.achieved_share()));
}

/// Eight users for ten seconds who lost so much of them.
fn lost(objectives: &[&str], limits: &[&str], lost_time: tidemark_record::LostTime) -> Verdict {
    let mut plan = plan(CLOSED, objectives);
    plan.load.phases.push(crate::test_plan::phase("hold", 10.0, 8.0, true));
    let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, 50_000), (Outcome::Unfinished, 9, 7)], ..RAN });
    totals.lost_time = lost_time;
    let mut summary = summarize(&totals, Path::new("x"));
    summary.driver.limits = limits.iter().map(|limit| (*limit).to_owned()).collect();
    judge(&Evidence::of(&plan, &totals, &summary)).0
}

#[test]
fn users_who_wait_for_ever_fail_a_run_however_few_their_requests_are() {
    use tidemark_record::LostTime;
    const S: u64 = 1_000_000;
    let stuck = LostTime { waited_us: 70 * S, stuck_us: 70 * S, stuck: 7, refused_us: 0 };
    let verdict = lost(&[], &[], stuck);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(
        verdict.reasons,
        [
            "users waited in vain: 87.5% of their time in the window went into requests that failed, were cut off, or were open \
          for all of it; 7 of 8 users waited for an answer when it ended, for half of it or longer"
        ]
    );
    let one = LostTime { waited_us: 10 * S, stuck_us: 10 * S, stuck: 1, refused_us: 0 };
    assert_eq!(lost(&[], &[], one).status, Status::Fail);
    assert_eq!(lost(&["errors < 1%"], &[], one).status, Status::Fail);
    assert_eq!(lost(&["errors < 20%"], &[], one).status, Status::Pass, "an eighth may");
    // requests that timed out within the window
    let timed_out = LostTime { waited_us: 60 * S, ..LostTime::default() };
    assert_eq!(lost(&[], &[], timed_out).status, Status::Fail);
    assert_eq!(lost(&["errors < 20%"], &[], timed_out).status, Status::Pass, "their number counts then");
    let refused = LostTime { refused_us: 5 * S, ..LostTime::default() };
    assert_eq!(lost(&[], &[], refused).status, Status::Fail);
    // healthy ones
    let few = LostTime { waited_us: S / 2, ..LostTime::default() };
    assert_eq!(lost(&[], &[], few).status, Status::Pass);
    assert_eq!(lost(&[], &[], LostTime::default()).status, Status::Pass);
    // a driver that was held up may have missed the answers, and makes nobody refuse
    assert_eq!(lost(&[], &["it had no core"], stuck).status, Status::Invalid);
    assert_eq!(lost(&[], &["it had no core"], refused).status, Status::Fail);
}

/// Two kinds of users for four seconds: fast ones, and slow ones whose requests end so after six, be they of a warm-up.
fn two_kinds(objectives: &str, users: (u32, u32), outcome: Outcome, measured: bool) -> Verdict {
    let text = format!(
        "system: {{url: 'http://h'}}\nsessions:\n  f: {{steps: [{{GET: /a, label: Fast}}]}}\n  s: {{steps: [{{GET: /b, label: Slow}}]}}\n\
         load: {{sessions: {{f: {{users: {}, hold: 4s}}, s: {{users: {}, hold: 4s}}}}}}\nobjectives: [{objectives}]\n",
        users.0, users.1
    );
    let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
    let mut totals = Totals::new(&plan.labels);
    for second in 0..7 {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = second < 4;
        if interval.in_window {
            interval.measured_offered = 1_000;
            interval.series = vec![series(0, Outcome::Ok, 1_000, 1_000)];
            interval.open_by_label = vec![(1, u64::from(users.1))];
        }
        if second == 6 {
            let ended = tidemark_record::Series { measured, ..series(1, outcome, 6_000_000, users.1) };
            interval.series = vec![ended];
            let us = 4_000_000 * u64::from(users.1);
            let stuck = u64::from(users.1);
            interval.lost_time =
                tidemark_record::LostTime { waited_us: us, stuck_us: us, stuck, refused_us: 0 };
        }
        totals.add_interval(&interval);
    }
    let summary = summarize(&totals, Path::new("x"));
    judge(&Evidence::of(&plan, &totals, &summary)).0
}

#[test]
fn users_whose_answers_outlast_the_window_are_not_decided_beside_fast_ones() {
    for measured in [true, false] {
        let verdict = two_kinds("", (4, 2), Outcome::Ok, measured);
        assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
        assert!(
            verdict.reasons[0].contains("window of 4s is too short beside answers that take 6s"),
            "{verdict:?}"
        );
        assert_eq!(two_kinds("", (4, 2), Outcome::Unfinished, measured).status, Status::Fail);
    }
}

#[test]
fn few_users_of_a_kind_that_has_no_good_answer_fail_a_run_of_many() {
    let verdict = two_kinds("errors < 20%", (45, 3), Outcome::Unfinished, true);
    assert_eq!(verdict.status, Status::Fail);
    assert!(verdict.reasons[0].starts_with("users waited in vain: `Slow` had no good answer"), "{verdict:?}");
    for (objectives, outcome) in [
        ("errors <= 100%", Outcome::Unfinished),
        ("errors < 20%, Slow errors <= 100%", Outcome::Unfinished),
        ("errors < 20%", Outcome::Ok),
    ] {
        assert_eq!(two_kinds(objectives, (45, 3), outcome, true).status, Status::Pass, "{objectives}");
    }
}

#[test]
fn a_backlog_is_no_reason_to_measure_for_less_than_was_measured() {
    let plan = plan(OPEN, &[]);
    let mut totals = totals(&plan, &Ran { in_flight: 40, offered: Some(120), ..RAN });
    let mut drain = ThreadInterval::empty(0, 11_000_000, 14_000_000);
    drain.series = vec![series(0, Outcome::Ok, 300_000, 120)];
    totals.add_interval(&drain);
    let told = &warnings(&plan, &totals, &[])[0];
    assert!(told.contains("so requests piled up") && !told.contains("measure for"), "{told}");
}

#[test]
fn what_is_incomplete_is_never_a_pass() {
    let judged = |failed, stopped, lost_intervals| {
        let plan = plan(OPEN, &[]);
        let ended = [ok(3_000, 900), (Outcome::Status, 3_000, failed)];
        let totals = totals(&plan, &Ran { ended: &ended[..1 + usize::from(failed > 0)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        let verdict =
            judge(&Evidence { stopped, lost_intervals, ..Evidence::of(&plan, &totals, &summary) }).0;
        let told = verdict.reasons.iter().map(|reason| reason.contains("incomplete: ")).collect::<Vec<_>>();
        (verdict.status, told)
    };
    assert_eq!(judged(0, false, 0), (Status::Pass, vec![]));
    assert_eq!(judged(0, true, 0), (Status::Invalid, vec![true]));
    assert_eq!(judged(0, false, 1), (Status::Invalid, vec![true]));
    assert_eq!(judged(0, true, 1), (Status::Invalid, vec![true, true]));
    let (status, told) = judged(500, true, 0);
    assert_eq!((status, told.first(), told.last()), (Status::Fail, Some(&false), Some(&true)));
}

#[test]
fn a_take_over_leaves_no_pass_and_no_fail_by_what_was_never_sent() {
    let ran = Ran { ended: &[ok(3_000, 960)], dropped: 40, ..RAN };
    let of = |objectives: &[&str], never_sent: Option<u64>| {
        let plan = plan(OPEN, objectives);
        let totals = totals(&plan, &ran);
        let summary = summarize(&totals, Path::new("x"));
        let taken_over = never_sent.map(|count| ("agent b was lost", count));
        judge(&Evidence { taken_over, ..Evidence::of(&plan, &totals, &summary) }).0
    };
    // 4 % were not answered: who allows that has no pass, as the load is not known, and who does not has no fail
    let allowed = ["p90 < 50ms", "errors < 5%", "achieved > 90% of offered"];
    assert_eq!(of(&allowed, None).status, Status::Pass);
    for never_sent in [0, 40] {
        let verdict = of(&allowed, Some(never_sent));
        assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
        assert_eq!(verdict.reasons, ["incomplete: agent b was lost"]);
    }
    for objective in ["p99 < 50ms", "errors < 1%", "achieved > 99% of offered", "rate > 98/s"] {
        let verdict = of(&[objective, "errors < 5%"], Some(40));
        assert_eq!(verdict.status, Status::Invalid, "{objective}: {verdict:?}");
        assert_eq!(verdict.reasons[0], "incomplete: agent b was lost");
        // nobody else is called the cause
        let told = verdict.reasons[1].to_string();
        assert!(told.starts_with(&format!("{objective} is not decided: ")), "{told}");
        assert!(
            told.contains(" if what was never sent had been answered") && !told.contains("driver-bound"),
            "{told}"
        );
        assert_eq!(of(&[objective, "errors < 5%"], None).status, Status::Fail, "{objective}");
        // the rest was the system's
        assert_eq!(of(&[objective, "errors < 5%"], Some(1)).status, Status::Fail, "{objective}");
    }
}

#[test]
fn a_run_that_another_coordinator_resumed_is_no_pass() {
    let judged = |failed: u32, resumed: Option<&str>| {
        let plan = plan(OPEN, &[]);
        let totals =
            totals(&plan, &Ran { ended: &[ok(3_000, 900), (Outcome::Status, 3_000, failed)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        judge(&Evidence { resumed, ..Evidence::of(&plan, &totals, &summary) }).0
    };
    assert_eq!(judged(0, None).status, Status::Pass);
    let verdict = judged(0, Some("another coordinator resumed the run"));
    assert_eq!(verdict.status, Status::Invalid);
    assert_eq!(verdict.reasons, ["incomplete: another coordinator resumed the run"]);
    // what the system failed at stays so
    assert_eq!(judged(500, Some("another coordinator resumed the run")).status, Status::Fail);
}

#[test]
fn a_driver_that_broke_off_leaves_no_pass_and_no_fail() {
    for failed in [0, 500] {
        let plan = plan(OPEN, &[]);
        let totals =
            totals(&plan, &Ran { ended: &[ok(3_000, 900), (Outcome::Status, 3_000, failed)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        let broke_off = Some("killed by signal 9");
        let verdict = judge(&Evidence { broke_off, ..Evidence::of(&plan, &totals, &summary) }).0;
        let plan = self::plan(OPEN, &["lost = 0"]);
        let verified = Some(Verified::default());
        let ledger = Ledger { acknowledged: 9, verified, ..Ledger::default() };
        let ledger = Some(&ledger);
        let of = crate::judge(&Evidence { broke_off, ledger, ..Evidence::of(&plan, &totals, &summary) });
        assert_eq!((of.objectives[0].met, of.objectives[0].undecided), (false, true), "{of:?}");
        assert_eq!(verdict.status, Status::Invalid);
        assert!(
            verdict.reasons[0].contains("killed by signal 9; these are the figures of the 10s"),
            "{verdict:?}"
        );
    }
}

mod parts;
mod reach;
mod sessions;
mod simulated;
mod table;
