//! The data tier as a store: what holds of every store, of what it keeps, and of lists longer than a call takes.

#[path = "../../store/tests/common/roles.rs"]
mod roles;
#[path = "../../store/tests/common/values.rs"]
pub mod values;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemark_airline::data::{DataStore, Options};
use tidemark_service::Durability;
use tidemark_store::StoreError;
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::Customers;
use tidemark_store::sessions::{Session, Sessions};
use values::{booking, customer, session, wait};

use crate::airline::{AtEnd, Running};
use crate::client::{described_is_served, eventually};

fn options(data: &Running) -> Options {
    let timeout = Duration::from_secs(60);
    Options { url: data.url(), durability: Durability::Memory, timeout, ..Options::default() }
}

/// Runs a test on a data tier of its own.
fn on(durability: Durability, test: impl FnOnce(&DataStore)) {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = Some(dir.path().to_owned());
    let service = tidemark_service::Options { durability, data_dir, ..crate::airline::options() };
    let data = Running::data(service);
    test(&DataStore::open(Options { durability, ..options(&data) }).unwrap());
}

#[test]
fn it_has_every_role() {
    for durability in Durability::ALL {
        on(durability, |store| {
            on(durability, |fresh| roles::every(store, fresh));
            // what is too large is not sent
            let error = wait(store.put(customer(&"x".repeat(1 << 20), 1))).unwrap_err();
            assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
        });
    }
}

#[test]
fn any_text_and_any_id_survive() {
    let data = Running::data(crate::airline::options());
    let store = DataStore::open(options(&data)).unwrap();
    let text: String =
        (0..0x300_u32).filter_map(char::from_u32).chain("\u{10ffff}\u{fffe}".chars()).collect();
    let id = &text[..text.floor_char_boundary(1024)];
    for number in [0, 1, u128::MAX, u128::from(u64::MAX) + 1] {
        let at = Session { customer_id: id.into(), created_ms: i64::MIN, ..session(number, i64::MAX) };
        wait(store.create(at.clone())).unwrap();
        assert_eq!(wait(Sessions::find(&*store, number, 0)).unwrap(), Some(at));
        wait(store.add(&[booking(id, number, u128::MAX - number)])).unwrap();
    }
    let mut stored = customer(id, i64::MIN);
    stored.address.city = text.clone();
    stored.address.street_address2 = Some(String::new());
    wait(store.put(stored.clone())).unwrap();
    assert_eq!(wait(Customers::find(&*store, id)).unwrap(), Some(stored));
    let ids: Vec<_> = wait(store.of_customer(id)).unwrap().iter().map(|booking| booking.id).collect();
    assert_eq!(ids, [0, 1, u128::MAX, u128::from(u64::MAX) + 1]);
}

/// More bookings than one call takes; they are those of one moment, whatever happens meanwhile.
#[test]
fn a_long_list_is_that_of_one_moment() {
    const LENGTH: u128 = 3000;
    let data = Running::data(crate::airline::options());
    let store = DataStore::open(options(&data)).unwrap();
    let all: Vec<_> = (0..LENGTH).map(|id| booking("ann", id, id)).collect();
    all.chunks(1000).for_each(|some| wait(store.add(some)).unwrap());
    assert_eq!(wait(store.of_customer("ann")).unwrap(), all);

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // the oldest goes once the next has come
        scope.spawn(|| {
            for id in LENGTH.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                wait(store.add(&[booking("ann", id, id)])).unwrap();
                assert!(wait(store.cancel("ann", id - LENGTH)).unwrap());
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let _ends = AtEnd(&is_over);
        let mut firsts = std::collections::BTreeSet::new();
        eventually("ten different lists", || {
            match wait(store.of_customer("ann")) {
                Ok(list) => {
                    let first = list[0].id;
                    assert!((LENGTH..=LENGTH + 1).contains(&(list.len() as u128)), "{}", list.len());
                    assert!(list.iter().zip(first..).all(|(booking, id)| booking.id == id), "a hole");
                    firsts.insert(first);
                }
                Err(error) => assert!(matches!(error, StoreError::Busy { .. }), "{error}"),
            }
            (firsts.len() >= 10).then_some(())
        });
    });
}

/// Two loaders at the same time make each customer once.
#[test]
fn customers_are_loaded_once_by_many() {
    let data = Running::data(crate::airline::options());
    let load = || {
        let store = DataStore::open(options(&data)).unwrap();
        let many = (0..5000).map(|number| customer(&format!("uid{number}"), number));
        wait(store.put_missing(Box::new(many))).unwrap()
    };
    let made: u64 = std::thread::scope(|scope| {
        let loaders: Vec<_> = (0..3).map(|_| scope.spawn(load)).collect();
        loaders.into_iter().map(|loader| loader.join().unwrap()).sum()
    });
    assert_eq!(made, 5000);
    let metrics = data.client().get("/metrics");
    for line in ["airline_store_customers 5000", "airline_store_info{durability=\"memory\"} 1"] {
        assert!(metrics.text().lines().any(|known| known == line), "no {line} in\n{}", metrics.text());
    }
}

#[test]
fn it_says_what_it_has() {
    let data = Running::data(crate::airline::options());
    let mut client = data.client();
    assert_eq!(client.get("/health").json()["system"], "airline-data");
    let expected = serde_json::json!({"durability": "memory", "sessions": 0, "customers": 0, "bookings": 0});
    assert_eq!(client.get("/about").json(), expected);
    described_is_served(&mut client);
    let store: Arc<DataStore> = DataStore::open(options(&data)).unwrap();
    wait(store.create(session(1, 1))).unwrap();
    assert_eq!(client.get("/about").json()["sessions"], 1);
    let metric = |name| store.metrics().iter().find(|own| own.name == name).unwrap().value;
    eventually("all connections", || (metric("connected") == metric("connections")).then_some(()));
    assert_eq!((metric("failed"), metric("waiting")), (0, 0));
}

/// What is not kept well enough is not promised: neither at the start nor after the process has begun again with less.
#[test]
fn no_more_is_promised_than_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = Some(dir.path().to_owned());
    let with = |durability| tidemark_service::Options {
        durability,
        data_dir: data_dir.clone(),
        ..crate::airline::options()
    };
    let data = Running::data(with(Durability::Synced));
    let options = Options { durability: Durability::Synced, ..options(&data) };
    let store = DataStore::open(options.clone()).unwrap();
    wait(store.create(session(1, 1000))).unwrap();
    let listen = data.addr;
    drop(data);

    let less = Running::data(tidemark_service::Options { listen, ..with(Durability::Buffered) });
    let error = eventually("an answer", || match wait(store.create(session(2, 1000))) {
        Err(StoreError::Unreachable { .. }) => None,
        Err(StoreError::NoAnswer { reason }) if !reason.contains("412") => None,
        answer => Some(answer.unwrap_err().to_string()),
    });
    assert!(error.contains("buffered here, not synced"), "{error}");
    let error = DataStore::open(options.clone()).unwrap_err().to_string();
    assert!(error.contains("is buffered, not synced"), "{error}");
    assert_eq!(wait(Sessions::find(&*store, 2, 0)).unwrap(), None);
    assert_eq!(
        wait(Sessions::find(&*store, 1, 0)).unwrap(),
        Some(session(1, 1000)),
        "it is read all the same"
    );
    drop(less);

    let short = Options { start_timeout: Duration::from_millis(100), ..options };
    let error = DataStore::open(short).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
}
