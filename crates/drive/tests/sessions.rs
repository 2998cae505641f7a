//! What sessions do: variables, cookies, choices, pauses, connections of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{
    Next, OPEN, Server, answer, begin, extract, finish, get, http, kind, options, phase, plan, post, run,
    whole_sessions, write,
};
use tidemark_drive::{OnceError, run_once};
use tidemark_record::{Outcome, OwnValues, PartTimes};
use tidemark_scenario::plan::{
    Check, LoadModel, MetricKind, MetricPlan, Op, SessionKind, Source, TextTest, WhenMissing,
};
use tidemark_scenario::template::{Encoding, Part};
use tidemark_scenario::{Expr, Shared, Template};
use tidemark_wire::json;

/// A head whose path ends in a variable.
fn get_of(slot: u16, path: &str) -> Template {
    let literal = |text: String| Part::Literal(text.into_bytes().into());
    let hole = Part::Hole(Expr::variable(slot), Encoding::Url);
    Template { parts: vec![literal(path.into()), hole] }
}

#[test]
fn a_value_from_one_answer_goes_into_the_next_request() {
    let server = Server::start(|request, stream| match request.target() {
        "/list" => answer(stream, "200 OK", "", "{\"items\": [{\"id\": 1}, {\"id\": 77}]}"),
        "/item/77" => answer(stream, "200 OK", "", "{}"),
        other => answer(stream, "404 Not Found", "", other),
    });
    let mut plan = whole_sessions(vec![get(0, "/list"), get(1, "")], 20);
    let id = Source::Json(json::Path::parse("$.items[-1].id").unwrap());
    plan.requests[0].extractions = vec![extract(0, id, WhenMissing::Fail)];
    http(&mut plan.requests[1]).target = get_of(0, "/item/");
    let sum = run(plan, server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 40, "{:?}", sum.examples());
}

#[test]
fn what_a_failed_request_should_have_brought_is_missing() {
    let server = Server::start(|request, stream| match (request.target(), request.index % 2) {
        ("/token", 0) => answer(stream, "200 OK", "X-Token: good\r\n", ""),
        ("/token", _) => answer(stream, "500 Oops", "X-Token: bad\r\n", ""),
        (_, _) => answer(stream, "200 OK", "", request.target()),
    });
    let mut plan = whole_sessions(vec![get(0, "/token"), get(1, "/token"), get(2, "")], 10);
    for request in 0..2 {
        let token = Source::Header("x-token".into());
        plan.requests[request].extractions = vec![extract(0, token, WhenMissing::Clear)];
    }
    http(&mut plan.requests[2]).target = get_of(0, "/use/");
    let sum = run(plan, server.address);
    assert_eq!(sum.of(1, Outcome::Status), 10);
    assert_eq!(sum.of(2, Outcome::Variable), 10);
    assert_eq!(server.requests(), 20);
}

/// What each login got, and which cookies came with the requests after it.
type Seen = Arc<Mutex<HashMap<String, u32>>>;

fn cookie_server(seen: Seen) -> Server {
    Server::start(move |request, stream| {
        let cookie = request.head.lines().find_map(|l| l.strip_prefix("Cookie: ")).unwrap_or("none");
        *seen.lock().unwrap().entry(format!("{} {cookie}", request.target())).or_default() += 1;
        match request.target() {
            "/login" => answer(stream, "200 OK", "Set-Cookie: sid=abc; Path=/; HttpOnly\r\n", ""),
            "/logout" => answer(stream, "200 OK", "Set-Cookie: sid=; Max-Age=0\r\n", ""),
            _ => answer(stream, "200 OK", "", ""),
        }
    })
}

#[test]
fn cookies_live_as_long_as_their_session() {
    let seen = Seen::default();
    let server = cookie_server(seen.clone());
    let requests = ["/before", "/login", "/in", "/logout", "/after", "/login"];
    let requests = requests.iter().enumerate().map(|(i, target)| get(i as u16, target)).collect();
    let sum = run(whole_sessions(requests, 10), server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 60);
    let seen = seen.lock().unwrap();
    let expected = [
        ("/before none", 10),
        ("/login none", 20),
        ("/in sid=abc", 10),
        ("/logout sid=abc", 10),
        ("/after none", 10),
    ];
    assert_eq!(*seen, expected.map(|(what, count)| (what.to_owned(), count)).into());
}

