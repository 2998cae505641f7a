//! The embedded store: state in memory, changes in a durable log, one directory, no server.

use std::path::Path;
use std::sync::Arc;

use crate::answer::Answer;
use crate::bookings::{Booking, Bookings};
use crate::change::Change;
use crate::commit::{Committer, QUEUE_WRITES_MAX};
use crate::customers::{Customer, Customers};
use crate::durability::Durability;
use crate::error::StoreError;
use crate::files::Witness;
use crate::index::Index;
use crate::log::{LOG_BYTES, StateLog};
use crate::metrics::{Recovered, StoreMetrics};
use crate::record::{CustomerRecord, check_bookings, check_id};
use crate::sessions::{SWEEP_SESSIONS_MAX, Session, Sessions};

/// Customers in one write of [`Customers::put_missing`].
const CUSTOMERS_PER_WRITE: usize = 1024;

/// Sessions, customers and bookings in this process, durable in one directory.
///
/// Dropping it commits what is queued, syncs, and unlocks the directory.
pub struct Embedded {
    durability: Durability,
    index: Arc<Index>,
    /// Absent with [`Durability::Memory`].
    committer: Option<Committer>,
    recovered: Recovered,
}

impl Embedded {
    /// Opens the store in `dir`, making it if need be, and reads back what is there.
    /// With [`Durability::Memory`] the directory is not touched and the store begins empty.
    pub fn open(dir: &Path, durability: Durability) -> Result<Arc<Self>, StoreError> {
        Self::open_witnessed(dir, durability, LOG_BYTES, None)
    }

    pub(crate) fn open_witnessed(
        dir: &Path,
        durability: Durability,
        log_bytes_min: u64,
        witness: Option<Arc<dyn Witness>>,
    ) -> Result<Arc<Self>, StoreError> {
        if durability == Durability::Memory {
            return Ok(Self::in_memory());
        }
        let index = Arc::new(Index::new());
        let (log, recovered) = StateLog::open(dir, durability, &index, log_bytes_min, witness)?;
        tracing::info!(
            dir = %dir.display(), %durability, sessions = recovered.sessions, customers = recovered.customers,
            bookings = recovered.bookings, took_ms = recovered.took.as_millis() as u64, "store opened"
        );
        let committer = Committer::start(Box::new(log), index.clone(), QUEUE_WRITES_MAX)
            .map_err(|error| StoreError::Open { dir: dir.into(), reason: error.to_string().into() })?;
        Ok(Arc::new(Embedded { durability, index, committer: Some(committer), recovered }))
    }

    /// A store that is lost with the process.
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Embedded {
            durability: Durability::Memory,
            index: Arc::new(Index::new()),
            committer: None,
            recovered: Recovered::default(),
        })
    }

    /// What an acknowledged write is worth here.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The store's counters, now.
    pub fn metrics(&self) -> StoreMetrics {
        let metrics = self.committer.as_ref().map(Committer::metrics).unwrap_or_default();
        StoreMetrics { recovered: self.recovered, ..metrics }
    }

    fn write<T: Send + 'static>(&self, change: Change, finish: fn(u64) -> T) -> Answer<'_, T> {
        match &self.committer {
            Some(committer) => committer.submit(change, finish),
            None => Answer::ready(Ok(finish(self.index.apply(change)))),
        }
    }
}

impl Sessions for Embedded {
    fn create(&self, session: Session) -> Answer<'_, ()> {
        match check_id("the session's customer id", &session.customer_id) {
            Ok(()) => self.write(Change::PutSession(session), |_| ()),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>> {
        let found = self.index.session(id);
        if found.as_ref().is_some_and(|session| session.expires_ms <= now_ms) {
            // Not worth waiting for: it stays absent, and the sweep removes what this leaves.
            match &self.committer {
                Some(committer) => committer.submit_if_room(Change::RemoveSession(id)),
                None => drop(self.index.apply(Change::RemoveSession(id))),
            }
            return Answer::ready(Ok(None));
        }
        Answer::ready(Ok(found))
    }

    fn remove(&self, id: u128) -> Answer<'_, bool> {
        // What is not in the index is durably absent: no need to write.
        if !self.index.has_session(id) {
            return Answer::ready(Ok(false));
        }
        self.write(Change::RemoveSession(id), |removed| removed > 0)
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.index.session_count()))
    }

    fn sweep(&self, now_ms: i64) -> Answer<'_, u64> {
        let expired = self.index.expired_sessions(now_ms, SWEEP_SESSIONS_MAX);
        if expired.is_empty() {
            return Answer::ready(Ok(0));
        }
        self.write(Change::RemoveSessions(expired), |removed| removed)
    }
}

impl Customers for Embedded {
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>> {
        Answer::ready(Ok(self.index.customer(id)))
    }

    fn put(&self, customer: Customer) -> Answer<'_, ()> {
        match CustomerRecord::new(&customer) {
            Ok(record) => self.write(Change::PutCustomers(vec![record]), |_| ()),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn put_missing<'a>(
        &'a self,
        mut customers: Box<dyn Iterator<Item = Customer> + Send + 'a>,
    ) -> Answer<'a, u64> {
        Answer::boxed(async move {
            let mut stored = 0;
            loop {
                let some: Vec<Customer> = customers.by_ref().take(CUSTOMERS_PER_WRITE).collect();
                if some.is_empty() {
                    return Ok(stored);
                }
                let missing = some.iter().filter(|customer| self.index.customer(&customer.id).is_none());
                let records = missing.map(CustomerRecord::new).collect::<Result<Vec<_>, _>>()?;
                if records.is_empty() {
                    continue;
                }
                stored += self.write(Change::PutCustomers(records), |count| count).await?;
            }
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.index.customer_count()))
    }
}

impl Bookings for Embedded {
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()> {
        if bookings.is_empty() {
            return Answer::ready(Ok(()));
        }
        match check_bookings(bookings) {
            Ok(()) => self.write(Change::AddBookings(bookings.to_vec()), |_| ()),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>> {
        Answer::ready(Ok(self.index.bookings_of(customer_id)))
    }

    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>> {
        Answer::ready(Ok(self.index.booking(customer_id, id)))
    }

    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool> {
        match self.index.holder_of_booking(customer_id, id) {
            Some(customer_id) => {
                self.write(Change::CancelBooking { customer_id, id }, |cancelled| cancelled > 0)
            }
            None => Answer::ready(Ok(false)),
        }
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.index.booking_count()))
    }
}
