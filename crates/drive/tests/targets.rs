//! Sessions whose requests go to several targets.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::frames;
use crate::support::identity::{Identity, NAME, identity_13};
use crate::support::{
    Nobody, Server, answer, begin, finish, get, kind, options, phase, plan, serving, whole_sessions,
};
use rustls::{ServerConnection, StreamOwned};
use tidemark_drive::{Address, DriveOptions, Http2, Protocol, Redis, Target, Tls, run_once};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::plan::{LoadModel, Op, RedisCommand, RequestKind, RequestPlan, Spacing};
use tidemark_scenario::{Plan, Shared, Template};

/// What a server was asked: which path, with which cookie, for which host.
type Asked = Arc<Mutex<BTreeSet<(String, String)>>>;

/// Answers everything, and gives a cookie of its own with it.
fn giving(cookie: &'static str) -> (Server, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let server = Server::start(move |request, stream| {
        let sent = request.head.lines().find_map(|line| line.strip_prefix("Cookie: "));
        let sent = sent.unwrap_or_default().to_owned();
        seen.lock().unwrap().insert((request.target().to_owned(), sent));
        answer(stream, "200 OK", &format!("Set-Cookie: {cookie}=1\r\n"), "hello")
    });
    (server, asked)
}

fn at(target: u16, mut request: RequestPlan) -> RequestPlan {
    request.target = target;
    request
}

fn beside(mut options: DriveOptions, address: SocketAddr) -> DriveOptions {
    let target = Target { address: Address::Tcp(address), ..options.targets[0].clone() };
    options.targets.push(Target { authority: "other.local".into(), ..target });
    options
}

/// Answers over TLS.
fn secured(identity: &Identity) -> SocketAddr {
    let config = identity.config.clone();
    serving(move |socket| {
        let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), socket);
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            let requests = buffer[..bytes].windows(4).filter(|four| four == b"\r\n\r\n").count();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
            if stream.write_all(&answer.repeat(requests)).is_err() {
                return;
            }
        }
    })
}

#[test]
fn each_target_has_its_requests_its_connections_and_its_cookies() {
    let ((one, of_one), (two, of_two)) = (giving("a"), giving("b"));
    let requests = vec![get(0, "/one"), at(1, get(1, "/two")), get(2, "/one"), at(1, get(3, "/two"))];
    for threads in [1, 2] {
        of_one.lock().unwrap().clear();
        of_two.lock().unwrap().clear();
        let options = beside(options(one.address, threads), two.address);
        let sum = finish(begin(whole_sessions(requests.clone(), 40), options));
        assert_eq!((sum.ended(), sum.outcome(Outcome::Ok)), (160, 160));
        let asked =
            |path: &str, cookies: [&str; 2]| cookies.map(|sent| (path.to_owned(), sent.to_owned())).into();
        assert_eq!(
            *of_one.lock().unwrap(),
            asked("/one", ["", "a=1"]),
            "a cookie of its own, and no other's"
        );
        assert_eq!(*of_two.lock().unwrap(), asked("/two", ["", "b=1"]));
    }
}

#[test]
fn requests_of_other_protocols_go_where_those_are_spoken() {
    let (server, _) = giving("a");
    let address = serving(|mut socket| {
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = socket.read(&mut buffer) {
            // one array for each command
            let commands = buffer[..bytes].iter().filter(|byte| **byte == b'*').count();
            if socket.write_all(&b"+PONG\r\n".repeat(commands)).is_err() {
                return;
            }
        }
    });
    let streams = frames::server("hello", || ());
    let identity = identity_13();
    let secured = secured(&identity);
    let command = RedisCommand { words: vec![Template::literal("PING")], wait: None };
    let ping = RequestPlan { ask: RequestKind::Redis(command), ..get(1, "/") };
    let requests = vec![get(0, "/"), at(1, ping), at(2, get(2, "/a")), at(3, get(3, "/a")), get(4, "/")];
    for pipeline in [1, 3] {
        let mut options = beside(beside(beside(options(server.address, 1), address), streams), secured);
        options.targets[1].protocol = Protocol::Redis(Redis::default());
        options.targets[2].protocol = Protocol::Http2(Http2 { most_streams: 2 });
        options.targets[3].tls = Some(Tls::new(&identity.trusted(), NAME).unwrap());
        let mut plan = whole_sessions(requests.clone(), 40);
        plan.limits.pipeline = pipeline;
        let sum = finish(begin(plan, options));
        assert_eq!(sum.outcome(Outcome::Ok), 200, "{:?}", sum.examples());
        assert!(sum.counted(Counter::FullHandshakes) > 0);
    }
}

