//! The store for messages against a Cassandra that runs.
//!
//! `TIDEMARK_TEST_CASSANDRA=127.0.0.1:9042 cargo test -p tidemark-store --features cassandra --test every_store -- --ignored cassandra::`
#![cfg(feature = "cassandra")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tidemark_store::cassandra::{Cassandra, Options, Reader};
use tidemark_store::messages::{DAY_MS, Message, MessageId, MessageStore, Messages, Place, Query};
use tidemark_store::{Durability, StoreError};
use tokio::task::JoinSet;

/// Options with a keyspace that no other test uses.
fn fresh() -> Options {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let contact = std::env::var("TIDEMARK_TEST_CASSANDRA")
        .expect("TIDEMARK_TEST_CASSANDRA names the address of a Cassandra to test with, HOST:PORT");
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let keyspace = format!("test_{since_1970}_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    Options { contact: contact.split(',').map(str::to_owned).collect(), keyspace, ..Options::default() }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

fn message(user: u64, time_ms: u64, kind: &[u8; 3], payload: &str) -> Message {
    Message { user, time_ms, kind: *kind, id: MessageId::NONE, payload: payload.to_owned().into() }
}

const ALL: Query = Query { user: 5, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100_000 };

async fn read(store: &Cassandra, query: Query) -> (Vec<(u64, [u8; 3], String)>, Option<Place>) {
    let page = store.of_user(query).await.unwrap();
    let one = |message: &Message| {
        (message.time_ms, message.kind, String::from_utf8(message.payload.to_vec()).unwrap())
    };
    (page.messages.iter().map(one).collect(), page.next)
}

#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn a_user_is_read_in_order_over_days_and_page_by_page() {
    let store = Cassandra::open(fresh()).unwrap();
    let times = [3 * DAY_MS, 1, DAY_MS - 1, DAY_MS, 20_000 * DAY_MS + 7, 0];
    let mut expected: Vec<(u64, [u8; 3], String)> = Vec::new();
    wait(async {
        for (index, time_ms) in times.into_iter().enumerate() {
            for kind in [b"DEF", b"ABC", b"\0\0\0", b"\xff\xff\xff"] {
                let payload = format!("{index} {kind:?}");
                store.add(message(5, time_ms, kind, &payload)).await.unwrap();
                expected.push((time_ms, *kind, payload));
            }
        }
        store.add(message(6, 1, b"ABC", "another user")).await.unwrap();
        expected.sort();
        assert_eq!(read(&store, ALL).await, (expected.clone(), None));

        let within: Vec<_> =
            expected.iter().filter(|(time, ..)| (1..DAY_MS).contains(time)).cloned().collect();
        assert_eq!(read(&store, Query { from_ms: 1, to_ms: DAY_MS, ..ALL }).await, (within, None));
        assert_eq!(read(&store, Query { from_ms: 9, to_ms: 2, ..ALL }).await, (Vec::new(), None));

        for limit in [1, 4, 5, expected.len()] {
            let (mut heard, mut after) = (Vec::new(), None);
            loop {
                let (some, next) = read(&store, Query { after, limit, ..ALL }).await;
                assert!(some.len() <= limit);
                heard.extend(some);
                after = next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(heard, expected, "in pages of {limit}");
        }
        assert_eq!(store.count().await.unwrap(), expected.len() as u64 + 1);
    });
}

#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn a_second_message_with_the_same_key_replaces_the_first() {
    let store = Cassandra::open(fresh()).unwrap();
    wait(async {
        for round in 0..50 {
            store.add(message(5, 1, b"ABC", &format!("{round}"))).await.unwrap();
        }
        assert_eq!(store.count().await.unwrap(), 1);
        assert_eq!(read(&store, ALL).await.0, [(1, *b"ABC", "49".to_owned())]);
    });
}

#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn messages_that_are_alike_are_as_many_as_there_are_ids() {
    let store = Cassandra::open(fresh()).unwrap();
    wait(async {
        let alike: Vec<Message> =
            (0..50).map(|_| Message { id: MessageId::unique(), ..message(5, 1, b"ABC", "alike") }).collect();
        for message in alike.iter().chain(&alike) {
            store.add(message.clone()).await.unwrap();
        }
        assert_eq!(store.count().await.unwrap(), 50);
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.of_user(Query { after, limit: 7, ..ALL }).await.unwrap();
            found.extend(page.messages);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, alike);
    });
}