#[test]
fn a_closed_user_may_keep_its_cookies() {
    let seen = Seen::default();
    let server = cookie_server(seen.clone());
    let mut plan = plan(vec![get(0, "/login")], LoadModel::Closed, vec![phase(300, 1.0)]);
    plan.sessions[0].keep_cookies = true;
    let sum = run(plan, server.address);
    let seen = seen.lock().unwrap();
    assert_eq!(seen["/login none"], 1);
    assert_eq!(u64::from(seen["/login sid=abc"]), sum.ended() - 1);
}

#[test]
fn choices_and_kinds_go_by_weight() {
    let server = Server::plain(Duration::ZERO);
    let requests = (0..4).map(|label| get(label, "/")).collect();
    let mut plan = plan(requests, LoadModel::Closed, vec![phase(60_000, 8.0)]);
    let ways = vec![(25, 1), (100, 3)];
    let ops = vec![
        Op::Choose { ways, total: 100, counter: None },
        Op::Request(0),
        Op::Jump(4),
        Op::Request(1),
        Op::Think(Expr::int(0)),
        Op::End,
    ];
    let other = SessionKind { weight: 1, ..kind(vec![Op::Request(2), Op::End]) };
    plan.sessions = vec![SessionKind { weight: 3, ..kind(ops) }, other];
    let drive = begin(plan, options(server.address, 2));
    while server.requests() < 8_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drive.stop();
    let sum = finish(drive);
    let total = sum.ended() as f64;
    for (label, share) in [(0, 0.1875), (1, 0.5625), (2, 0.25), (3, 0.0)] {
        let got = sum.count(|l, _, _| l == label) as f64 / total;
        assert!((got - share).abs() < 0.03, "label {label}: {got} of {total}");
    }
}

#[test]
fn think_time_is_not_response_time() {
    let server = Server::plain(Duration::ZERO);
    let mut plan = plan(vec![get(0, "/"), get(1, "/")], LoadModel::Closed, vec![phase(60_000, 1.0)]);
    plan.limits.sessions = Some(5);
    plan.sessions[0].ops = vec![Op::Request(0), Op::Think(Expr::int(100_000)), Op::Request(1), Op::End];
    let sum = run(plan, server.address);
    let second = || sum.intervals.iter().flat_map(|i| &i.series).filter(|s| s.label == 1);
    assert_eq!(second().map(|s| s.response_time_us.len()).sum::<u64>(), 5);
    assert!(sum.end.ended_us >= 499_000, "five pauses of 100 ms within {} µs", sum.end.ended_us);
    // the shortest, as a machine that stands still makes others long
    assert!(second().map(|s| s.response_time_us.min()).min() < Some(100_000));
}

#[test]
fn a_session_has_its_connection_to_itself() {
    let server = Server::start(|request, stream| {
        answer(stream, "200 OK", &format!("X-Connection: {}\r\n", request.connection), "")
    });
    let mut plan = plan(vec![get(0, "/"), get(1, "/")], LoadModel::Closed, vec![phase(60_000, 10.0)]);
    plan.limits.sessions = Some(200);
    for (request, slot) in [(0, 0), (1, 1)] {
        let connection = Source::Header("x-connection".into());
        plan.requests[request].extractions = vec![extract(slot, connection, WhenMissing::Fail)];
    }
    let same = Template { parts: vec![Part::Hole(Expr::variable(0), Encoding::Raw)] };
    plan.requests[1].checks = vec![Check::Header("x-connection".into(), TextTest::Equals(same))];
    plan.limits.connections = 10;
    let sum = run(plan, server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (400, 400), "{:?}", sum.examples());
    assert_eq!(server.connections(), 10);
    assert_eq!(sum.connects(), 10);
}

#[test]
fn sessions_that_do_nothing_do_not_hang_the_loop() {
    let server = Server::plain(Duration::ZERO);
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(300, 3.0)]);
    let endless = kind(vec![Op::Jump(0)]);
    let empty = kind(vec![Op::End]);
    plan.sessions = vec![endless, empty, kind(vec![Op::Request(0), Op::End])];
    let sum = run(plan, server.address);
    assert!(sum.end.ended_us < 10_000_000);
}

