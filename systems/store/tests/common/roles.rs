//! What holds of every store that has a role.
//!
//! Times are around now, since a store may remove by its own clock what has expired.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_store::StoreError;
use tidemark_store::bookings::Bookings;
use tidemark_store::customers::{Address, Customer, Customers};
use tidemark_store::sessions::{SWEEP_SESSIONS_MAX, Session, Sessions};

use super::{booking, customer, session, wait};

/// An hour from now, milliseconds since 1970: what expires then is there for the whole test.
pub fn soon_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64 + 3_600_000
}

/// All that holds of a store with every role. `fresh` has nothing in it, too.
pub fn every<S: Sessions + Customers + Bookings>(store: &S, fresh: &S) {
    sessions_that_cannot_be_stored_are_refused(store);
    bookings_that_cannot_be_stored_are_refused(store);
    a_session_is_there_until_it_expires(store);
    a_sweep_removes_the_oldest_and_only_so_many(store);
    bookings_come_in_order_and_go_by_customer_and_id(store);
    customers_are_replaced_whole(store);
    customers_that_cannot_be_stored_are_refused(store);
    a_customer_is_replaced_only_as_it_was(fresh);
}

pub fn a_session_is_there_until_it_expires(sessions: &dyn Sessions) {
    let soon = soon_ms();
    wait(sessions.create(session(1, soon + 1000))).unwrap();
    wait(sessions.create(session(2, soon + 5000))).unwrap();
    assert_eq!(wait(sessions.count()).unwrap(), 2);
    assert_eq!(wait(sessions.find(1, soon + 999)).unwrap(), Some(session(1, soon + 1000)));
    assert_eq!(wait(sessions.find(1, soon + 1000)).unwrap(), None);
    assert_eq!(wait(sessions.find(3, 0)).unwrap(), None);
    // The removal of the expired one was done, or is queued in front of this write.
    assert!(wait(sessions.remove(2)).unwrap());
    assert!(!wait(sessions.remove(2)).unwrap());
    assert_eq!(wait(sessions.count()).unwrap(), 0);
    assert_eq!(wait(sessions.find(1, 0)).unwrap(), None, "an expired session was removed, not hidden");
    wait(sessions.create(session(4, soon))).unwrap();
    wait(sessions.create(session(4, soon + 1))).unwrap();
    assert_eq!(wait(sessions.find(4, 0)).unwrap(), Some(session(4, soon + 1)), "the same id is replaced");
    assert!(wait(sessions.remove(4)).unwrap());
}

pub fn a_sweep_removes_the_oldest_and_only_so_many(sessions: &dyn Sessions) {
    let many = SWEEP_SESSIONS_MAX as u128 + 10;
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap().block_on(
        async {
            let answers: Vec<_> = (0..many).map(|id| sessions.create(session(id, id as i64))).collect();
            for answer in answers {
                answer.await.unwrap();
            }
        },
    );
    wait(sessions.create(session(1 << 100, i64::MAX))).unwrap();
    assert_eq!(wait(sessions.sweep(-1)).unwrap(), 0);
    assert_eq!(wait(sessions.sweep(many as i64)).unwrap(), SWEEP_SESSIONS_MAX as u64);
    assert_eq!(wait(sessions.find(many - 11, 0)).unwrap(), None);
    assert!(wait(sessions.find(many - 10, 0)).unwrap().is_some(), "the youngest of the expired come last");
    assert_eq!(wait(sessions.sweep(many as i64)).unwrap(), 10);
    assert_eq!(wait(sessions.sweep(many as i64)).unwrap(), 0);
    assert_eq!(wait(sessions.count()).unwrap(), 1);
}

pub fn bookings_come_in_order_and_go_by_customer_and_id(bookings: &dyn Bookings) {
    let all: Vec<_> = [9, 3, 7].map(|id| booking("ann", id, id * 11)).into();
    wait(bookings.add(&all[..2])).unwrap();
    wait(bookings.add(&all[2..])).unwrap();
    wait(bookings.add(&[booking("bob", 3, 1)])).unwrap();
    wait(bookings.add(&[])).unwrap();
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

    // one that is replaced counts as newest, also of two in one write
    wait(bookings.add(&[booking("ann", 9, 5)])).unwrap();
    assert_eq!(wait(bookings.of_customer("ann")).unwrap(), [all[2].clone(), booking("ann", 9, 5)]);
    wait(bookings.add(&[booking("ann", 7, 1), booking("ann", 2, 2), booking("ann", 7, 3)])).unwrap();
    let now = [booking("ann", 9, 5), booking("ann", 2, 2), booking("ann", 7, 3)];
    assert_eq!(wait(bookings.of_customer("ann")).unwrap(), now);
    assert_eq!(wait(bookings.count()).unwrap(), 4);
}