/// The trap of statements that are shared by writers: every message must arrive as it was sent.
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn everything_that_many_writers_send_at_once_is_kept_as_it_was_sent() {
    const WRITERS: u64 = 64;
    const EACH: u64 = 500;
    let options = fresh();
    let error = Reader::open(&options).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("there is no table test_")), "{error:?}");
    let store = Cassandra::open(options.clone()).unwrap();
    wait(async {
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let store: MessageStore = store.clone();
            writers.spawn(async move {
                for index in 0..EACH {
                    let payload = format!("{writer} {index}");
                    store.add(message(writer % 10, writer * EACH + index, b"ABC", &payload)).await.unwrap();
                }
            });
        }
        writers.join_all().await;
        assert_eq!(store.count().await.unwrap(), WRITERS * EACH);
    });
    let mut found: HashMap<String, u32> = HashMap::new();
    let reader = Reader::open(&options).unwrap();
    assert!(!reader.cluster().unwrap().is_empty());
    for part in 0..reader.parts() {
        let mut seen = 0;
        let count = reader.payloads(part, &|| true, |payload| {
            seen += 1;
            *found.entry(String::from_utf8(payload.to_vec()).unwrap()).or_default() += 1;
        });
        assert_eq!(count.unwrap(), seen);
    }
    assert_eq!(found.len() as u64, WRITERS * EACH);
    assert!(reader.payloads(0, &|| false, |_| {}).is_err(), "nobody waits");
    assert!(found.values().all(|times| *times == 1));
    let metrics = store.metrics();
    assert_eq!((metrics.writes, metrics.failed, metrics.queue_depth), (WRITERS * EACH, 0, 0));
    assert_eq!(metrics.sync_buckets.iter().sum::<u64>(), WRITERS * EACH);
}

/// Writes beyond the bound are refused at once, all others are answered, and what was refused was not written.
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn the_bound_of_waiting_writes_holds() {
    let store = Cassandra::open(Options { waiting_max: 8, in_flight: 4, ..fresh() }).unwrap();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let refused = Arc::new(AtomicU64::new(0));
    wait(async {
        let mut writers = JoinSet::new();
        for index in 0..2000 {
            let (store, acknowledged, refused) = (store.clone(), acknowledged.clone(), refused.clone());
            writers.spawn(async move {
                match store.add(message(5, index, b"ABC", "x")).await {
                    Ok(()) => acknowledged.fetch_add(1, Ordering::Relaxed),
                    Err(StoreError::Busy { .. }) => refused.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("{error}"),
                }
            });
        }
        writers.join_all().await;
        assert_eq!(store.count().await.unwrap(), acknowledged.load(Ordering::Relaxed));
    });
    let metrics = store.metrics();
    let (acknowledged, refused) = (acknowledged.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    assert_eq!((metrics.writes, metrics.refused), (acknowledged, refused));
    assert!(refused > 0 && acknowledged >= 8, "{acknowledged} acknowledged, {refused} refused");
}

/// A metric that only Cassandra has.
fn own(store: &Cassandra, name: &str) -> u64 {
    store.metrics().own.iter().find(|own| own.name == name).expect("a metric").value
}

/// A runtime that has settled writes over connections of its own; they end with it, and others still write.
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn what_a_settled_runtime_writes_is_kept_and_its_end_disturbs_nobody() {
    let store = Cassandra::open(fresh()).unwrap();
    store.settle(); // no runtime: nothing
    let mut time_ms = 0;
    let mut next = || {
        time_ms += 1;
        message(5, time_ms, b"ABC", "x")
    };
    for _ in 0..2 {
        wait(async {
            store.settle();
            store.settle(); // once is enough
            let begun = Instant::now();
            while own(&store, "cassandra_settled") == 0 {
                assert!(begun.elapsed() < Duration::from_secs(60), "it never had connections of its own");
                store.add(next()).await.unwrap();
            }
            // the store's own runtime has no part in these
            for _ in 0..200 {
                store.add(next()).await.unwrap();
            }
            assert_eq!(own(&store, "cassandra_settled"), 1);
        });
        assert_eq!(own(&store, "cassandra_settled"), 0, "its runtime has ended");
        wait(async { store.add(next()).await.unwrap() });
    }
    assert_eq!(wait(store.count()).unwrap(), time_ms);
}

#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn a_keyspace_that_keeps_less_than_was_asked_for_is_refused() {
    let options = fresh();
    let first = Cassandra::open(options.clone()).unwrap();
    assert!([Durability::Buffered, Durability::Synced].contains(&first.durability()));
    let again = Cassandra::open(options.clone()).unwrap();
    drop((first, again));
    let Err(error) = Cassandra::open(Options { replication: 9, ..options }) else { panic!("9 nodes?") };
    assert!(error.to_string().contains("replication"), "{error}");
}

/// Its writes go past the commit log: whatever that does, they are in memory only.
#[test]
#[ignore = "needs a Cassandra: see the top of this file"]
fn a_keyspace_without_a_commit_log_is_known_to_be_in_memory_only() {
    let options = fresh();
    wait(async {
        let session = scylla::client::session_builder::SessionBuilder::new().known_nodes(&options.contact);
        let session = session.build().await.unwrap();
        let make = format!(
            "CREATE KEYSPACE {} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}} \
             AND durable_writes = false",
            options.keyspace
        );
        session.query_unpaged(make, ()).await.unwrap();
    });
    assert_eq!(Cassandra::open(options).unwrap().durability(), Durability::Memory);
}