#[test]
fn base_path_and_host_are_the_targets() {
    let server = Server::start(|request, stream| {
        let right = request.head.starts_with("GET /app/v1/x HTTP/1.1\r\nHost: test.local\r\n");
        answer(stream, if right { "200 OK" } else { "400 Bad Request" }, "", &request.head)
    });
    let mut options = options(server.address, 1);
    options.targets[0].base_path = "/app/v1".into();
    let sum = finish(begin(plan(vec![get(0, "/x")], OPEN, vec![phase(100, 100.0)]), options));
    assert_eq!(sum.outcome(Outcome::Ok), 10, "{:?}", sum.examples());
}

#[test]
fn a_body_arrives_whole() {
    let server = Server::start(|request, stream| {
        let right = request.body == vec![b'z'; 300_000];
        answer(stream, if right { "200 OK" } else { "400 Bad Request" }, "", "")
    });
    let mut plan = plan(vec![get(0, "/")], OPEN, vec![phase(100, 100.0)]);
    post(&mut plan.requests[0], vec![b'z'; 300_000]);
    assert_eq!(run(plan, server.address).outcome(Outcome::Ok), 10);
}

#[test]
fn once_runs_once_or_says_what_failed() {
    let server = Server::start(|request, stream| match request.target() {
        "/load" => answer(stream, "200 OK", "", "loaded"),
        _ => {
            answer(stream, "500 Oops", "", "no table");
            Next::Close
        }
    });
    let plan = plan(vec![get(0, "/load"), get(1, "/broken")], LoadModel::Closed, vec![phase(100, 1.0)]);
    let shared = Shared::new(1, Vec::new());
    let good = kind(vec![Op::Request(0), Op::Request(0), Op::End]);
    run_once(&plan, &good, &shared, &options(server.address, 1)).unwrap();
    assert_eq!(server.requests(), 2);
    let bad = kind(vec![Op::Request(1), Op::Request(0), Op::End]);
    match run_once(&plan, &bad, &shared, &options(server.address, 1)) {
        Err(OnceError::Request { label, outcome, detail }) => {
            assert_eq!((label.as_str(), outcome), ("r1", Outcome::Status));
            assert_eq!(detail, "status 500: no table");
        }
        other => panic!("{other:?}"),
    }
}

/// Two requests in a group, with this between them.
fn grouped(mut plan: tidemark_scenario::Plan, between: Option<Op>) -> tidemark_scenario::Plan {
    plan.groups = vec!["both".into()];
    let ops = [Op::BeginGroup(0), Op::Request(0)].into_iter().chain(between);
    plan.sessions[0].ops = ops.chain([Op::Request(1), Op::EndGroup, Op::End]).collect();
    plan
}

/// Answers after this many milliseconds, which the path says.
fn slow() -> Server {
    Server::start(|request, stream| {
        std::thread::sleep(Duration::from_millis(request.target()[1..].parse().unwrap()));
        answer(stream, "200 OK", "", "")
    })
}

#[test]
fn the_time_of_a_group_is_that_of_all_its_steps_and_none_of_it_is_a_request() {
    let server = slow();
    let requests = || vec![get(0, "/20"), get(1, "/30")];
    let sum = run(grouped(whole_sessions(requests(), 10), None), server.address);
    let groups = sum.groups(0, Outcome::Ok);
    assert_eq!((groups.len(), sum.ended(), sum.offered()), (10, 20, 20));
    // three significant digits
    assert!(groups.min() >= 49_900, "{}", groups.min());
    let waits = Op::Think(Expr::int(40_000));
    let sum = run(grouped(whole_sessions(requests(), 10), Some(waits)), server.address);
    let groups = sum.groups(0, Outcome::Ok);
    assert_eq!(groups.len(), 10);
    assert!(groups.min() >= 89_900, "a wait between its requests counts: {}", groups.min());
    // each of its requests is as long as it is by itself
    let of_second = sum.intervals.iter().flat_map(|i| &i.series).filter(|s| s.label == 1);
    let shortest = of_second.map(|s| s.response_time_us.min()).min().unwrap();
    assert!((29_900..groups.min()).contains(&shortest), "{shortest}");
}

