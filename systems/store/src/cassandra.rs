//! Messages in Apache Cassandra, 4.1 or 5.0; [`CassandraFeeds`] has the feeds of a news feed there, and [`CassandraAirline`] the
//! customers and bookings of an airline.
//!
//! ```no_run
//! use tidemark_store::cassandra::{Cassandra, Options};
//! use tidemark_store::messages::{Message, MessageId, Messages};
//!
//! # async fn example() -> Result<(), tidemark_store::StoreError> {
//! let store = Cassandra::open(Options { contact: vec!["127.0.0.1:9042".into()], ..Options::default() })?;
//! let message = Message { user: 1, time_ms: 7, kind: *b"ABC", id: MessageId::unique(), payload: "0000000001…".into() };
//! store.add(message).await?; // as many replicas have it as the consistency says
//! # Ok(()) }
//! ```
//!
//! A user's day is one partition, clustered by time, kind and id. A second table has the days on which there are messages
//! of anybody: a reader of a user's messages looks through these, so that a write costs no second write (but the
//! first of each day), and a reader one small question for each day.
//!
//! **Nothing lost.** The statement is prepared once and bound for each write by itself. A write is acknowledged after
//! its own answer has come, which is waited for. It carries the time at which it was taken, so that it may be sent
//! again, to another node too, and a copy that comes late changes nothing; nor is it a second message, since it has the same id. That time is the nodes', known to within some
//! bounds, and a write is acknowledged once it is past: a message that replaces one that was acknowledged stays, whichever
//! intake took it and whatever their own clocks say. What was not answered in time is an
//! error: nobody knows whether it is kept.
//!
//! **Back-pressure.** At most [`Options::in_flight`] writes are sent and not answered: more in the nodes' queues makes
//! them slower, not faster. The others wait here, in turn and no longer than [`Options::timeout`]; when
//! [`Options::waiting_max`] were taken and not answered, the next is refused at once as [`StoreError::Busy`].
//!
//! **Threads.** A write that crosses from the thread that awaits it to one that has the connections, and its answer back,
//! costs two wake-ups. Where many come from a runtime it may [`settle`](Messages::settle): it gets connections of its
//! own, and they stay on its threads. All else goes over those that the store opened.
//!
//! **When nodes go.** Requests go on with those that are left. A node that comes back is found by what the others tell;
//! when none was left, by looking for it twice a second: the client by itself would look every ten seconds at last.
//!
//! **Durability** is the nodes': with `commitlog_sync: periodic`, their default, an acknowledged write is in the
//! memory of so many nodes as the consistency says, which [`Cassandra::durability`] calls `buffered`; with `batch` or
//! `group` it is on their disks. In a keyspace with `durable_writes = false` it is `memory`, whatever the commit log does.
//!
//! **Reading all of it**, past the service, is what a [`Reader`] is for: it makes nothing and changes nothing.
//!
//! **Counting** makes the nodes read every row: there is no cheaper way to an exact number. One count runs at a time.

mod airline;
mod asking;
mod clock;
mod feeds;
mod kept;
mod link;
mod links;
mod options;
mod read;
mod reader;
mod retry;
mod sending;
mod session;
mod timeuuid;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::answer::Answer;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::messages::{DAY_MS, Message, Messages, Page, Query, check};
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::remote::Writes;
use crate::threads::Threads;

pub use airline::CassandraAirline;
use asking::Asking;
use clock::Clock;
pub use feeds::CassandraFeeds;
use kept::{Common, KeptLink};
use link::Link;
use links::Links;
pub use options::{Consistency, IN_FLIGHT_MAX, Options, REPLICATION_MAX, WAITING_MAX};
pub use reader::Reader;
pub use retry::RETRIES_MAX;
use sending::Sending;

/// The last time that a message can have: 13 digits.
pub const TIME_MS_MAX: u64 = 9_999_999_999_999;
/// Days there can be.
const DAYS: usize = (TIME_MS_MAX / DAY_MS) as usize + 1;
/// A message's time of writing that lies further ahead of all that was given was given by nobody, microseconds: a minute.
const TIME_AHEAD_US_MAX: i64 = 60_000_000;
/// Most counts that are asked for at once; they wait for each other.
const COUNTS_MAX: usize = 8;

/// The day of a time, from 1970 on.
fn day_of(time_ms: u64) -> i32 {
    (time_ms.min(TIME_MS_MAX) / DAY_MS) as i32
}

/// A store for messages whose data is in Cassandra.
pub struct Cassandra {
    links: Arc<Links>,
    durability: Durability,
    /// One for each write that may be taken and not answered.
    room: Semaphore,
    sending: Sending,
    /// One for each count that may wait.
    counts: Semaphore,
    counting: Mutex<()>,
    days: KnownDays,
    clock: Arc<Clock>,
    writes: Writes,
    /// Reads and writes the connections of the first link.
    threads: Threads,
}

