//! Which connections are made and used: in turn, ahead of the arrivals, as far as the server takes them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Next, OPEN, Server, answer, begin, finish, get, options, phase, plan, run};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Choose, LoadModel, Pause, Phase};

/// Counts the requests of each connection; the last of every eight connections takes 150 ms for each.
fn sharded() -> (Server, Arc<Mutex<BTreeMap<usize, u64>>>) {
    let counts = Arc::new(Mutex::new(BTreeMap::new()));
    let there = counts.clone();
    let server = Server::start(move |request, stream| {
        *there.lock().unwrap().entry(request.connection).or_default() += 1;
        if request.connection % 8 == 7 {
            std::thread::sleep(Duration::from_millis(150));
        }
        answer(stream, "200 OK", "", "")
    });
    (server, counts)
}

/// 200 arrivals a second over 32 connections, the first half second not measured.
fn named(choose: Choose) -> Plan {
    let warm_up = Phase { measured: false, ..phase(500, 200.0) };
    let mut plan = plan(vec![get(0, "/")], OPEN, vec![warm_up, phase(1_600, 200.0)]);
    plan.limits.connections = 32;
    plan.limits.connections_named = true;
    plan.limits.choose = choose;
    plan
}

#[test]
fn a_slow_eighth_of_the_connections_is_slow_for_an_eighth_of_the_requests() {
    let (server, counts) = sharded();
    let sum = finish(begin(named(Choose::InTurn), options(server.address, 2)));
    assert_eq!((sum.outcome(Outcome::Ok), sum.dropped()), (420, 0));
    assert_eq!(server.connections(), 32);
    assert_eq!((sum.counted(Counter::ConnectionsUsed), sum.end.connections_ahead), (32, Some(32)));
    let response = sum.response();
    let slow = response.len() - response.count_between(0, 149_000);
    // of 320 in 10 rounds; a busy machine makes others slow, too
    assert!(slow >= 36, "{slow} of {} requests were slow", response.len());
    let counts = counts.lock().unwrap();
    // where the machine stands still, many come at once to those that are free
    assert_eq!(counts.len(), 32, "each has its turn: {counts:?}");
}

#[test]
fn the_first_free_is_taken_if_so_wanted_and_nothing_is_made_ahead() {
    let server = Server::plain(Duration::ZERO);
    let sum = run(named(Choose::FirstFree), server.address);
    assert_eq!(sum.outcome(Outcome::Ok), 420);
    assert_eq!(sum.end.connections_ahead, None);
    assert!(sum.counted(Counter::ConnectionsUsed) <= server.connections() as u64);
}

#[test]
fn each_user_brings_a_connection_and_no_more_are_made() {
    for model in [LoadModel::Closed, LoadModel::Thinking(Pause::Fixed(Duration::from_millis(40)))] {
        let server = Server::plain(Duration::from_millis(2));
        let mut plan = plan(vec![get(0, "/")], model, vec![phase(600, 6.0)]);
        plan.limits.connections = 50;
        plan.limits.connections_named = true;
        let sum = finish(begin(plan, options(server.address, 2)));
        assert_eq!((server.connections(), sum.connects()), (6, 6), "{model:?}");
        assert_eq!(
            (sum.counted(Counter::ConnectionsUsed), sum.end.connections_ahead),
            (6, None),
            "{model:?}"
        );
    }
}

#[test]
fn a_server_that_takes_fewer_connections_is_told_of_and_no_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let peers: Vec<_> = listener.incoming().take(4).flatten().collect();
        drop(listener);
        for mut stream in peers {
            std::thread::spawn(move || {
                while std::io::Read::read(&mut stream, &mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                    answer(&mut stream, "200 OK", "", "");
                }
            });
        }
    });
    let sum = run(named(Choose::InTurn), address);
    assert_eq!(sum.offered(), 420);
    assert!(sum.outcome(Outcome::Ok) > 0);
    let examples: Vec<_> = sum.examples().iter().map(|example| example.detail.clone()).collect();
    assert!(examples.iter().any(|detail| detail.contains("before it was needed")), "{examples:?}");
}

#[test]
fn what_the_server_closes_is_made_again() {
    // each connection carries one request only
    let server = Server::start(|_, stream| {
        answer(stream, "200 OK", "", "");
        Next::Close
    });
    let mut plan = named(Choose::InTurn);
    plan.limits.connections = 4;
    let sum = run(plan, server.address);
    assert_eq!((sum.ended(), sum.dropped()), (420, 0));
    assert!(server.connections() > 4, "{}", server.connections());
}
