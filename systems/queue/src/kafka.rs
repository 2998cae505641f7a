//! A queue with a topic of Apache Kafka between its ends, which may be in two processes and need not run at the same time.
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
//! A link uses one partition of a topic that is there, and has it for itself. Records have the message's number in the header
//! `number`.
//!
//! # What crosses
//!
//! - **Batches.** What lies ready goes into one transaction (idempotent, `acks=all`), 10,000 messages or 4 MiB: all of it is
//!   there for receivers, or none. What a receiver has fetched it hands over together.
//! - **Demand.** Where the queue of the receiving process has no room, its consumer is paused. What is fetched ahead and what
//!   is on its way to the topic is bounded.
//! - **The end.** Senders that are dropped, or [fail](crate::Sender::fail), end the topic's queue for good. A receiver that
//!   goes away is nothing to senders.
//!
//! # What is claimed
//!
//! As far as the topic keeps what it has acknowledged (replication, `min.insync.replicas`, retention), connections that are cut
//! and brokers that stand still or start again lose and double nothing. Nor does the death of either process where what only
//! its memory held is given again: the receiver starts with the position that it stored together with what the messages did
//! ([`Options::position`]), the sender goes on with its log at [`Outgoing::position`]. The README has a table of what is lost
//! otherwise. A receiver that misses a number, since retention has deleted it, fails and says which.
//!
//! How: the transactional id is the topic's, so that Kafka itself fences the sender before. The new one finds the last number
//! that is committed; the one before ends with an error. After an error whose outcome is unknown a sender does the same, and
//! sends what is not there. Receivers read committed records only, pass over numbers that they have, and find the offset of
//! their position by its number. Two receivers with the same position take the same messages: that there is one at a time is their program's to see to.

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

/// Longest wait before it is looked what else has happened.
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

/// The client library would write to standard error; what matters comes as errors.
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
