//! Load models end to end: counts, queues, freezes, drains, stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{OPEN, Server, answer, begin, finish, get, kind, options, phase, plan, run};
use tidemark_drive::{DriveError, start};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::plan::{LoadModel, Op, Phase, RequestKind};
use tidemark_scenario::{Expr, Shared};

#[test]
fn an_open_load_offers_just_what_its_phases_say_on_any_number_of_threads() {
    let server = Server::plain(Duration::ZERO);
    for threads in [1, 3] {
        let phases = vec![
            Phase { from: 0.0, to: 400.0, measured: false, ..phase(500, 0.0) },
            phase(1_000, 400.0),
            Phase { measured: false, ..phase(250, 100.0) },
        ];
        let sum = finish(begin(plan(vec![get(0, "/")], OPEN, phases), options(server.address, threads)));
        assert_eq!(sum.offered(), 100 + 400 + 25);
        assert_eq!(sum.count(|_, _, measured| measured), 400);
        let window: u64 = sum
            .intervals
            .iter()
            .filter(|i| i.in_window && i.thread == 0)
            .map(|i| i.end_us - i.start_us)
            .sum();
        assert!((999_990..=1_000_010).contains(&window), "{window} µs");
        let names: Vec<_> = sum.end.phases.iter().map(|p| (p.end_us - p.start_us, p.measured)).collect();
        assert_eq!(names, [(500_000, false), (1_000_000, true), (250_000, false)]);
    }
}

#[test]
fn closed_users_are_never_more_than_their_level() {
    let (server, most) = Server::counting(Duration::from_millis(5));
    let phases = vec![Phase { from: 0.0, to: 6.0, measured: false, ..phase(300, 0.0) }, phase(60_000, 6.0)];
    let drive = begin(plan(vec![get(0, "/")], LoadModel::Closed, phases), options(server.address, 4));
    until(|| most.load(Ordering::SeqCst) >= 6 && server.requests() > 500);
    drive.stop();
    let sum = finish(drive);
    assert_eq!(most.load(Ordering::SeqCst), 6);
    assert_eq!(sum.connects(), 6);
    assert_eq!(sum.outcome(Outcome::Ok), sum.ended());
}

#[test]
fn users_leave_when_the_level_falls() {
    let server = Server::plain(Duration::from_millis(2));
    let phases = vec![phase(200, 5.0), Phase { measured: false, ..phase(500, 0.0) }];
    let sum = run(plan(vec![get(0, "/")], LoadModel::Closed, phases), server.address);
    assert!(sum.count(|_, _, measured| measured) >= 5);
    let after = sum.count(|_, _, measured| !measured);
    assert!(after <= 5, "{after} requests were due after the last user should have left");
}

/// Stands still while the flag is up.
fn freezing(frozen: Arc<AtomicBool>) -> Server {
    Server::start(move |_, stream| {
        while frozen.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        answer(stream, "200 OK", "", "")
    })
}

#[test]
fn a_freeze_shows_in_every_request_that_was_due_meanwhile() {
    assert!((0..3).any(|_| shows_a_freeze()), "others than those who were due meanwhile had to wait");
}

/// Whether others than those who were due meanwhile did not wait; not where the machine stood still, too.
fn shows_a_freeze() -> bool {
    let frozen = Arc::new(AtomicBool::new(false));
    let server = freezing(frozen.clone());
    let begun = Instant::now();
    let drive = begin(plan(vec![get(0, "/")], OPEN, vec![phase(2_000, 500.0)]), options(server.address, 1));
    until(|| server.requests() >= 200);
    frozen.store(true, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(600));
    let is_within = begun.elapsed() < Duration::from_millis(1_900);
    frozen.store(false, Ordering::SeqCst);
    let sum = finish(drive);
    assert_eq!((sum.offered(), sum.outcome(Outcome::Ok)), (1_000, 1_000));
    let response = sum.response();
    // 300 were due within the 600 ms; 200 of them at least 200 ms before its end. A noisy machine only adds to it.
    let slow = response.len() - response.count_between(0, 200_000);
    assert!(slow >= 190 || !is_within, "{slow} requests took longer than 200 ms");
    assert!(response.max() >= 590_000 || !is_within, "{} µs", response.max());
    is_within && response.value_at_quantile(0.3) < 200_000
}

