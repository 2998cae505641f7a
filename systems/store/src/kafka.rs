//! Apache Kafka as a buffer in front of a store for messages, and as a log of [`Events`].
//!
//! ```no_run
//! use tidemark_store::kafka::{Buffer, Options};
//! use tidemark_store::messages::{Message, MessageId, Messages, Tree, TreeOptions};
//!
//! # async fn example() -> Result<(), tidemark_store::StoreError> {
//! let behind = Tree::open("data".as_ref(), TreeOptions::default())?;
//! let store = Buffer::open(Options { brokers: vec!["127.0.0.1:9092".into()], ..Options::default() }, behind)?;
//! let message = Message { user: 1, time_ms: 7, kind: *b"ABC", id: MessageId::unique(), payload: "0000000001…".into() };
//! store.add(message).await?; // Kafka has it
//! while store.behind().await? > 0 {} // until the store behind has it, too
//! assert_eq!(store.count().await?, 1);
//! # Ok(()) }
//! ```
//!
//! ```text
//! add ─▶ producer ─▶ topic: acknowledged ─▶ consumer ─▶ store behind ─▶ offset committed
//! count, of_user ──────────────────────────────────────▶ store behind
//! ```
//!
//! **Nothing lost.** The producer is idempotent and waits for all replicas in sync (`acks=all`). The consumer commits
//! an offset only after the store behind has acknowledged everything before it, so what a crash interrupts is stored
//! again. A record has the id of its message, so the same record twice is one message, and two messages are two. Of several messages
//! with one place, which are in one partition, the last stays: a batch is stored before the next is begun, and of it only
//! the last of a place. Where the store behind goes by times of
//! writing the latest stays: a record has the time at which its message was taken, so that a consumer that stood still while
//! another took its partitions over changes nothing when it goes on.
//!
//! **Bounds.** When [`Options::waiting_max`] messages were taken and Kafka has not answered, the next is refused at once
//! as [`StoreError::Busy`], and so it is while the store behind lacks [`Options::behind_max`] messages, roughly: that
//! is looked at once a second. Kafka deletes nothing of the topic by itself; what is stored is deleted every few
//! seconds, so the brokers' disks need room for as much as the store behind lacks, and for a segment of each partition.
//!
//! **Durability.** With `synced` the topic is made so that each replica flushes a batch to its disk before it counts
//! (`flush.messages=1`); Kafka's default leaves that to the operating system, which is `buffered`. A topic that is there
//! already is asked what it does: [`Buffer::durability`].

mod drain;
mod events;
mod link;
mod options;
mod produce;
mod record;
#[cfg(test)]
mod tests;
mod topic;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::answer::Answer;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::messages::{Message, MessageStore, Messages, Page, Query, check};
use crate::metrics::{OwnMetric, StoreMetrics};

use drain::Drain;
pub use events::{Events, Positions, ends_of_events, read_events};
pub use options::{BATCH_MESSAGES_MAX, Options, PARTITIONS_MAX, REPLICATION_MAX};
use produce::Producing;
use topic::Topic;
use watch::Watch;

