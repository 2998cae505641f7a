//! What can be set about a buffer in Kafka.

use std::time::Duration;

use crate::durability::Durability;
use crate::error::StoreError;

/// Most waiting messages that can be set.
const WAITING_MAX: usize = 1_000_000;
/// Most partitions that can be set: each is asked once a second how far it is.
pub const PARTITIONS_MAX: i32 = 128;
/// Most replicas that can be set.
pub const REPLICATION_MAX: i32 = 9;
/// Most messages that are stored at once.
pub const BATCH_MESSAGES_MAX: usize = 4096;
/// The longest name of a topic that Kafka takes.
const NAME_LEN_MAX: usize = 249;
/// Shortest wait for an answer that makes sense.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Where Kafka is, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Addresses of some of its brokers, as `HOST:PORT`; the others are learnt from them.
    pub brokers: Vec<String>,
    /// The topic; made if it is not there.
    pub topic: String,
    /// How many partitions the topic is made with; one for each broker where nothing is said.
    pub partitions: Option<i32>,
    /// On how many brokers each message is kept; as many as there are, but at most three, where nothing is said.
    pub replication: Option<i32>,
    /// Who consumes: those of one group share the partitions, and each goes on where the last was.
    pub group: String,
    /// What an acknowledged message shall be worth, where the topic is made.
    pub durability: Durability,
    /// Most messages taken and not answered yet; more are refused.
    pub waiting_max: usize,
    /// So many messages the store behind may lack; when it does, more are refused.
    pub behind_max: u64,
    /// How long Kafka has to take a message, and to be reached when it is opened.
    pub timeout: Duration,
    /// Most messages that are stored at once, at most [`BATCH_MESSAGES_MAX`].
    pub batch_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            brokers: vec!["127.0.0.1:9092".to_owned()],
            topic: "tidemark-messages".to_owned(),
            partitions: None,
            replication: None,
            group: "tidemark".to_owned(),
            durability: Durability::Synced,
            waiting_max: 8192,
            behind_max: 10_000_000,
            timeout: Duration::from_secs(10),
            batch_max: BATCH_MESSAGES_MAX,
        }
    }
}

impl Options {
    /// Brokers with commas between.
    pub fn brokers_of(text: &str) -> Option<Vec<String>> {
        let brokers: Vec<String> = text.split(',').map(|broker| broker.trim().to_owned()).collect();
        brokers.iter().all(|broker| is_address(broker)).then_some(brokers)
    }

    /// The name of a topic, or of a group.
    pub fn name_of(text: &str) -> Option<String> {
        is_name(text).then(|| text.to_owned())
    }

    /// Refuses what cannot work.
    ///
    /// # Errors
    /// Which option, and what it takes.
    pub fn check(&self) -> Result<(), StoreError> {
        let wrong = |what, reason: String| Err(StoreError::invalid(what, reason));
        if self.brokers.is_empty() {
            return wrong("no brokers", "name at least one, as HOST:PORT".into());
        }
        if let Some(broker) = self.brokers.iter().find(|broker| !is_address(broker)) {
            return wrong("the brokers", format!("{broker:?} is not of the form HOST:PORT"));
        }
        for (what, name) in [("the topic", &self.topic), ("the group", &self.group)] {
            if !is_name(name) {
                let reason =
                    format!("{name:?}: 1 to {NAME_LEN_MAX} letters, digits, dots, underscores and hyphens");
                return wrong(what, reason);
            }
        }
        if self.durability == Durability::Memory {
            let reason = "what is in Kafka is on disk; ask for buffered or synced".into();
            return wrong("durability memory", reason);
        }
        let within = |what, value: u64, max: u64| match (1..=max).contains(&value) {
            true => Ok(()),
            false => wrong(what, format!("{value} is not within 1 to {max}")),
        };
        let positive = |value: i32| u64::try_from(value).unwrap_or(0);
        within("the number of partitions", positive(self.partitions.unwrap_or(1)), positive(PARTITIONS_MAX))?;
        within("the replication", positive(self.replication.unwrap_or(1)), positive(REPLICATION_MAX))?;
        within("the number of waiting messages", self.waiting_max as u64, WAITING_MAX as u64)?;
        within("the number of messages to be behind", self.behind_max, u64::MAX)?;
        within("the size of a batch", self.batch_max as u64, BATCH_MESSAGES_MAX as u64)?;
        if self.timeout < TIMEOUT_MIN {
            return wrong("the timeout", format!("{:?} is less than {TIMEOUT_MIN:?}", self.timeout));
        }
        Ok(())
    }
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    // a comma would make it two
    !host.is_empty() && !host.contains(',') && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_name(name: &str) -> bool {
    let fits = (1..=NAME_LEN_MAX).contains(&name.len()) && name != "." && name != "..";
    fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_with_what_can() {
        let good = Options::default;
        assert!(good().check().is_ok());
        let wrong = [
            (Options { brokers: vec![], ..good() }, "at least one"),
            (Options { brokers: vec!["nowhere".into()], ..good() }, "HOST:PORT"),
            (Options { brokers: vec!["a:1,b:2".into()], ..good() }, "HOST:PORT"),
            (Options { topic: "a b".into(), ..good() }, "the topic"),
            (Options { topic: "..".into(), ..good() }, "the topic"),
            (Options { topic: "a".repeat(250), ..good() }, "249"),
            (Options { group: String::new(), ..good() }, "the group"),
            (Options { durability: Durability::Memory, ..good() }, "buffered or synced"),
            (Options { partitions: Some(0), ..good() }, "0 is not within 1 to 128"),
            (Options { partitions: Some(-1), ..good() }, "partitions"),
            (Options { replication: Some(10), ..good() }, "10 is not within 1 to 9"),
            (Options { waiting_max: 0, ..good() }, "waiting"),
            (Options { behind_max: 0, ..good() }, "behind"),
            (Options { batch_max: 0, ..good() }, "batch"),
            (Options { batch_max: BATCH_MESSAGES_MAX + 1, ..good() }, "4097"),
            (Options { timeout: Duration::from_millis(999), ..good() }, "timeout"),
        ];
        for (options, expected) in wrong {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error} does not say {expected}");
        }
    }
}
