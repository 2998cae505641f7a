//! The sending end: what lies ready goes into a transaction, until that is committed.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use super::log::{Log, Record};
use super::{Quiet, TURN, Topic};
use crate::end::Source as _;
use crate::remote::{Link, Message, Options, Outgoing, RemoteError, spawn, write};
use crate::{Batch, Receiver, Sender};

/// Most messages of a transaction, and bytes after which no more are added.
const BATCH_MESSAGES: usize = 10_000;
const BATCH_BYTES: usize = 4 << 20;
/// How long messages are gathered: a transaction takes longer than thousands of them.
const GATHERING: Duration = Duration::from_millis(5);
/// A transaction of a sender that is gone holds receivers up for so long, unless the next sender comes sooner.
const TRANSACTION_MAX: Duration = Duration::from_secs(10);
/// What a record may have beside its message, bytes.
const RECORD_BYTES: usize = 1 << 10;
/// Wait before it is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes a link to a topic. What goes into the [`Sender`] (and its clones) is in the topic once it is
/// [acknowledged](Outgoing::acknowledged). A sender that was at the topic before is fenced.
///
/// # Errors
/// If the topic does not answer in time ([`Options::within`]), holds what is no message of a queue, or its queue has ended.
pub fn send<T: Message>(topic: &Topic, options: Options) -> Result<(Sender<T>, Outgoing), RemoteError> {
    let (producer, end) = begin(topic, options)?;
    if end.is_last {
        return Err(refuse(topic, "the queue in it has ended"));
    }
    let (sender, receiver) = options.queue.queue();
    let outgoing = Outgoing::new(end.next);
    let (topic, link, next) = (topic.clone(), outgoing.link(), end.next);
    let sending = Sending { topic, options, producer: Some(producer), receiver, link, next };
    spawn("queue sender", move || sending.run())?;
    Ok((sender, outgoing))
}

fn refuse(topic: &Topic, why: &str) -> RemoteError {
    RemoteError::Refused(format!("topic {}: {why}", topic.name))
}

/// Where a topic's messages end.
struct TopicEnd {
    next: u64,
    /// The last record is the end of the queue.
    is_last: bool,
}

/// A producer that has fenced those before it, and where the topic ends.
fn begin(topic: &Topic, options: Options) -> Result<(BaseProducer<Quiet>, TopicEnd), RemoteError> {
    let bytes_max = options.message_bytes_max + RECORD_BYTES;
    let mut config = topic.config();
    config
        .set("transactional.id", format!("tidemark-queue-{}-{}", topic.name, topic.partition))
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("transaction.timeout.ms", TRANSACTION_MAX.as_millis().to_string())
        .set("message.max.bytes", bytes_max.to_string())
        // how long it waits for the end of the transaction before
        .set("retry.backoff.ms", "20")
        .set("linger.ms", "0");
    let failed = |error| permanent(topic, &error).unwrap_or_else(|| topic.unreachable(error));
    let producer = BaseProducer::from_config_and_context(&config, Quiet).map_err(failed)?;
    producer.init_transactions(options.within).map_err(failed)?;
    let mut log = Log::open(topic, options.message_bytes_max, options.within).map_err(failed)?;
    let (low, last) = log.last().map_err(failed)?;
    let end = match last {
        Some(Record::Message { number, .. }) => TopicEnd { next: number + 1, is_last: false },
        Some(Record::End { number, .. }) => TopicEnd { next: number + 1, is_last: true },
        None if low == 0 => TopicEnd { next: 0, is_last: false },
        Some(Record::Foreign) => return Err(refuse(topic, "it holds what is no message of a queue")),
        None => {
            return Err(refuse(topic, "all that was in it is deleted, so that the next number is not known"));
        }
    };
    Ok((producer, end))
}

/// What an error that does not pass by itself means.
fn permanent(topic: &Topic, error: &KafkaError) -> Option<RemoteError> {
    match error.rdkafka_error_code()? {
        RDKafkaErrorCode::Fenced
        | RDKafkaErrorCode::ProducerFenced
        | RDKafkaErrorCode::InvalidProducerEpoch => {
            Some(refuse(topic, "another sender has taken the place of this one"))
        }
        RDKafkaErrorCode::MessageSizeTooLarge
        | RDKafkaErrorCode::InvalidMessage
        | RDKafkaErrorCode::TopicAuthorizationFailed
        | RDKafkaErrorCode::TransactionalIdAuthorizationFailed => Some(refuse(topic, &error.to_string())),
        _ => None,
    }
}

