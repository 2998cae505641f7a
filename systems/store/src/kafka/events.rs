//! Events in a topic, a message each, and reading them again.
//!
//! A message that could not be delivered is lost, and counted: nothing is sent twice, so that nothing is there twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext, PurgeConfig};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::{ClientConfig, Offset};

use super::link::{ASK_MAX, Quiet, config, log};
use super::options::Options;
use crate::error::StoreError;
use crate::events::{EventLog, MISSING};

/// How long messages are gathered before they are sent, milliseconds.
const LINGER_MS: u32 = 20;
/// Most messages that wait for Kafka, and their size.
const WAITING_MAX: u32 = 100_000;
const WAITING_KIB_MAX: u32 = 32 * 1024;
/// How long Kafka has for what is left at the end.
const END_MAX: Duration = Duration::from_secs(3);
/// Longest wait for a message.
const TURN: Duration = Duration::from_millis(100);

/// Events go into a topic.
pub struct Events {
    sender: BaseProducer<Delivered>,
    topic: String,
    counted: Arc<Counted>,
}

#[derive(Default)]
struct Counted {
    lost: AtomicU64,
    /// Missing events of which the topic does not tell.
    untold: AtomicU64,
    /// Whether nothing could be delivered of late.
    alone: AtomicBool,
}

/// What is done with Kafka's answers.
struct Delivered(Arc<Counted>);

impl ClientContext for Delivered {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "kafka");
    }
}

impl ProducerContext for Delivered {
    /// Of how many missing events a message tells; 0 for an event.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, tells_of: usize) {
        let Err((error, _)) = result else {
            if self.0.alone.load(Ordering::Relaxed) && self.0.alone.swap(false, Ordering::Relaxed) {
                tracing::info!("events reach Kafka again");
            }
            return;
        };
        if !self.0.alone.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "events do not reach Kafka; they are lost and counted");
        }
        if tells_of == 0 {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.0.untold.fetch_add(tells_of.max(1) as u64, Ordering::Relaxed);
    }
}

impl Events {
    /// Begins. Whether Kafka is there shows later: events of a Kafka that is not are lost.
    ///
    /// # Errors
    /// Options that cannot work.
    pub fn open(options: &Options) -> Result<Self, StoreError> {
        options.check()?;
        let counted = Arc::new(Counted::default());
        let timeout_ms = options.timeout.as_millis();
        let mut config = config(options);
        config
            .set("acks", "1")
            .set("message.send.max.retries", "0")
            .set("message.timeout.ms", timeout_ms.to_string())
            .set("request.timeout.ms", (timeout_ms / 2).to_string())
            .set("linger.ms", LINGER_MS.to_string())
            .set("queue.buffering.max.messages", WAITING_MAX.to_string())
            .set("queue.buffering.max.kbytes", WAITING_KIB_MAX.to_string());
        let sender = BaseProducer::from_config_and_context(&config, Delivered(counted.clone()))
            .map_err(StoreError::no_answer)?;
        Ok(Events { sender, topic: options.topic.clone(), counted })
    }

