//! Pipelining: several requests at once on a connection, each with its own times and its own end.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{
    Next, Nobody, Server, answer, begin, extract, finish, get, http, options, phase, plan, run,
};
use tidemark_record::Outcome;
use tidemark_scenario::plan::{Check, LoadModel, Source, Spacing, TextTest, WhenMissing};
use tidemark_scenario::template::{Encoding, Part};
use tidemark_scenario::{Expr, Plan, Template};

const DEPTH: usize = 16;

/// 16 users on one connection, each of whom makes one request.
fn sixteen() -> Plan {
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(10_000, DEPTH as f64)]);
    plan.limits.connections = 1;
    plan.limits.pipeline = DEPTH;
    plan.limits.sessions = Some(DEPTH as u64);
    plan
}

#[test]
fn each_session_gets_its_own_answers() {
    let ids = AtomicUsize::new(0);
    let server = Server::start(move |request, stream| match request.target() {
        "/id" => answer(stream, "200 OK", "", &ids.fetch_add(1, Ordering::SeqCst).to_string()),
        other => answer(stream, "200 OK", "", other),
    });
    let hole = || Part::Hole(Expr::variable(0), Encoding::Url);
    let literal = |text: &str| Part::Literal(text.as_bytes().into());
    let mut plan = plan(vec![get(0, "/id"), get(1, "")], LoadModel::Closed, vec![phase(60_000, 64.0)]);
    plan.limits.sessions = Some(1_000);
    plan.requests[0].extractions = vec![extract(0, Source::Body, WhenMissing::Fail)];
    http(&mut plan.requests[1]).target = Template { parts: vec![literal("/echo/"), hole()] };
    let echoed = Template { parts: vec![literal("/echo/"), hole()] };
    plan.requests[1].checks = vec![Check::Body(TextTest::Equals(echoed))];
    (plan.limits.connections, plan.limits.pipeline) = (4, DEPTH);
    let sum = finish(begin(plan, options(server.address, 2)));
    assert_eq!(sum.outcome(Outcome::Ok), sum.offered(), "{:?}", sum.examples());
    assert_eq!(sum.offered(), 2_000);
    assert_eq!((server.connections(), sum.connects()), (4, 4));
    let most = sum.intervals.iter().map(|interval| interval.connections).max();
    assert_eq!(most, Some(2), "two for each thread");
}

#[test]
fn an_answer_waits_for_those_before_it_and_each_has_its_own_time() {
    let server = Server::plain(Duration::from_millis(20));
    let sum = run(sixteen(), server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended(), server.connections()), (16, 16, 1));
    assert_eq!(server.requests(), DEPTH);
    let response = sum.response();
    assert!(response.min() >= 19_900, "{} µs", response.min());
    assert!(response.max() >= 319_000, "the last waited for fifteen others: {} µs", response.max());
    let above_half = response.len() - response.count_between(0, 159_000);
    assert!(above_half >= 9, "{above_half} took more than half of that");
}

#[test]
fn an_example_shows_no_answer_but_its_own() {
    let server = Server::start(|request, stream| {
        if request.index == 15 {
            let answers = (10..26).map(|id| format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{id}"));
            let _ = stream.write_all(answers.collect::<String>().as_bytes());
        }
        Next::Keep
    });
    let mut plan = sixteen();
    plan.requests[0].checks = vec![Check::Status(vec![(204, 204)])];
    let sum = run(plan, server.address);
    assert_eq!(sum.outcome(Outcome::Status), 16, "{:?}", sum.examples());
    assert_eq!(sum.examples()[0].detail, "check status: expected 204, got 200: 10");
    assert!(sum.examples().iter().all(|example| !example.detail.contains("HTTP")), "{:?}", sum.examples());
}

#[test]
fn half_of_the_pipeline_answered_then_closed() {
    let server = Server::start(|request, stream| match request.index {
        0..8 => answer(stream, "200 OK", "", "hello"),
        15 => Next::Close,
        _ => Next::Keep,
    });
    let sum = run(sixteen(), server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset)), (8, 8), "{:?}", sum.examples());
    assert!(sum.examples()[0].detail.contains("before any byte"), "{:?}", sum.examples());
    assert_eq!(server.requests(), DEPTH, "nothing is sent twice");
}

