//! Sessions and bookings: log in, look the session up, book, list, cancel every second booking, log out.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidemark_store::bookings::{Booking, Bookings};
use tidemark_store::sessions::{Session, Sessions};
use tidemark_store::{Durability, Embedded};

use crate::engine::{Committer, Engine, Table, Wrong, open};
use crate::measure::{self, Size};

/// Customers that book, in turns.
const CUSTOMERS: u64 = 10_000;
/// How often a session is looked up while it lasts, as the published traffic has it: at each request.
const LOOKS: usize = 5;

fn customer(number: u64) -> String {
    format!("uid{}@email.com", number % CUSTOMERS)
}

/// A random number that a number gives.
fn id(number: u64, of: u64) -> u128 {
    fastrand::Rng::with_seed(number * 8 + of).u128(..)
}

#[derive(Clone)]
enum Store {
    Ours(Arc<Embedded>),
    Theirs { engine: Arc<dyn Engine>, committer: Committer, added: Arc<AtomicU64> },
}

/// A booking's key: whose, in the order of adding. By its id it is found among those of the customer.
fn prefix(customer: &str) -> Vec<u8> {
    [customer.as_bytes(), &[0]].concat()
}

impl Store {
    fn open(name: &str, dir: &Path, synced: bool) -> Result<Self, Wrong> {
        if name == "ours" {
            let durability = if synced { Durability::Synced } else { Durability::Buffered };
            return Ok(Store::Ours(Embedded::open(dir, durability)?));
        }
        let engine = open(name, dir, synced)?;
        let committer = Committer::start(engine.clone());
        Ok(Store::Theirs { engine, committer, added: Arc::default() })
    }

    /// Groups so far, and microseconds that making them durable took.
    fn groups(&self) -> (u64, u64) {
        match self {
            Store::Ours(store) => {
                let now = store.metrics();
                (now.commits, now.sync_sum_us)
            }
            Store::Theirs { committer, .. } => committer.groups(),
        }
    }

    async fn log_in(&self, id: u128, customer: &str) -> Result<(), Wrong> {
        match self {
            Store::Ours(store) => {
                let session =
                    Session { id, customer_id: customer.into(), created_ms: 0, expires_ms: i64::MAX };
                Ok(store.create(session).await?)
            }
            Store::Theirs { committer, .. } => {
                let value = [&[0; 16][..], customer.as_bytes()].concat();
                committer.write(Table::Second, id.to_be_bytes().to_vec(), Some(value)).await
            }
        }
    }

    async fn is_logged_in(&self, id: u128) -> Result<bool, Wrong> {
        match self {
            Store::Ours(store) => Ok(Sessions::find(&**store, id, 0).await?.is_some()),
            Store::Theirs { engine, .. } => Ok(engine.get(Table::Second, &id.to_be_bytes())?.is_some()),
        }
    }

    async fn log_out(&self, id: u128) -> Result<bool, Wrong> {
        match self {
            Store::Ours(store) => Ok(store.remove(id).await?),
            Store::Theirs { engine, committer, .. } => {
                let key = id.to_be_bytes();
                let was_there = engine.get(Table::Second, &key)?.is_some();
                committer.write(Table::Second, key.to_vec(), None).await?;
                Ok(was_there)
            }
        }
    }

    async fn book(&self, id: u128, customer: &str) -> Result<(), Wrong> {
        match self {
            Store::Ours(store) => {
                let (customer_id, flight_segment_id) = (customer.into(), "AA280".into());
                let booking = Booking { id, customer_id, flight_id: id, flight_segment_id, booked_ms: 0 };
                Ok(store.add(&[booking]).await?)
            }
            Store::Theirs { committer, added, .. } => {
                let added = added.fetch_add(1, Ordering::Relaxed);
                let key = [&prefix(customer)[..], &added.to_be_bytes()].concat();
                let value = [&id.to_be_bytes()[..], &id.to_be_bytes(), &[0; 8], b"AA280"].concat();
                committer.write(Table::First, key, Some(value)).await
            }
        }
    }