    fn send(&self, line: &[u8], tells_of: usize) -> bool {
        let record = || BaseRecord::<(), [u8], usize>::with_opaque_to(&self.topic, tells_of).payload(line);
        match self.sender.send(record()) {
            Ok(()) => true,
            Err((error, _)) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) => {
                // there is room once it is known what became of some
                self.sender.poll(Duration::ZERO);
                self.sender.send(record()).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Tells of what is missing, in one message.
    fn tell(&self) {
        let count = self.counted.untold.swap(0, Ordering::Relaxed);
        if count > 0 && !self.send(format!("{MISSING}{count}").as_bytes(), count as usize) {
            self.counted.untold.fetch_add(count, Ordering::Relaxed);
        }
    }
}

impl EventLog for Events {
    fn append(&mut self, event: &[u8]) -> bool {
        self.send(event, 0)
    }

    fn missing(&mut self, count: u64) {
        self.counted.untold.fetch_add(count, Ordering::Relaxed);
    }

    fn flush(&mut self) {
        self.sender.poll(Duration::ZERO);
        if !self.counted.alone.load(Ordering::Relaxed) {
            self.tell();
        }
    }

    fn end(&mut self) -> u64 {
        let end = Instant::now() + END_MAX;
        let mut flushed = self.sender.flush(END_MAX);
        self.tell();
        if flushed.is_ok() {
            flushed = self.sender.flush(end.saturating_duration_since(Instant::now()));
        }
        if flushed.is_err() {
            // what has not come to Kafka by now never does, or nobody can tell whether it did: it counts as missing
            self.sender.purge(PurgeConfig::default().queue().inflight());
            let counted = self.sender.flush(END_MAX);
            tracing::warn!(?counted, "events had not reached Kafka at the end; they are lost and counted");
        }
        self.counted.untold.swap(0, Ordering::Relaxed)
    }

    fn lost(&self) -> u64 {
        self.counted.lost.load(Ordering::Relaxed)
    }
}

/// By partition, the offset of the next message that will be in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions(BTreeMap<i32, i64>);

/// Where a topic ends now; nowhere if there is no such topic. Blocks.
///
/// # Errors
/// Kafka cannot be reached.
pub fn ends_of_events(options: &Options) -> Result<Positions, StoreError> {
    let consumer = consumer(options)?;
    let ends = watermarks(&consumer, options)?.unwrap_or_default();
    Ok(Positions(ends.into_iter().map(|(partition, (_, high))| (partition, high)).collect()))
}

fn failed(error: KafkaError) -> StoreError {
    StoreError::no_answer(error)
}

fn consumer(options: &Options) -> Result<BaseConsumer<Quiet>, StoreError> {
    options.check()?;
    let mut config: ClientConfig = config(options);
    // the library wants a name for a group, of which nothing is asked
    config.set("group.id", &options.group).set("enable.auto.commit", "false");
    BaseConsumer::from_config_and_context(&config, Quiet).map_err(failed)
}

/// By partition, the offsets of the first message and of the next that will be in it.
type Watermarks = BTreeMap<i32, (i64, i64)>;

/// Those of the topic; nothing where there is no such topic.
fn watermarks(consumer: &BaseConsumer<Quiet>, options: &Options) -> Result<Option<Watermarks>, StoreError> {
    // all of them: asking for one would make it
    let metadata = consumer.fetch_metadata(None, options.timeout).map_err(failed)?;
    let found = metadata.topics().iter().find(|topic| topic.name() == options.topic);
    let Some(topic) = found.filter(|topic| !topic.partitions().is_empty()) else { return Ok(None) };
    let of = |partition: i32| {
        let marks = consumer.fetch_watermarks(&options.topic, partition, ASK_MAX).map_err(failed)?;
        Ok((partition, marks))
    };
    topic.partitions().iter().map(|partition| of(partition.id())).collect::<Result<_, _>>().map(Some)
}

/// Hands over all events of a topic that are there now, from these positions on, in no order, until `each` says false.
/// Blocks.
///
/// # Errors
/// Kafka cannot be reached, or has no such topic.
pub fn read_events(
    options: &Options,
    from: &Positions,
    mut each: impl FnMut(&[u8]) -> bool,
) -> Result<(), StoreError> {
    let consumer = consumer(options)?;
    let Some(marks) = watermarks(&consumer, options)? else {
        let place = options.brokers.join(",").into();
        return Err(StoreError::Missing { place, what: format!("topic `{}`", options.topic).into() });
    };
    let mut missing = BTreeMap::new();
    let mut assigned = TopicPartitionList::new();
    for (partition, (low, high)) in marks {
        let first = from.0.get(&partition).map_or(low, |from| low.max(*from));
        if first < high {
            missing.insert(partition, high);
            assigned
                .add_partition_offset(&options.topic, partition, Offset::Offset(first))
                .map_err(failed)?;
        }
    }
    consumer.assign(&assigned).map_err(failed)?;
    let mut last = Instant::now();
    while !missing.is_empty() {
        match consumer.poll(TURN) {
            Some(Ok(message)) => {
                last = Instant::now();
                let Some(&high) = missing.get(&message.partition()) else { continue };
                if !each(message.payload().unwrap_or_default()) {
                    return Ok(());
                }
                if message.offset() + 1 >= high {
                    missing.remove(&message.partition());
                }
            }
            Some(Err(error)) => tracing::debug!(%error, "no message"),
            None => {}
        }
        if last.elapsed() > options.timeout {
            return Err(StoreError::no_answer("no more messages come, and not all were read"));
        }
    }
    Ok(())
}
