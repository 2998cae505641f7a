//! Each rule from both sides of its edge, and all of them against every way a run can go on.

use proptest::prelude::*;
use tidemark_record::summary::Status;
use tidemark_record::{Outcome, RunWriter, ThreadInterval};
use tidemark_scenario::expr::Expr;

use super::*;
use crate::test_plan;

const CLOSED: LoadModel = LoadModel::Closed;
const CONSTANT: LoadModel = LoadModel::Open(Spacing::Constant);

/// Requests that ended: how, how long, how many.
type Ended<'a> = &'a [(Outcome, u64, u32)];

fn totals(ended: Ended<'_>, dropped: u64) -> Totals {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(folder.path(), &["A".into()], "").unwrap();
    let mut interval = ThreadInterval::empty(0, 0, 1_000_000);
    interval.in_window = true;
    (interval.dropped, interval.measured_dropped) = (dropped, dropped);
    for &(outcome, us, count) in ended {
        interval.series.push(test_plan::series(0, outcome, us, count));
    }
    writer.add_interval(&interval).unwrap();
    writer.totals().clone()
}

/// A session of so many requests in a row, that many of which arrive in ten seconds.
fn plan(model: LoadModel, requests: usize, per_s: f64, objective: &str) -> Plan {
    let text = format!(
        "load: {{users: 1, hold: 1s}}\nsessions:\n  one:\n    steps:\n{}objectives:\n  - objective: {objective}\n    abort early: true\n",
        "      - {GET: /, label: A}\n".repeat(requests)
    );
    let (plan, diagnostics) = tidemark_scenario::check_text("x.yaml", &text, std::path::Path::new("."), &[]);
    let mut plan = plan.unwrap_or_else(|| panic!("{diagnostics}"));
    plan.load = test_plan::plan(model).load;
    plan.load.phases = vec![test_plan::phase("hold", 10.0, per_s, true)];
    plan
}

fn reason(plan: &Plan, ended: Ended<'_>, dropped: u64) -> Option<String> {
    Watch::new(plan, 10.0).unreachable(&totals(ended, dropped)).map(|unreachable| unreachable.reason)
}

const fn ok(us: u64, count: u32) -> (Outcome, u64, u32) {
    (Outcome::Ok, us, count)
}

const fn reset(count: u32) -> (Outcome, u64, u32) {
    (Outcome::Reset, 100, count)
}

#[test]
fn counts_only_grow() {
    let errors = plan(CLOSED, 1, 5.0, "errors = 0");
    assert_eq!(reason(&errors, &[ok(100, 9)], 0), None);
    assert_eq!(
        reason(&errors, &[ok(100, 9), reset(1)], 0).unwrap(),
        "errors = 0 can no longer be met: errors so far: 1"
    );
    let few = plan(CLOSED, 1, 5.0, "A errors < 3");
    assert_eq!(reason(&few, &[reset(2)], 0), None);
    assert!(reason(&few, &[reset(3)], 0).is_some());
    let many = plan(CLOSED, 1, 5.0, "errors > 3");
    assert_eq!(reason(&many, &[ok(1, 1)], 0), None);
    let dropped = plan(CLOSED, 1, 5.0, "dropped <= 2");
    assert_eq!(reason(&dropped, &[], 2), None);
    assert!(reason(&dropped, &[], 3).is_some());
}

#[test]
fn a_maximum_is_broken_by_one_and_a_percentile_of_a_closed_load_never() {
    let max = plan(CLOSED, 1, 5.0, "max < 50ms");
    assert_eq!(reason(&max, &[ok(49_000, 1000)], 0), None);
    assert!(
        reason(&max, &[ok(10, 1000), ok(51_000, 1)], 0)
            .unwrap()
            .contains("1 took longer or had no good answer")
    );
    let p99 = plan(CLOSED, 1, 5.0, "p99 < 50ms");
    assert_eq!(reason(&p99, &[ok(51_000, 1_000_000)], 0), None);
}

#[test]
fn a_percentile_is_broken_when_too_many_were_slow_among_all_that_can_come() {
    // at most 1,001 sessions of 2 requests: of 2,002 requests, 20 may be slow
    let p99 = plan(CONSTANT, 2, 100.0, "p99 < 50ms");
    assert_eq!(reason(&p99, &[ok(51_000, 20)], 0), None);
    let why = reason(&p99, &[ok(51_000, 21)], 0).unwrap();
    assert!(
        why.ends_with("21 took longer or had no good answer, and of at most 2002 requests 20 may"),
        "{why}"
    );
    assert_eq!(reason(&p99, &[ok(51_000, 20), ok(1, 1_000)], 0), None);
    // a request without a good answer is slower than every bound, a dropped one, too
    assert!(reason(&p99, &[ok(51_000, 20), reset(1)], 0).is_some());
    assert!(reason(&p99, &[ok(51_000, 20)], 1).is_some());
    assert_eq!(reason(&p99, &[reset(19)], 1), None);
    // Poisson arrivals may be more than planned on average
    let poisson = plan(LoadModel::Open(Spacing::Poisson), 2, 100.0, "p99 < 50ms");
    assert_eq!(reason(&poisson, &[ok(51_000, 21)], 0), None);
    assert!(reason(&poisson, &[ok(51_000, 25)], 0).is_some());
}

