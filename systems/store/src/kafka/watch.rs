//! How much the store behind lacks: what the topic holds beyond the offsets that were committed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::TopicPartitionList;
use tokio::sync::oneshot;

use super::Shared;
use super::link::{ASK_MAX, Quiet, config, learn_leaders, thread};
use super::topic::Topic;
use crate::error::StoreError;

/// How often is looked without being asked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Wait before the first look is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often what was stored is deleted.
const DELETE_EVERY: Duration = Duration::from_secs(10);
/// Most who wait for an answer at once.
const ASKING_MAX: usize = 64;

type Lacking = Result<u64, StoreError>;

/// Asks the thread that looks.
pub(super) struct Watch {
    asking: SyncSender<oneshot::Sender<Lacking>>,
}

/// Looks.
struct Watching {
    shared: Arc<Shared>,
    topic: Topic,
    /// Asks for the group's offsets without being one of it.
    client: BaseConsumer<Quiet>,
    /// Of each partition, up to where it was told to have been deleted early.
    told: Vec<i64>,
    /// Of each partition, up to where it was deleted.
    deleted: Vec<i64>,
    deleted_at: Instant,
}

/// How far a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    /// The first offset that is there, and the first that is not there yet.
    low: i64,
    high: i64,
    /// The first that was not stored; none where the group has stored nothing.
    committed: Option<i64>,
}

impl Progress {
    fn lacking(self) -> u64 {
        // offsets beyond the end are of a topic that was there before this one, or that has lost its end: as the
        // consumer, from the begin
        let next = self.committed.filter(|next| *next <= self.high).unwrap_or(0).max(self.low);
        u64::try_from(self.high - next).unwrap_or(0)
    }

    /// How many were deleted before they were stored.
    fn deleted_early(self) -> u64 {
        self.committed.map_or(0, |next| u64::try_from(self.low - next).unwrap_or(0))
    }
}

impl Watch {
    /// Looks for the first time, and goes on in a thread.
    pub(super) fn start(shared: Arc<Shared>, topic: Topic) -> Result<(Self, JoinHandle<()>), StoreError> {
        let mut config = config(&shared.options);
        config.set("group.id", &shared.options.group).set("enable.auto.commit", "false");
        let client = BaseConsumer::from_config_and_context(&config, Quiet).map_err(StoreError::no_answer)?;
        let none = vec![0; usize::try_from(topic.partitions).unwrap_or(0)];
        let (told, deleted) = (none.clone(), none);
        let mut watching = Watching { shared, topic, client, told, deleted, deleted_at: Instant::now() };
        let begun = Instant::now();
        // a cluster that has just started has nobody yet who keeps the offsets of groups
        while let Err(error) = watching.look() {
            if begun.elapsed() >= watching.shared.options.timeout {
                return Err(error);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let (asking, asked) = sync_channel(ASKING_MAX);
        let thread = thread("kafka-watch", move || watching.run(&asked))?;
        Ok((Watch { asking }, thread))
    }

    /// How much the store behind lacks, as it is after this moment.
    pub(super) fn look(&self) -> Result<oneshot::Receiver<Lacking>, StoreError> {
        let (answer, receiver) = oneshot::channel();
        match self.asking.try_send(answer) {
            Ok(()) => Ok(receiver),
            Err(TrySendError::Full(_)) => Err(StoreError::Busy { what: "as many ask how far it is as may" }),
            Err(TrySendError::Disconnected(_)) => Err(StoreError::Closed),
        }
    }

    /// Has the thread see that it is to end.
    pub(super) fn wake(&self) {
        let _ = self.look();
    }
}

impl Watching {
    fn run(mut self, asked: &Receiver<oneshot::Sender<Lacking>>) {
        let mut askers = Vec::new();
        loop {
            match asked.recv_timeout(LOOK_EVERY) {
                Ok(asker) => askers.push(asker),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            askers.extend(asked.try_iter());
            if self.shared.stops() {
                return;
            }
            let looked = self.look();
            if let Err(error) = &looked {
                tracing::debug!(%error, "how far it is cannot be said");
            }
            for asker in askers.drain(..) {
                // whoever asked may be gone
                let _ = asker.send(looked.clone());
            }
        }
    }

    fn look(&mut self) -> Lacking {
        let progress = self.progress().map_err(|error| {
            learn_leaders(self.client.client());
            StoreError::no_answer(error)
        })?;
        if self.shared.alone.swap(false, Ordering::Relaxed) {
            tracing::info!("a broker of Kafka is back");
        }
        let lacking = progress.iter().map(|partition| partition.lacking()).sum();
        self.shared.counters.lacking.store(lacking, Ordering::Relaxed);
        self.tell_deleted_early(&progress);
        if self.deleted_at.elapsed() >= DELETE_EVERY {
            self.deleted_at = Instant::now();
            if let Err(error) = self.delete(&progress) {
                tracing::warn!(%error, "what was stored stays in the topic for now");
            }
        }
        Ok(lacking)
    }

    fn progress(&self) -> Result<Vec<Progress>, rdkafka::error::KafkaError> {
        let topic = &self.shared.options.topic;
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition_range(topic, 0, self.topic.partitions - 1);
        // first, so that what is stored in between counts as lacking and not the other way round
        let committed = self.client.committed_offsets(partitions, ASK_MAX)?;
        let of = |partition| {
            let (low, high) = self.client.fetch_watermarks(topic, partition, ASK_MAX)?;
            let offset = committed.find_partition(topic, partition).map(|found| found.offset());
            let committed = match offset {
                Some(Offset::Offset(offset)) => Some(offset),
                _ => None,
            };
            Ok(Progress { low, high, committed })
        };
        (0..self.topic.partitions).map(of).collect()
    }

    fn tell_deleted_early(&mut self, progress: &[Progress]) {
        for (partition, (now, told)) in progress.iter().zip(&mut self.told).enumerate() {
            let lost = now.deleted_early();
            if lost > 0 && now.low > *told {
                *told = now.low;
                self.shared.counters.deleted_early.fetch_add(lost, Ordering::Relaxed);
                let topic = &self.shared.options.topic;
                tracing::error!(topic, partition, lost, "Kafka deleted messages before they were stored");
            }
        }
    }

    /// Deletes what was stored.
    fn delete(&mut self, progress: &[Progress]) -> Result<(), StoreError> {
        let mut before = TopicPartitionList::new();
        for (partition, (now, deleted)) in (0..).zip(progress.iter().zip(&mut self.deleted)) {
            let Some(next) = now.committed.filter(|next| next > deleted && *next <= now.high) else {
                continue;
            };
            let offset = Offset::Offset(next);
            before
                .add_partition_offset(&self.shared.options.topic, partition, offset)
                .map_err(StoreError::no_answer)?;
            *deleted = next;
        }
        if before.count() == 0 { Ok(()) } else { self.topic.delete_before(&before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_and_what_is_gone() {
        for (low, high, committed, lacking, gone) in [
            (0, 0, None, 0, 0),
            (0, 7, None, 7, 0),
            (3, 7, None, 4, 0),
            (0, 7, Some(7), 0, 0),
            (2, 7, Some(5), 2, 0),
            // deleted before it was stored
            (6, 9, Some(5), 3, 1),
            // the topic was made anew, or lost its end
            (1, 4, Some(9), 3, 0),
        ] {
            let progress = Progress { low, high, committed };
            assert_eq!((progress.lacking(), progress.deleted_early()), (lacking, gone), "{progress:?}");
        }
    }
}