#[test]
fn a_group_is_as_good_as_all_its_requests() {
    let server = Server::start(|request, stream| match (request.target(), request.index % 4) {
        ("/a", 0) => answer(stream, "500 Oops", "", ""),
        _ => answer(stream, "200 OK", "", ""),
    });
    let mut plan = grouped(whole_sessions(vec![get(0, "/a"), get(1, "/b")], 20), None);
    plan.limits.connections = 1;
    let sum = run(plan, server.address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Status)), (30, 10), "{:?}", sum.examples());
    assert_eq!((sum.groups(0, Outcome::Ok).len(), sum.groups(0, Outcome::Status).len()), (10, 10));
}

#[test]
fn a_group_that_ends_its_session_is_over_there() {
    let server = slow();
    let plan = grouped(whole_sessions(vec![get(0, "/1"), get(1, "/1")], 10), Some(Op::Jump(5)));
    assert!(matches!(plan.sessions[0].ops[5], Op::End));
    let sum = run(plan, server.address);
    assert_eq!((sum.ended(), sum.groups(0, Outcome::Ok).len()), (10, 10));
}

#[test]
fn groups_that_have_begun_come_to_their_end_when_the_load_is_over() {
    let server = slow();
    let requests = vec![get(0, "/20"), get(1, "/20")];
    let sum = run(grouped(plan(requests, LoadModel::Closed, vec![phase(300, 7.0)]), None), server.address);
    let first = sum.count(|label, _, _| label == 0);
    assert!(first >= 7);
    assert_eq!((sum.count(|label, _, _| label == 1), sum.groups(0, Outcome::Ok).len()), (first, first));
    // what takes longer than the drain is not waited for
    let requests = vec![get(0, "/20"), get(1, "/20")];
    let waits = Op::Think(Expr::int(60_000_000));
    let mut plan = grouped(plan(requests, LoadModel::Closed, vec![phase(200, 7.0)]), Some(waits));
    plan.limits.drain = Duration::from_millis(100);
    let sum = run(plan, server.address);
    assert_eq!((sum.ended(), sum.outcome(Outcome::Ok)), (7, 7));
    assert_eq!((sum.groups(0, Outcome::Ok).len(), sum.groups(0, Outcome::Unfinished).len()), (0, 7));
}

#[test]
fn numbers_of_answers_are_measured_and_what_is_none_is_counted() {
    let server = Server::start(|request, stream| match request.index % 4 {
        0 => answer(stream, "500 Oops", "", "1000"),
        1 => answer(stream, "200 OK", "", "none"),
        n => answer(stream, "200 OK", "", &n.to_string()),
    });
    let mut plan = whole_sessions(vec![get(0, "/")], 20);
    plan.limits.connections = 1;
    plan.requests[0].extractions = vec![extract(0, Source::Body, WhenMissing::Clear)];
    let metric = |name: &str, kind| MetricPlan { name: name.into(), kind, unit: String::new() };
    plan.metrics = vec![metric("n", MetricKind::Histogram), metric("tries", MetricKind::Counter)];
    let measure =
        |metric, value, text: &str, if_good| Op::Measure { metric, value, text: text.into(), if_good };
    plan.sessions[0].ops = vec![
        Op::Request(0),
        measure(0, Expr::variable(0), "${a}", true),
        measure(1, Expr::int(2), "2", false),
        Op::End,
    ];
    let sum = run(plan, server.address);
    let of = |metric| {
        let mut all = OwnValues::default();
        let series = sum.intervals.iter().flat_map(|interval| &interval.own);
        series.filter(|series| series.metric == metric).for_each(|series| all.add(series));
        all
    };
    let (numbers, tries) = (of(0), of(1));
    assert_eq!((numbers.count, numbers.sum, numbers.min, numbers.max), (10, 25.0, 2.0, 3.0));
    assert_eq!((numbers.no_number, numbers.example.as_deref()), (5, Some("${a}: it is \"none\", no number")));
    assert_eq!((tries.count, tries.sum, tries.no_number), (20, 40.0, 0), "after every answer, good or not");
}

