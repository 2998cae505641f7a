//! A bound on the number of sessions, connections that carry one request, status codes, a request's own cookies, and what a
//! connection has of a thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::websocket::listen;
use crate::support::{Next, Server, answer, begin, finish, get, http, kind, load, options, phase, plan, run};
use tidemark_drive::{IoChoice, Protocol, Redis};
use tidemark_record::Outcome;
use tidemark_scenario::Template;
use tidemark_scenario::plan::{LoadModel, Op, Spacing};

const LONG_MS: u64 = 3_600_000;

#[test]
fn so_many_sessions_begin_and_the_load_is_over_when_they_have_ended() {
    let models = [
        (LoadModel::Closed, 7.0),
        (LoadModel::Open(Spacing::Constant), 1_000.0),
        (LoadModel::Open(Spacing::Poisson), 1_000.0),
    ];
    for (model, level) in models {
        for (threads, sessions) in [(1, 100), (3, 100), (4, 2), (9, 50)] {
            let server = Server::plain(Duration::ZERO);
            let mut plan = plan(vec![get(0, "/")], model, vec![phase(LONG_MS, level)]);
            plan.limits.sessions = Some(sessions);
            let sum = finish(begin(plan, options(server.address, threads)));
            assert_eq!(sum.outcome(Outcome::Ok), sessions, "{model:?} on {threads} threads");
            assert_eq!((sum.ended(), server.requests() as u64), (sessions, sessions));
            assert_eq!(sum.count(|_, _, measured| measured), sessions);
            assert!(!sum.end.interrupted);
            assert_eq!(sum.end.phases.len(), 1);
            assert!(sum.end.phases[0].end_us <= sum.end.ended_us, "{:?}", sum.end);
            assert!(sum.intervals.iter().all(|i| i.in_window), "it is measured to its end");
        }
    }
}

#[test]
fn a_bound_that_is_not_reached_changes_nothing() {
    let server = Server::plain(Duration::ZERO);
    let mut plan = plan(vec![get(0, "/")], LoadModel::Open(Spacing::Constant), vec![phase(500, 200.0)]);
    plan.limits.sessions = Some(1_000_000);
    assert_eq!(run(plan, server.address).ended(), 100);
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    // this server would keep them
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let server = Server::start(move |request, stream| {
        seen.lock().unwrap().push((request.head.clone(), request.index));
        answer(stream, "200 OK", "", "hello")
    });
    let mut plan = plan(vec![get(0, "/"), get(1, "/b")], LoadModel::Closed, vec![phase(LONG_MS, 2.0)]);
    plan.limits.sessions = Some(10);
    plan.limits.keep_alive = false;
    let sum = run(plan, server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (20, 20));
    assert_eq!((sum.connects(), server.connections()), (20, 20));
    let heads = heads.lock().unwrap();
    assert!(heads.iter().all(|(head, index)| head.contains("\r\nConnection: close\r\n") && *index == 0));
}

#[test]
fn answers_are_counted_by_status_code() {
    let server = Server::start(|request, stream| {
        let status = ["200 OK", "304 Not Modified", "503 Busy"][request.index % 3];
        match status {
            "304 Not Modified" => crate::support::write(stream, "HTTP/1.1 304 Not Modified\r\n\r\n"),
            _ => answer(stream, status, "", "x"),
        }
    });
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(LONG_MS, 1.0)]);
    plan.limits.sessions = Some(30);
    let sum = run(plan, server.address);
    let mut counts = std::collections::BTreeMap::new();
    for (status, count) in sum.intervals.iter().flat_map(|i| &i.statuses) {
        *counts.entry(*status).or_insert(0) += count;
    }
    assert_eq!(counts, [(200, 10), (304, 10), (503, 10)].into());
    assert_eq!(sum.outcome(Outcome::Status), 10);
}

#[test]
fn answers_before_the_window_are_in_no_count_of_statuses() {
    let server = Server::plain(Duration::ZERO);
    let warm_up = tidemark_scenario::plan::Phase { measured: false, ..phase(300, 100.0) };
    let open = LoadModel::Open(Spacing::Constant);
    let sum = run(plan(vec![get(0, "/")], open, vec![warm_up, phase(500, 100.0)]), server.address);
    assert_eq!(sum.ended(), 80);
    let counted: u64 = sum.intervals.iter().flat_map(|i| &i.statuses).map(|(_, count)| count).sum();
    assert_eq!(counted, 50);
}

#[test]
fn a_requests_own_cookies_stand_in_place_of_the_sessions() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let server = Server::start(move |request, stream| {
        seen.lock().unwrap().push(request.head.clone());
        answer(stream, "200 OK", "Set-Cookie: sid=7\r\n", "");
        Next::Keep
    });
    let mut own = get(0, "/own");
    http(&mut own).headers.push(("cookie".into(), Template::literal("mine=1")));
    let mut plan = plan(vec![own, get(1, "/b")], LoadModel::Closed, vec![phase(LONG_MS, 1.0)]);
    plan.sessions = vec![kind(vec![Op::Request(0), Op::Request(0), Op::Request(1), Op::End])];
    plan.limits.sessions = Some(1);
    run(plan, server.address);
    let heads = heads.lock().unwrap();
    let cookies: Vec<_> = heads
        .iter()
        .map(|head| head.lines().find(|l| l.to_ascii_lowercase().starts_with("cookie")))
        .collect();
    assert_eq!(cookies, [Some("cookie: mine=1"), Some("cookie: mine=1"), Some("Cookie: sid=7")]);
}

/// One answer has no end until others have been given, over another connection of the same thread.
#[test]
fn an_answer_without_end_leaves_the_others_their_turn() {
    const OTHERS: usize = 100;
    /// Longest wait for the others.
    const PATIENCE: Duration = Duration::from_secs(40);
    for io in [IoChoice::Epoll, IoChoice::Portable, IoChoice::Auto] {
        let count = Arc::new(AtomicUsize::new(0));
        let address = listen(None, move |stream| {
            // a command at a time
            while let Ok(1..) = stream.read(&mut [0; 4096]) {
                if count.fetch_add(1, Ordering::SeqCst) > 0 {
                    let _ = stream.write_all(b"+OK\r\n");
                    continue;
                }
                let begun = Instant::now();
                let is_over = || count.load(Ordering::SeqCst) > OTHERS;
                let _ = stream.write_all(b"*?\r\n");
                let elements = b":1\r\n".repeat(64 << 10);
                while !is_over() && begun.elapsed() < PATIENCE {
                    let _ = stream.write_all(&elements);
                }
                // without the others it is none
                let _ = stream.write_all(if is_over() { b".\r\n" } else { b";\r\n" });
            }
        });
        let text = format!(
            "system: {{url: redis://127.0.0.1}}\nsessions:\n  a:\n    steps:\n      - {{redis: [GET, k], timeout: 100s}}\n\
             load: {{users: 2, hold: 100s}}\nlimits: {{sessions: {}}}\n",
            OTHERS + 1
        );
        let plan = load(&text);
        let mut options = options(address, 1);
        options.io = io;
        options.targets[0].protocol = Protocol::Redis(Redis::new(false, None, None));
        let sum = finish(begin(plan, options));
        assert_eq!(sum.outcome(Outcome::Ok), OTHERS as u64 + 1, "{io}: {:?}", sum.examples());
    }
}
