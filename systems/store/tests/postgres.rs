//! A real PostgreSQL as the store of every role: needs Debian's package `postgresql`.
#![cfg(feature = "postgres")]

use std::time::Duration;

use crate::common::servers::{PATIENCE, PostgresServer, Server, until_it_works};
use crate::common::{booking, customer, roles, session, survives, wait};
use rustix::process::{Pid, Signal, kill_process};
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::Customers;
use tidemark_store::postgres::{Options, Postgres};
use tidemark_store::sessions::Sessions;
use tidemark_store::{Durability, StoreError};

fn options(url: &str) -> Options {
    Options {
        url: url.to_owned(),
        connections: 4,
        timeout: Duration::from_secs(60),
        start_timeout: PATIENCE,
        ..Options::default()
    }
}

fn metric(store: &Postgres, name: &str) -> u64 {
    store.metrics().iter().find(|own| own.name == name).expect("it is counted").value
}

#[test]
fn it_has_every_role() {
    let server = PostgresServer::start(&[]);
    for durability in Durability::ALL {
        let open = || Postgres::open(Options { durability, ..options(&server.database()) }).unwrap();
        let store = open();
        roles::every(&*store, &*open());
        // NUL, which its texts do not hold
        let hostile = "a\0\u{e000}0b";
        wait(store.add(&[booking(hostile, 1, 1)])).unwrap();
        assert_eq!(wait(store.of_customer(hostile)).unwrap(), [booking(hostile, 1, 1)]);
        assert_eq!(wait(store.of_customer("a\u{e000}0\u{e000}0b")).unwrap(), []);
        wait(store.put(customer(hostile, 1))).unwrap();
        assert_eq!(wait(Customers::find(&*store, hostile)).unwrap(), Some(customer(hostile, 1)));
        assert_eq!(metric(&store, "failed"), 0);
    }
}

/// Two services begin at the same time on an empty database, and once more on what they made.
#[test]
fn the_schema_is_made_once() {
    let server = PostgresServer::start(&["fsync=off"]);
    let url = server.database();
    let open = || Postgres::open(Options { durability: Durability::Buffered, ..options(&url) });
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        for store in opened {
            let store = store.join().unwrap().unwrap();
            assert_eq!(wait(Customers::count(&*store)).unwrap(), 0);
        }
    });
    wait(open().unwrap().add(&[booking("ann", 1, 1)])).unwrap();
    assert_eq!(wait(open().unwrap().of_customer("ann")).unwrap().len(), 1);

    server.sql(&url, "INSERT INTO tidemark.migrations (version) VALUES (99)");
    let error = open().err().expect("a later version is not touched").to_string();
    assert!(error.contains("version 99"), "{error}");
}

#[test]
fn no_more_is_claimed_than_the_server_does() {
    let server = PostgresServer::start(&["fsync=off"]);
    let url = server.database();
    let with = |durability| Postgres::open(Options { durability, ..options(&url) });
    let error = with(Durability::Synced).err().expect("it does not sync").to_string();
    assert!(error.contains("buffered, not synced") && error.contains("fsync = on"), "{error}");
    drop(with(Durability::Buffered).unwrap());
    server.sql(&url, "ALTER TABLE tidemark.bookings SET UNLOGGED");
    let error = with(Durability::Buffered).err().expect("the table is not logged").to_string();
    assert!(error.contains("memory, not buffered") && error.contains("LOGGED"), "{error}");
    drop(with(Durability::Memory).unwrap());
}

#[test]
fn a_server_that_is_not_there_is_waited_for_and_then_told() {
    let mut server = PostgresServer::start(&[]);
    let url = server.database();
    let secret = url.replace("tester@", "tester:hunter2@");
    server.kill();
    let short = Options { start_timeout: Duration::from_millis(300), ..options(&secret) };
    let error = Postgres::open(short).err().expect("it is not there");
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| Postgres::open(options(&secret)));
        std::thread::sleep(Duration::from_millis(300));
        server.start_again();
        opening.join().unwrap().unwrap();
    });
    let wrong = url.rsplit_once('/').unwrap().0.to_owned() + "/nowhere";
    let error = Postgres::open(options(&wrong)).err().expect("there is no such database").to_string();
    assert!(error.contains("nowhere"), "{error}");
}

/// Killed in the middle of writes: what was acknowledged is there, and the store finds its server again by itself.
#[test]
fn what_was_acknowledged_survives_the_servers_death() {
    let mut server = PostgresServer::start(&[]);
    let store = Postgres::open(options(&server.database())).unwrap();
    survives::what_was_acknowledged(&mut server, &store, 2, || metric(&store, "answered"));
    assert!(metric(&store, "lost") >= 2);
}

/// A server that stands still holds nobody up longer than the time-out, and others not even that; then all is as before.
#[test]
fn a_server_that_stands_still_is_given_up_and_found_again() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    let store = Postgres::open(Options { timeout: Duration::from_secs(2), ..options(&url) }).unwrap();
    until_it_works(|| wait(store.create(session(1, roles::soon_ms()))));
    let processes = backends(server.id());
    let each =
        |signal| processes.iter().for_each(|id| _ = kill_process(Pid::from_raw(*id as i32).unwrap(), signal));
    each(Signal::STOP);
    while metric(&store, "connected") > 0 {
        let error = wait(Sessions::find(&*store, 1, 0)).unwrap_err();
        assert!(matches!(error, StoreError::NoAnswer { .. } | StoreError::Unreachable { .. }), "{error}");
    }
    assert!(metric(&store, "timeouts") > 0);
    each(Signal::CONT);
    assert!(until_it_works(|| wait(Sessions::find(&*store, 1, 0))).is_some());
}

/// A process and its children.
fn backends(parent: u32) -> Vec<u32> {
    let children =
        std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let mut all: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    all.push(parent);
    all
}

#[test]
fn more_than_may_wait_are_refused_at_once() {
    let server = PostgresServer::start(&[]);
    let url = server.database();
    let store = Postgres::open(Options { waiting_max: 2, ..options(&url) }).unwrap();
    let answers = wait(async {
        let many = (0..64u128).map(|id| {
            let store = store.clone();
            async move { store.add(&[booking("ann", id, id)]).await }
        });
        futures_util::future::join_all(many).await
    });
    let refused =
        answers.iter().filter(|answer| matches!(answer, Err(StoreError::Busy { .. }))).count() as u64;
    assert!(refused > 0 && answers.iter().any(Result::is_ok), "{refused}");
    assert_eq!(metric(&store, "refused"), refused);
    assert_eq!(wait(store.of_customer("ann")).unwrap().len() as u64, 64 - refused);
}

#[test]
fn a_server_that_isolates_more_by_default_is_none_the_worse() {
    let server = PostgresServer::start(&["default_transaction_isolation=serializable"]);
    let url = server.database();
    let open = || Postgres::open(options(&url)).map(|store| wait(Bookings::count(&*store)));
    // whoever comes second finds the tables that the first has made meanwhile
    std::thread::scope(|scope| {
        let all = [(); 4].map(|()| scope.spawn(open));
        all.into_iter().for_each(|one| assert_eq!(one.join().unwrap().unwrap().unwrap(), 0));
    });
}
