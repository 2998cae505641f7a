//! What all clients of the brokers have in common.

use std::future::Future;
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;

use super::options::Options;
use crate::error::StoreError;

/// How long a question about topics, offsets and settings may take.
pub(super) const ASK_MAX: Duration = Duration::from_secs(10);
/// Longest wait before a broken connection is made again, milliseconds: a broker that is back is found soon.
const RECONNECT_MS_MAX: u32 = 500;

/// The client library's own words, at the level of debugging: it reports every attempt to reach a broker that is gone.
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "kafka");
    }
}

impl ConsumerContext for Quiet {}

/// What the client library says.
pub(super) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(facility, message, "kafka");
        }
        _ => tracing::debug!(facility, message, "kafka"),
    }
}

/// A configuration with what every client needs.
pub(super) fn config(options: &Options) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", options.brokers.join(","))
        .set("client.id", "tidemark")
        .set("reconnect.backoff.max.ms", RECONNECT_MS_MAX.to_string())
        .set("socket.nagle.disable", "true");
    config
}

/// Has a client ask anew which broker leads what, after a question that one of them did not answer. The library keeps what
/// it knows for a quarter of an hour, also when a broker that was restarted answers that it leads nothing any more: offsets
/// and deletions go to it again and again.
pub(super) fn learn_leaders<C: ClientContext>(client: &Client<C>) {
    // Where nobody answers this either, it is asked again after the next question.
    if let Err(error) = client.fetch_metadata(None, ASK_MAX) {
        tracing::debug!(%error, "kafka: who leads what is not known");
    }
}

/// Waits for the answer to a question of administration. Blocks.
pub(super) fn wait<T>(asked: impl Future<Output = T>) -> Result<T, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(StoreError::no_answer)?;
    Ok(runtime.block_on(asked))
}

/// A thread of this name.
pub(super) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(StoreError::no_answer)
}
