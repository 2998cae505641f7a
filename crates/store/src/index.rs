//! The state in memory: every read is answered from here.
//!
//! Hash maps in shards, each behind its own lock, so that readers on different cores rarely meet; a read holds a
//! lock for well under a microsecond. Only the committer writes (or, with durability `memory`, the caller), and
//! only after the change is as durable as was promised: nobody reads what could still be lost.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::bookings::Booking;
use crate::change::{self, Change};
use crate::customers::Customer;
use crate::record::CustomerRecord;
use crate::sessions::Session;

/// Enough that two of a handful of cores seldom want the same one, and that a snapshot, which copies one at a time,
/// holds its lock for some 100 microseconds where there is a million customers.
pub(crate) const SHARDS: usize = 1024;

/// Sessions, customers and bookings in memory.
pub(crate) struct Index {
    sessions: Shards<HashMap<u128, Session>>,
    /// Sessions by the moment at which they expire, so that a sweep touches only those that have.
    expiries: Mutex<BTreeSet<(i64, u128)>>,
    customers: Shards<HashSet<CustomerRecord>>,
    bookings: Shards<HashMap<Arc<str>, Vec<Booked>>>,
    session_count: AtomicU64,
    customer_count: AtomicU64,
    booking_count: AtomicU64,
}

/// A booking without what its place in the index says already.
struct Booked {
    id: u128,
    flight_id: u128,
    flight_segment_id: Arc<str>,
    booked_ms: i64,
}

struct Shards<M> {
    shards: Box<[RwLock<M>]>,
    hasher: RandomState,
}

impl<M: Default> Shards<M> {
    fn new() -> Self {
        Shards { shards: (0..SHARDS).map(|_| RwLock::default()).collect(), hasher: RandomState::new() }
    }
}

impl<M> Shards<M> {
    fn of(&self, key: &[u8]) -> &RwLock<M> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }
}

impl Index {
    pub(crate) fn new() -> Self {
        Index {
            sessions: Shards::new(),
            expiries: Mutex::default(),
            customers: Shards::new(),
            bookings: Shards::new(),
            session_count: AtomicU64::new(0),
            customer_count: AtomicU64::new(0),
            booking_count: AtomicU64::new(0),
        }
    }

    /// Carries a change out. Tells how many things it put or removed.
    pub(crate) fn apply(&self, change: Change) -> u64 {
        match change {
            Change::PutSession(session) => {
                self.put_session(session);
                1
            }
            Change::RemoveSession(id) => self.remove_session(id).into(),
            Change::RemoveSessions(ids) => ids.into_iter().map(|id| u64::from(self.remove_session(id))).sum(),
            Change::PutCustomers(records) => {
                let count = records.len() as u64;
                records.into_iter().for_each(|record| self.put_customer(record));
                count
            }
            Change::AddBookings(bookings) => {
                let count = bookings.len() as u64;
                bookings.into_iter().for_each(|booking| self.add_booking(booking));
                count
            }
            Change::CancelBooking { customer_id, id } => self.cancel_booking(&customer_id, id).into(),
        }
    }

    fn put_session(&self, session: Session) {
        let (id, expires_ms) = (session.id, session.expires_ms);
        let old = self.sessions.of(&id.to_le_bytes()).write().insert(id, session);
        let mut expiries = self.expiries.lock();
        match old {
            Some(old) => {
                expiries.remove(&(old.expires_ms, id));
            }
            None => {
                self.session_count.fetch_add(1, Ordering::Relaxed);
            }
        }
        expiries.insert((expires_ms, id));
    }

    fn remove_session(&self, id: u128) -> bool {
        let old = self.sessions.of(&id.to_le_bytes()).write().remove(&id);
        if let Some(old) = &old {
            self.expiries.lock().remove(&(old.expires_ms, id));
            self.session_count.fetch_sub(1, Ordering::Relaxed);
        }
        old.is_some()
    }

    /// A session, expired or not.
    pub(crate) fn session(&self, id: u128) -> Option<Session> {
        self.sessions.of(&id.to_le_bytes()).read().get(&id).cloned()
    }

