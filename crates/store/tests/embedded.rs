//! The embedded store through its public door: what it keeps, refuses and forgets.

mod common;

use common::{booking, customer, session, wait};
use tidemark_store::airline::{AirlineStore, Bookings, Customers, Session, Sessions};
use tidemark_store::{Durability, Embedded, SWEEP_SESSIONS_MAX, StoreError};

/// Runs the same test on every durability.
fn on_each(test: impl Fn(&AirlineStore)) {
    for durability in Durability::ALL {
        let dir = tempfile::tempdir().unwrap();
        let store = Embedded::open(dir.path(), durability).unwrap();
        assert_eq!(store.durability(), durability);
        test(&store.into());
    }
}

#[test]
fn a_session_is_there_until_it_expires() {
    on_each(|store| {
        let sessions = &store.sessions;
        wait(sessions.create(session(1, 1000))).unwrap();
        wait(sessions.create(session(2, 5000))).unwrap();
        assert_eq!(wait(sessions.find(1, 999)).unwrap(), Some(session(1, 1000)));
        assert_eq!(wait(sessions.find(1, 1000)).unwrap(), None);
        assert_eq!(wait(sessions.find(3, 0)).unwrap(), None);
        // The removal of the expired one is queued in front of this write.
        assert!(wait(sessions.remove(2)).unwrap());
        assert!(!wait(sessions.remove(2)).unwrap());
        assert_eq!(wait(sessions.count()).unwrap(), 0);
        assert_eq!(wait(sessions.find(1, 0)).unwrap(), None, "an expired session was removed, not hidden");
    });
}

#[test]
fn a_sweep_removes_the_oldest_and_only_so_many() {
    on_each(|store| {
        let sessions = &store.sessions;
        let many = SWEEP_SESSIONS_MAX as u128 + 10;
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap().block_on(async {
            let answers: Vec<_> = (0..many).map(|id| sessions.create(session(id, id as i64))).collect();
            for answer in answers {
                answer.await.unwrap();
            }
        });
        wait(sessions.create(session(1 << 100, i64::MAX))).unwrap();
        assert_eq!(wait(sessions.sweep(-1)).unwrap(), 0);
        assert_eq!(wait(sessions.sweep(many as i64)).unwrap(), SWEEP_SESSIONS_MAX as u64);
        assert_eq!(wait(sessions.find(many - 11, 0)).unwrap(), None);
        assert!(
            wait(sessions.find(many - 10, 0)).unwrap().is_some(),
            "the youngest of the expired come last"
        );
        assert_eq!(wait(sessions.sweep(many as i64)).unwrap(), 10);
        assert_eq!(wait(sessions.sweep(many as i64)).unwrap(), 0);
        assert_eq!(wait(sessions.count()).unwrap(), 1);
    });
}

#[test]
fn bookings_come_in_order_and_go_by_customer_and_id() {
    on_each(|store| {
        let bookings = &store.bookings;
        let all: Vec<_> = [9, 3, 7].map(|id| booking("ann", id, id * 11)).into();
        wait(bookings.add(&all[..2])).unwrap();
        wait(bookings.add(&all[2..])).unwrap();
        wait(bookings.add(&[booking("bob", 3, 1)])).unwrap();
        assert_eq!(wait(bookings.of_customer("ann")).unwrap(), all);
        assert_eq!(wait(bookings.find("ann", 3)).unwrap(), Some(all[1].clone()));
        assert_eq!(wait(bookings.find("ann", 4)).unwrap(), None);
        assert!(!wait(bookings.cancel("cid", 3)).unwrap());
        assert!(wait(bookings.cancel("ann", 3)).unwrap());
        assert!(!wait(bookings.cancel("ann", 3)).unwrap());
        assert_eq!(wait(bookings.of_customer("ann")).unwrap(), [all[0].clone(), all[2].clone()]);
        assert_eq!(wait(bookings.of_customer("bob")).unwrap().len(), 1, "another customer's, same id");
        assert_eq!(wait(bookings.of_customer("cid")).unwrap(), []);
        assert_eq!(wait(bookings.count()).unwrap(), 3);
    });
}

#[test]
fn customers_are_replaced_whole() {
    on_each(|store| {
        let customers = &store.customers;
        let many = (0..3000).map(|number| customer(&format!("uid{number}"), number));
        assert_eq!(wait(customers.put_many(Box::new(many))).unwrap(), 3000);
        assert_eq!(wait(customers.find("uid2999")).unwrap(), Some(customer("uid2999", 2999)));
        wait(customers.put(customer("uid7", 8))).unwrap();
        assert_eq!(wait(customers.find("uid7")).unwrap(), Some(customer("uid7", 8)));
        assert_eq!(wait(customers.find("uid3000")).unwrap(), None);
        assert_eq!(wait(customers.count()).unwrap(), 3000);
    });
}

