//! Every way in which a request can end is told apart from the others.

use std::net::TcpListener;
use std::time::Duration;

use crate::support::{
    Next, Nobody, OPEN, Server, answer, get, http, phase, plan, run, whole_sessions, write,
};
use tidemark_record::Outcome;
use tidemark_scenario::Template;
use tidemark_scenario::plan::{Check, LoadModel, Op, Plan, TextTest};

/// 20 sessions of one GET within 200 ms.
fn twenty() -> Plan {
    plan(vec![get(0, "/")], OPEN, vec![phase(200, 100.0)])
}

/// All 20 requests ended like this, and the first examples say so.
fn all_end(server: &Server, plan: Plan, outcome: Outcome, detail: &str) {
    let sum = run(plan, server.address);
    assert_eq!((sum.offered(), sum.outcome(outcome)), (20, 20), "{:?}", sum.examples());
    let examples = sum.examples();
    if outcome.is_error() {
        assert_eq!(examples.len(), 3, "{examples:?}");
    }
    for example in examples {
        assert!(example.detail.contains(detail), "{example:?}");
    }
}

#[test]
fn answers_of_every_framing_are_ok() {
    let server = Server::start(|request, stream| match request.index % 4 {
        0 => answer(stream, "200 OK", "", ""),
        1 => write(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        2 => write(stream, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
        _ => {
            write(stream, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
            Next::Close
        }
    });
    all_end(&server, twenty(), Outcome::Ok, "");
}

#[test]
fn a_wrong_status() {
    let server = Server::start(|_, stream| answer(stream, "503 Service Unavailable", "", "come\nback later"));
    all_end(&server, twenty(), Outcome::Status, "status 503: come\\nback later");
    assert!(server.connections() < 15, "an error that is well-formed keeps the connection");
}

#[test]
fn a_failed_check() {
    let server = Server::plain(Duration::ZERO);
    let mut plan = twenty();
    plan.requests[0].checks = vec![Check::Body(TextTest::Contains(Template::literal("bye")))];
    all_end(&server, plan, Outcome::Check, "check body: expected to contain bye, got hello");
}

#[test]
fn no_answer_in_time() {
    let server = Server::silent();
    let mut plan = twenty();
    plan.requests[0].timeout = Duration::from_millis(150);
    let sum = run(plan, server.address);
    assert_eq!((sum.offered(), sum.outcome(Outcome::Timeout)), (20, 20));
    assert!(sum.response().min() >= 149_000, "{} µs", sum.response().min());
}

#[test]
fn half_an_answer_in_time_is_a_time_out() {
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        std::thread::sleep(Duration::from_secs(60));
        Next::Close
    });
    let mut plan = twenty();
    plan.requests[0].timeout = Duration::from_millis(150);
    all_end(&server, plan, Outcome::Timeout, "in time");
}

#[test]
fn closed_before_the_answer() {
    let server = Server::start(|_, _| Next::Close);
    all_end(&server, twenty(), Outcome::Reset, "before any byte");
    assert_eq!(server.requests(), 20, "nothing is sent twice");
}

#[test]
fn closed_within_the_answer() {
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        Next::Close
    });
    all_end(&server, twenty(), Outcome::Reset, "before the answer was whole");
}

#[test]
fn reset_within_the_answer() {
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 200 OK\r\nContent-Le");
        std::thread::sleep(Duration::from_millis(20));
        Next::Reset
    });
    all_end(&server, twenty(), Outcome::Reset, "connection broke");
}

#[test]
fn what_is_no_http() {
    let server = Server::start(|_, stream| write(stream, "SSH-2.0-OpenSSH_9.2\r\n\r\n"));
    all_end(&server, twenty(), Outcome::Protocol, "malformed head");
}

#[test]
fn a_kept_body_over_the_limit() {
    let server = Server::start(|_, stream| answer(stream, "200 OK", "", &"x".repeat(5_000)));
    let mut plan = twenty();
    plan.limits.body_bytes = 1_000;
    plan.requests[0].checks = vec![Check::Body(TextTest::Exists)];
    all_end(&server, plan, Outcome::Protocol, "larger than the limit of 1000 bytes that `limits: body` sets");
}

#[test]
fn a_length_over_the_limit_fails_before_the_body_comes() {
    // no byte of the body ever comes, and the connection stays open: only a time-out would end it
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n");
        Next::Keep
    });
    let plan = twenty();
    assert!(plan.requests.iter().all(|request| request.checks.is_empty()), "the body is not kept");
    all_end(&server, plan, Outcome::Protocol, "larger than the limit of 1048576 bytes");
}

#[test]
fn a_chunk_over_the_limit_fails_before_it_comes() {
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\nabc");
        Next::Keep
    });
    all_end(&server, twenty(), Outcome::Protocol, "larger than the limit of 1048576 bytes");
}

#[test]
fn protocols_are_switched_only_where_that_was_asked_for() {
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
        Next::Keep
    });
    all_end(&server, twenty(), Outcome::Protocol, "switched protocols (status 101)");
    let mut plan = twenty();
    http(&mut plan.requests[0]).headers.push(("Upgrade".into(), Template::literal("x")));
    all_end(&server, plan, Outcome::Ok, "");
}

