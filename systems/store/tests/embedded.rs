//! The embedded store through its public door: what it keeps, refuses and forgets.

use crate::common::{booking, customer, roles, session, wait};
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::Customers;
use tidemark_store::sessions::Sessions;
use tidemark_store::{Durability, Embedded, StoreError};

#[test]
fn it_has_every_role() {
    for durability in Durability::ALL {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [store, fresh] = dirs.each_ref().map(|dir| Embedded::open(dir.path(), durability).unwrap());
        assert_eq!(store.durability(), durability);
        roles::every(&*store, &*fresh);
    }
}

#[test]
fn everything_is_there_after_a_reopen_and_counted() {
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/on/the/way");
        let store = Embedded::open(&path, durability).unwrap();
        assert_eq!(store.recovered().customers, 0);
        wait(store.create(session(1, 1000))).unwrap();
        wait(store.put(customer("uid0", 1))).unwrap();
        wait(store.add(&[booking("uid0", 5, 1), booking("uid0", 4, 2)])).unwrap();
        assert_eq!(store.metrics().writes, 3);
        drop(store);

        let store = Embedded::open(&path, durability).unwrap();
        let recovered = store.recovered();
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
