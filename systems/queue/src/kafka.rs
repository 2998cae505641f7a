//! A queue with a topic of Apache Kafka between its ends. They may be in two processes, and need not run at the same time.
//!
//! ```no_run
//! use std::time::Duration;
//! use tidemark_queue::{kafka::{self, Topic}, remote::Options};
//!
//! let orders = Topic::new("127.0.0.1:9092", "orders");
//! // in one process
//! let (mut sender, outgoing) = kafka::send::<u64>(&orders, Options::new())?;
//! sender.send_batch(0..3)?;
//! drop(sender);
//! outgoing.finish(Duration::from_secs(10))?; // the topic has it all
//! // in another one
//! let (mut receiver, _incoming) = kafka::receive::<u64>(&orders, Options::new())?;
//! while let Ok(batch) = receiver.recv_batch() {
//!     println!("{}", batch.sum::<u64>());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A link uses one partition of a topic that exists, and nothing else may write to it. The header `number` of a record has the
//! number of its message.
//!
//! # What crosses
//!
//! - **Batches.** Messages that are ready go into one transaction (idempotent, `acks=all`) of up to 10,000 messages or 4 MiB.
//!   Receivers see all of it, or none. A receiver hands over together what it has fetched.
//! - **Demand.** While the queue of the receiving process is full, its consumer is paused. What is fetched ahead, and what is
//!   on its way to the topic, is bounded.
//! - **The end.** Once all senders are dropped, or one [fails](crate::Sender::fail), the queue in that topic has ended for good.
//!   Senders do not notice a receiver that goes away.
//!
//! # What is claimed
//!
//! All of this holds as far as the topic keeps what it has acknowledged (replication, `min.insync.replicas`, retention).
//! Connections that are cut, and brokers that stand still or start again, lose and double nothing.
//!
//! The same holds where either process is killed, if it gets back what only its memory held. The receiver starts with the
//! position that it stored together with what the messages did ([`Options::position`]). The sender goes on with its log at
//! [`Outgoing::position`]. A receiver for which retention has deleted a message fails, and says which.
//!
//! # One sender at a time
//!
//! The transactional id is the topic's. So Kafka fences the earlier sender when a later one starts, and the earlier one ends
//! with an error. The later one goes on behind the last number that is committed.
//!
//! A sender that does not know whether its transaction was committed looks into the topic. If a later sender has sent messages
//! (each record has its sender's number in the header `sender`), it ends with an error, and the later one goes on. Otherwise it
//! starts anew, and sends what is not in the topic. This fences a later sender that has not sent anything yet: the client
//! library tells no epoch by which that one could be seen.
//!
//! Receivers read committed records only, skip numbers that they have, and find the offset of their position by its number. Two
//! receivers with the same position take the same messages: their program must see to it that there is one at a time.

mod incoming;
mod log;
mod outgoing;

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;

pub use incoming::{Incoming, receive};
pub use outgoing::send;

use crate::remote::RemoteError;
#[cfg(doc)]
use crate::remote::{Options, Outgoing};

/// Longest wait before other things are looked at.
const TURN: Duration = Duration::from_millis(100);

/// One partition of a topic, and who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    brokers: String,
    name: String,
    partition: i32,
    group: String,
}

impl Topic {
    /// Partition 0 of this topic, which must be there; `brokers` as HOST:PORT with commas between.
    pub fn new(brokers: impl Into<String>, name: impl Into<String>) -> Topic {
        let name = name.into();
        Topic { brokers: brokers.into(), group: format!("{name}-receiver"), name, partition: 0 }
    }

    /// Another partition.
    pub fn partition(mut self, partition: i32) -> Topic {
        self.partition = partition;
        self
    }

    /// The group to which a receiver without a position commits what it has taken; `NAME-receiver` unless named.
    pub fn group(mut self, group: impl Into<String>) -> Topic {
        self.group = group.into();
        self
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "tidemark-queue")
            .set("reconnect.backoff.max.ms", "500")
            .set("socket.nagle.disable", "true");
        config
    }

    fn list(&self) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.name, self.partition);
        list
    }

    fn unreachable(&self, error: KafkaError) -> RemoteError {
        let place = format!("partition {} of {} at {}", self.partition, self.name, self.brokers);
        RemoteError::Unreachable { place, reason: error.to_string() }
    }
}

/// Keeps the client library from writing to standard error. What matters comes as an error.
struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, _: KafkaError, _: &str) {}
}

impl ConsumerContext for Quiet {}

impl ProducerContext for Quiet {
    type DeliveryOpaque = ();

    // a record that was not delivered fails its transaction
    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}