pub fn customers_are_replaced_whole(customers: &dyn Customers) {
    let many = || (0..3000).map(|number| customer(&format!("uid{number}"), number));
    assert_eq!(wait(customers.put_missing(Box::new(many()))).unwrap(), 3000);
    assert_eq!(wait(customers.find("uid2999")).unwrap(), Some(customer("uid2999", 2999)));
    wait(customers.put(customer("uid7", 8))).unwrap();
    assert_eq!(wait(customers.find("uid7")).unwrap(), Some(customer("uid7", 8)));
    wait(customers.put(customer("ü\u{1f600}'--", 8))).unwrap();
    assert_eq!(wait(customers.find("ü\u{1f600}'--")).unwrap(), Some(customer("ü\u{1f600}'--", 8)));
    assert_eq!(wait(customers.find("uid3000")).unwrap(), None);
    assert_eq!(wait(customers.count()).unwrap(), 3001);
    // what is there stays as it is
    let more = many().chain([customer("uid3000", 1)]);
    assert_eq!(wait(customers.put_missing(Box::new(more))).unwrap(), 1);
    assert_eq!(wait(customers.find("uid7")).unwrap(), Some(customer("uid7", 8)));
}

/// Many change one customer at the same time: what each was told that it did stays.
pub fn a_customer_is_replaced_only_as_it_was(customers: &dyn Customers) {
    const CHANGERS: i64 = 4;
    const CHANGES: i64 = 20;
    let first = Customer { total_miles: 0, ..customer("uid0\u{0}", 0) };
    let second =
        Customer { address: Address { street_address2: None, ..first.address.clone() }, ..first.clone() };
    assert!(!wait(customers.replace(&first, second.clone())).unwrap(), "it is not there");
    wait(customers.put(first.clone())).unwrap();
    assert!(wait(customers.replace(&first, second.clone())).unwrap());
    assert!(!wait(customers.replace(&first, first.clone())).unwrap());
    assert!(!wait(customers.replace(&second, customer("uid1", 0))).unwrap(), "another customer");
    assert_eq!(wait(customers.count()).unwrap(), 1);
    let mut wordy = second.clone();
    wordy.address.city = "x".repeat(5000);
    refused([wait(customers.replace(&second, wordy)).map(drop)]);

    std::thread::scope(|scope| {
        for changer in 0..CHANGERS {
            let id = &second.id;
            scope.spawn(move || {
                let mut changed = 0;
                while changed < CHANGES {
                    let before = wait(customers.find(id)).unwrap().unwrap();
                    let (total_miles, miles_ytd) = (before.total_miles + 1, changer);
                    let after = Customer { total_miles, miles_ytd, ..before.clone() };
                    changed += i64::from(wait(customers.replace(&before, after)).unwrap());
                }
            });
        }
    });
    let last = wait(customers.find(&second.id)).unwrap().unwrap();
    assert_eq!(last.total_miles, CHANGERS * CHANGES);
    assert_eq!(Customer { total_miles: 0, miles_ytd: 0, ..last }, second);
}

fn refused(answers: impl IntoIterator<Item = Result<(), StoreError>>) {
    for answer in answers {
        assert!(matches!(answer, Err(StoreError::Invalid { .. })), "{answer:?}");
    }
}

pub fn sessions_that_cannot_be_stored_are_refused(sessions: &dyn Sessions) {
    refused([wait(sessions.create(Session { customer_id: "x".repeat(5000).into(), ..session(1, 1) }))]);
    assert_eq!(wait(sessions.count()).unwrap(), 0);
}

pub fn customers_that_cannot_be_stored_are_refused(customers: &dyn Customers) {
    let long = "x".repeat(5000);
    let mut wordy = customer("uid0", 1);
    wordy.address.city = long.clone();
    let puts = [customer("", 1), customer(&long, 1), wordy];
    refused(puts.map(|customer| wait(customers.put(customer))));
    wait(customers.put(customer("uid0", 1))).unwrap();
}

pub fn bookings_that_cannot_be_stored_are_refused(bookings: &dyn Bookings) {
    let adds = [vec![booking("uid0", 1, 1), booking("", 2, 2)], vec![booking("uid0", 1, 1); 4097]];
    refused(adds.map(|some| wait(bookings.add(&some))));
    assert_eq!(wait(bookings.count()).unwrap(), 0, "all or none");
}
