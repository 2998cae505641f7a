//! The embedded store of an airline: tables in memory of the embedded engine.

mod bookings;
mod customers;
mod sessions;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use self::bookings::BookingTable;
use self::customers::CustomerRecord;
use crate::answer::Answer;
use crate::bookings::{Booking, Bookings};
use crate::checks::{check_bookings, check_id};
use crate::customers::{Customer, Customers};
use crate::durability::Durability;
use crate::engine::rows::Rows;
use crate::engine::table::Tables;
use crate::engine::{Engine, LOG_BYTES, Options};
use crate::error::StoreError;
use crate::metrics::StoreMetrics;
use crate::sessions::{SWEEP_SESSIONS_MAX, Session, Sessions};

/// Customers in one write of [`Customers::put_missing`], and their bytes, about.
const CUSTOMERS_PER_WRITE: usize = 1024;
const CUSTOMER_BYTES_PER_WRITE: usize = 1024 * 1024;
/// Customers that are being replaced at a time; two of them rarely meet.
const REPLACING: usize = 256;
/// At most this many writes are taken and not answered; more wait for room.
const WAITING_MAX: usize = 16_384;

/// How much was there when the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Sessions read back, expired ones included.
    pub sessions: u64,
    /// Customers read back.
    pub customers: u64,
    /// Bookings read back.
    pub bookings: u64,
    /// Something was damaged or is missing, so that acknowledged writes may be lost; the log says what. Only with
    /// `buffered`, which a power cut may do this to: with `synced` such a store is not opened.
    pub is_damaged: bool,
    /// Changes that were acknowledged and could not be read back, at least.
    pub missing: u64,
    /// How long opening and reading took.
    pub took: Duration,
}

/// Sessions, customers and bookings in this process, durable in one directory.
///
/// Dropping it commits what is queued, syncs, and unlocks the directory.
pub struct Embedded {
    durability: Durability,
    tables: Tables,
    sessions: Arc<Rows<Session>>,
    customers: Arc<Rows<CustomerRecord>>,
    bookings: Arc<BookingTable>,
    /// Nobody else replaces a customer between comparing and storing.
    replacing: Box<[tokio::sync::Mutex<()>]>,
    /// Absent with [`Durability::Memory`].
    engine: Option<Engine>,
    recovered: Recovered,
}

impl Embedded {
    /// Opens the store in `dir`, making it if need be, and reads back what is there.
    /// With [`Durability::Memory`] the directory is not touched and the store begins empty.
    pub fn open(dir: &Path, durability: Durability) -> Result<Arc<Self>, StoreError> {
        let mut store = Self::empty(durability);
        if durability != Durability::Memory {
            let options = Options {
                durability,
                waiting_max: WAITING_MAX,
                is_refusing: false,
                table_bytes: usize::MAX,
                log_bytes_min: LOG_BYTES,
            };
            let engine = Engine::open(dir, options, store.tables.clone(), None)?;
            store.recovered = Recovered {
                sessions: store.sessions.count(),
                customers: store.customers.count(),
                bookings: store.bookings.count(),
                is_damaged: engine.opened.is_damaged,
                missing: engine.opened.missing,
                took: engine.opened.took,
            };
            store.engine = Some(engine);
        }
        Ok(Arc::new(store))
    }

    /// A store that is lost with the process.
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Self::empty(Durability::Memory))
    }

    fn empty(durability: Durability) -> Self {
        let (sessions, customers, bookings) = (Arc::default(), Arc::default(), Arc::default());
        let tables = Tables::default().memory(&sessions).memory(&customers).memory(&bookings);
        let recovered = Recovered::default();
        let replacing = (0..REPLACING).map(|_| tokio::sync::Mutex::default()).collect();
        Embedded { durability, tables, sessions, customers, bookings, replacing, engine: None, recovered }
    }

    /// What an acknowledged write is worth here.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The store's counters, now.
    pub fn metrics(&self) -> StoreMetrics {
        self.engine.as_ref().map(Engine::metrics).unwrap_or_default()
    }

    /// What was there at the start.
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// How many sessions (expired ones included), customers and bookings there are now.
    pub fn counts(&self) -> [u64; 3] {
        [self.sessions.count(), self.customers.count(), self.bookings.count()]
    }

    /// Takes a write: `write` writes its entries down and tells how many there are. All of them are kept or none.
    fn write<'a, T: Send + 'static>(
        &'a self,
        write: impl Fn(&mut Vec<u8>) -> u32 + Send + 'a,
        finish: fn(u64) -> T,
    ) -> Answer<'a, T> {
        match &self.engine {
            Some(engine) => engine.submit(write, finish),
            None => Answer::ready(Ok(finish(self.apply(write)))),
        }
    }

    /// Carries a write out that nothing keeps; tells how many rows it put or removed.
    fn apply(&self, write: impl Fn(&mut Vec<u8>) -> u32) -> u64 {
        let (mut entries, mut outcomes) = (Vec::new(), Vec::new());
        write(&mut entries);
        self.tables.apply(&entries, &mut outcomes).expect("entries that were just written are read");
        outcomes.iter().sum()
    }
}

