//! A real Redis as the store of sessions: needs Debian's package `redis-server`.
#![cfg(feature = "redis")]

use std::time::Duration;

use crate::common::servers::{PATIENCE, RedisServer, Server, until_it_works};
use crate::common::{roles, session, wait};
use tidemark_store::redis::{Options, Redis};
use tidemark_store::sessions::Sessions;
use tidemark_store::{Durability, StoreError};

const SYNCED: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn options(url: &str) -> Options {
    Options {
        url: url.to_owned(),
        timeout: Duration::from_secs(60),
        start_timeout: PATIENCE,
        ..Options::default()
    }
}

fn metric(store: &Redis, name: &str) -> u64 {
    store.metrics().iter().find(|own| own.name == name).expect("it is counted").value
}

#[test]
fn it_has_sessions() {
    let server = RedisServer::start(&SYNCED);
    let store = Redis::open(options(&server.database())).unwrap();
    roles::sessions_that_cannot_be_stored_are_refused(&*store);
    roles::a_session_is_there_until_it_expires(&*store);
    // Redis removes by itself what expires
    wait(store.create(session(1, 1000))).unwrap();
    wait(store.create(session(2, -5))).unwrap();
    until_it_works(|| match wait(store.count())? {
        0 => Ok(()),
        _ => Err(StoreError::Closed),
    });
    assert_eq!(wait(store.sweep(i64::MAX)).unwrap(), 0);
    assert_eq!(metric(&store, "failed"), 0);
}

#[test]
fn no_more_is_claimed_than_the_server_does() {
    for (settings, wanted, expected) in [
        (&["--appendonly", "no"][..], Durability::Buffered, "appendonly yes"),
        (&["--appendonly", "yes", "--appendfsync", "everysec"], Durability::Synced, "appendfsync always"),
    ] {
        let server = RedisServer::start(settings);
        let url = server.database();
        let error = Redis::open(Options { durability: wanted, ..options(&url) })
            .err()
            .expect("it is less")
            .to_string();
        assert!(error.contains(expected), "{error}");
        drop(Redis::open(Options { durability: Durability::Memory, ..options(&url) }).unwrap());
    }
}

#[test]
fn a_database_of_others_is_not_touched() {
    let server = RedisServer::start(&SYNCED);
    let url = server.database();
    let mut other = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
    redis::cmd("SET").arg("theirs").arg(1).exec(&mut other).unwrap();
    let error = Redis::open(options(&url)).err().expect("it is not ours").to_string();
    assert!(error.contains("other data"), "{error}");
    let url = server.database();
    drop(Redis::open(options(&url)).unwrap());
    assert_eq!(wait(Redis::open(options(&url)).unwrap().count()).unwrap(), 0, "our own is");
}

#[test]
fn a_replica_is_refused() {
    let master = RedisServer::start(&SYNCED);
    let port = master.port().to_string();
    let replica = RedisServer::start(
        &[&SYNCED[..], &["--replicaof", "127.0.0.1", &port, "--replica-read-only", "no"]].concat(),
    );
    let error = Redis::open(options(&replica.database())).err().expect("it is a replica").to_string();
    assert!(error.contains("it is a replica"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_waited_for_and_then_told() {
    let mut server = RedisServer::start(&SYNCED);
    let url = server.database().replace("redis://", "redis://:hunter2@");
    server.kill();
    let short = Options { start_timeout: Duration::from_millis(300), ..options(&url) };
    let error = Redis::open(short).err().expect("it is not there");
    assert!(
        matches!(error, StoreError::Unreachable { .. }) && !error.to_string().contains("hunter2"),
        "{error}"
    );
    server.start_again();
    let error = Redis::open(options(&url)).err().expect("it has no password").to_string();
    assert!(error.contains("cannot be used") && !error.contains("hunter2"), "{error}");
}

#[test]
fn what_was_acknowledged_survives_the_servers_death() {
    let mut server = RedisServer::start(&SYNCED);
    let store = Redis::open(options(&server.database())).unwrap();
    let soon = roles::soon_ms();
    (0..200).for_each(|id| wait(store.create(session(id, soon))).unwrap());
    assert!(wait(store.remove(7)).unwrap());
    server.kill();
    let error = wait(store.find(1, 0)).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. } | StoreError::NoAnswer { .. }), "{error}");
    server.start_again();
    assert_eq!(until_it_works(|| wait(store.count())), 199);
    assert_eq!(wait(store.find(199, 0)).unwrap(), Some(session(199, soon)));
    assert_eq!(wait(store.find(7, 0)).unwrap(), None);
}
