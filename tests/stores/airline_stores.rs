//! The airline's customers and bookings in Apache Cassandra, which the tests start: it needs Java 17 and, the first time, Maven.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Client, PATIENCE, Served};
use crate::newsfeed_stores::Started;
use crate::roles;
use crate::values::{booking, customer, wait};
use tidemark_lab::started::held;
use tidemark_store::bookings::Bookings;
use tidemark_store::cassandra::{CassandraAirline, Options};
use tidemark_store::customers::Customers;
use tidemark_store::{Durability, StoreError};

const SYNCED: &str = "cassandra: {heap: 256MiB, durability: synced, ready within: 8m}";

/// All in one, since a Cassandra takes its time to start.
#[test]
fn customers_and_bookings_in_cassandra_are_kept_and_nothing_is_lost_when_it_is_killed() {
    let cassandra = Started::start(SYNCED, false).expect("Cassandra starts");
    let contact = vec![cassandra.place("contact")];
    let with = |keyspace: &str, waiting_max| {
        let timeout = Duration::from_secs(60);
        let options = Options {
            contact: contact.clone(),
            keyspace: keyspace.into(),
            waiting_max,
            timeout,
            ..Options::default()
        };
        CassandraAirline::open(options, Durability::Synced, PATIENCE).expect("a store")
    };
    let store = with("roles", 8192);
    roles::bookings_that_cannot_be_stored_are_refused(&*store);
    roles::bookings_come_in_order_and_go_by_customer_and_id(&*store);
    roles::customers_are_replaced_whole(&*store);
    roles::customers_that_cannot_be_stored_are_refused(&*store);
    roles::a_customer_is_replaced_only_as_it_was(&*with("replaced", 8192));
    for id in ["a\0\u{e000}0b", "ann ", "ANN", &"x".repeat(1024)] {
        let pair = [booking(id, 2, 1), booking(id, 1, 1)];
        wait(store.add(&pair)).unwrap();
        assert_eq!(wait(store.of_customer(id)).unwrap(), pair);
        wait(store.put(customer(id, 1))).unwrap();
        assert_eq!(wait(Customers::find(&*store, id)).unwrap(), Some(customer(id, 1)));
    }
    more_than_may_wait_are_refused(&with("roles", 2));
    killed_in_the_middle_of_writes(&cassandra, &store);
    the_airline_serves_from_it(&cassandra);
}

fn more_than_may_wait_are_refused(store: &Arc<CassandraAirline>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let adding: Vec<_> = (0..64u128)
        .map(|id| {
            let store = store.clone();
            runtime.spawn(async move { store.add(&[booking("narrow", id, id)]).await })
        })
        .collect();
    let answers: Vec<_> = adding.into_iter().map(|one| runtime.block_on(one).unwrap()).collect();
    let refused =
        answers.iter().filter(|answer| matches!(answer, Err(StoreError::Busy { .. }))).count() as u64;
    assert!(refused > 0 && answers.iter().any(Result::is_ok), "{refused}");
    let own = store.metrics();
    assert_eq!(own.iter().find(|own| own.name == "refused").expect("it is counted").value, refused);
    assert_eq!(wait(store.of_customer("narrow")).unwrap().len() as u64, 64 - refused);
}

/// Pairs of bookings are added while it is killed: what was acknowledged is there, and of each pair both or none.
fn killed_in_the_middle_of_writes(cassandra: &Started, store: &Arc<CassandraAirline>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..8u128)
        .map(|writer| {
            let (store, stop, count) = (store.clone(), stop.clone(), count.clone());
            runtime.spawn(async move {
                let (mut acknowledged, whose) = (Vec::new(), format!("writer{writer}"));
                for id in 0u128.. {
                    let pair = [booking(&whose, id * 2, id), booking(&whose, id * 2 + 1, id)];
                    match store.add(&pair).await {
                        Ok(()) => {
                            acknowledged.push(id * 2);
                            count.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(_) if stop.load(Ordering::SeqCst) => break,
                        Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                    }
                }
                (whose, acknowledged)
            })
        })
        .collect();
    let begun = Instant::now();
    while count.load(Ordering::SeqCst) < 200 {
        assert!(begun.elapsed() < PATIENCE * 5, "no bookings are acknowledged");
        std::thread::sleep(Duration::from_millis(5));
    }
    let handle = cassandra.stores.started().remove(0);
    held(&handle).kill();
    stop.store(true, Ordering::SeqCst);
    let acknowledged: Vec<_> = writers.into_iter().map(|one| runtime.block_on(one).unwrap()).collect();
    assert!(runtime.block_on(store.of_customer("writer0")).is_err(), "it is away");
    held(&handle).restart(&|| true).expect("Cassandra starts again");
    let begun = Instant::now();
    while let Err(error) = runtime.block_on(Bookings::count(&**store)) {
        assert!(begun.elapsed() < PATIENCE * 5, "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
    for (whose, ids) in acknowledged {
        let there = runtime.block_on(store.of_customer(&whose)).unwrap();
        let mut found: Vec<u128> = there.iter().map(|one| one.id).collect();
        assert_eq!(found.len() % 2, 0, "all or none");
        found.retain(|id| id % 2 == 0);
        let missing: Vec<_> = ids.iter().filter(|id| !found.contains(id)).collect();
        assert!(missing.is_empty(), "{whose}: {missing:?} were acknowledged and are not there");
        assert!(found.is_sorted(), "in the order of adding");
    }
}

fn the_airline_serves_from_it(cassandra: &Started) {
    let contact = format!("contact={}", cassandra.place("contact"));
    let settings = [
        "customers_in=cassandra",
        "bookings_in=cassandra",
        "keyspace=served",
        "store_timeout_s=60",
        &contact,
    ];
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut arguments = vec!["--durability", "synced", "--data", data.path().to_str().expect("UTF-8")];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let served = Served::start("airline", &arguments);
    let mut client = Client::connect(&served.authority);
    let mut get = |path: &str| client.get(path).body;
    assert_eq!(get("/rest/api/config/activeDataService"), "embedded+cassandra");
    assert_eq!(get("/rest/api/config/countCustomers"), "200");
    assert_eq!(get("/rest/api/config/countBookings"), "0");
    let metrics = get("/metrics");
    for line in [
        "airline_data_info{customers=\"cassandra\",sessions=\"embedded\",bookings=\"cassandra\",flights=\"embedded\"} 1",
        "airline_cassandra_nodes_connected 1",
        "airline_cassandra_refused_total 0",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line} is not in\n{metrics}");
    }
}

/// What Cassandra does not keep is not promised: this one is buffered.
pub fn no_more_is_promised_than_cassandra_keeps(contact: &str) {
    let options =
        Options { contact: vec![contact.to_owned()], keyspace: "kept".into(), ..Options::default() };
    let open = |durability| CassandraAirline::open(options.clone(), durability, PATIENCE);
    let error = open(Durability::Synced).err().expect("it does not sync").to_string();
    assert!(error.contains("buffered, not synced") && error.contains("commitlog_sync"), "{error}");
    assert_eq!(open(Durability::Buffered).expect("it is as durable").durability(), Durability::Buffered);
}