/// Writes entries down; tells how many there were.
fn each<T>(of: &[T], out: &mut Vec<u8>, mut write: impl FnMut(&T, &mut Vec<u8>)) -> u32 {
    of.iter().for_each(|one| write(one, out));
    of.len() as u32
}

fn remove_sessions(ids: &[u128], out: &mut Vec<u8>) -> u32 {
    each(ids, out, Rows::<Session>::remove)
}

impl Sessions for Embedded {
    fn create(&self, session: Session) -> Answer<'_, ()> {
        match check_id("the session's customer id", &session.customer_id) {
            Ok(()) => self.write(move |out| each(&[&session], out, |one, out| Rows::put(*one, out)), |_| ()),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>> {
        let found = self.sessions.get(&id, Session::clone);
        if found.as_ref().is_some_and(|session| session.expires_ms <= now_ms) {
            // Not worth waiting for: it stays absent, and the sweep removes what this leaves.
            let remove = |out: &mut Vec<u8>| remove_sessions(&[id], out);
            match &self.engine {
                Some(engine) => engine.submit_if_room(remove),
                None => drop(self.apply(remove)),
            }
            return Answer::ready(Ok(None));
        }
        Answer::ready(Ok(found))
    }

    fn remove(&self, id: u128) -> Answer<'_, bool> {
        // What is not in the table is durably absent: no need to write.
        if self.sessions.get(&id, |_| ()).is_none() {
            return Answer::ready(Ok(false));
        }
        self.write(move |out| remove_sessions(&[id], out), |removed| removed > 0)
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.sessions.count()))
    }

    fn sweep(&self, now_ms: i64) -> Answer<'_, u64> {
        let expired = self.sessions.index.until(now_ms, SWEEP_SESSIONS_MAX);
        if expired.is_empty() {
            return Answer::ready(Ok(0));
        }
        self.write(move |out| remove_sessions(&expired, out), |removed| removed)
    }
}

impl Customers for Embedded {
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>> {
        Answer::ready(Ok(self.customers.get(id.as_bytes(), CustomerRecord::to_customer)))
    }

    fn put(&self, customer: Customer) -> Answer<'_, ()> {
        match CustomerRecord::new(&customer) {
            Ok(record) => {
                self.write(move |out| each(&[&record], out, |one, out| Rows::put(*one, out)), |_| ())
            }
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn replace<'a>(&'a self, before: &'a Customer, after: Customer) -> Answer<'a, bool> {
        Answer::boxed(async move {
            let place = xxh3_64(after.id.as_bytes()) as usize % REPLACING;
            let _only_one = self.replacing[place].lock().await;
            if Customers::find(self, &after.id).await?.as_ref() != Some(before) {
                return Ok(false);
            }
            self.put(after).await.map(|()| true)
        })
    }

    fn put_missing<'a>(
        &'a self,
        mut customers: Box<dyn Iterator<Item = Customer> + Send + 'a>,
    ) -> Answer<'a, u64> {
        Answer::boxed(async move {
            let mut stored = 0;
            let mut records = Vec::new();
            let mut bytes = 0;
            loop {
                let next = customers.next();
                let is_last = next.is_none();
                if let Some(customer) = next
                    && self.customers.get(customer.id.as_bytes(), |_| ()).is_none()
                {
                    let record = CustomerRecord::new(&customer)?;
                    bytes += record.bytes().len();
                    records.push(record);
                }
                let is_full = records.len() >= CUSTOMERS_PER_WRITE || bytes >= CUSTOMER_BYTES_PER_WRITE;
                if !records.is_empty() && (is_last || is_full) {
                    let some = std::mem::take(&mut records);
                    bytes = 0;
                    stored += self.write(move |out| each(&some, out, Rows::put), |count| count).await?;
                }
                if is_last {
                    return Ok(stored);
                }
            }
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.customers.count()))
    }
}

