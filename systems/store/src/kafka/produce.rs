//! From a message to Kafka's word that it has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rdkafka::client::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use tokio::sync::oneshot;

use super::Shared;
use super::link::{config, log};
use super::record::{headers, key};
use crate::error::StoreError;
use crate::messages::{Message, PAYLOAD_BYTES_MAX};
use crate::remote::Writes;

/// Longest wait for answers before it is looked whether to go on.
const TURN: Duration = Duration::from_millis(100);
/// How long messages are gathered before they are sent, milliseconds: each batch costs the brokers a sync of its own.
const LINGER_MS: u32 = 2;
/// What a message takes beside its payload while it waits, bytes.
const RECORD_BYTES: usize = 128;

type Sender = BaseProducer<Answers>;

/// Sends messages, and answers each when Kafka has.
pub(super) struct Producing {
    shared: Arc<Shared>,
    /// Replaced where it can go on no more.
    sender: RwLock<Arc<Sender>>,
    pub(super) writes: Arc<Writes>,
    waiting: Arc<AtomicUsize>,
}

/// A message that Kafka is to answer.
pub(super) struct Taken {
    at: Instant,
    answer: oneshot::Sender<Result<u64, StoreError>>,
}

/// What is done with Kafka's answers.
struct Answers {
    writes: Arc<Writes>,
    waiting: Arc<AtomicUsize>,
    /// Whether it was told that no broker is there.
    alone: Arc<AtomicBool>,
}

impl ClientContext for Answers {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                if !self.alone.swap(true, Ordering::Relaxed) {
                    tracing::error!("no broker of Kafka has a connection: messages wait until one is back");
                }
            }
            _ => tracing::debug!(%error, reason, "kafka"),
        }
    }
}

impl ProducerContext for Answers {
    type DeliveryOpaque = Box<Taken>;

    fn delivery(&self, result: &DeliveryResult<'_>, taken: Box<Taken>) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.writes.answered(taken.at.elapsed(), result.is_ok());
        if result.is_ok() && self.alone.load(Ordering::Relaxed) && self.alone.swap(false, Ordering::Relaxed) {
            tracing::info!("a broker of Kafka is back");
        }
        let outcome = match result {
            Ok(_) => Ok(1),
            Err((error, _)) => Err(StoreError::no_answer(error)),
        };
        // whoever asked may be gone
        let _ = taken.answer.send(outcome);
    }
}

impl Producing {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, StoreError> {
        let (writes, waiting) = (Arc::new(Writes::default()), Arc::new(AtomicUsize::new(0)));
        let sender = sender(&shared, &writes, &waiting)?;
        Ok(Producing { shared, sender: RwLock::new(Arc::new(sender)), writes, waiting })
    }

    /// Hands a message over, with its time of writing where it has one; the answer comes when Kafka has it, or will not
    /// have it in time.
    pub(super) fn add(
        &self,
        message: &Message,
        at_us: Option<i64>,
    ) -> Result<oneshot::Receiver<Result<u64, StoreError>>, StoreError> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        let taken = Box::new(Taken { at: Instant::now(), answer });
        let handed = match before < self.shared.options.waiting_max {
            true => self.send(message, at_us, taken),
            false => Err(KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)),
        };
        let Err(error) = handed else { return Ok(receiver) };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::QueueFull) => {
                self.writes.refused();
                Err(StoreError::Busy { what: "as many messages wait for Kafka as may" })
            }
            _ => {
                self.writes.answered(Duration::ZERO, false);
                Err(StoreError::no_answer(error))
            }
        }
    }

    fn send(&self, message: &Message, at_us: Option<i64>, taken: Box<Taken>) -> Result<(), KafkaError> {
        let key = key(message);
        let record = BaseRecord::with_opaque_to(&self.shared.options.topic, taken);
        let mut record = record.key(key.bytes()).payload(&message.payload[..]);
        record.headers = at_us.map(headers);
        self.sender.read().send(record).map_err(|(error, _)| error)
    }

    /// Messages taken and not answered.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed) as u64
    }

    /// Answers until the buffer is dropped.
    pub(super) fn serve(&self) {
        while !self.shared.stops() {
            let sender = self.sender.read().clone();
            sender.poll(TURN);
            if let Some((code, reason)) = sender.client().fatal_error() {
                tracing::error!(%code, reason, "the producer can go on no more; another one takes its place");
                self.replace();
            }
        }
    }

    /// Makes the sender anew. What the old one has not got an answer for is answered with an error when it goes, so
    /// that nobody takes it for kept.
    fn replace(&self) {
        match sender(&self.shared, &self.writes, &self.waiting) {
            Ok(sender) => {
                *self.sender.write() = Arc::new(sender);
                self.shared.counters.producers.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(%error, "no new producer yet");
                std::thread::sleep(TURN);
            }
        }
    }
}

fn sender(shared: &Shared, writes: &Arc<Writes>, waiting: &Arc<AtomicUsize>) -> Result<Sender, StoreError> {
    let options = &shared.options;
    let timeout_ms = options.timeout.as_millis();
    let bytes_max = options.waiting_max.saturating_mul(PAYLOAD_BYTES_MAX + RECORD_BYTES);
    let mut config = config(options);
    config
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("message.timeout.ms", timeout_ms.to_string())
        // so that there is time left to ask another leader
        .set("request.timeout.ms", (timeout_ms / 2).to_string())
        .set("linger.ms", LINGER_MS.to_string())
        // the bound is ours; theirs counts a message until after its answer, a batch of them at a time
        .set("queue.buffering.max.messages", (2 * options.waiting_max + 64).to_string())
        .set("queue.buffering.max.kbytes", (bytes_max / 1024).clamp(1024, i32::MAX as usize).to_string())
        // as Kafka's own clients choose
        .set("partitioner", "murmur2_random");
    let answers = Answers { writes: writes.clone(), waiting: waiting.clone(), alone: shared.alone.clone() };
    BaseProducer::from_config_and_context(&config, answers).map_err(StoreError::no_answer)
}