    /// The ids of a customer's bookings.
    async fn bookings(&self, customer: &str) -> Result<Vec<u128>, Wrong> {
        let mut ids = Vec::new();
        match self {
            Store::Ours(store) => {
                ids.extend(store.of_customer(customer).await?.iter().map(|booking| booking.id));
            }
            Store::Theirs { engine, .. } => {
                engine.scan(Table::First, &prefix(customer), &mut |_, value| {
                    ids.push(value[..16].try_into().map(u128::from_be_bytes).unwrap_or_default());
                })?;
            }
        }
        Ok(ids)
    }

    async fn cancel(&self, customer: &str, id: u128) -> Result<bool, Wrong> {
        match self {
            Store::Ours(store) => Ok(store.cancel(customer, id).await?),
            Store::Theirs { engine, committer, .. } => {
                let mut found = None;
                engine.scan(Table::First, &prefix(customer), &mut |key, value| {
                    if value[..16] == id.to_be_bytes() {
                        found = Some(key.to_vec());
                    }
                })?;
                let Some(key) = found else { return Ok(false) };
                committer.write(Table::First, key, None).await?;
                Ok(true)
            }
        }
    }

    async fn counts(&self) -> Result<(u64, u64), Wrong> {
        match self {
            Store::Ours(store) => Ok((Bookings::count(&**store).await?, Sessions::count(&**store).await?)),
            Store::Theirs { engine, .. } => Ok((engine.count(Table::First)?, engine.count(Table::Second)?)),
        }
    }

    /// What one customer does; tells how many writes that were.
    async fn visit(&self, number: u64) -> Result<u64, Wrong> {
        let customer = customer(number);
        let (session, booking) = (id(number, 0), id(number, 1));
        self.log_in(session, &customer).await?;
        for _ in 0..LOOKS {
            if !self.is_logged_in(session).await? {
                return Err("a session is not there".into());
            }
        }
        self.book(booking, &customer).await?;
        if !self.bookings(&customer).await?.contains(&booking) {
            return Err("a booking is not there".into());
        }
        let mut writes = 2;
        if number % 2 == 1 {
            writes += 2;
            let done = self.cancel(&customer, booking).await? && self.log_out(session).await?;
            if !done {
                return Err("nothing was there to remove".into());
            }
        }
        Ok(writes)
    }
}

/// Writes on average in a visit.
const WRITES_PER_VISIT: u64 = 3;

/// All visits, and how that went.
pub fn write(name: &str, dir: &Path, synced: bool, size: Size) -> Result<(), Wrong> {
    let store = Store::open(name, dir, synced)?;
    let (counted, size) = (store.clone(), Size { writes: size.writes / WRITES_PER_VISIT, ..size });
    measure::writes(
        size,
        move || counted.groups(),
        move |number| {
            let store = store.clone();
            async move { store.visit(number).await }
        },
    )
}

/// Opens what was left, counts it and looks for all of it.
pub fn read(name: &str, dir: &Path, synced: bool, size: Size) -> Result<(), Wrong> {
    let store = measure::opening(|| Store::open(name, dir, synced))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let visits = size.writes / WRITES_PER_VISIT;
    let counts = measure::timed("count_s", || runtime.block_on(store.counts()))?;
    let kept = visits.div_ceil(2);
    let right = measure::timed("read_s", || {
        runtime.block_on(async {
            let mut right = 0;
            for number in (0..visits).step_by(2) {
                let is_there = store.bookings(&customer(number)).await?.contains(&id(number, 1));
                right += u64::from(is_there && store.is_logged_in(id(number, 0)).await?);
            }
            Ok::<_, Wrong>(right)
        })
    })?;
    match (counts, right) == ((kept, kept), kept) {
        true => Ok(()),
        false => {
            Err(format!("of {kept} bookings and sessions {counts:?} are there and {right} right").into())
        }
    }
}
