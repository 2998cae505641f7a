//! Load models against what a server wrote down of each request: overload, drops, pace, the warm-up's edge, drips.

use std::io::Write;
use std::time::Duration;

use crate::support::{Next, OPEN, Server as Scripted, Sum, get, phase, plan, run};
use tidemark_record::Outcome;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{LoadModel, Phase};
use tidemark_truth::{Behaviour, Delay, Server, Truth};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Drives a server that serves so many requests a second, and asks it what it did.
fn against(capacity_per_s: f64, plan: Plan) -> (Sum, Truth) {
    let behaviour = Behaviour { capacity_per_s: Some(capacity_per_s), ..Behaviour::default() };
    let server = Server::start(behaviour).unwrap();
    let sum = run(plan, server.address());
    (sum, server.stop().unwrap())
}

fn open(phases: Vec<Phase>) -> Plan {
    let mut plan = plan(vec![get(0, "/")], OPEN, phases);
    plan.limits.connections = 16;
    plan.requests[0].timeout = Duration::from_secs(30);
    plan
}

#[test]
fn in_an_overload_every_wait_is_told_to_its_end() {
    let mut plan = open(vec![phase(2_000, 800.0)]);
    plan.limits.waiting = None;
    let (sum, truth) = against(500.0, plan);
    assert_eq!((sum.measured(), sum.outcome(Outcome::Ok)), ((1_600, 0), 1_600));
    assert_eq!((truth.requests, truth.answered), (1_600, 1_600));
    // Request n is due after n / 800 s and answered after n / 500 s, or later on a busy machine.
    let response = sum.response();
    for quantile in [0.5, 0.9, 0.99, 1.0] {
        let least_us = quantile * 1_200_000.0 * 0.97;
        let told_us = response.value_at_quantile(quantile);
        assert!(
            told_us as f64 >= least_us,
            "quantile {quantile}: {told_us} µs hides a part of {least_us} µs"
        );
    }
}

#[test]
fn as_many_wait_as_memory_holds_where_no_bound_is_named() {
    let server = Server::start(Behaviour::default()).unwrap();
    server.freeze();
    let mut plan = open(vec![phase(1_000, 20_000.0)]);
    plan.limits.waiting = None;
    plan.limits.drain = ms(100);
    let sum = run(plan, server.address());
    let truth = server.stop().unwrap();
    assert_eq!((sum.measured(), sum.outcome(Outcome::Unfinished)), ((20_000, 0), 20_000));
    assert_eq!(truth.answered, 0);
}

#[test]
fn what_is_dropped_never_came_to_the_server() {
    let dropped = || {
        let mut plan = open(vec![phase(2_000, 400.0)]);
        plan.limits.waiting = Some(50);
        let (sum, truth) = against(200.0, plan);
        let (offered, dropped) = sum.measured();
        assert_eq!((offered, sum.outcome(Outcome::Ok)), (800, truth.answered));
        assert_eq!(dropped, 800 - truth.requests);
        dropped
    };
    // the server has served 400 when the last one is due, and then those that wait or are under way; fewer where the
    // machine stood still, too
    assert!((0..3).any(|_| (300..=400).contains(&dropped())));
}

#[test]
fn a_beat_that_never_begins_is_dropped_and_counts_by_when_it_was_due() {
    let delays = vec![Delay::Fixed(ms(250))];
    let server = Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap();
    let phases = vec![Phase { measured: false, ..phase(500, 8.0) }, phase(1_000, 8.0)];
    let sum = run(plan(vec![get(0, "/")], LoadModel::Paced(ms(100)), phases), server.address());
    let truth = server.stop().unwrap();
    let (offered, dropped) = sum.measured();
    assert_eq!((offered, sum.offered()), (80, 120));
    assert_eq!(sum.outcome(Outcome::Ok), truth.answered);
    assert_eq!(sum.dropped(), 120 - truth.requests);
    assert!(dropped >= 40, "of its ten measured beats a user comes to four at most: {dropped}");
}

#[test]
fn what_is_dropped_in_the_warm_up_is_none_of_the_measured() {
    let warm_up = Phase { measured: false, ..phase(500, 300.0) };
    let mut plan = open(vec![warm_up, Phase { measured: false, ..phase(500, 0.0) }, phase(1_000, 50.0)]);
    plan.limits.waiting = Some(5);
    let (sum, truth) = against(100.0, plan);
    // 50 of 150 are served by the end of the warm-up, 21 more at most are there
    let unmeasured = sum.dropped() - sum.measured().1;
    assert_eq!(sum.measured().0, 50);
    assert_eq!(unmeasured, 150 - sum.count(|_, _, measured| !measured));
    assert!(unmeasured >= 70, "{unmeasured}");
    assert_eq!(sum.ended(), truth.answered);
}

#[test]
fn an_answer_that_drips_ends_with_its_last_byte() {
    let server = Scripted::start(|_, stream| {
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" {
            let _ = stream.write_all(&[*byte]);
            std::thread::sleep(ms(5));
        }
        Next::Keep
    });
    let sum = run(open(vec![phase(500, 40.0)]), server.address);
    assert_eq!((sum.outcome(Outcome::Ok), server.requests()), (20, 20));
    let least_us = sum.response().min();
    // 39 pauses lie before the last byte
    assert!(least_us >= 190_000, "{least_us} µs");
}
