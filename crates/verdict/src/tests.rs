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

/// The verdict on what came of a plan.
fn verdict_of(plan: &Plan, totals: &Totals) -> Verdict {
    judge(&Evidence::of(plan, totals, &summarize(totals, Path::new("x")))).0
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

/// The verdict on so many good requests of a label, and on a few of another one.
fn beside_a_rare_label(objectives: &[&str], usual: u32, bad: u32, good: u32) -> Verdict {
    let plan = Plan { labels: vec!["List".into(), "Pay".into()], ..plan(CLOSED, objectives) };
    let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, usual)], ..RAN });
    let mut rare = ThreadInterval { in_window: true, ..ThreadInterval::empty(0, 2_000_000, 3_000_000) };
    rare.series = vec![series(1, Outcome::Status, 1_000, bad), series(1, Outcome::Ok, 1_000, good)];
    totals.add_interval(&rare);
    verdict_of(&plan, &totals)
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

#[test]
fn a_group_that_only_fails_or_never_ends_is_told() {
    let plan = Plan { groups: vec!["Buy".into()], ..plan(CLOSED, &[]) };
    let with = |outcome, count, good| {
        let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, 90_000)], ..RAN });
        totals.set_groups(&plan.groups);
        let mut drain = ThreadInterval::empty(0, 11_000_000, 12_000_000);
        drain.groups = vec![series(0, outcome, 1_000, count), series(0, Outcome::Ok, 1_000, good)];
        totals.add_interval(&drain);
        verdict_of(&plan, &totals)
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
    let with = |bad, good| beside_a_rare_label(&[], 90_000, bad, good);
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

mod incomplete;
mod machine;
mod parts;
mod reach;
mod sessions;
mod simulated;
mod table;
mod users;
