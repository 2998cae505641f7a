//! Any sequence of operations, with reopenings in between, leaves what a simple model leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{booking, customer, session, wait};
use proptest::prelude::*;
use tidemark_store::bookings::{Booking, Bookings};
use tidemark_store::customers::Customers;
use tidemark_store::sessions::{SWEEP_SESSIONS_MAX, Session, Sessions};
use tidemark_store::{Durability, Embedded};

const CUSTOMERS: [&str; 4] = ["a", "ab", "uid1@email.com", "ü"];

#[derive(Debug, Clone)]
enum Step {
    Create { id: u128, expires_ms: i64 },
    FindSession { id: u128 },
    RemoveSession { id: u128 },
    Sweep,
    LetTimePass { ms: i64 },
    PutCustomer { customer: usize, miles: i64 },
    Book { bookings: Vec<(usize, u128, u128)> },
    Cancel { customer: usize, id: u128 },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let customer = 0..CUSTOMERS.len();
    prop_oneof![
        4 => (0..8u128, 0..60i64).prop_map(|(id, expires_ms)| Step::Create { id, expires_ms }),
        4 => (0..8u128).prop_map(|id| Step::FindSession { id }),
        2 => (0..8u128).prop_map(|id| Step::RemoveSession { id }),
        1 => Just(Step::Sweep),
        2 => (0..10i64).prop_map(|ms| Step::LetTimePass { ms }),
        2 => (customer.clone(), 0..5i64).prop_map(|(customer, miles)| Step::PutCustomer { customer, miles }),
        6 => prop::collection::vec((customer.clone(), 0..6u128, any::<u128>()), 0..4)
            .prop_map(|bookings| Step::Book { bookings }),
        4 => (customer, 0..6u128).prop_map(|(customer, id)| Step::Cancel { customer, id }),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Default)]
struct Model {
    now_ms: i64,
    sessions: BTreeMap<u128, Session>,
    customers: BTreeMap<usize, i64>,
    bookings: Vec<Booking>,
}

impl Model {
    /// Does a step in both worlds and compares what they say.
    fn take(&mut self, step: &Step, store: &Embedded) {
        match step {
            Step::Create { id, expires_ms } => {
                wait(store.create(session(*id, *expires_ms))).unwrap();
                self.sessions.insert(*id, session(*id, *expires_ms));
            }
            Step::FindSession { id } => {
                if self.sessions.get(id).is_some_and(|session| session.expires_ms <= self.now_ms) {
                    self.sessions.remove(id);
                }
                assert_eq!(
                    wait(Sessions::find(store, *id, self.now_ms)).unwrap(),
                    self.sessions.get(id).cloned()
                );
                // The removal in passing is queued before this write, so it is done after it.
                wait(store.put(customer("marker", 0))).unwrap();
            }
            Step::RemoveSession { id } => {
                assert_eq!(wait(store.remove(*id)).unwrap(), self.sessions.remove(id).is_some());
            }
            Step::Sweep => {
                let before = self.sessions.len();
                self.sessions.retain(|_, session| session.expires_ms > self.now_ms);
                let swept = (before - self.sessions.len()) as u64;
                assert!(swept < SWEEP_SESSIONS_MAX as u64);
                assert_eq!(wait(store.sweep(self.now_ms)).unwrap(), swept);
            }
            Step::LetTimePass { ms } => self.now_ms += ms,
            Step::PutCustomer { customer: which, miles } => {
                wait(store.put(customer(CUSTOMERS[*which], *miles))).unwrap();
                self.customers.insert(*which, *miles);
            }
            Step::Book { bookings } => {
                let bookings: Vec<_> = bookings
                    .iter()
                    .map(|(which, id, flight_id)| booking(CUSTOMERS[*which], *id, *flight_id))
                    .collect();
                wait(store.add(&bookings)).unwrap();
                for new in bookings {
                    self.bookings.retain(|old| (&old.customer_id, old.id) != (&new.customer_id, new.id));
                    self.bookings.push(new);
                }
            }
            Step::Cancel { customer, id } => {
                let customer = CUSTOMERS[*customer];
                let before = self.bookings.len();
                self.bookings.retain(|booking| (&*booking.customer_id, booking.id) != (customer, *id));
                let cancelled = self.bookings.len() < before;
                assert_eq!(wait(store.cancel(customer, *id)).unwrap(), cancelled);
            }
            Step::Reopen => {}
        }
    }

    fn compare(&self, store: &Embedded) {
        assert_eq!(wait(Sessions::count(store)).unwrap(), self.sessions.len() as u64);
        for (id, session) in &self.sessions {
            assert_eq!(wait(Sessions::find(store, *id, i64::MIN)).unwrap().as_ref(), Some(session));
        }
        for (which, id) in CUSTOMERS.into_iter().enumerate() {
            let expected = self.customers.get(&which).map(|miles| customer(id, *miles));
            assert_eq!(wait(Customers::find(store, id)).unwrap(), expected);
            let expected: Vec<_> =
                self.bookings.iter().filter(|booking| &*booking.customer_id == id).cloned().collect();
            assert_eq!(wait(store.of_customer(id)).unwrap(), expected);
        }
        assert_eq!(wait(Bookings::count(store)).unwrap(), self.bookings.len() as u64);
    }
}

fn follow(steps: &[Step], durability: Durability) {
    let dir = tempfile::tempdir().unwrap();
    let open = || Embedded::open(dir.path(), durability).unwrap();
    let mut model = Model::default();
    let mut store: Arc<Embedded> = open();
    for step in steps {
        model.take(step, &store);
        if matches!(step, Step::Reopen) && durability != Durability::Memory {
            drop(store);
            store = open();
        }
        model.compare(&store);
    }
    if durability != Durability::Memory {
        drop(store);
        model.compare(&open());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_durable_store_is_the_model(steps in prop::collection::vec(step(), 1..60)) {
        follow(&steps, Durability::Buffered);
    }

    #[test]
    fn the_memory_store_is_the_model(steps in prop::collection::vec(step(), 1..60)) {
        follow(&steps, Durability::Memory);
    }
}