#[test]
fn arrivals_beyond_the_bounds_are_dropped_and_counted() {
    let frozen = Arc::new(AtomicBool::new(true));
    let server = freezing(frozen.clone());
    let mut plan = plan(vec![get(0, "/")], OPEN, vec![phase(1_000, 100.0)]);
    plan.limits.connections = 3;
    plan.limits.waiting = Some(7);
    plan.limits.drain = Duration::from_millis(800);
    let sum = run(plan, server.address);
    frozen.store(false, Ordering::SeqCst);
    assert_eq!((sum.offered(), sum.dropped()), (100, 90));
    assert_eq!(sum.outcome(Outcome::Unfinished), 10, "what is under way or waits when the drain is over");
    assert_eq!((sum.counted(Counter::Unfinished), sum.outcome(Outcome::Timeout)), (10, 0));
    assert_eq!(sum.measured(), (100, 90));
    assert!(sum.intervals.iter().any(|i| i.waiting == 7 && i.in_flight == 3));
}

/// More pauses end at once, a tenth of a millisecond before the load does, than are looked at in one go.
#[test]
fn whose_pause_ends_with_the_load_still_makes_its_request() {
    let nobody = crate::support::Nobody::taken();
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(500, 600.0)]);
    plan.sessions = vec![kind(vec![Op::Think(Expr::int(499_900)), Op::Request(0), Op::End])];
    let sum = run(plan, nobody.address());
    assert_eq!((sum.offered(), sum.ended()), (600, 600));
}

#[test]
fn who_waits_too_long_times_out_without_having_been_sent() {
    let frozen = Arc::new(AtomicBool::new(true));
    let server = freezing(frozen.clone());
    let mut plan = plan(vec![get(0, "/"), get(1, "/")], OPEN, vec![phase(500, 100.0)]);
    plan.requests[0].timeout = Duration::from_millis(200);
    plan.requests[1].timeout = Duration::from_millis(1_000);
    plan.limits.connections = 1;
    plan.limits.drain = Duration::from_millis(300);
    let sum = run(plan, server.address);
    frozen.store(false, Ordering::SeqCst);
    // The first session keeps the only connection for its second request.
    let (late, unfinished) = (sum.outcome(Outcome::Timeout), sum.outcome(Outcome::Unfinished));
    assert_eq!((sum.offered(), late + unfinished), (sum.ended(), sum.ended()));
    assert!(late >= 50, "{late} timed out, {unfinished} were cut off");
    assert_eq!(sum.count(|label, _, _| label == 0), 50);
    let less_lag: u64 =
        sum.intervals.iter().flat_map(|i| &i.series).map(|s| s.response_time_less_lag_us.len()).sum();
    assert_eq!(less_lag, sum.ended(), "each request has a time less lag, sent or not");
    let sent: u64 = sum.intervals.iter().flat_map(|i| &i.series).map(|s| s.service_time_us.len()).sum();
    // none where the machine stood still at the begin
    assert!(sent <= 3, "{sent} were sent");
}

#[test]
fn the_drain_serves_what_has_arrived() {
    let server = Server::plain(Duration::from_millis(20));
    let mut plan = plan(vec![get(0, "/"), get(1, "/")], OPEN, vec![phase(200, 100.0)]);
    plan.limits.connections = 1;
    let sum = run(plan, server.address);
    // 20 sessions want 40 × 20 ms of one connection within 200 ms: most are served in the drain, and there each
    // ends after the request that was due.
    assert_eq!(sum.of(0, Outcome::Ok), 20);
    assert_eq!(sum.outcome(Outcome::Ok), sum.offered());
    assert_eq!(sum.counted(Counter::Unfinished), 0);
    assert!(!sum.end.interrupted);
}

fn long(address: SocketAddr) -> tidemark_drive::Drive {
    begin(plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(60_000, 4.0)]), options(address, 2))
}

