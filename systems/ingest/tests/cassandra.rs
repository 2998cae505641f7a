//! The contract of the intake on a Cassandra that runs.
//!
//! `TIDEMARK_TEST_CASSANDRA=127.0.0.1:9042 cargo test -p tidemark-ingest --features cassandra --test intake -- --ignored cassandra::`
#![cfg(feature = "cassandra")]

use std::time::{SystemTime, UNIX_EPOCH};

use crate::ingest::{Running, message, options};
use tidemark_ingest::Ingest;
use tidemark_service::{Durability, Options, ReferenceSystem, Stop};

fn settings() -> Vec<(String, String)> {
    let contact = std::env::var("TIDEMARK_TEST_CASSANDRA")
        .expect("TIDEMARK_TEST_CASSANDRA names the address of a Cassandra to test with, HOST:PORT");
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let settings = [
        ("store", "cassandra".to_owned()),
        ("contact", contact),
        ("keyspace", format!("test_{since_1970}")),
        ("timeout_s", "60".to_owned()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn start(settings: &[(String, String)]) -> Running {
    let settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Running::start_with(&settings)
}

#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn messages_are_taken_counted_and_given_back_also_by_the_next_intake() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let settings = settings();
    let running = start(&settings);
    let mut client = running.client();
    let times = [5, DAY_MS + 5, 1_425_000_000_123];
    for time_ms in times {
        for kind in ["MNO", "ABC"] {
            let reply = client.get(&format!("/m?c={}", message(7, time_ms, kind)));
            assert_eq!((reply.status, reply.text()), (200, "OK"));
        }
    }
    // the same again is one, another user's is another
    assert_eq!(client.get(&format!("/m?c={}", message(7, 5, "ABC"))).status, 200);
    assert_eq!(client.get(&format!("/m?c={}", message(8, 5, "ABC"))).status, 200);
    assert_eq!(client.get("/count").text(), "7");
    assert_eq!(client.get("/m?c=short").status, 400);

    drop(running);
    let running = start(&settings);
    let mut client = running.client();
    assert_eq!(client.get("/count").text(), "7");
    let expected: Vec<String> =
        times.iter().flat_map(|time_ms| ["ABC", "MNO"].map(|kind| message(7, *time_ms, kind))).collect();
    let mut heard = Vec::new();
    let mut path = "/messages/7?limit=4".to_owned();
    loop {
        let reply = client.get(&path);
        assert_eq!(reply.status, 200, "{}", reply.text());
        for message in reply.json().as_array().unwrap() {
            heard.push(message["payload"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = reply.header("next-cursor") else { break };
        path = format!("/messages/7?limit=4&cursor={cursor}");
    }
    assert_eq!(heard, expected);
    let metrics = client.get("/metrics");
    assert!(metrics.text().contains("ingest_store_cassandra_nodes_connected 1"), "{}", metrics.text());
}

/// The default of Cassandra is to answer before the disk has it: that must not be called synced.
#[test]
#[ignore = "needs a Cassandra whose commit log is periodic: see the top of this file"]
fn a_durability_that_the_nodes_do_not_give_is_refused() {
    let settings = settings().into_iter().collect();
    let ingest = Ingest::bind(Options { durability: Durability::Synced, settings, ..options() }).unwrap();
    let error = ingest.serve(Stop::new().triggered()).unwrap_err().to_string();
    assert!(error.contains("buffered, not synced"), "{error}");
}
