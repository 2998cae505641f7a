//! Each label, group, target and kind of sessions by itself.

use super::*;
use crate::findings::few;
use tidemark_record::{Reason, ReasonKind};

/// Ten seconds of two labels: one is answered at once, of the other's 9/s so many are, and so many wait at the end.
fn of_labels(objectives: &[&str], answered: u32, us: u64) -> Verdict {
    let plan = Plan { labels: vec!["Read".into(), "Write".into()], ..plan(OPEN, objectives) };
    let mut totals = Totals::new(&plan.labels);
    for second in 0..10 {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = true;
        interval.measured_offered = 2_000 + 9;
        interval.series = vec![series(0, Outcome::Ok, 1_000, 2_000), series(1, Outcome::Ok, us, answered)];
        interval.in_flight = (second + 1) * u64::from(9 - answered);
        interval.open_by_label = vec![(1, interval.in_flight)];
        totals.add_interval(&interval);
    }
    let mut drain = ThreadInterval::empty(0, 10_000_000, 20_000_000);
    drain.series = vec![series(1, Outcome::Ok, us, 10 * (9 - answered))];
    totals.add_interval(&drain);
    verdict_of(&plan, &totals)
}

#[test]
fn a_rare_label_that_falls_behind_is_told() {
    let verdict = of_labels(&["p99 < 250ms"], 4, 500_000);
    assert_eq!(verdict.status, Status::Fail);
    assert!(verdict.reasons[0].starts_with("`Write` fell behind: "), "{verdict:?}");
    assert!(verdict.reasons[0].contains("of 9/s: requests without an answer piled up"), "{verdict:?}");
    assert_eq!(of_labels(&[], 9, 500_000).status, Status::Pass);
    assert_eq!(of_labels(&["achieved > 30% of offered"], 4, 500_000).status, Status::Pass, "so it is meant");
    assert_eq!(of_labels(&["rate > 1/s"], 4, 500_000).status, Status::Pass);
}

/// Twenty seconds of 24 labels of 5/s that are each answered after a second, whatever of the last waits so from second to
/// second.
fn of_many_labels(open: [u64; 20]) -> Verdict {
    let names: Vec<String> = (0..24).map(|label| format!("L{label}")).collect();
    let plan = Plan { labels: names, ..plan(OPEN, &[]) };
    let mut totals = Totals::new(&plan.labels);
    for (second, open) in (0..).zip(open) {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = true;
        interval.measured_offered = 120;
        interval.in_flight = 115 + open;
        interval.open_by_label = (0..23).map(|label| (label, 5)).chain([(23, open)]).collect();
        interval.series = (0..24).map(|label| series(label, Outcome::Ok, 1_000_000, 5)).collect();
        totals.add_interval(&interval);
    }
    let mut drain = ThreadInterval::empty(0, 20_000_000, 21_000_000);
    drain.series = (0..24)
        .map(|label| series(label, Outcome::Ok, 1_000_000, if label < 23 { 5 } else { open[19] as u32 }))
        .collect();
    totals.add_interval(&drain);
    verdict_of(&plan, &totals)
}

#[test]
fn a_label_of_many_that_had_more_under_way_at_last_by_chance_is_healthy() {
    let verdict = of_many_labels([2, 3, 1, 4, 2, 3, 4, 3, 2, 2, 5, 4, 6, 5, 7, 6, 8, 9, 9, 10]);
    assert_eq!(verdict.status, Status::Pass, "{verdict:?}");
    let starves = std::array::from_fn(|second| 3 * second as u64);
    assert!(of_many_labels(starves).reasons.iter().any(|reason| reason.starts_with("`L23` fell behind")));
}

#[test]
fn a_label_that_fails_always_is_more_than_half_may() {
    let judged = |bad| beside_a_rare_label(&["errors < 50%"], 380, bad, 0).status;
    assert_eq!((judged(20), judged(5)), (Status::Fail, Status::Pass));
}

#[test]
fn a_label_may_fail_as_much_as_the_run_may() {
    let judged = |objectives: &[&str], bad, good| beside_a_rare_label(objectives, 90_000, bad, good).status;
    assert_eq!(judged(&["errors < 20%"], 8, 92), Status::Pass);
    assert_eq!(judged(&["errors < 20%"], 60, 40), Status::Fail);
    assert_eq!(judged(&["errors < 10"], 8, 92), Status::Pass);
    assert_eq!(judged(&["errors <= 100%"], 100, 0), Status::Pass);
}

/// Twenty seconds of a target of 24 labels that are each answered after a second but for a few more that wait each second, and of
/// another label.
fn of_a_target(more: f64) -> Verdict {
    let steps: Vec<String> =
        (0..24).map(|label| format!("{{GET: /{label}, label: L{label}, at: cache}}")).collect();
    let text = format!(
        "system: {{url: 'http://h'}}\ntargets: {{cache: {{url: 'http://c'}}}}\n\
         sessions: {{s: {{steps: [{{GET: /a, label: A}}, {{group: both, steps: [{}]}}]}}}}\nload: {{rate: 5/s, hold: 20s}}\n",
        steps.join(", ")
    );
    let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
    let mut totals = Totals::new(&plan.labels);
    let label_of = |name: String| plan.labels.iter().position(|label| *label == name).unwrap() as u16;
    let labels: Vec<u16> = (0..24).map(|label| label_of(format!("L{label}"))).collect();
    let waits = |at: usize, second: u64| {
        5 + ((second as f64 * more) as u64) + u64::from(at % 3 == second as usize % 3)
    };
    for second in 0..20 {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = true;
        interval.measured_offered = 5_120;
        interval.open_by_label =
            labels.iter().enumerate().map(|(at, label)| (*label, waits(at, second))).collect();
        interval.in_flight = interval.open_by_label.iter().map(|(_, count)| count).sum();
        interval.series = labels.iter().map(|label| series(*label, Outcome::Ok, 1_000_000, 5)).collect();
        interval.series.push(series(label_of("A".into()), Outcome::Ok, 1_000, 5_000));
        totals.add_interval(&interval);
    }
    let mut drain = ThreadInterval::empty(0, 20_000_000, 29_000_000);
    drain.series =
        labels.iter().map(|label| series(*label, Outcome::Ok, 1_000_000, 5 + (20.0 * more) as u32)).collect();
    totals.add_interval(&drain);
    verdict_of(&plan, &totals)
}

#[test]
fn what_grows_too_little_in_each_label_is_told_of_their_target() {
    assert_eq!(of_a_target(0.0).status, Status::Pass, "{:?}", of_a_target(0.0));
    let verdict = of_a_target(0.2);
    assert_eq!(verdict.status, Status::Fail, "{verdict:?}");
    let begins: Vec<bool> = verdict.reasons.iter().map(|reason| reason.starts_with('`')).collect();
    assert!(!begins.contains(&true), "no label by itself: {verdict:?}");
    for who in ["target `cache` fell behind: ", "group `both` fell behind: "] {
        assert!(verdict.reasons.iter().any(|reason| reason.starts_with(who)), "{who}: {verdict:?}");
    }
}

#[test]
fn many_that_say_the_same_are_told_in_a_few_lines() {
    let silent = |count: usize| -> Vec<Reason> {
        (0..count).map(|of| ReasonKind::Silent.told(format!("`D{of}` was silent"))).collect()
    };
    assert_eq!(few(silent(5), "were silent"), silent(5));
    let told = few(silent(9), "were silent");
    assert_eq!(told[..5], silent(5));
    assert_eq!(told[5..], [ReasonKind::Silent.told("4 more were silent: see the tables by label and group")]);
}
