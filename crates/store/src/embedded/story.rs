//! A story that tests write into a store, one step after the other: what is found must be the story so far.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::bookings::{Booking, Bookings};
use crate::customers::{Customer, Customers};
use crate::durability::Durability;
use crate::engine::disk::Watch;
use crate::error::StoreError;
use crate::sessions::{Session, Sessions};

use super::Embedded;

/// So small that there are many logs and snapshots in a story.
pub(super) const LOG_BYTES: u64 = 1500;

/// A directory where a sync costs little: whether it was asked for is what matters here.
pub(super) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(super) fn open(
    dir: &Path,
    durability: Durability,
    watch: Option<Arc<dyn Watch>>,
) -> Result<Arc<Embedded>, StoreError> {
    Embedded::open_watched(dir, durability, LOG_BYTES, watch)
}

pub(super) fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
}

const CUSTOMERS: [&str; 3] = ["ann", "bob", "ü"];

/// Everything that a store holds of the story.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct State {
    sessions: BTreeMap<u128, Session>,
    miles: BTreeMap<&'static str, i64>,
    bookings: BTreeMap<&'static str, Vec<Booking>>,
}

fn customer_of(step: u64) -> &'static str {
    CUSTOMERS[(step % 3) as usize]
}

fn session(step: u64) -> Session {
    Session { id: step.into(), customer_id: customer_of(step).into(), created_ms: 1, expires_ms: i64::MAX }
}

fn bookings(step: u64) -> [Booking; 2] {
    [2 * step, 2 * step + 1].map(|id| Booking {
        id: id.into(),
        customer_id: customer_of(step).into(),
        flight_id: u128::from(id) * 31,
        flight_segment_id: "AA280".into(),
        booked_ms: id as i64,
    })
}

/// Takes a step in the store; tells whether there was something to do.
pub(super) fn take(store: &Embedded, step: u64) -> Result<bool, StoreError> {
    match step % 5 {
        0 => wait(store.create(session(step))).map(|()| true),
        1 | 3 => wait(store.add(&bookings(step))).map(|()| true),
        2 => {
            let id = customer_of(step).to_owned();
            wait(store.put(Customer { id, miles_ytd: step as i64, ..Customer::default() })).map(|()| true)
        }
        _ if step.is_multiple_of(2) => wait(store.remove(u128::from(step - 4))),
        _ => {
            let gone = &bookings(step - 1)[0];
            wait(store.cancel(&gone.customer_id, gone.id))
        }
    }
}

impl State {
    /// What there is after so many steps.
    pub(super) fn after(steps: u64) -> Self {
        let mut state = State::default();
        for step in 0..steps {
            let customer = customer_of(step);
            match step % 5 {
                0 => drop(state.sessions.insert(step.into(), session(step))),
                1 | 3 => state.bookings.entry(customer).or_default().extend(bookings(step)),
                2 => drop(state.miles.insert(customer, step as i64)),
                _ if step.is_multiple_of(2) => drop(state.sessions.remove(&u128::from(step - 4))),
                _ => {
                    let list = state.bookings.entry(customer_of(step - 1)).or_default();
                    list.retain(|booking| booking.id != bookings(step - 1)[0].id);
                }
            }
        }
        state.bookings.retain(|_, list| !list.is_empty());
        state
    }

    /// What there is in a store that got at most so many steps.
    pub(super) fn of(store: &Embedded, steps: u64) -> Self {
        let mut state = State::default();
        for step in 0..steps {
            let found = wait(Sessions::find(store, step.into(), 0)).unwrap();
            state.sessions.extend(found.map(|session| (session.id, session)));
        }
        for id in CUSTOMERS {
            let found = wait(Customers::find(store, id)).unwrap();
            state.miles.extend(found.map(|customer| (id, customer.miles_ytd)));
            let found = wait(store.of_customer(id)).unwrap();
            if !found.is_empty() {
                state.bookings.insert(id, found);
            }
        }
        assert_eq!(state.sessions.len() as u64, wait(Sessions::count(store)).unwrap());
        state
    }
}

/// Looks whether a store holds the story up to a step between these two; tells which.
pub(super) fn steps_in(store: &Embedded, acknowledged: u64, sent: u64) -> u64 {
    let found = State::of(store, sent);
    let steps = (acknowledged..=sent).find(|steps| State::after(*steps) == found);
    steps.unwrap_or_else(|| panic!("{acknowledged} of {sent} steps were acknowledged; there is {found:?}"))
}

/// The names of the files in a directory, but for the lock.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.filter(|name| name != "lock").collect();
    names.sort();
    names
}

/// Whether it is a snapshot that is whole.
pub(super) fn is_snapshot(name: &str) -> bool {
    name.starts_with("snapshot-") && !name.ends_with(".new")
}

/// A copy of a directory as it is just now.
pub(super) fn copy(dir: &Path) -> tempfile::TempDir {
    let copy = scratch();
    for name in names_in(dir) {
        std::fs::copy(dir.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

/// The directory of a store that got so many steps and then was killed, with a snapshot and logs from before and
/// after a restart.
pub(super) fn killed(steps: u64) -> tempfile::TempDir {
    let dir = scratch();
    let store = open(dir.path(), Durability::Synced, None).unwrap();
    (0..steps - 4).for_each(|step| assert!(take(&store, step).unwrap()));
    while !names_in(dir.path()).iter().any(|name| is_snapshot(name)) {
        std::thread::yield_now();
    }
    drop(store);
    let store = Embedded::open_watched(dir.path(), Durability::Synced, u64::MAX, None).unwrap();
    (steps - 4..steps).for_each(|step| assert!(take(&store, step).unwrap()));
    let copy = copy(dir.path());
    let names = names_in(copy.path());
    assert!(names.len() > 3 && names.iter().any(|name| is_snapshot(name)), "{names:?}");
    copy
}
