//! Load models end to end, as counts: pace, think time, several kinds, the limit of sessions in flight.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{OPEN, Server, begin, finish, get, kind, options, phase, plan, run};
use tidemark_record::{Counter, Outcome, new_histogram};
use tidemark_scenario::plan::{AtLimit, KindLoad, Load, LoadModel, Op, Pause, Phase, SessionLimit};

#[test]
fn paced_users_owe_the_same_whatever_the_system_does() {
    let pace = LoadModel::Paced(Duration::from_millis(100));
    let quick = Server::plain(Duration::ZERO);
    let phases = vec![phase(1_000, 4.0), phase(2_000, 0.0)];
    let sum = finish(begin(plan(vec![get(0, "/")], pace, phases), options(quick.address, 3)));
    assert_eq!(sum.offered(), 40);
    // what could not begin before the end was kept from it by an answer that took as long as the phase without users
    assert!(sum.dropped() == 0 || sum.response().max() >= 2_000_000, "{} dropped", sum.dropped());

    let slow = Server::plain(Duration::from_millis(250));
    let lag_us = || {
        let sum = run(plan(vec![get(0, "/")], pace, vec![phase(1_000, 8.0)]), slow.address);
        // Each user comes to four of its ten, the last of them 450 ms late; to five where the driver is held up at the end.
        assert_eq!(sum.offered(), 80);
        assert_eq!(sum.measured(), (80, sum.dropped()), "a beat that never begins counts by when it was due");
        assert!(sum.outcome(Outcome::Ok) <= 40 && sum.dropped() >= 40, "{} dropped", sum.dropped());
        assert!(sum.response().max() >= 500_000, "{} µs", sum.response().max());
        let mut lag = new_histogram();
        sum.intervals.iter().for_each(|interval| lag.add(&interval.lag_us));
        lag.value_at_quantile(0.5)
    };
    // Of three in four requests the user was 150 ms late or more. Where the machine stands still, the driver is late, too.
    assert!((0..3).any(|_| lag_us() < 150_000), "a user's lateness is not the driver's");
}

#[test]
fn think_time_keeps_users_apart() {
    let think = LoadModel::Thinking(Pause::Fixed(Duration::from_millis(200)));
    let server = Server::plain(Duration::ZERO);
    let sum = run(plan(vec![get(0, "/")], think, vec![phase(900, 3.0)]), server.address);
    // At 0, 200, 400, 600 and 800 ms, or later.
    assert!((3..=15).contains(&sum.ended()), "{}", sum.ended());
    assert_eq!(sum.outcome(Outcome::Ok), sum.offered());
}

#[test]
fn kinds_with_loads_of_their_own_make_each_its_requests() {
    let server = Server::plain(Duration::ZERO);
    let mut plan = plan(vec![get(0, "/a"), get(1, "/b")], OPEN, vec![phase(1_000, 0.0), phase(1_500, 0.0)]);
    plan.sessions = vec![kind(vec![Op::Request(0), Op::End]), kind(vec![Op::Request(1), Op::End])];
    let phases = vec![phase(1_000, 2.0)];
    let paced = KindLoad { kind: 1, model: LoadModel::Paced(Duration::from_millis(100)), phases };
    let open = KindLoad { kind: 0, model: OPEN, phases: vec![phase(1_000, 100.0)] };
    plan.load = Load { kinds: vec![paced, open], ..plan.load };
    let sum = finish(begin(plan, options(server.address, 2)));
    assert_eq!(sum.of(0, Outcome::Ok), 100);
    // but those that a machine that stood still kept from beginning before the end
    let paced = sum.of(1, Outcome::Ok);
    assert_eq!((sum.offered(), paced + sum.dropped()), (120, 20));
    assert!(paced > 0, "{} dropped", sum.dropped());
}

#[test]
fn beyond_the_limit_sessions_are_dropped_or_wait() {
    for (at_limit, waited) in [(AtLimit::Drop, 0), (AtLimit::Wait, 7)] {
        let server = Server::silent();
        let mut plan = plan(vec![get(0, "/")], OPEN, vec![phase(1_000, 100.0)]);
        plan.limits.in_flight = Some(SessionLimit { most: 3, at_limit });
        plan.limits.waiting = Some(7);
        plan.limits.drain = Duration::from_millis(800);
        let sum = run(plan, server.address);
        // Who still waits at the end is dropped, too.
        assert_eq!((sum.offered(), sum.dropped()), (100, 97));
        assert_eq!(sum.measured(), (100, 97), "also where it was given up after the window");
        assert_eq!(
            (sum.counted(Counter::SessionsWaited), sum.counted(Counter::SessionsDropped)),
            (waited, 97)
        );
        assert!(sum.intervals.iter().any(|i| i.waiting == waited && i.in_flight == 3));
    }
}