struct Sending<T> {
    topic: Topic,
    options: Options,
    /// None where it is of no more use.
    producer: Option<BaseProducer<Quiet>>,
    receiver: Receiver<T>,
    link: Arc<Link>,
    /// The number of the message that comes next.
    next: u64,
}

impl<T: Message> Sending<T> {
    fn run(mut self) {
        let outcome = loop {
            if self.link.is_given_up() {
                break Err(self.unfinished());
            }
            if self.receiver.end.wait(Some(Instant::now() + TURN)) {
                if let Err(error) = self.send() {
                    break Err(error);
                }
            } else if self.receiver.end.source.is_over() {
                let failure = self.receiver.failure().map(|failure| failure.to_string());
                break self.store(&[Record::End { number: self.next, failure }]);
            }
        };
        // senders learn of it
        drop(self.receiver);
        self.link.end(outcome);
    }

    fn unfinished(&self) -> RemoteError {
        RemoteError::Unfinished { acknowledged: self.next }
    }

    /// Has what lies ready stored, as far as a transaction goes.
    fn send(&mut self) -> Result<(), RemoteError> {
        let (mut records, mut bytes, mut refused) = (Vec::new(), 0, None);
        let until = Some(Instant::now() + GATHERING);
        while records.len() < BATCH_MESSAGES
            && bytes < BATCH_BYTES
            && refused.is_none()
            && self.receiver.end.wait(until)
        {
            for message in Batch::new(&mut self.receiver.end.source, (BATCH_MESSAGES - records.len()) as u64)
            {
                let number = self.next + records.len() as u64;
                match write(&message, number, self.options.message_bytes_max) {
                    Ok(payload) => {
                        bytes += payload.len() + RECORD_BYTES;
                        records.push(Record::Message { number, payload });
                        if bytes >= BATCH_BYTES {
                            break;
                        }
                    }
                    Err(error) => {
                        refused = Some(error);
                        break;
                    }
                }
            }
        }
        if !records.is_empty() {
            self.store(&records)?;
        }
        let Some(error) = refused else { return Ok(()) };
        self.store(&[Record::End { number: self.next, failure: Some(error.to_string()) }])?;
        Err(error)
    }

    /// Has all of these records stored, once.
    fn store(&mut self, records: &[Record]) -> Result<(), RemoteError> {
        let behind = self.next + records.len() as u64;
        loop {
            let stored = self.producer.as_ref().map(|producer| self.transaction(producer, records));
            match stored {
                Some(Ok(())) => break,
                Some(Err(error)) => {
                    self.producer = None;
                    if let Some(error) = permanent(&self.topic, &error) {
                        return Err(error);
                    }
                }
                None => thread::sleep(PAUSE),
            }
            if self.link.is_given_up() {
                return Err(self.unfinished());
            }
            // nobody knows whether it is there
            match begin(&self.topic, self.options) {
                Ok((producer, end)) if end.next == self.next || end.next == behind => {
                    self.producer = Some(producer);
                    if end.next == behind {
                        break;
                    }
                }
                Ok(_) => return Err(refuse(&self.topic, "another sender has sent meanwhile")),
                Err(RemoteError::Unreachable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.next = behind;
        self.link.set_acknowledged(behind);
        Ok(())
    }

    fn transaction(&self, producer: &BaseProducer<Quiet>, records: &[Record]) -> KafkaResult<()> {
        producer.begin_transaction()?;
        for record in records {
            let payload = if let Record::Message { payload, .. } = record { &payload[..] } else { &[] };
            let mut record = BaseRecord::<(), [u8]>::to(&self.topic.name)
                .partition(self.topic.partition)
                .payload(payload)
                .headers(record.headers());
            while let Err((error, again)) = producer.send(record) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(error);
                }
                producer.poll(TURN);
                record = again;
            }
        }
        producer.commit_transaction(TRANSACTION_MAX)
    }
}
