//! Customers and bookings of an airline in Apache Cassandra.
//!
//! ```no_run
//! use std::time::Duration;
//! use tidemark_store::Durability;
//! use tidemark_store::bookings::Bookings;
//! use tidemark_store::cassandra::{CassandraAirline, Options};
//!
//! # async fn example(bookings: &[tidemark_store::bookings::Booking]) -> Result<(), tidemark_store::StoreError> {
//! let options = Options { keyspace: "airline".into(), ..Options::default() };
//! let store = CassandraAirline::open(options, Durability::Synced, Duration::from_secs(30))?;
//! store.add(bookings).await?; // one logged batch: all or none
//! # Ok(()) }
//! ```
//!
//! **Bookings** of a customer are one partition. Those that are added together are one logged batch. Each has a time of writing
//! of its own, later than all that this process gave before: of two with one key the later one stays, and a list is in that order. One
//! is cancelled as of a time that is not before that of its own writing, whatever this process's clock says. Of several that
//! cancel one booking at the same time more than one may be told that it was there.
//!
//! **Customers** are changed by lightweight transactions only: a profile is replaced where every column is as it was read. Such
//! a statement is sent once, since of one that is sent again nobody would know which of the two was applied. Those of one
//! process that change one customer take turns, since Cassandra lets transactions that compete wait and fail at last.
//!
//! Back-pressure, retries and what happens when nodes go are the same as for [messages](super), for reads as well.

mod link;
mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use super::kept::{Common, KeptLink};
use super::options::Options;
use super::read::{PAGE_ATTEMPTS, PAGE_PAUSE};
use super::sending::Sending;
use super::session::durability;
use crate::answer::Answer;
use crate::bookings::{Booking, Bookings};
use crate::checks::{check_bookings, check_customer};
use crate::customers::{Customer, Customers};
use crate::durability::Durability;
use crate::error::StoreError;
use crate::metrics::OwnMetric;
use crate::threads::{Threads, once_there};
use link::AirlineLink;
use rows::{BookingRow, CustomerRow, booking, customer, fields, id_of};

/// Customers take turns by so many locks.
const LOCKS: usize = 64;
/// Customers that are loaded at once.
const AT_ONCE: usize = 8;

/// Customers and bookings in Cassandra.
pub struct CassandraAirline {
    link: Arc<KeptLink<AirlineLink>>,
    durability: Durability,
    waiting_max: usize,
    /// One for each request that may be taken and not answered.
    room: Semaphore,
    sending: Sending,
    /// The last time of writing that was given, microseconds since 1970.
    last_us: AtomicI64,
    /// Whoever replaces a customer has that of its id.
    changing: [Mutex<()>; LOCKS],
    timeout: Duration,
    /// One count at a time: it makes the nodes read every row.
    counting: Mutex<()>,
    answered: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    /// Reads and writes the connections.
    _threads: Threads,
}

