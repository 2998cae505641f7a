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
use crate::remote::{Link, Message, Options, Outgoing, RemoteError, random, spawn, write};
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
    let sending = Sending { topic, options, id: random(), producer: Some(producer), receiver, link, next };
    spawn("queue sender", move || sending.run())?;
    Ok((sender, outgoing))
}

fn refuse(topic: &Topic, why: &str) -> RemoteError {
    RemoteError::Refused(format!("topic {}: {why}", topic.name))
}

/// Where a topic's messages end.
#[derive(Default)]
struct TopicEnd {
    next: u64,
    /// Who sent the last record; 0 where nobody is known.
    sender: u64,
    /// The last record is the end of the queue.
    is_last: bool,
}

impl TopicEnd {
    fn of(topic: &Topic, options: Options) -> Result<TopicEnd, RemoteError> {
        let failed = |error| permanent(topic, &error).unwrap_or_else(|| topic.unreachable(error));
        let mut log = Log::open(topic, options.message_bytes_max, options.within).map_err(failed)?;
        let (low, last) = log.last().map_err(failed)?;
        let (number, is_last) = match &last {
            Some(Record::Message { number, .. }) => (*number, false),
            Some(Record::End { number, .. }) => (*number, true),
            None if low == 0 => return Ok(TopicEnd::default()),
            Some(Record::Foreign) => return Err(refuse(topic, "it holds what is no message of a queue")),
            None => {
                let why = "all that was in it is deleted, so that the next number is not known";
                return Err(refuse(topic, why));
            }
        };
        Ok(TopicEnd { next: number + 1, sender: last.map_or(0, |last| last.sender()), is_last })
    }

    /// Whether this sender's records up to this position are in the topic, of which it has stored all up to `next`. None where
    /// another sender has sent since then.
    fn has(&self, sender: u64, next: u64, behind: u64) -> Option<bool> {
        match self.next == next {
            true => Some(false),
            false => (self.next == behind && self.sender == sender).then_some(true),
        }
    }
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
    Ok((producer, TopicEnd::of(topic, options)?))
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
    /// By which its records are known from those of others.
    id: u64,
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
                break self.store(&[Record::End { number: self.next, sender: self.id, failure }]);
            }
        };
        // its senders see that it is closed
        drop(self.receiver);
        self.link.end(outcome);
    }

    fn unfinished(&self) -> RemoteError {
        RemoteError::Unfinished { acknowledged: self.next }
    }

    /// Has what lies ready stored, as far as a transaction goes.
    fn send(&mut self) -> Result<(), RemoteError> {
        let (mut records, mut bytes, mut refused) = (Vec::new(), 0, None);
        let sender = self.id;
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
                        records.push(Record::Message { number, sender, payload });
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
        self.store(&[Record::End { number: self.next, sender, failure: Some(error.to_string()) }])?;
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
            match self.begin_anew(behind) {
                Ok(true) => break,
                Ok(false) | Err(RemoteError::Unreachable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.next = behind;
        self.link.set_acknowledged(behind);
        Ok(())
    }

    /// Becomes the sender again, where nobody knows whether the records up to this position are in the topic, and says
    /// whether they are. It looks before it fences others: one that has sent since then stays.
    fn begin_anew(&mut self, behind: u64) -> Result<bool, RemoteError> {
        let has = |sending: &Self, end: &TopicEnd| {
            let has = end.has(sending.id, sending.next, behind);
            has.ok_or_else(|| refuse(&sending.topic, "another sender has sent meanwhile"))
        };
        has(self, &TopicEnd::of(&self.topic, self.options)?)?;
        let (producer, end) = begin(&self.topic, self.options)?;
        let is_stored = has(self, &end)?;
        self.producer = Some(producer);
        Ok(is_stored)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_sender_has_sent_is_not_taken_for_ones_own() {
        let end = |next, sender| TopicEnd { next, sender, is_last: false };
        // sender 1 has stored 10 messages, and does not know of 2 more
        let has = |end: TopicEnd| end.has(1, 10, 12);
        assert_eq!((has(end(10, 1)), has(end(10, 2))), (Some(false), Some(false)));
        assert_eq!(has(end(12, 1)), Some(true));
        assert_eq!((has(end(12, 2)), has(end(11, 2)), has(end(13, 2))), (None, None, None));
        assert_eq!((has(end(11, 1)), has(TopicEnd::default())), (None, None));
    }
}