    pub(crate) fn has_session(&self, id: u128) -> bool {
        self.sessions.of(&id.to_le_bytes()).read().contains_key(&id)
    }

    /// The sessions that have expired at `now_ms`, oldest first, at most `limit`.
    pub(crate) fn expired_sessions(&self, now_ms: i64, limit: usize) -> Vec<u128> {
        self.expiries.lock().range(..=(now_ms, u128::MAX)).take(limit).map(|(_, id)| *id).collect()
    }

    fn put_customer(&self, record: CustomerRecord) {
        if self.customers.of(record.id_bytes()).write().replace(record).is_none() {
            self.customer_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn customer(&self, id: &str) -> Option<Customer> {
        self.customers.of(id.as_bytes()).read().get(id.as_bytes()).map(CustomerRecord::to_customer)
    }

    fn add_booking(&self, booking: Booking) {
        let Booking { id, customer_id, flight_id, flight_segment_id, booked_ms } = booking;
        let mut shard = self.bookings.of(customer_id.as_bytes()).write();
        let list = shard.entry(customer_id).or_default();
        let before = list.len();
        list.retain(|booked| booked.id != id);
        if list.len() == before {
            self.booking_count.fetch_add(1, Ordering::Relaxed);
        }
        list.push(Booked { id, flight_id, flight_segment_id, booked_ms });
    }

    fn cancel_booking(&self, customer_id: &str, id: u128) -> bool {
        let mut shard = self.bookings.of(customer_id.as_bytes()).write();
        let Some(list) = shard.get_mut(customer_id) else { return false };
        let Some(place) = list.iter().position(|booked| booked.id == id) else { return false };
        list.remove(place);
        if list.is_empty() {
            shard.remove(customer_id);
        }
        self.booking_count.fetch_sub(1, Ordering::Relaxed);
        true
    }

    pub(crate) fn bookings_of(&self, customer_id: &str) -> Vec<Booking> {
        let shard = self.bookings.of(customer_id.as_bytes()).read();
        let Some((customer_id, list)) = shard.get_key_value(customer_id) else { return Vec::new() };
        list.iter().map(|booked| booked.to_booking(customer_id)).collect()
    }

    pub(crate) fn booking(&self, customer_id: &str, id: u128) -> Option<Booking> {
        let shard = self.bookings.of(customer_id.as_bytes()).read();
        let (customer_id, list) = shard.get_key_value(customer_id)?;
        list.iter().find(|booked| booked.id == id).map(|booked| booked.to_booking(customer_id))
    }

    /// The customer's id as the index holds it, if this customer has this booking.
    pub(crate) fn holder_of_booking(&self, customer_id: &str, id: u128) -> Option<Arc<str>> {
        let shard = self.bookings.of(customer_id.as_bytes()).read();
        let (customer_id, list) = shard.get_key_value(customer_id)?;
        list.iter().any(|booked| booked.id == id).then(|| customer_id.clone())
    }

    /// Writes down what is in a shard, as changes that make it again.
    pub(crate) fn write_shard(&self, shard: usize, out: &mut Vec<u8>) {
        for session in self.sessions.shards[shard].read().values() {
            change::write_session(session, out);
        }
        for record in &*self.customers.shards[shard].read() {
            change::write_customer(record, out);
        }
        for (customer_id, list) in &*self.bookings.shards[shard].read() {
            for Booked { id, flight_id, flight_segment_id, booked_ms } in list {
                change::write_booking(*id, customer_id, *flight_id, flight_segment_id, *booked_ms, out);
            }
        }
    }

    pub(crate) fn session_count(&self) -> u64 {
        self.session_count.load(Ordering::Relaxed)
    }

    pub(crate) fn customer_count(&self) -> u64 {
        self.customer_count.load(Ordering::Relaxed)
    }

    pub(crate) fn booking_count(&self) -> u64 {
        self.booking_count.load(Ordering::Relaxed)
    }
}

impl Booked {
    fn to_booking(&self, customer_id: &Arc<str>) -> Booking {
        Booking {
            id: self.id,
            customer_id: customer_id.clone(),
            flight_id: self.flight_id,
            flight_segment_id: self.flight_segment_id.clone(),
            booked_ms: self.booked_ms,
        }
    }
}
