//! Who is there: an entry for each agent, which expires unless the agent puts it again.

use std::time::{Duration, Instant};

use async_nats::jetstream::Context;
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use serde::{Deserialize, Serialize};

use crate::BEAT;
use crate::error::FleetError;

/// The bucket with the agents.
pub(crate) const BUCKET: &str = "tidemark-agents";
/// An agent that has not been heard of for so long is not there.
pub(crate) const EXPIRES: Duration = Duration::from_secs(5);
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Its name, which no other agent has.
    pub name: String,
    /// Tells it from another that had its name before; [`serve`](crate::serve) gives it one.
    pub instance: String,
    /// Version of Tidemark.
    pub version: String,
    /// Version of what it hands over.
    pub handover: u32,
    /// Its machine.
    pub host: String,
    /// Cores that it may use.
    pub cores: usize,
    /// Threads that it drives with.
    pub threads: usize,
    /// Memory of its machine, bytes.
    pub memory_bytes: u64,
    /// What it may drive.
    pub allows: String,
    /// The run that it drives for; none where it is idle.
    pub run: Option<String>,
}

/// Whether a name can be an agent's: it is a part of subjects and a key.
///
/// # Errors
/// In words.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_right) {
        return Err(format!(
            "\"{name}\" cannot be an agent's name; use up to {NAME_BYTES_MAX} letters, digits, - and _"
        ));
    }
    Ok(())
}

/// The bucket of those who are there. It is made as the stream that it is: servers before 2.10 do not say of an account what the
/// client asks before it makes a bucket.
pub(crate) async fn bucket(jetstream: &Context) -> Result<Store, FleetError> {
    if let Ok(store) = jetstream.get_key_value(BUCKET).await {
        return Ok(store);
    }
    let failed = |error: &dyn std::fmt::Display| {
        FleetError::nats("its key-value store (is JetStream on: nats-server -js?)", error)
    };
    let config = stream::Config {
        name: format!("KV_{BUCKET}"),
        subjects: vec![format!("$KV.{BUCKET}.>")],
        max_age: EXPIRES,
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        duplicate_window: EXPIRES,
        storage: StorageType::Memory,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        num_replicas: 1,
        ..stream::Config::default()
    };
    jetstream.create_stream(config).await.map_err(|error| failed(&error))?;
    jetstream.get_key_value(BUCKET).await.map_err(|error| failed(&error))
}

/// Whether no other agent has the name.
pub(crate) async fn is_free(store: &Store, presence: &Presence) -> Result<(), FleetError> {
    let entry = store.get(presence.name.as_str()).await;
    let entry = entry.map_err(|error| FleetError::nats("its key-value store", error))?;
    match entry.and_then(|entry| serde_json::from_slice::<Presence>(&entry).ok()) {
        Some(other) if other.instance != presence.instance => Err(FleetError::Usage(format!(
            "an agent named {} is there already, at {}; give another --name",
            other.name, other.host
        ))),
        _ => Ok(()),
    }
}

/// The same, once the entry of one that was killed has expired.
pub(crate) async fn will_be_free(store: &Store, presence: &Presence) -> Result<(), FleetError> {
    let begun = Instant::now();
    loop {
        match is_free(store, presence).await {
            Err(FleetError::Usage(_)) if begun.elapsed() < EXPIRES + BEAT => {
                tokio::time::sleep(BEAT / 2).await
            }
            known => return known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        assert!(check_name("eu-1").is_ok() && check_name("A_b").is_ok());
        for name in ["", "a.b", "a b", "*", ">", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