fn until(true_at_last: impl Fn() -> bool) {
    let begin = Instant::now();
    while !true_at_last() {
        assert!(begin.elapsed() < Duration::from_secs(30), "never came true");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_stop_lets_requests_under_way_end() {
    let server = Server::plain(Duration::from_millis(50));
    let drive = long(server.address);
    until(|| server.requests() >= 8);
    drive.stop();
    let sum = finish(drive);
    assert!(sum.end.interrupted);
    assert_eq!(sum.outcome(Outcome::Ok), sum.offered());
    assert_eq!(sum.end.phases.len(), 1);
    assert_eq!(Some(sum.end.phases[0].end_us), sum.end.stopped_us);
    assert!(sum.end.phases[0].end_us <= sum.end.ended_us && sum.end.ended_us < 30_000_000);
}

/// Nothing answers, so that the drain is long; it is not measured.
#[test]
fn the_measured_time_ends_where_sending_was_stopped() {
    let server = Server::silent();
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(60_000, 4.0)]);
    plan.limits.drain = Duration::from_millis(2_500);
    let drive = begin(plan, options(server.address, 2));
    until(|| server.requests() >= 4);
    drive.stop();
    let sum = finish(drive);
    let stopped_us = sum.end.stopped_us.expect("it was stopped");
    assert!(sum.end.ended_us >= stopped_us + 2_400_000, "{:?}", sum.end);
    assert_eq!(sum.end.phases[0].end_us, stopped_us);
    let ends: Vec<u64> = sum.intervals.iter().filter(|i| i.in_window).map(|i| i.end_us).collect();
    assert_eq!(ends.iter().max(), Some(&stopped_us), "{ends:?}");
    assert!(sum.intervals.iter().any(|i| !i.in_window && i.end_us > stopped_us));
    // what was due is measured, though it ended in the drain
    assert_eq!(
        (sum.measured().0, sum.count(|_, outcome, measured| measured && outcome == Outcome::Unfinished)),
        (4, 4)
    );
}

#[test]
fn an_abort_waits_for_nothing() {
    let server = Server::silent();
    let drive = begin(
        plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(60_000, 4.0)]),
        options(server.address, 1),
    );
    until(|| server.requests() >= 4);
    let stopper = drive.stopper();
    std::thread::spawn(move || stopper.abort()).join().unwrap();
    let sum = finish(drive);
    assert!(sum.end.interrupted);
    assert_eq!((sum.counted(Counter::Unfinished), sum.outcome(Outcome::Unfinished)), (4, 4));
}

#[test]
fn a_drive_that_is_let_go_ends() {
    let server = Server::plain(Duration::ZERO);
    let drive = long(server.address);
    until(|| server.requests() >= 8);
    drop(drive);
    let settled = || {
        let before = server.requests();
        std::thread::sleep(Duration::from_millis(100));
        server.requests() == before
    };
    until(settled);
}

#[test]
fn a_slow_reader_of_intervals_loses_nothing_within_two_minutes() {
    let server = Server::plain(Duration::from_millis(1));
    let drive = begin(
        plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(2_200, 2.0)]),
        options(server.address, 1),
    );
    std::thread::sleep(Duration::from_millis(2_600));
    let sum = finish(drive);
    assert!(sum.intervals.len() >= 3);
    assert_eq!(sum.ended(), server.requests() as u64);
}

#[test]
fn what_cannot_be_driven_is_refused() {
    let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let refused = |change: fn(&mut tidemark_scenario::Plan), threads| {
        let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(100, 1.0)]);
        change(&mut plan);
        start(Arc::new(plan), Arc::new(Shared::new(0, Vec::new())), options(address, threads)).err()
    };
    assert!(matches!(refused(|_| {}, 0), Some(DriveError::Threads(0))));
    assert!(matches!(refused(|p| p.sessions.clear(), 1), Some(DriveError::Nothing(_))));
    assert!(matches!(refused(|p| p.load.phases.clear(), 1), Some(DriveError::Nothing(_))));
    assert!(matches!(refused(|p| p.load.phases[0].to = f64::NAN, 1), Some(DriveError::Level { .. })));
    assert!(matches!(
        refused(|p| p.sessions[0].ops = vec![Op::Request(7)], 1),
        Some(DriveError::Op { op: 0, .. })
    ));
    let command =
        |p: &mut tidemark_scenario::Plan| p.requests[0].ask = RequestKind::Redis(Default::default());
    assert!(matches!(refused(command, 1), Some(DriveError::Protocol(_))));
    let jump = |p: &mut tidemark_scenario::Plan| p.sessions.push(kind(vec![Op::End, Op::Jump(9)]));
    assert!(matches!(refused(jump, 1), Some(DriveError::Op { op: 1, .. })));
}
