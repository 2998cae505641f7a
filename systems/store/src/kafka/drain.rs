//! From the topic into the store behind: a batch is stored, then its offsets are handed over to be committed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rdkafka::Message as _;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::BorrowedMessage;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::Shared;
use super::link::{Quiet, config};
use super::record;
use crate::error::StoreError;
use crate::messages::Message;

/// Longest wait for a message before it is looked whether to go on.
const TURN: Duration = Duration::from_millis(100);
/// Wait before a message is stored once more; doubled each time, up to the next constant.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often offsets are committed, milliseconds. What was stored since then is stored again after a crash.
const COMMIT_EVERY_MS: u32 = 500;
/// After so long without a sign of life, milliseconds, others get a consumer's partitions; the least that brokers take
/// unless told otherwise. A restarted intake waits for its predecessor so long if that was killed.
const SESSION_MS: u32 = 6000;
const HEARTBEAT_MS: u32 = 1500;
/// Messages fetched ahead, bytes.
const FETCHED_KIB_MAX: u32 = 16 * 1024;

/// The consumer.
pub(super) struct Drain {
    shared: Arc<Shared>,
    consumer: BaseConsumer<Quiet>,
    runtime: Runtime,
    /// Whether the store behind goes by times of writing.
    by_time: bool,
}

/// Messages of the topic, not stored yet.
#[derive(Default)]
struct Batch {
    /// Each with its time of writing, where the store behind goes by such times.
    messages: Vec<(Message, Option<i64>)>,
    /// How many records that was.
    records: u64,
    /// The last offset of each partition.
    last: HashMap<i32, i64>,
}

impl Drain {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, StoreError> {
        let mut config = config(&shared.options);
        config
            .set("group.id", &shared.options.group)
            // only offsets that were handed over are committed: after their messages were stored
            .set("enable.auto.offset.store", "false")
            .set("enable.auto.commit", "true")
            .set("auto.commit.interval.ms", COMMIT_EVERY_MS.to_string())
            .set("auto.offset.reset", "earliest")
            .set("session.timeout.ms", SESSION_MS.to_string())
            .set("heartbeat.interval.ms", HEARTBEAT_MS.to_string())
            .set("queued.max.messages.kbytes", FETCHED_KIB_MAX.to_string())
            .set("fetch.wait.max.ms", TURN.as_millis().to_string());
        let consumer: BaseConsumer<Quiet> =
            BaseConsumer::from_config_and_context(&config, Quiet).map_err(StoreError::no_answer)?;
        consumer.subscribe(&[&shared.options.topic]).map_err(StoreError::no_answer)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let by_time = shared.behind.time_of_write().is_some();
        Ok(Drain { consumer, runtime: runtime.map_err(StoreError::no_answer)?, shared, by_time })
    }

    /// Stores what comes until the buffer is dropped.
    pub(super) fn run(self) {
        let mut batch = Batch::default();
        while !self.shared.stops() {
            self.gather(&mut batch);
            if !self.runtime.block_on(store(&self.shared, &mut batch)) {
                break;
            }
            self.shared.counters.stored.fetch_add(std::mem::take(&mut batch.records), Ordering::Relaxed);
            for (partition, offset) in batch.last.drain() {
                // others may have the partition by now: they store it again
                if let Err(error) = self.consumer.store_offset(&self.shared.options.topic, partition, offset)
                {
                    tracing::debug!(%error, partition, offset, "the offset stays where it was");
                }
            }
        }
    }

    /// Waits for messages and takes what is there.
    fn gather(&self, batch: &mut Batch) {
        let mut wait = TURN;
        while batch.records < self.shared.options.batch_max as u64 {
            match self.consumer.poll(wait) {
                Some(Ok(record)) => self.take(&record, batch),
                Some(Err(error)) => tracing::debug!(%error, "no message"),
                None => return,
            }
            wait = Duration::ZERO;
        }
    }

    fn take(&self, record: &BorrowedMessage<'_>, batch: &mut Batch) {
        let (partition, offset) = (record.partition(), record.offset());
        batch.records += 1;
        batch.last.insert(partition, offset);
        let why = match (record::message(record.key(), record.payload()), self.time_of(record)) {
            (Some(message), Some(at_us)) => return batch.messages.push((message, at_us)),
            (None, _) => "the topic holds what is no message; it is passed over",
            (_, None) => "a message has a time of writing that no intake can have given; it is passed over",
        };
        if self.shared.counters.unreadable.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!(partition, offset, "{why}");
        }
    }

    /// When a record's message was written, where the store behind wants to know it; none where nobody can have given it.
    /// Of one that has no such time, from an earlier version of this program, it is when it was handed to Kafka.
    fn time_of(&self, record: &BorrowedMessage<'_>) -> Option<Option<i64>> {
        if !self.by_time {
            return Some(None);
        }
        match record::written_us(record.headers()) {
            Some(at_us) => self.shared.behind.can_be_time(at_us).then_some(Some(at_us)),
            None => {
                let produced_ms = record.timestamp().to_millis().unwrap_or(1).max(1);
                Some(Some(produced_ms.saturating_mul(1000)))
            }
        }
    }
}

/// Stores a batch, all of it at once, each message as often as it takes. False where it was left, to be stopped.
async fn store(shared: &Arc<Shared>, batch: &mut Batch) -> bool {
    let mut tasks = JoinSet::new();
    // of several with one place only one is stored: that with the latest time, or the last one where there are no times
    let mut chosen: HashMap<_, (Message, Option<i64>)> = HashMap::with_capacity(batch.messages.len());
    for (message, at_us) in batch.messages.drain(..) {
        match chosen.entry((message.user, message.place())) {
            Entry::Vacant(place) => drop(place.insert((message, at_us))),
            Entry::Occupied(mut place) if at_us >= place.get().1 => drop(place.insert((message, at_us))),
            Entry::Occupied(_) => {}
        }
    }
    for (message, at_us) in chosen.into_values() {
        let shared = shared.clone();
        tasks.spawn(async move { store_one(&shared, message, at_us).await });
    }
    let mut all = true;
    while let Some(stored) = tasks.join_next().await {
        all &= stored.unwrap_or(false);
    }
    all
}

async fn store_one(shared: &Shared, message: Message, at_us: Option<i64>) -> bool {
    let mut pause = PAUSE_FIRST;
    loop {
        let again = message.clone();
        let stored = match at_us {
            Some(at_us) => shared.behind.add_as_of(again, at_us),
            None => shared.behind.add(again),
        };
        let error = match stored.await {
            Ok(()) => return true,
            Err(error @ StoreError::Invalid { .. }) => {
                shared.counters.unreadable.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%error, user = message.user, time_ms = message.time_ms, "it is passed over");
                return true;
            }
            Err(error) => error,
        };
        if shared.stops() {
            return false;
        }
        shared.counters.retries.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%error, "it is stored once more");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