impl Bookings for Embedded {
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()> {
        if bookings.is_empty() {
            return Answer::ready(Ok(()));
        }
        match check_bookings(bookings) {
            Ok(()) => {
                let mut entries = Vec::new();
                let count = each(bookings, &mut entries, bookings::add);
                let copy = move |out: &mut Vec<u8>| {
                    out.extend_from_slice(&entries);
                    count
                };
                self.write(copy, |_| ())
            }
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>> {
        Answer::ready(Ok(self.bookings.of(customer_id)))
    }

    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>> {
        Answer::ready(Ok(self.bookings.find(customer_id, id)))
    }

    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool> {
        let Some(booking) = self.bookings.find(customer_id, id) else { return Answer::ready(Ok(false)) };
        let cancel = move |out: &mut Vec<u8>| {
            bookings::cancel(&booking.customer_id, id, out);
            1
        };
        self.write(cancel, |cancelled| cancelled > 0)
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.bookings.count()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::table::{Entries, PARTS};

    /// An entry of any kind.
    fn entry() -> impl Strategy<Value = Vec<u8>> {
        let texts = (".{1,20}", ".{0,8}");
        (0..5u8, any::<(u128, u128, i64, i64)>(), texts).prop_map(|(kind, numbers, (customer, segment))| {
            let (id, flight_id, created_ms, expires_ms) = numbers;
            let customer_id: Arc<str> = customer.as_str().into();
            let mut out = Vec::new();
            match kind {
                0 => Rows::put(&Session { id, customer_id, created_ms, expires_ms }, &mut out),
                1 => Rows::<Session>::remove(&id, &mut out),
                2 => {
                    let customer = Customer { id: customer, total_miles: created_ms, ..Customer::default() };
                    Rows::put(&CustomerRecord::new(&customer).unwrap(), &mut out);
                }
                3 => {
                    let (flight_segment_id, booked_ms) = (segment.as_str().into(), created_ms);
                    let booking = Booking { id, customer_id, flight_id, flight_segment_id, booked_ms };
                    bookings::add(&booking, &mut out);
                }
                _ => bookings::cancel(&customer_id, id, &mut out),
            }
            out
        })
    }

    /// All that is in the tables, as a snapshot has it, but for the order.
    fn written_down(store: &Embedded) -> Vec<u8> {
        let mut rows = Entries::default();
        for table in &store.tables.memory {
            for part in 0..PARTS {
                table.write_part(part, &mut rows);
            }
        }
        rows.bytes
    }

    fn sorted(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.sort_unstable();
        bytes
    }

    /// All bookings of a customer lie in one part of a snapshot, which is then larger than a group may be.
    #[test]
    fn a_customer_with_many_bookings_is_there_after_a_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        let text = |letter: &str| -> Arc<str> { letter.repeat(1024).into() };
        let (customer_id, flight_segment_id) = (text("c"), text("s"));
        let booking = |id| Booking {
            id,
            customer_id: customer_id.clone(),
            flight_id: 1,
            flight_segment_id: flight_segment_id.clone(),
            booked_ms: 1,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let snapshot = || {
            let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap());
            let name = |file: &std::fs::DirEntry| file.file_name().into_string().unwrap();
            let mut snapshots =
                files.filter(|file| name(file).starts_with("snapshot-") && !name(file).ends_with(".new"));
            snapshots.any(|file| file.metadata().is_ok_and(|file| file.len() > 25 << 20))
        };
        let store = Embedded::open(dir.path(), Durability::Buffered).unwrap();
        for write in 0..14 {
            let some: Vec<_> = (write * 1000..(write + 1) * 1000).map(booking).collect();
            runtime.block_on(store.add(&some)).unwrap();
        }
        // a log that is long enough brings a snapshot
        let begun = std::time::Instant::now();
        while !snapshot() {
            assert!(begun.elapsed().as_secs() < 60, "no snapshot has all");
            let again: Vec<_> = (0..1000).map(booking).collect();
            runtime.block_on(store.add(&again)).unwrap();
        }
        drop(store);
        let store = Embedded::open(dir.path(), Durability::Synced).unwrap();
        assert_eq!(store.recovered().bookings, 14_000);
    }

    proptest! {
        #[test]
        fn what_is_written_down_makes_the_same_again(entries in prop::collection::vec(entry(), 0..12)) {
            let (store, again) = (Embedded::in_memory(), Embedded::in_memory());
            let mut outcomes = Vec::new();
            store.tables.apply(&entries.concat(), &mut outcomes).unwrap();
            prop_assert_eq!(outcomes.len(), entries.len());
            let rows = written_down(&store);
            again.tables.apply(&rows, &mut outcomes).unwrap();
            prop_assert_eq!(sorted(written_down(&again)), sorted(rows));
            let counts = |of: &Embedded| (of.sessions.count(), of.customers.count(), of.bookings.count());
            prop_assert_eq!(counts(&again), counts(&store));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), table in 0..5u8, kind in 0..3u8) {
            let store = Embedded::in_memory();
            let _ = store.tables.apply(&bytes, &mut Vec::new());
            let _ = store.tables.apply(&[&[table, kind], bytes.as_slice()].concat(), &mut Vec::new());
        }
    }
}
