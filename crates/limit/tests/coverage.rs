//! A hundred searches against each queue whose limit the theory of queues knows. Their table is in docs/method.md, made by
//! `bench/limit/run`.

use crate::queues::series::{Series, percentiles, queues};

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