#[test]
fn a_session_that_measures_without_end_lets_others_have_their_turn() {
    let server = slow();
    let mut plan = plan(vec![get(0, "/1")], LoadModel::Closed, vec![phase(200, 2.0)]);
    plan.metrics = vec![MetricPlan { name: "n".into(), kind: MetricKind::Counter, unit: String::new() }];
    let measure = Op::Measure { metric: 0, value: Expr::int(1), text: "1".into(), if_good: false };
    plan.sessions[0].ops = vec![Op::Request(0), measure, Op::Jump(1), Op::End];
    let sum = run(plan, server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 2, "each user's first, and the run ends");
}

/// What a drive wrote down of where the time of good answers went, and its slowest requests.
fn parts(sum: &crate::support::Sum) -> PartTimes {
    let mut all = PartTimes::default();
    sum.intervals.iter().flat_map(|interval| &interval.parts).for_each(|parts| all.add(parts));
    all
}

#[test]
fn a_transfer_is_told_from_the_wait_for_its_first_byte() {
    let server = Server::start(|request, stream| {
        std::thread::sleep(Duration::from_millis(20));
        if request.target() == "/whole" {
            return answer(stream, "200 OK", "", "whole");
        }
        write(stream, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
        std::thread::sleep(Duration::from_millis(100));
        write(stream, "def")
    });
    let mut plan = whole_sessions(vec![get(0, "/pieces"), get(1, "/whole")], 10);
    plan.limits.connections = 1;
    let sum = run(plan, server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 20, "{:?}", sum.examples());
    let all = parts(&sum);
    assert_eq!(
        (all.connect_us.len(), all.handshake_us.len()),
        (1, 0),
        "one connection was made, for one of them"
    );
    // whoever reads late sees a shorter transfer or none, but not each time
    let pieces = all.transfer_us.len();
    assert!((5..=10).contains(&pieces), "{pieces}");
    assert_eq!((all.first_byte_us.len(), all.pieces_service_us.len()), (pieces, pieces));
    // three significant digits
    assert!(all.transfer_us.max() >= 50_000, "{}", all.transfer_us.max());
    assert!(all.first_byte_us.min() >= 19_900, "{}", all.first_byte_us.min());
    assert!(all.pieces_service_us.min() >= 119_000, "{}", all.pieces_service_us.min());
    assert!(
        sum.intervals
            .iter()
            .flat_map(|interval| &interval.parts)
            .all(|parts| { parts.label == 0 || parts.transfer_us.is_empty() })
    );
    let slowest = &sum.end.slowest;
    assert_eq!(slowest.len(), 20, "ten of each label");
    for slow in slowest {
        assert_eq!((slow.status, slow.outcome, slow.thread, slow.connection), (200, Outcome::Ok, 0, 0));
        assert!(slow.transfer_us == 0 || slow.label == 0, "{slow:?}");
        assert!(slow.first_byte_us >= 19_900 && slow.response_time_us >= slow.first_byte_us, "{slow:?}");
    }
    assert!(slowest.iter().filter(|slow| slow.transfer_us > 0).count() >= 5, "{slowest:?}");
    assert_eq!(slowest.iter().filter(|slow| slow.connect_us.is_some()).count(), 1);
}

#[test]
fn what_failed_has_no_parts_and_only_what_was_answered_is_slow() {
    let server = Server::start(|request, stream| match request.index {
        0 => answer(stream, "503 Busy", "", "later"),
        _ => Next::Close,
    });
    let mut plan = whole_sessions(vec![get(0, "/"), get(1, "/")], 3);
    plan.limits.connections = 1;
    let sum = run(plan, server.address);
    assert_eq!((sum.outcome(Outcome::Status), sum.outcome(Outcome::Reset)), (3, 3), "{:?}", sum.examples());
    assert!(!parts(&sum).any());
    let slowest: Vec<_> =
        sum.end.slowest.iter().map(|slow| (slow.label, slow.status, slow.outcome)).collect();
    assert_eq!(slowest, [(0, 503, Outcome::Status); 3]);
}