#[test]
fn shares_means_and_rates_are_held_against_all_that_can_come() {
    // at most 1,001 requests
    let share = plan(CONSTANT, 1, 100.0, "errors < 1%");
    assert_eq!(reason(&share, &[reset(10)], 0), None);
    assert!(reason(&share, &[reset(11)], 0).is_some());
    let mean = plan(CONSTANT, 1, 100.0, "mean < 10ms");
    assert_eq!(reason(&mean, &[ok(1_000_000, 10)], 0), None);
    assert!(reason(&mean, &[ok(1_000_000, 11)], 0).is_some());
    assert!(reason(&mean, &[ok(1, 500), reset(1)], 0).is_some(), "one took for ever");
    let achieved = plan(CONSTANT, 1, 100.0, "achieved > 90% of offered");
    assert_eq!(reason(&achieved, &[reset(100)], 0), None);
    assert!(reason(&achieved, &[reset(90)], 11).is_some());
    let high = plan(CONSTANT, 1, 100.0, "rate > 101/s");
    assert!(reason(&high, &[ok(1, 10)], 0).is_some());
    assert_eq!(reason(&plan(CONSTANT, 1, 100.0, "rate > 100/s"), &[ok(1, 10)], 0), None);
    assert_eq!(reason(&plan(CLOSED, 1, 100.0, "rate > 101/s"), &[ok(1, 10)], 0), None);
    let low = plan(CLOSED, 1, 100.0, "rate <= 100/s");
    assert_eq!(reason(&low, &[ok(1, 1_000)], 0), None);
    assert!(reason(&low, &[ok(1, 1_001)], 0).is_some());
}

#[test]
fn sessions_with_loops_have_no_known_number_of_requests() {
    let mut loops = plan(CONSTANT, 1, 1.0, "p50 < 1ms");
    assert!(reason(&loops, &[ok(9_000, 1_000)], 0).is_some());
    loops.sessions[0].ops.insert(1, Op::JumpUnless { condition: Expr::int(0), to: 0 });
    assert_eq!(reason(&loops, &[ok(9_000, 1_000)], 0), None);
    loops.sessions[0].weight = 0;
    assert!(reason(&loops, &[ok(9_000, 1_000)], 0).is_some(), "what never comes does not count");
}

#[test]
fn the_longest_way_counts() {
    let mut kind = plan(CONSTANT, 3, 1.0, "errors = 0").sessions.remove(0);
    let all = |_| true;
    assert_eq!(longest_way(&kind, &all), Some(3));
    assert_eq!(longest_way(&kind, &|_| false), Some(0));
    kind.ops.insert(0, Op::Choose { ways: vec![(1, 2), (2, 3)], total: 2, counter: None });
    assert_eq!(longest_way(&kind, &all), Some(2));
    kind.ops.insert(0, Op::Jump(4));
    assert_eq!(longest_way(&kind, &all), Some(1));
}

#[test]
fn objectives_that_do_not_ask_are_not_watched() {
    let mut silent = plan(CLOSED, 1, 5.0, "errors = 0");
    silent.objectives[0].abort_early = false;
    assert_eq!(reason(&silent, &[reset(9)], 0), None);
}

#[test]
fn a_run_cut_short_is_a_fail_and_the_reason_stands_first() {
    let unreachable = Unreachable { index: 0, reason: "x can no longer be met: y".into() };
    // over the part that ran the objective looks met
    let plan = plan(CONSTANT, 1, 100.0, "rate > 1/s");
    let judged = |plan: &Plan, ended: Ended<'_>, not_found: bool| {
        let totals = totals(ended, 0);
        let summary = tidemark_record::summarize(&totals, std::path::Path::new("x"));
        let lost_intervals = u64::from(not_found);
        let cut_short = Some(&unreachable);
        crate::judge(&crate::Evidence {
            cut_short,
            lost_intervals,
            ..crate::Evidence::of(plan, &totals, &summary)
        })
    };
    for (ended, incomplete, status) in [
        (&[ok(1_000, 100)][..], false, Status::Fail),
        (&[ok(1_000, 50), reset(50)], false, Status::Fail),
        (&[ok(1_000, 100)], true, Status::Fail),
    ] {
        let judgement = judged(&plan, ended, incomplete);
        assert_eq!((judgement.verdict.status, judgement.objectives[0].met), (status, false));
        assert_eq!(judgement.verdict.reasons[0], "cut short: x can no longer be met: y");
    }
    // too few requests for its percentile
    let few = self::plan(CLOSED, 1, 1.0, "p99.9 < 50ms");
    let undecided = judged(&few, &[ok(1_000, 100)], false).verdict;
    assert_eq!(undecided.status, Status::Invalid);
    assert_eq!(undecided.reasons[1], "cut short: x can no longer be met: y");
}

proptest! {
    /// What is called unreachable is missed in the end, however well the rest goes.
    #[test]
    fn nothing_is_given_up_that_could_still_be_met(
        slow in 0u32..40, fast in 0u32..400, failed in 0u32..40, good in 0u32..2_100, percent in 1u8..=100,
    ) {
        let plan = plan(CONSTANT, 2, 100.0, &format!("p{percent} < 50ms"));
        let so_far = [ok(60_000, slow), ok(1_000, fast), reset(failed)];
        // all that can come: 2,002 requests
        let more = good.min(2_002 - slow - fast - failed);
        if reason(&plan, &so_far, 0).is_some() {
            let end = totals(&[so_far[0], so_far[1], so_far[2], ok(1, more)], 0);
            let p_us = end.all.response_times().quantile(f64::from(percent) / 100.0);
            prop_assert!(p_us.is_none_or(|us| us >= 50_000), "p{percent} = {p_us:?} with {more} more");
        }
    }
}