#[test]
fn everything_is_there_after_a_reopen_and_counted() {
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/on/the/way");
        let store = Embedded::open(&path, durability).unwrap();
        assert_eq!(store.metrics().recovered.customers, 0);
        wait(store.create(session(1, 1000))).unwrap();
        wait(store.put(customer("uid0", 1))).unwrap();
        wait(store.add(&[booking("uid0", 5, 1), booking("uid0", 4, 2)])).unwrap();
        assert_eq!(store.metrics().writes, 3);
        drop(store);

        let store = Embedded::open(&path, durability).unwrap();
        let recovered = store.metrics().recovered;
        assert_eq!((recovered.sessions, recovered.customers, recovered.bookings), (1, 1, 2));
        assert_eq!(wait(Sessions::find(&*store, 1, 0)).unwrap(), Some(session(1, 1000)));
        assert_eq!(wait(Customers::find(&*store, "uid0")).unwrap(), Some(customer("uid0", 1)));
        let ids: Vec<u128> = wait(store.of_customer("uid0")).unwrap().iter().map(|one| one.id).collect();
        assert_eq!(ids, [5, 4], "the order of booking, not of ids");
        // Numbers go on behind those that were recovered.
        wait(store.add(&[booking("uid0", 1, 3)])).unwrap();
        drop(store);
        let store = Embedded::open(&path, durability).unwrap();
        let ids: Vec<u128> = wait(store.of_customer("uid0")).unwrap().iter().map(|one| one.id).collect();
        assert_eq!(ids, [5, 4, 1]);
    }
}

#[test]
fn memory_touches_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Embedded::open(&path, Durability::Memory).unwrap();
    wait(store.put(customer("uid0", 1))).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let store = Embedded::open(dir.path(), Durability::Synced).unwrap();
    let error = Embedded::open(dir.path(), Durability::Synced).err().expect("it is locked");
    assert!(matches!(&error, StoreError::Locked { dir: named } if named == dir.path()), "{error}");
    assert!(error.to_string().contains("is in use"), "{error}");
    drop(store);
    Embedded::open(dir.path(), Durability::Synced).unwrap();
}

#[test]
fn a_directory_that_cannot_be_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let path = file.join("store");
    let error = Embedded::open(&path, Durability::Synced).err().expect("a file is in the way");
    assert!(matches!(&error, StoreError::Open { .. }), "{error}");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
}

#[test]
fn what_cannot_be_stored_is_refused_before_it_is_written() {
    on_each(|store| {
        let long = "x".repeat(5000);
        let mut wordy = customer("uid0", 1);
        wordy.address.city = long.clone();
        let refused = [
            wait(store.customers.put(customer("", 1))),
            wait(store.customers.put(customer(&long, 1))),
            wait(store.customers.put(wordy)),
            wait(store.bookings.add(&[booking("uid0", 1, 1), booking("", 2, 2)])),
            wait(store.bookings.add(&vec![booking("uid0", 1, 1); 4097])),
            wait(store.sessions.create(Session { customer_id: long.into(), ..session(1, 1) })),
        ];
        for refusal in refused {
            assert!(matches!(refusal, Err(StoreError::Invalid { .. })), "{refusal:?}");
        }
        assert_eq!(wait(store.bookings.count()).unwrap(), 0, "all or none");
        wait(store.customers.put(customer("uid0", 1))).unwrap();
    });
}

#[test]
fn many_writers_share_commits_and_read_their_own_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Embedded::open(dir.path(), Durability::Synced).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let writers: Vec<_> = (0..64u128)
        .map(|writer| {
            let store = store.clone();
            runtime.spawn(async move {
                let customer_id = format!("uid{writer}");
                for id in 0..20 {
                    store.add(&[booking(&customer_id, id, id)]).await.unwrap();
                    let own = store.of_customer(&customer_id).await.unwrap();
                    assert_eq!(own.len() as u128, id + 1);
                }
            })
        })
        .collect();
    for writer in writers {
        runtime.block_on(writer).unwrap();
    }
    let metrics = store.metrics();
    assert_eq!(metrics.writes, 64 * 20);
    assert!(metrics.commits < metrics.writes, "some group held more than one write");
    assert_eq!(metrics.sync_buckets.iter().sum::<u64>(), metrics.commits);
    assert_eq!(wait(Bookings::count(&*store)).unwrap(), 64 * 20);
}