impl Cassandra {
    /// Connects and makes keyspace and tables where they are not there. Blocks; not to be called on a thread of an
    /// async runtime.
    ///
    /// # Errors
    /// Options that cannot work, nodes that cannot be reached, a keyspace with another replication.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let threads = Threads::new(options.threads, "cassandra")?;
        let common = Common::new(options);
        let options = &common.options;
        let (link, durability, asking) = threads.block_on(async {
            let link = Link::open(options, common.attempts.clone()).await?;
            let durability = session::durability(&link.session, &options.keyspace).await?;
            let asking = Asking::begin(&link).await?;
            Ok::<_, StoreError>((link, durability, asking))
        })?;
        let room = Semaphore::new(options.waiting_max);
        let sending = Sending::new(common.clone());
        let links = Links::new(link, common);
        threads.spawn(KeptLink::keep(Arc::downgrade(&links.first), true));
        let clock = asking.clock();
        threads.spawn(asking.keep(Arc::downgrade(&links.first)));
        Ok(Arc::new(Cassandra {
            links,
            durability,
            room,
            sending,
            counts: Semaphore::new(COUNTS_MAX),
            counting: Mutex::new(()),
            days: KnownDays::new(),
            clock,
            writes: Writes::default(),
            threads,
        }))
    }

    /// What an acknowledged write is worth on the weakest node, as it was when the store was opened.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Writes as of a time, or as of now and waits until that is past.
    async fn write(
        &self,
        message: Message,
        at_us: Option<i64>,
        _room: SemaphorePermit<'_>,
    ) -> Result<(), StoreError> {
        let begun = Instant::now();
        let outcome = match at_us {
            Some(at_us) => self.send(&message, at_us).await,
            None => self.send_now(&message).await,
        };
        self.writes.answered(begun.elapsed(), outcome.is_ok());
        outcome
    }

    /// Writes as of now, and waits until that is past.
    async fn send_now(&self, message: &Message) -> Result<(), StoreError> {
        let at_us = self.now().await?;
        self.send(message, at_us).await?;
        self.wait_past(at_us).await
    }

    async fn now(&self) -> Result<i64, StoreError> {
        let taken = self.clock.take(self.links.common.options.timeout).await;
        taken.ok_or_else(|| {
            StoreError::no_answer(
                "no node says what time it is, or their clocks differ or were set: it was not written",
            )
        })
    }

    async fn wait_past(&self, at_us: i64) -> Result<(), StoreError> {
        match self.clock.wait_past(at_us, self.links.common.options.timeout).await {
            true => Ok(()),
            false => Err(StoreError::no_answer(
                "it is written, but its time is not past on all nodes, of which one's clock was set: no order is certain",
            )),
        }
    }

    fn take(&self, message: Message, at_us: Option<i64>) -> Answer<'_, ()> {
        if let Err(error) = check(&message).and_then(|()| check_key(&message)) {
            return Answer::ready(Err(error));
        }
        match self.room.try_acquire() {
            Ok(room) => Answer::boxed(self.write(message, at_us, room)),
            Err(_) => {
                self.writes.refused();
                Answer::ready(Err(StoreError::Busy { what: "as many writes wait as may" }))
            }
        }
    }

    /// Sends a message when it is its turn.
    async fn send(&self, message: &Message, at_us: i64) -> Result<(), StoreError> {
        let _turn = self.sending.turn().await?;
        let day = day_of(message.time_ms);
        if !self.days.contains(day) {
            self.add_day(day, at_us).await?;
        }
        let Message { user, time_ms, kind, id, payload } = message;
        let values = (*user as i64, day, *time_ms as i64, &kind[..], &id.as_bytes()[..], &payload[..], at_us);
        let link = self.links.here();
        let sent = link.session.execute_unpaged(&link.insert, values).await;
        sent.map(drop).map_err(|error| self.sending.failed(&error))
    }

    /// Enters a day before its first message is written, so that no reader misses it.
    async fn add_day(&self, day: i32, at_us: i64) -> Result<(), StoreError> {
        let timeout = self.links.common.options.timeout;
        let _one_at_a_time = tokio::time::timeout(timeout, self.days.adding.lock()).await.map_err(|_| {
            StoreError::no_answer(format!("its day was not entered for {timeout:?}; it was not written"))
        })?;
        if self.days.contains(day) {
            return Ok(());
        }
        let values = (day, at_us);
        let link = self.links.here();
        let added = link.session.execute_unpaged(&link.insert_day, values).await;
        added.map_err(|error| self.sending.failed(&error))?;
        self.days.insert(day);
        Ok(())
    }
}