#[test]
fn closed_within_one_of_the_answers() {
    let server = Server::start(|request, stream| match request.index {
        0..8 => answer(stream, "200 OK", "", "hello"),
        8 => crate::support::write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
        15 => Next::Close,
        _ => Next::Keep,
    });
    let sum = run(sixteen(), server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset)), (8, 8), "{:?}", sum.examples());
    let details: Vec<_> = sum.examples().iter().map(|example| example.detail.clone()).collect();
    assert!(details[0].contains("before the answer was whole"), "{details:?}");
    assert!(details[1].contains("before any byte"), "{details:?}");
}

#[test]
fn a_wrong_length_spoils_the_rest_of_the_pipeline() {
    // Written in one piece, so that the surplus is there when the next answer is looked for.
    let server = Server::start(|request, stream| {
        if request.index == 15 {
            let right = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".repeat(4);
            let wrong = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more";
            let _ = stream.write_all(format!("{right}{wrong}{right}").as_bytes());
        }
        Next::Keep
    });
    let sum = run(sixteen(), server.address);
    let ends = [Outcome::Ok, Outcome::Protocol, Outcome::Reset].map(|outcome| sum.outcome(outcome));
    assert_eq!(ends, [5, 1, 10], "{:?}", sum.examples());
    let broken = sum.examples().into_iter().find(|example| example.outcome == Outcome::Reset);
    assert!(broken.unwrap().detail.contains("another request of its pipeline"), "{:?}", sum.examples());
}

#[test]
fn a_time_out_ends_what_waits_behind_it() {
    let server = Server::start(|request, stream| match request.index {
        0..4 => answer(stream, "200 OK", "", "hello"),
        _ => Next::Keep,
    });
    let mut plan = sixteen();
    plan.requests[0].timeout = Duration::from_secs(2);
    let sum = run(plan, server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 4, "{:?}", sum.examples());
    assert_eq!(sum.outcome(Outcome::Timeout), 12, "the server reset nothing: {:?}", sum.examples());
}

#[test]
fn who_shares_a_socket_with_one_that_timed_out_has_timed_out_too() {
    let server = Server::start(|_, _| Next::Keep);
    // the second is due 100 ms after the first, and so would have as much longer
    let mut plan = plan(vec![get(0, "/")], LoadModel::Open(Spacing::Constant), vec![phase(200, 10.0)]);
    (plan.limits.connections, plan.limits.pipeline) = (1, DEPTH);
    plan.requests[0].timeout = Duration::from_millis(300);
    let sum = run(plan, server.address);
    assert_eq!((sum.outcome(Outcome::Timeout), sum.ended()), (2, 2), "{:?}", sum.examples());
    assert_eq!(server.connections(), 1);
    let details: Vec<_> = sum.examples().iter().map(|example| example.detail.clone()).collect();
    let both = ["no whole answer in time", "another request of its pipeline timed out"];
    assert!(details.iter().all(|detail| both.contains(&detail.as_str())), "{details:?}");
}

#[test]
fn after_a_close_the_users_go_on_over_a_new_connection() {
    let server = Server::start(|request, stream| match request.index {
        0..40 => answer(stream, "200 OK", "", "hello"),
        40 => {
            answer(stream, "200 OK", "Connection: close\r\n", "the last");
            Next::Close
        }
        _ => unreachable!("closed before"),
    });
    let mut plan = sixteen();
    plan.limits.sessions = Some(500);
    let sum = run(plan, server.address);
    let (ok, reset) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset));
    assert_eq!(ok + reset, 500, "{:?}", sum.examples());
    assert!(ok >= 300, "{ok} of 500");
    assert!(server.connections() >= 9, "{} connections", server.connections());
    assert_eq!(sum.connects() as usize, server.connections());
}

#[test]
fn refused_connections_are_told_to_each_and_back_off() {
    let nobody = Nobody::taken();
    let mut plan = sixteen();
    plan.limits.sessions = None;
    plan.load.phases = vec![phase(500, DEPTH as f64)];
    let sum = run(plan, nobody.address());
    let refused = sum.outcome(Outcome::Connect);
    assert_eq!(refused, sum.ended());
    assert!((16..=16 * 14).contains(&refused), "{refused}");
    assert_eq!(sum.connects(), 0);
}
