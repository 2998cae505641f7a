//! Events in a topic, a message each, and reading them again.
//!
//! A message that could not be delivered is lost, and counted: nothing is sent twice, so that nothing is there twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
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

    fn lost(&self) -> u64 {
        self.counted.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let end = Instant::now() + END_MAX;
        let flushed = self.sender.flush(END_MAX);
        self.tell();
        let rest = end.saturating_duration_since(Instant::now());
        if flushed.and_then(|()| self.sender.flush(rest)).is_err() {
            tracing::warn!(lost = self.sender.in_flight_count(), "events had not reached Kafka at the end");
        }
    }
}

/// Hands over all events of a topic that are there now, from the first on, in no order, until `each` says false; none
/// where there is no such topic. Blocks.
///
/// # Errors
/// Kafka cannot be reached.
pub fn read_events(options: &Options, mut each: impl FnMut(&[u8]) -> bool) -> Result<(), StoreError> {
    options.check()?;
    let mut config: ClientConfig = config(options);
    // the library wants a name for a group, of which nothing is asked
    config.set("group.id", &options.group).set("enable.auto.commit", "false");
    let failed = |error: KafkaError| StoreError::no_answer(error);
    let consumer: BaseConsumer<Quiet> =
        BaseConsumer::from_config_and_context(&config, Quiet).map_err(failed)?;
    // all of them: asking for one would make it
    let metadata = consumer.fetch_metadata(None, options.timeout).map_err(failed)?;
    let found = metadata.topics().iter().find(|topic| topic.name() == options.topic);
    let mut missing = std::collections::HashMap::new();
    let mut assigned = TopicPartitionList::new();
    for partition in found.map_or(&[][..], |topic| topic.partitions()) {
        let (low, high) =
            consumer.fetch_watermarks(&options.topic, partition.id(), ASK_MAX).map_err(failed)?;
        if low < high {
            missing.insert(partition.id(), high);
            assigned
                .add_partition_offset(&options.topic, partition.id(), Offset::Offset(low))
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