/// How long the threads may take to end: the consumer says good-bye to its group, of which the brokers may be gone.
const END_MAX: Duration = Duration::from_secs(5);
/// How often is looked whether a thread has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A buffer in front of a store: it acknowledges a message once Kafka has it.
pub struct Buffer {
    shared: Arc<Shared>,
    producing: Arc<Producing>,
    /// One for each message that may wait, also for a time of writing or until that is past.
    room: Semaphore,
    watch: Watch,
    durability: Durability,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads of a buffer share.
struct Shared {
    options: Options,
    behind: MessageStore,
    counters: Counters,
    stopping: AtomicBool,
    /// Whether no broker had a connection when last heard of, and none has answered since.
    alone: Arc<AtomicBool>,
}

impl Shared {
    fn stops(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// What is counted beside writes.
#[derive(Default)]
struct Counters {
    /// Messages that Kafka has and the store behind lacks.
    lacking: AtomicU64,
    /// Messages that the store behind has acknowledged.
    stored: AtomicU64,
    /// Attempts to store one after the first.
    retries: AtomicU64,
    /// Records of the topic that are no message.
    unreadable: AtomicU64,
    /// Messages that Kafka deleted before they were stored.
    deleted_early: AtomicU64,
    /// Times that the producer was made anew.
    producers: AtomicU64,
}

impl Buffer {
    /// Connects, makes the topic where it is not there, and begins to store what it holds. Blocks; not to be called on
    /// a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, brokers that cannot be reached, a topic that is not as asked for.
    pub fn open(options: Options, behind: MessageStore) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let topic = Topic::prepare(&options)?;
        Self::on(topic, options, behind)
    }

    /// The same on a topic that is there.
    fn on(topic: Topic, options: Options, behind: MessageStore) -> Result<Arc<Self>, StoreError> {
        let shared = Arc::new(Shared {
            options,
            behind,
            counters: Counters::default(),
            stopping: AtomicBool::new(false),
            alone: Arc::default(),
        });
        let durability = topic.durability;
        let producing = Arc::new(Producing::new(shared.clone())?);
        // looks before the consumer moves on, so that it sees a gap behind what was stored last
        let (watch, watching) = Watch::start(shared.clone(), topic)?;
        let room = Semaphore::new(shared.options.waiting_max);
        let mut buffer = Buffer { shared, producing, room, watch, durability, threads: vec![watching] };
        let (answers, drain) = (buffer.producing.clone(), Drain::new(buffer.shared.clone())?);
        buffer.threads.push(link::thread("kafka-answers", move || answers.serve())?);
        buffer.threads.push(link::thread("kafka-drain", move || drain.run())?);
        Ok(Arc::new(buffer))
    }

    /// What a message that Kafka has acknowledged is worth.
    pub fn durability(&self) -> Durability {
        self.durability
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.watch.wake();
        let begun = Instant::now();
        for thread in std::mem::take(&mut self.threads) {
            while !thread.is_finished() && begun.elapsed() < END_MAX {
                std::thread::sleep(LOOK_EVERY);
            }
            if thread.is_finished() && thread.join().is_err() {
                tracing::error!("a thread of the buffer panicked");
            }
        }
    }
}

impl Messages for Buffer {
    fn add(&self, message: Message) -> Answer<'_, ()> {
        if let Err(error) = check(&message) {
            return Answer::ready(Err(error));
        }
        if self.shared.counters.lacking.load(Ordering::Relaxed) >= self.shared.options.behind_max {
            self.producing.writes.refused();
            return Answer::ready(Err(StoreError::Busy {
                what: "the store behind the buffer lacks too much",
            }));
        }
        let Some(time) = self.shared.behind.time_of_write() else {
            return match self.producing.add(&message, None) {
                Ok(answer) => Answer::committing(answer, |_| ()),
                Err(error) => Answer::ready(Err(error)),
            };
        };
        let Ok(room) = self.room.try_acquire() else {
            self.producing.writes.refused();
            return Answer::ready(Err(StoreError::Busy { what: "as many messages wait for Kafka as may" }));
        };
        Answer::boxed(async move {
            let _room = room;
            let at_us = time.await?;
            Answer::committing(self.producing.add(&message, Some(at_us))?, |_| ()).await?;
            self.shared.behind.past(at_us).await
        })
    }

    fn count(&self) -> Answer<'_, u64> {
        self.shared.behind.count()
    }

    fn behind(&self) -> Answer<'_, u64> {
        let lacking = self.watch.look();
        Answer::boxed(async move {
            let lacking = lacking?.await.map_err(|_| StoreError::Closed)??;
            Ok(lacking + self.shared.behind.behind().await?)
        })
    }

    fn of_user(&self, query: Query) -> Answer<'_, Page> {
        self.shared.behind.of_user(query)
    }

    fn trouble(&self) -> Option<&'static str> {
        let alone = "no broker of Kafka has a connection; messages wait until one is back";
        self.shared.alone.load(Ordering::Relaxed).then_some(alone).or_else(|| self.shared.behind.trouble())
    }

    fn metrics(&self) -> StoreMetrics {
        let behind = self.shared.behind.metrics();
        let mut own = self.own_metrics(&behind);
        own.extend(behind.own);
        StoreMetrics {
            queue_depth: self.producing.waiting(),
            queue_depth_max: self.shared.options.waiting_max as u64,
            commits: behind.commits,
            group_writes_max: behind.group_writes_max,
            own,
            ..self.producing.writes.snapshot()
        }
    }
}

impl Buffer {
    fn own_metrics(&self, behind: &StoreMetrics) -> Vec<OwnMetric> {
        let metric = |name, help, is_counter, value| OwnMetric { name, help, is_counter, value };
        let counter =
            |name, help, counter: &AtomicU64| metric(name, help, true, counter.load(Ordering::Relaxed));
        let counters = &self.shared.counters;
        let lacking = counters.lacking.load(Ordering::Relaxed);
        vec![
            metric("behind", "Messages acknowledged that the store behind the buffer lacks", false, lacking),
            metric(
                "behind_stopped",
                "1 after a write has failed: the store behind the buffer takes no more",
                false,
                u64::from(behind.stopped),
            ),
            counter("kafka_stored", "Messages taken from the buffer and stored", &counters.stored),
            counter("kafka_store_retries", "Attempts to store a message after the first", &counters.retries),
            counter("kafka_unreadable", "Records of the topic that are no message", &counters.unreadable),
            counter(
                "kafka_deleted_early",
                "Messages that Kafka deleted before they were stored",
                &counters.deleted_early,
            ),
            counter(
                "kafka_producers",
                "Times that the producer was made anew, since its order could not be kept",
                &counters.producers,
            ),
        ]
    }
}