/// What was due in each of half a second of warm-up, half a measured one and half a second after it ends in the sums of
/// just that half, wherever the driver is with it when it ends.
#[test]
fn every_request_that_was_due_in_the_window_ends_in_its_sums() {
    let unmeasured = || Phase { measured: false, ..phase(500, 40.0) };
    let phases = || vec![unmeasured(), phase(500, 40.0), unmeasured()];
    let pace = LoadModel::Paced(Duration::from_millis(100));
    let think = LoadModel::Thinking(Pause::Exponential(Duration::from_millis(50)));
    let all = [OPEN, pace, think, LoadModel::Closed];
    let limits = [None, Some(AtLimit::Wait), Some(AtLimit::Drop)];
    let case = |model: LoadModel, at_limit: Option<AtLimit>, stopped: bool| {
        let server = Server::plain(Duration::from_millis(130));
        let mut plan = plan(vec![get(0, "/")], model, phases());
        plan.limits.connections = 6;
        plan.limits.waiting = Some(12);
        plan.limits.drain = Duration::from_millis(250);
        plan.limits.in_flight = at_limit.map(|at_limit| SessionLimit { most: 4, at_limit });
        plan.requests[0].timeout = Duration::from_millis(300);
        let drive = begin(plan, options(server.address, 2));
        if stopped {
            std::thread::sleep(Duration::from_millis(900));
            drive.stop();
        }
        // the sums are compared there
        let sum = finish(drive);
        let named = format!("{model:?}, {at_limit:?}, stopped: {stopped}");
        // of all 60 arrivals, or 15 beats of each of 40 users, a third
        let (offered, dropped) = sum.measured();
        match model {
            LoadModel::Open(_) if !stopped => assert_eq!(offered, 20, "{named}"),
            LoadModel::Paced(_) if !stopped => assert_eq!(offered, 200, "{named}"),
            _ => {}
        }
        assert!(dropped <= sum.dropped(), "{named}");
        offered > 0
    };
    let cases = || {
        std::thread::scope(|scope| {
            let pairs = all.iter().flat_map(|model| limits.map(|at_limit| (*model, at_limit)));
            let threads: Vec<_> = pairs
                .map(|(model, at_limit)| {
                    scope.spawn(move || [false, true].map(|stopped| case(model, at_limit, stopped)))
                })
                .collect();
            threads.into_iter().all(|thread| thread.join().unwrap() == [true, true])
        })
    };
    // a machine that stands still for half a second leaves nothing that is due in the window of some
    assert!((0..3).any(|_| cases()), "in some nothing was due");
}

#[test]
fn who_waits_for_a_sessions_end_is_served_and_the_wait_counts() {
    let (server, most) = Server::counting(Duration::from_millis(20));
    let mut plan = plan(vec![get(0, "/")], OPEN, vec![phase(200, 100.0), phase(4_000, 0.0)]);
    plan.limits.in_flight = Some(SessionLimit { most: 1, at_limit: AtLimit::Wait });
    let sum = run(plan, server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.dropped()), (20, 0));
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert!(
        (1..20).contains(&sum.counted(Counter::SessionsWaited)),
        "{}",
        sum.counted(Counter::SessionsWaited)
    );
    // 20 times 20 ms, of which the last was due after 190.
    assert!(sum.response().max() >= 205_000, "{} µs", sum.response().max());
}

#[test]
fn who_waits_longer_than_the_time_out_is_not_sent() {
    let server = Server::silent();
    let told = || {
        let requests = vec![get(0, "/first"), get(1, "/second")];
        let mut plan = plan(requests, OPEN, vec![phase(300, 100.0), phase(700, 0.0)]);
        plan.requests[0].timeout = Duration::from_millis(300);
        plan.requests[1].timeout = Duration::from_millis(500);
        plan.limits.in_flight = Some(SessionLimit { most: 1, at_limit: AtLimit::Wait });
        plan.limits.drain = Duration::from_millis(100);
        let sum = run(plan, server.address);
        // The first session takes 800 ms; by then the time of every other one's first request is over.
        let first = || sum.intervals.iter().flat_map(|i| &i.series).filter(|s| s.label == 0);
        assert!(first().all(|s| s.outcome == Outcome::Timeout));
        let ended = first().map(|s| s.response_time_us.len()).sum::<u64>();
        let sent = first().map(|s| s.service_time_us.len()).sum::<u64>();
        assert!(sent <= 1, "only one was sent: {sent}");
        (ended >= 2, sent, sum.counted(Counter::SessionsWaited))
    };
    // where the machine stands still at its begin, not even the first is in time
    assert!((0..3).any(|_| told() == (true, 1, 29)));
}