#[test]
fn more_bytes_than_the_length_do_not_spoil_the_next_answer() {
    let server = Server::start(|_, stream| {
        write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokSURPLUS");
        Next::Keep
    });
    all_end(&server, twenty(), Outcome::Ok, "");
    assert_eq!(server.connections(), 20, "a connection that is out of step is not used again");
}

#[test]
fn refused_connections_back_off() {
    let nobody = Nobody::taken();
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(700, 2.0)]);
    plan.limits.connections = 2;
    let sum = run(plan, nobody.address());
    let refused = sum.outcome(Outcome::Connect);
    assert_eq!(refused, sum.ended());
    // 0, 1, 3, 7, … 127 ms, then each 100 ms: fourteen tries for each of the two users, and no thousands.
    assert!((2..=30).contains(&refused), "{refused}");
    assert!(sum.examples()[0].detail.contains("could not connect"), "{:?}", sum.examples());
    assert_eq!(sum.response().len(), refused);
    assert_eq!(sum.connects(), 0);
}

#[test]
fn a_connection_that_is_never_made_times_out() {
    // Nobody accepts, and there is room for one or two: the system leaves further connections without an answer.
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let mut plan = twenty();
    plan.limits.connect_timeout = Duration::from_millis(100);
    // much later, so that a machine that stands still makes no time-outs of them
    plan.requests[0].timeout = Duration::from_secs(4);
    let sum = run(plan, full.local_addr().unwrap().as_socket().unwrap());
    assert_eq!(sum.outcome(Outcome::Timeout), 20, "nobody refused anything: {:?}", sum.examples());
    assert!(sum.connects() <= 10, "{} connections were made", sum.connects());
    let examples = sum.examples();
    assert!(examples.iter().any(|e| e.detail == "no connection was made in time"), "{examples:?}");
}

#[test]
fn who_waits_after_a_refusal_until_its_time_is_up_was_refused() {
    // a request waits for up to 100 ms before its connection is tried again
    let nobody = Nobody::taken();
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(700, 1.0)]);
    plan.limits.connections = 1;
    plan.requests[0].timeout = Duration::from_millis(20);
    let sum = run(plan, nobody.address());
    assert!(sum.ended() > 10, "{} ended", sum.ended());
    // most wait until their time is up; a machine that stands still makes time-outs of a few
    let refused = sum.outcome(Outcome::Connect);
    assert!(2 * refused > sum.ended(), "{refused} of {}: {:?}", sum.ended(), sum.examples());
}

#[test]
fn slow_accepting_is_part_of_the_response_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::sleep(Duration::from_millis(30));
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            write(&mut stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    // 20 within 200 ms are served one by one, 30 ms each: the last has waited for 400 ms.
    let sum = run(twenty(), address);
    assert_eq!(sum.outcome(Outcome::Ok), 20, "{:?}", sum.examples());
    assert!(sum.response().max() >= 380_000, "{} µs", sum.response().max());
}

#[test]
fn after_a_failure_the_session_goes_on() {
    let server = Server::start(|request, stream| match request.target() {
        "/broken" => Next::Close,
        _ => answer(stream, "200 OK", "", "fine"),
    });
    let requests = vec![get(0, "/a"), get(1, "/broken"), get(2, "/b")];
    let sum = run(whole_sessions(requests, 20), server.address);
    assert_eq!(sum.of(0, Outcome::Ok), 20);
    assert_eq!(sum.of(1, Outcome::Reset), 20);
    assert_eq!(sum.of(2, Outcome::Ok), 20);
}

#[test]
fn a_server_that_closes_after_each_answer_costs_connections_not_errors() {
    let server = Server::start(|_, stream| {
        answer(stream, "200 OK", "Connection: close\r\n", "bye");
        Next::Close
    });
    let sum = run(whole_sessions(vec![get(0, "/"), get(1, "/")], 20), server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 40);
    assert_eq!(sum.connects(), 40);
}

#[test]
fn a_connection_closed_while_idle_is_opened_again_silently() {
    let server = Server::start(|_, stream| {
        // Keep-alive by its words, but it closes soon after, while the session thinks.
        answer(stream, "200 OK", "", "ok");
        std::thread::sleep(Duration::from_millis(20));
        Next::Close
    });
    let mut plan = whole_sessions(vec![get(0, "/"), get(1, "/")], 10);
    let think = Op::Think(tidemark_scenario::Expr::int(2_000_000));
    plan.sessions[0].ops = vec![Op::Request(0), think, Op::Request(1), Op::End];
    let sum = run(plan, server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 20, "{:?}", sum.examples());
    assert_eq!(sum.connects(), 20);
}

#[test]
fn a_head_answer_has_no_body() {
    let server = Server::start(|_, stream| write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"));
    let mut plan = twenty();
    http(&mut plan.requests[0]).method = "HEAD".into();
    all_end(&server, plan, Outcome::Ok, "");
}