#[test]
fn a_target_that_is_down_fails_alone() {
    let (server, _) = giving("a");
    let nobody = Nobody::taken();
    let options = beside(options(server.address, 1), nobody.address());
    let sum = finish(begin(whole_sessions(vec![get(0, "/"), at(1, get(1, "/")), get(2, "/")], 30), options));
    let outcomes = [0, 1, 2].map(|label| (sum.of(label, Outcome::Ok), sum.of(label, Outcome::Connect)));
    assert_eq!(outcomes, [(30, 0), (0, 30), (30, 0)]);
}

/// A session kind for each list of requests.
fn kinds(requests: Vec<RequestPlan>, kinds: &[&[u16]]) -> Plan {
    let mut plan = plan(requests, LoadModel::Open(Spacing::Constant), vec![phase(1_000, 200.0)]);
    let ops = |requests: &&[u16]| requests.iter().copied().map(Op::Request).chain([Op::End]).collect();
    plan.sessions = kinds.iter().map(|requests| kind(ops(requests))).collect();
    plan.limits.drain = Duration::from_millis(100);
    plan
}

#[test]
fn a_target_whose_connections_are_all_taken_keeps_nobody_from_another() {
    let (server, _) = giving("a");
    // accepts, and never answers
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = kinds(vec![get(0, "/"), at(1, get(1, "/"))], &[&[0], &[1]]);
    plan.limits.connections = 2;
    plan.limits.drain = Duration::from_secs(2);
    let options = beside(options(server.address, 1), silent.local_addr().unwrap());
    let sum = finish(begin(plan, options));
    assert_eq!(sum.of(1, Outcome::Ok), 0);
    let good = sum.of(0, Outcome::Ok);
    assert!(good > 50, "of about 100: {good}");
    assert_eq!(good, sum.count(|label, _, _| label == 0), "all of them");
}

/// Sessions that take connections in opposite orders would wait for each other if they held what they have.
#[test]
fn sessions_that_wait_hold_nothing_that_others_wait_for() {
    let ((one, _), (two, _)) = (giving("a"), giving("b"));
    let requests = vec![get(0, "/"), at(1, get(1, "/"))];
    let mut plan = kinds(requests, &[&[0, 1, 0, 1], &[1, 0, 1, 0]]);
    plan.limits.connections = 1;
    plan.limits.drain = Duration::from_secs(20);
    let sum = finish(begin(plan, beside(options(one.address, 1), two.address)));
    assert_eq!(sum.outcome(Outcome::Ok), sum.ended(), "{:?}", sum.examples());
    assert!(sum.ended() >= 600, "{}", sum.ended());
}

#[test]
fn what_prepares_goes_to_its_targets_too() {
    let ((one, of_one), (two, of_two)) = (giving("a"), giving("b"));
    let plan = plan(vec![get(0, "/one"), at(1, get(1, "/two"))], LoadModel::Closed, Vec::new());
    let options = beside(options(one.address, 1), two.address);
    run_once(&plan, &plan.sessions[0], &Shared::of(&plan), &options).unwrap();
    let paths =
        |asked: &Asked| asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!((paths(&of_one), paths(&of_two)), (vec!["/one".to_owned()], vec!["/two".to_owned()]));
}

#[test]
fn connections_are_made_ahead_to_each() {
    let ((one, _), (two, _)) = (giving("a"), giving("b"));
    let mut plan = kinds(vec![get(0, "/"), at(1, get(1, "/"))], &[&[0, 1]]);
    (plan.limits.connections, plan.limits.connections_named) = (10, true);
    let sum = finish(begin(plan, beside(options(one.address, 1), two.address)));
    assert_eq!(
        (sum.end.connections_ahead, sum.connects(), sum.counted(Counter::ConnectionsUsed)),
        (Some(20), 20, 20)
    );
}

#[test]
fn a_cookie_of_a_domain_goes_to_all_its_hosts_and_a_secure_one_to_none_in_plain() {
    let ((one, of_one), (two, of_two)) =
        (giving("all=1; Domain=shop.example; x"), giving("own=2; Secure; x"));
    let requests = vec![get(0, "/one"), at(1, get(1, "/two")), get(2, "/one"), at(1, get(3, "/two"))];
    let mut options = beside(options(one.address, 1), two.address);
    options.targets[0].authority = "www.shop.example".into();
    options.targets[1].authority = "api.shop.example:8080".into();
    let sum = finish(begin(whole_sessions(requests, 10), options));
    assert_eq!(sum.outcome(Outcome::Ok), 40);
    let sent = |asked: &Asked| asked.lock().unwrap().iter().map(|(_, sent)| sent.clone()).collect::<Vec<_>>();
    assert_eq!(sent(&of_one), ["", "all=1"]);
    assert_eq!(sent(&of_two), ["all=1"]);
    let cookies = [Counter::CookiesInsecure, Counter::CookiesForeign, Counter::CookiesWithoutRoom];
    assert_eq!(cookies.map(|counter| sum.counted(counter)), [20, 0, 0]);
}