impl CassandraAirline {
    /// Connects, waiting up to `start_timeout` for a node that is not there yet, and makes keyspace and tables where they are
    /// not there. Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, nodes that cannot be reached in time, a keyspace with another replication, nodes that keep
    /// less than is wanted.
    pub fn open(
        options: Options,
        wanted: Durability,
        start_timeout: Duration,
    ) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let threads = Threads::new(options.threads, "cassandra")?;
        let common = Common::new(options);
        let options = &common.options;
        let opening = async || AirlineLink::open(options, common.attempts.clone()).await;
        let link = threads.block_on(once_there("Cassandra", start_timeout, opening))?;
        let given = threads.block_on(durability(&link.session, &options.keyspace))?;
        if given < wanted {
            let place = options.contact.join(", ").into();
            let remedy = match given {
                Durability::Memory => "alter the keyspace to durable_writes = true, or name another one",
                _ => {
                    "let Cassandra's commit log be synced before it answers (commitlog_sync: batch or group)"
                }
            };
            return Err(StoreError::LessDurable { place, given, wanted, remedy });
        }
        let (waiting_max, timeout) = (options.waiting_max, options.timeout);
        let sending = Sending::new(common.clone());
        let link = KeptLink::new(link, common);
        threads.spawn(KeptLink::keep(Arc::downgrade(&link), true));
        Ok(Arc::new(CassandraAirline {
            link,
            durability: given,
            waiting_max,
            room: Semaphore::new(waiting_max),
            sending,
            last_us: AtomicI64::new(0),
            changing: std::array::from_fn(|_| Mutex::new(())),
            timeout,
            counting: Mutex::new(()),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            _threads: threads,
        }))
    }

    /// What an acknowledged write is worth on the weakest node, as it was when the store was opened.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// What is counted about connections and requests.
    pub fn metrics(&self) -> Vec<OwnMetric> {
        let counter = OwnMetric::counter;
        let gauge = |name, help, value: usize| OwnMetric::gauge(name, help, value as u64);
        let waiting = self.waiting_max - self.room.available_permits();
        let own = [
            gauge("waiting", "Requests taken and not answered", waiting),
            gauge("waiting_max", "The bound of these", self.waiting_max),
            counter("answered", "Requests that were answered", &self.answered),
            counter("failed", "Requests without an answer, or with an error for one", &self.failed),
            counter("refused", "Requests refused because too many waited", &self.refused),
        ];
        let common = self.sending.metrics(&self.link.now().session).into_iter();
        let named = |own: OwnMetric| OwnMetric {
            name: own.name.strip_prefix("cassandra_").unwrap_or(own.name),
            ..own
        };
        own.into_iter().chain(common.map(named)).collect()
    }

    fn room(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.room.try_acquire().map_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            StoreError::Busy { what: "as many requests wait as may" }
        })
    }

    /// Takes a request, if there is room.
    fn take<'a, T: Send + 'a>(
        &'a self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> Answer<'a, T> {
        let room = match self.room() {
            Ok(room) => room,
            Err(error) => return Answer::ready(Err(error)),
        };
        Answer::boxed(async move {
            let _room = room;
            let outcome = work.await;
            let counter = if outcome.is_ok() { &self.answered } else { &self.failed };
            counter.fetch_add(1, Ordering::Relaxed);
            outcome
        })
    }

    /// Sends a statement when it is its turn.
    async fn send(
        &self,
        statement: fn(&AirlineLink) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult, StoreError> {
        let _turn = self.sending.turn().await?;
        let link = self.link.now();
        let sent = link.session.execute_unpaged(statement(&link), values).await;
        sent.map_err(|error| self.sending.failed(&error))
    }

    /// Whether a lightweight transaction was applied.
    async fn is_applied(
        &self,
        statement: fn(&AirlineLink) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<bool, StoreError> {
        let answer = self.send(statement, values).await?.into_rows_result().map_err(StoreError::no_answer)?;
        let row = answer.first_row::<scylla::value::Row>().map_err(StoreError::no_answer)?;
        match row.columns.first() {
            Some(Some(scylla::value::CqlValue::Boolean(applied))) => Ok(*applied),
            _ => Err(StoreError::no_answer("Cassandra does not say whether it was applied")),
        }
    }

    /// The first of so many times of writing, each later than all before.
    fn times_us(&self, count: usize) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let count = count as i64;
        let next = |last: i64| now.max(last + 1);
        let set = |last| Some(next(last) + count - 1);
        // never none: `set` always gives a time
        let last = self.last_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set).unwrap_or_default();
        next(last)
    }

    /// Stores a customer who is not there; tells whether it did. Tried more than once if it must be: a node that has just started, or has much to do, does not answer each in time.
    async fn put_missing_one(&self, customer: Customer) -> Result<bool, StoreError> {
        check_customer(&customer)?;
        let mut attempt = 1;
        loop {
            match self.insert(&customer).await {
                Err(StoreError::NoAnswer { .. }) if attempt < PAGE_ATTEMPTS => {
                    tokio::time::sleep(PAGE_PAUSE).await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Stores a customer who is not there; tells whether it did.
    async fn insert(&self, customer: &Customer) -> Result<bool, StoreError> {
        if self.customer_of(&customer.id).await?.is_some() {
            return Ok(false);
        }
        let values: Vec<_> = [id_of(customer)].into_iter().chain(fields(customer)).collect();
        self.is_applied(|link| &link.customer_insert, values).await
    }

    async fn customer_of(&self, id: &str) -> Result<Option<Customer>, StoreError> {
        if id.is_empty() {
            return Ok(None);
        }
        let answer = self.send(|link| &link.customer_find, (id,)).await?;
        let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
        Ok(rows.maybe_first_row::<CustomerRow<'_>>().map_err(StoreError::no_answer)?.map(customer))
    }

    async fn replace_one(&self, before: &Customer, after: &Customer) -> Result<bool, StoreError> {
        let lock = &self.changing[xxhash_rust::xxh3::xxh3_64(after.id.as_bytes()) as usize % LOCKS];
        let _turn = tokio::time::timeout(self.timeout, lock.lock()).await.map_err(|_| {
            let timeout = self.timeout;
            StoreError::no_answer(format!("it was not this change's turn for {timeout:?}; it was not sent"))
        })?;
        let values: Vec<_> = fields(after).into_iter().chain([id_of(before)]).chain(fields(before)).collect();
        self.is_applied(|link| &link.customer_replace, values).await
    }

    async fn count_of(&self, statement: fn(&AirlineLink) -> &PreparedStatement) -> Result<u64, StoreError> {
        let _one_at_a_time = self.counting.lock().await;
        let answer = self.send(statement, ()).await?.into_rows_result().map_err(StoreError::no_answer)?;
        let (count,) = answer.single_row::<(i64,)>().map_err(StoreError::no_answer)?;
        Ok(count as u64)
    }
}

impl Customers for CassandraAirline {
    fn find(&self, id: &str) -> Answer<'_, Option<Customer>> {
        let id = id.to_owned();
        self.take(async move { self.customer_of(&id).await })
    }

    fn put(&self, customer: Customer) -> Answer<'_, ()> {
        if let Err(error) = check_customer(&customer) {
            return Answer::ready(Err(error));
        }
        self.take(async move {
            // whoever changes it meanwhile does so before
            loop {
                let done = match self.customer_of(&customer.id).await? {
                    Some(before) => self.replace_one(&before, &customer).await?,
                    None => self.put_missing_one(customer.clone()).await?,
                };
                if done {
                    return Ok(());
                }
            }
        })
    }

    fn replace<'a>(&'a self, before: &'a Customer, after: Customer) -> Answer<'a, bool> {
        if let Err(error) = check_customer(&after) {
            return Answer::ready(Err(error));
        }
        if before.id != after.id {
            return Answer::ready(Ok(false));
        }
        self.take(async move { self.replace_one(before, &after).await })
    }

    fn put_missing<'a>(
        &'a self,
        customers: Box<dyn Iterator<Item = Customer> + Send + 'a>,
    ) -> Answer<'a, u64> {
        self.take(async move {
            let putting = stream::iter(customers.map(|customer| self.put_missing_one(customer)));
            let add = async |sum, stored| Ok(sum + u64::from(stored));
            putting.buffer_unordered(AT_ONCE).try_fold(0, add).await
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        self.take(self.count_of(|link| &link.customer_count))
    }
}

impl Bookings for CassandraAirline {
    fn add(&self, bookings: &[Booking]) -> Answer<'_, ()> {
        if let Err(error) = check_bookings(bookings) {
            return Answer::ready(Err(error));
        }
        if bookings.is_empty() {
            return Answer::ready(Ok(()));
        }
        let first_us = self.times_us(bookings.len());
        let values: Vec<_> = (first_us..)
            .zip(bookings)
            .map(|(at_us, of)| {
                let (id, flight_id) = (uuid::Uuid::from_u128(of.id), uuid::Uuid::from_u128(of.flight_id));
                let (customer_id, segment) = (of.customer_id.clone(), of.flight_segment_id.clone());
                (customer_id, id, flight_id, segment, of.booked_ms, at_us, at_us)
            })
            .collect();
        self.take(async move {
            if let [one] = &values[..] {
                return self.send(|link| &link.booking_add, one).await.map(drop);
            }
            let _turn = self.sending.turn().await?;
            let link = self.link.now();
            let mut batch = Batch::new(BatchType::Logged);
            batch.set_is_idempotent(true);
            batch.set_consistency(link.writes);
            values.iter().for_each(|_| batch.append_statement(link.booking_add.clone()));
            let sent = link.session.batch(&batch, &values).await;
            sent.map(drop).map_err(|error| self.sending.failed(&error))
        })
    }

    fn of_customer(&self, customer_id: &str) -> Answer<'_, Vec<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        self.take(async move {
            if customer_id.is_empty() {
                return Ok(Vec::new());
            }
            let answer = self.send(|link| &link.booking_list, (&*customer_id,)).await?;
            let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
            let rows = rows.rows::<BookingRow<'_>>().map_err(StoreError::no_answer)?;
            let mut found =
                rows.collect::<Result<Vec<BookingRow<'_>>, _>>().map_err(StoreError::no_answer)?;
            found.sort_unstable_by_key(|row| row.4);
            Ok(found.into_iter().map(|row| booking(&customer_id, row)).collect())
        })
    }

    fn find(&self, customer_id: &str, id: u128) -> Answer<'_, Option<Booking>> {
        let customer_id: Arc<str> = customer_id.into();
        self.take(async move {
            if customer_id.is_empty() {
                return Ok(None);
            }
            let key = (&*customer_id, uuid::Uuid::from_u128(id));
            let answer = self.send(|link| &link.booking_find, key).await?;
            let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
            let row = rows.maybe_first_row::<BookingRow<'_>>().map_err(StoreError::no_answer)?;
            Ok(row.map(|row| booking(&customer_id, row)))
        })
    }

    fn cancel(&self, customer_id: &str, id: u128) -> Answer<'_, bool> {
        let customer_id: Arc<str> = customer_id.into();
        self.take(async move {
            if customer_id.is_empty() {
                return Ok(false);
            }
            let key = (&*customer_id, uuid::Uuid::from_u128(id));
            let answer = self.send(|link| &link.booking_find, key).await?;
            let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
            let row = rows.maybe_first_row::<BookingRow<'_>>().map_err(StoreError::no_answer)?;
            let Some((.., added_us)) = row else { return Ok(false) };
            // of a row and its removal with one time the removal stays
            let at_us = self.times_us(1).max(added_us);
            self.send(|link| &link.booking_cancel, (at_us, key.0, key.1)).await?;
            Ok(true)
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        self.take(self.count_of(|link| &link.booking_count))
    }
}
