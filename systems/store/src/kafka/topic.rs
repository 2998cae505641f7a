//! The topic: made where it is not there, asked for what it promises where it is.

use std::time::{Duration, Instant};

use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::ClientContext;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::topic_partition_list::TopicPartitionList;

use super::link::{ASK_MAX, Quiet, config, learn_leaders, wait};
use super::options::{Options, PARTITIONS_MAX};
use crate::durability::Durability;
use crate::error::StoreError;

/// Brokers that a message is kept on where nothing is said and there are as many.
const REPLICATION_AUTO_MAX: usize = 3;
/// How often is looked whether a topic that was made has its leaders.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A topic that can be used.
pub(super) struct Topic {
    pub(super) partitions: i32,
    /// What a record that it has acknowledged is worth.
    pub(super) durability: Durability,
    /// Deletes what was stored; none where nothing is to be deleted.
    admin: Option<AdminClient<Quiet>>,
}

impl Topic {
    /// One whose records stay where they are.
    #[cfg(test)]
    pub(super) fn of_partitions(partitions: i32) -> Self {
        Topic { partitions, durability: Durability::Buffered, admin: None }
    }

    /// Makes it where it is not there.
    pub(super) fn prepare(options: &Options) -> Result<Self, StoreError> {
        let admin =
            AdminClient::from_config_and_context(&config(options), Quiet).map_err(StoreError::no_answer)?;
        // as long as a message may wait for them: they may be starting, too
        let metadata = all(&admin, options, options.timeout)?;
        match found(&metadata, options) {
            Some(topic) => check(topic, options)?,
            None => make(&admin, metadata.brokers().len(), options)?,
        }
        let partitions = led(&admin, options)?;
        let durability = durability(&admin, options)?;
        Ok(Topic { partitions, durability, admin: Some(admin) })
    }

    /// Lets Kafka delete the records before these offsets.
    pub(super) fn delete_before(&self, offsets: &TopicPartitionList) -> Result<(), StoreError> {
        let Some(admin) = &self.admin else { return Ok(()) };
        let deleted = wait(admin.delete_records(offsets, &asked()))?;
        let deleted =
            deleted.and_then(|deleted| deleted.elements().iter().try_for_each(|partition| partition.error()));
        deleted.map_err(|error| {
            learn_leaders(admin.inner());
            StoreError::no_answer(error)
        })
    }
}

fn asked() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(ASK_MAX)).operation_timeout(Some(ASK_MAX))
}

/// All topics: asking for one by its name would make it.
fn all<C: ClientContext>(
    admin: &AdminClient<C>,
    options: &Options,
    within: Duration,
) -> Result<Metadata, StoreError> {
    admin.inner().fetch_metadata(None, within).map_err(|error| StoreError::Unreachable {
        place: options.brokers.join(", ").into(),
        reason: error.to_string().into(),
    })
}

fn found<'m>(metadata: &'m Metadata, options: &Options) -> Option<&'m MetadataTopic> {
    metadata.topics().iter().find(|topic| topic.name() == options.topic)
}

fn make(admin: &AdminClient<Quiet>, brokers: usize, options: &Options) -> Result<(), StoreError> {
    let few = |count: usize| i32::try_from(count).unwrap_or(i32::MAX).max(1);
    let partitions = options.partitions.unwrap_or_else(|| few(brokers).min(PARTITIONS_MAX));
    let replication = options.replication.unwrap_or_else(|| few(brokers.min(REPLICATION_AUTO_MAX)));
    if usize::try_from(replication).is_ok_and(|replicas| replicas > brokers) {
        let reason = format!("there are {brokers} brokers; set it to {brokers} at most, or start more");
        return Err(StoreError::invalid("so large a replication", reason));
    }
    // a majority: with three, one may be missing
    let in_sync = (replication / 2 + 1).to_string();
    let mut topic = NewTopic::new(&options.topic, partitions, TopicReplication::Fixed(replication))
        .set("min.insync.replicas", &in_sync)
        .set("unclean.leader.election.enable", "false")
        // what is stored is deleted by us, and nothing that is not
        .set("cleanup.policy", "delete")
        .set("retention.ms", "-1")
        .set("retention.bytes", "-1");
    if options.durability == Durability::Synced {
        topic = topic.set("flush.messages", "1");
    }
    let made = wait(admin.create_topics([&topic], &asked()))?.map_err(StoreError::no_answer)?;
    for result in made {
        match result {
            Ok(_) => {}
            // another intake was quicker
            Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => {
                return Err(StoreError::no_answer(format!("the topic {name} cannot be made: {code}")));
            }
        }
    }
    Ok(())
}

