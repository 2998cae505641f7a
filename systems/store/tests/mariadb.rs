//! A real MariaDB as the store of customers and bookings: needs Debian's package `mariadb-server`.
#![cfg(feature = "mariadb")]

use std::time::Duration;

use crate::common::mariadb::MariadbServer;
use crate::common::servers::PATIENCE;
use crate::common::{booking, customer, roles, survives, wait};
use tidemark_store::Durability;
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::Customers;
use tidemark_store::mariadb::{Mariadb, Options};

fn options(url: &str) -> Options {
    Options {
        url: url.to_owned(),
        connections: 4,
        timeout: Duration::from_secs(60),
        start_timeout: PATIENCE,
        ..Options::default()
    }
}

fn metric(store: &Mariadb, name: &str) -> u64 {
    store.metrics().iter().find(|own| own.name == name).expect("it is counted").value
}

#[test]
fn it_has_customers_and_bookings() {
    let server = MariadbServer::start(&[]);
    for durability in Durability::ALL {
        let open = || Mariadb::open(Options { durability, ..options(&server.database()) }).unwrap();
        let store = open();
        roles::bookings_that_cannot_be_stored_are_refused(&*store);
        roles::bookings_come_in_order_and_go_by_customer_and_id(&*store);
        roles::customers_are_replaced_whole(&*store);
        roles::customers_that_cannot_be_stored_are_refused(&*store);
        roles::a_customer_is_replaced_only_as_it_was(&*open());
        // what a text or a key may have: NUL, spaces at the end, either case, the longest
        let long = "x".repeat(1024);
        for (number, id) in ["a\0\u{e000}0b", "ann ", "ANN", &long].into_iter().enumerate() {
            let (number, whose) = (number as u128, number as i64);
            wait(store.add(&[booking(id, number, 1)])).unwrap();
            assert_eq!(wait(store.of_customer(id)).unwrap(), [booking(id, number, 1)]);
            wait(store.put(customer(id, whose))).unwrap();
            assert_eq!(wait(Customers::find(&*store, id)).unwrap(), Some(customer(id, whose)));
        }
        let mut wordy = customer("wordy", 1);
        wordy.address.city = "\u{1f600}".repeat(1024);
        wait(store.put(wordy.clone())).unwrap();
        assert_eq!(wait(Customers::find(&*store, "wordy")).unwrap(), Some(wordy));
        // as many as can be at a time
        let many: Vec<_> = (0..4096).map(|id| booking("many", id, id)).collect();
        wait(store.add(&many)).unwrap();
        assert_eq!(wait(store.of_customer("many")).unwrap(), many);
        assert_eq!(metric(&store, "failed"), 0);
    }
}

/// Two services begin at the same time on an empty database, and once more on what they made.
#[test]
fn the_schema_is_made_once() {
    let server = MariadbServer::start(&[]);
    let url = server.database();
    let open = || Mariadb::open(options(&url));
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        for store in opened {
            let store = store.join().unwrap().unwrap();
            assert_eq!(wait(Customers::count(&*store)).unwrap(), 0);
        }
    });
    wait(open().unwrap().add(&[booking("ann", 1, 1)])).unwrap();
    assert_eq!(wait(open().unwrap().of_customer("ann")).unwrap().len(), 1);

    server.sql(&url, "INSERT INTO airline_migrations (version) VALUES (99)");
    let error = open().err().expect("a later version is not touched").to_string();
    assert!(error.contains("version 99"), "{error}");

    let url = server.database();
    server.sql(&url, "CREATE TABLE airline_bookings (mine int)");
    let error = Mariadb::open(options(&url)).err().expect("they are not ours").to_string();
    assert!(error.contains("of others"), "{error}");
}

#[test]
fn no_more_is_claimed_than_the_server_does() {
    for (settings, given, enough) in [
        (&["--innodb-flush-log-at-trx-commit=2"][..], "buffered, not synced", Durability::Buffered),
        (&["--log-bin=log", "--sync-binlog=0"], "buffered, not synced", Durability::Buffered),
    ] {
        let server = MariadbServer::start(settings);
        let url = server.database();
        let with = |durability| Mariadb::open(Options { durability, ..options(&url) });
        let error = with(Durability::Synced).err().expect("it does not sync").to_string();
        assert!(error.contains(given) && error.contains("innodb_flush_log_at_trx_commit"), "{error}");
        let store = with(enough).unwrap();
        wait(store.add(&[booking("ann", 1, 1), booking("ann", 2, 1)])).unwrap();
    }
}

/// Killed in the middle of writes: what was acknowledged is there, and the store finds its server again by itself.
#[test]
fn what_was_acknowledged_survives_the_servers_death() {
    let mut server = MariadbServer::start(&[]);
    let store = Mariadb::open(options(&server.database())).unwrap();
    survives::what_was_acknowledged(&mut server, &store, 1, || metric(&store, "answered"));
    assert!(metric(&store, "lost") >= 1);
}