impl Messages for Cassandra {
    fn add(&self, message: Message) -> Answer<'_, ()> {
        self.take(message, None)
    }

    fn time_of_write(&self) -> Option<Answer<'_, i64>> {
        Some(Answer::boxed(self.now()))
    }

    fn can_be_time(&self, at_us: i64) -> bool {
        at_us > 0 && at_us <= self.clock.given_at_most(Instant::now()).saturating_add(TIME_AHEAD_US_MAX)
    }

    fn add_as_of(&self, message: Message, at_us: i64) -> Answer<'_, ()> {
        self.take(message, Some(at_us))
    }

    fn past(&self, at_us: i64) -> Answer<'_, ()> {
        Answer::boxed(self.wait_past(at_us))
    }

    fn count(&self) -> Answer<'_, u64> {
        let Ok(waiting) = self.counts.try_acquire() else {
            return Answer::ready(Err(StoreError::Busy { what: "as many counts are waiting as may be" }));
        };
        Answer::boxed(async move {
            let _waiting = waiting;
            let _one_at_a_time = self.counting.lock().await;
            read::count(self.links.first.now(), self.threads.handle()).await
        })
    }

    fn of_user(&self, query: Query) -> Answer<'_, Page> {
        let link = self.links.first.now();
        Answer::boxed(async move { read::of_user(&link, query).await })
    }

    fn settle(&self) {
        self.links.settle();
    }

    fn trouble(&self) -> Option<&'static str> {
        let state = self.links.first.now().session.get_cluster_state();
        let is_there = state.get_nodes_info().iter().any(|node| node.is_connected());
        (!is_there).then_some("no node of Cassandra has a connection; it is looked for twice a second")
    }

    fn metrics(&self) -> StoreMetrics {
        let waiting_max = self.links.common.options.waiting_max as u64;
        StoreMetrics {
            queue_depth: waiting_max - self.room.available_permits() as u64,
            queue_depth_max: waiting_max,
            own: self.own_metrics(),
            ..self.writes.snapshot()
        }
    }
}

/// Refuses keys that the table cannot hold.
fn check_key(message: &Message) -> Result<(), StoreError> {
    if message.time_ms > TIME_MS_MAX {
        let reason = format!("{} has more than 13 digits", message.time_ms);
        return Err(StoreError::invalid("the time of the message", reason));
    }
    if i64::try_from(message.user).is_err() {
        return Err(StoreError::invalid("the user of the message", format!("{} is too large", message.user)));
    }
    Ok(())
}

impl Cassandra {
    fn own_metrics(&self) -> Vec<OwnMetric> {
        let gauge = OwnMetric::gauge;
        let own = [
            gauge(
                "cassandra_clock_uncertainty_us",
                "How exactly the time of the nodes is known, microseconds: what a write takes at least",
                self.clock.uncertainty_us(),
            ),
            gauge(
                "cassandra_settled",
                "Threads that have connections of their own for what they write",
                self.links.settled(),
            ),
        ];
        let mut all = self.sending.metrics(&self.links.first.now().session);
        all.extend(own);
        all
    }
}

/// The days that were entered in the table by this process: a bit for each that there can be.
struct KnownDays {
    bits: Box<[AtomicU64]>,
    adding: Mutex<()>,
}

impl KnownDays {
    fn new() -> Self {
        let bits = std::iter::repeat_with(|| AtomicU64::new(0)).take(DAYS.div_ceil(64)).collect();
        KnownDays { bits, adding: Mutex::new(()) }
    }

    fn contains(&self, day: i32) -> bool {
        let day = day as usize;
        self.bits[day / 64].load(Ordering::Acquire) & (1 << (day % 64)) != 0
    }

    fn insert(&self, day: i32) {
        let day = day as usize;
        self.bits[day / 64].fetch_or(1 << (day % 64), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::MessageId;

    #[test]
    fn a_day_is_known_once_it_was_entered_up_to_the_last() {
        let days = KnownDays::new();
        let last = day_of(TIME_MS_MAX);
        for day in [0, 1, 63, 64, 20_000, last] {
            assert!(!days.contains(day));
            days.insert(day);
            assert!(days.contains(day));
        }
        assert!(!days.contains(2) && !days.contains(last - 1));
        assert_eq!((day_of(DAY_MS - 1), day_of(DAY_MS), day_of(u64::MAX)), (0, 1, last));
    }

    #[test]
    fn keys_that_the_table_cannot_hold_are_refused() {
        let (kind, id) = (*b"ABC", MessageId::NONE);
        let message = |user, time_ms| Message { user, time_ms, kind, id, payload: "x".into() };
        assert!(check_key(&message(i64::MAX as u64, TIME_MS_MAX)).is_ok());
        assert!(check_key(&message(1, TIME_MS_MAX + 1)).unwrap_err().to_string().contains("13 digits"));
        assert!(check_key(&message(u64::MAX, 1)).unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn a_node_that_is_not_there_is_named() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let contact = taken.local_addr().unwrap().to_string();
        drop(taken);
        let error = Cassandra::open(Options { contact: vec![contact.clone()], ..Options::default() });
        let Err(error) = error else { panic!("nobody listens there") };
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(&contact), "{error}");
    }
}
