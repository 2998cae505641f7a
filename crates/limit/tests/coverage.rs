//! A hundred searches against each queue whose limit the theory of queues knows. Their table is in docs/method.md, made by
//! `bench/limit/run`.

use tidemark_limit::{Ending, Resources, SearchVerdict, found, search};

use crate::queues::series::{Series, percentiles, queues};
use crate::queues::{Neighbours, Simulated, goal, limit, options};

/// Three minutes of virtual time each.
const BUDGET_S: f64 = 180.0;

fn check(queue: usize, percentile: usize) {
    let (name, queue) = queues()[queue];
    let series = Series::of(queue, percentiles()[percentile], BUDGET_S, 100);
    let told = format!("{name}: {series:?}");
    assert!((series.median - 1.0).abs() < 0.03, "{told}");
    assert!(series.covered >= 90, "{told}");
    assert!(series.longest_s <= BUDGET_S, "{told}");
    // an interval that says nothing covers everything
    assert!(series.half_width < 0.05, "{told}");
}

/// An interval that does not hold the truth, and how its search ended.
type Wrong = (Option<f64>, Option<f64>, Option<Ending>);

/// What a hundred searches beside neighbours came to: how many have an interval that holds the truth, how many say that they
/// know nothing, and the other ones.
fn beside(neighbours: Neighbours) -> (usize, usize, Vec<Wrong>) {
    let (_, mut queue) = queues()[0];
    let percentile = percentiles()[0];
    // the truth is that of the system alone
    let truth = limit(queue, percentile);
    queue.neighbours = Some(neighbours);
    let goals = [goal(percentile)];
    let (mut hold, mut unknown, mut wrong) = (0, 0, Vec::new());
    for seed in 0..100 {
        let options = options(BUDGET_S, seed);
        let mut system = Simulated::new(queue, percentile, 2_000 + seed);
        let mut trials = Vec::new();
        let Ok(ending) = search(&goals, &options, &mut trials, &mut system);
        let found = found(&goals, &trials, &options, &Resources::default(), Some(ending));
        let (low, high) = (found.low_level.unwrap_or(0.0), found.high_level.unwrap_or(f64::INFINITY));
        match found.verdict(None) {
            SearchVerdict::Pass if (low..=high).contains(&truth) => hold += 1,
            SearchVerdict::Unknown => unknown += 1,
            _ => wrong.push((found.low_level, found.high_level, found.ended)),
        }
    }
    (hold, unknown, wrong)
}

#[test]
fn beside_neighbours_who_take_a_core_an_interval_holds_the_truth_or_there_is_none() {
    // they are there half of the time, for long or for short; seldom; for a moment
    for (there_s, away_s, hold_least) in [(20.0, 20.0, 10), (5.0, 60.0, 60), (0.5, 10.0, 10)] {
        let neighbours = Neighbours { there_s, away_s, are_told: true };
        let (hold, unknown, wrong) = beside(neighbours);
        let told = format!("{neighbours:?}: {hold} hold, {unknown} unknown, {wrong:?}");
        assert!(hold + unknown >= 90, "{told}");
        assert!(hold >= hold_least, "an answer is possible: {told}");
    }
    // and it is the trials' report that makes it so
    let (hold, unknown, _) = beside(Neighbours { there_s: 20.0, away_s: 20.0, are_told: false });
    assert!(hold + unknown < 90, "unsaid: {hold} hold, {unknown} unknown");
}

#[test]
fn beside_neighbours_who_stay_nothing_is_said_of_the_system() {
    let neighbours = Neighbours { there_s: 1.0, away_s: 0.0, are_told: true };
    let (hold, unknown, wrong) = beside(neighbours);
    assert!(hold + unknown >= 90 && unknown >= 90, "{hold} hold, {unknown} unknown, {wrong:?}");
    let (hold, unknown, _) = beside(Neighbours { are_told: false, ..neighbours });
    assert!(hold + unknown < 10, "unsaid: {hold} hold, {unknown} unknown");
}

#[test]
fn one_worker_with_exponential_service_times() {
    check(0, 0);
}

#[test]
fn one_worker_that_always_takes_the_same_time() {
    check(1, 0);
}

#[test]
fn two_workers_and_another_percentile() {
    check(2, 1);
}