/// A topic that is there must be as it was asked for, where it was.
fn check(topic: &MetadataTopic, options: &Options) -> Result<(), StoreError> {
    let name = topic.name();
    let other = |what: &str, found: usize, wanted: i32| {
        let reason = format!(
            "the topic {name} is there and has {found} {what}, not {wanted}; say {found}, or name another topic"
        );
        Err(StoreError::invalid("what is asked for", reason))
    };
    let partitions = topic.partitions();
    let differs = |found: usize, wanted: &i32| usize::try_from(*wanted).ok() != Some(found);
    if let Some(wanted) = options.partitions.filter(|wanted| differs(partitions.len(), wanted)) {
        return other("partitions", partitions.len(), wanted);
    }
    let replicas = partitions.iter().map(|partition| partition.replicas().len()).min().unwrap_or(0);
    if let Some(wanted) = options.replication.filter(|wanted| differs(replicas, wanted)) {
        return other("replicas of each", replicas, wanted);
    }
    Ok(())
}

/// Waits until each partition has a leader; says how many there are.
fn led(admin: &AdminClient<Quiet>, options: &Options) -> Result<i32, StoreError> {
    let begun = Instant::now();
    loop {
        let metadata = all(admin, options, ASK_MAX)?;
        let partitions = found(&metadata, options).map_or(&[][..], MetadataTopic::partitions);
        if !partitions.is_empty() && partitions.iter().all(|partition| partition.leader() >= 0) {
            let count = i32::try_from(partitions.len()).ok().filter(|count| *count <= PARTITIONS_MAX);
            return count.ok_or_else(|| {
                let reason = format!("it has {}, more than {PARTITIONS_MAX}; name another", partitions.len());
                StoreError::invalid("a topic of so many partitions", reason)
            });
        }
        if begun.elapsed() > ASK_MAX {
            let reason = format!("not every partition of the topic {} has a leader", options.topic);
            return Err(StoreError::no_answer(reason));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What a record that the topic has acknowledged is worth, on each of its replicas.
fn durability(admin: &AdminClient<Quiet>, options: &Options) -> Result<Durability, StoreError> {
    let specifier = ResourceSpecifier::Topic(&options.topic);
    let told = wait(admin.describe_configs([&specifier], &asked()))?.map_err(StoreError::no_answer)?;
    let topic =
        told.into_iter().next().ok_or_else(|| StoreError::no_answer("nothing is said of the topic"))?;
    Ok(durability_of(&topic.map_err(StoreError::no_answer)?))
}

fn durability_of(topic: &ConfigResource) -> Durability {
    let is = |name: &str, wanted: &str| {
        topic.get(name).and_then(|entry| entry.value.as_deref()).is_some_and(|value| value == wanted)
    };
    // a leader that was not in sync would take acknowledged records back
    match is("flush.messages", "1") && is("unclean.leader.election.enable", "false") {
        true => Durability::Synced,
        false => Durability::Buffered,
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::admin::{ConfigEntry, ConfigSource, OwnedResourceSpecifier};

    use super::*;

    #[test]
    fn synced_is_what_is_flushed_before_it_counts() {
        let told = |flush: &str, unclean: &str| {
            let entries = [("flush.messages", flush), ("unclean.leader.election.enable", unclean)];
            let entries = entries.map(|(name, value)| ConfigEntry {
                name: name.into(),
                value: Some(value.into()),
                source: ConfigSource::Default,
                is_read_only: false,
                is_default: false,
                is_sensitive: false,
            });
            let specifier = OwnedResourceSpecifier::Topic("t".into());
            durability_of(&ConfigResource { specifier, entries: entries.into() })
        };
        assert_eq!(told("1", "false"), Durability::Synced);
        assert_eq!(told("9223372036854775807", "false"), Durability::Buffered);
        assert_eq!(told("1", "true"), Durability::Buffered);
    }
}
