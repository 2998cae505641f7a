//! What stands in front of the store, if anything does.

use tidemark_service::{ServiceError, SettingError, Settings, StartError};
use tidemark_store::Durability;
use tidemark_store::messages::MessageStore;

#[cfg(feature = "kafka")]
use crate::stores::LessDurable;

/// What takes messages before the store has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// Nothing: a message is acknowledged once the store has it.
    None,
    /// Apache Kafka.
    #[cfg(feature = "kafka")]
    Kafka(tidemark_store::kafka::Options),
}

impl Buffer {
    /// Reads the settings of buffers; those of one that is not taken are read too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>, waiting_max: usize) -> Result<Self, SettingError> {
        let kafka = Self::kafka(settings, waiting_max)?;
        let not_built_in = SettingError::NotBuiltIn { store: "Apache Kafka", feature: "kafka" };
        settings.text("buffer", |buffer| match buffer {
            "none" => Some(Ok(Buffer::None)),
            "kafka" => Some(kafka.ok_or(not_built_in)),
            _ => None,
        })?
    }

    #[cfg(not(feature = "kafka"))]
    fn kafka(_: &Settings<'_>, _: usize) -> Result<Option<Self>, SettingError> {
        Ok(None)
    }

    #[cfg(feature = "kafka")]
    fn kafka(settings: &Settings<'_>, waiting_max: usize) -> Result<Option<Self>, SettingError> {
        use tidemark_store::kafka::{BATCH_MESSAGES_MAX, Options, PARTITIONS_MAX, REPLICATION_MAX};
        let count = |name, max: i32| {
            settings.text(name, |text| match text {
                "auto" => Some(None),
                text => text.parse().ok().filter(|count| (1..=max).contains(count)).map(Some),
            })
        };
        Ok(Some(Buffer::Kafka(Options {
            brokers: settings.text("brokers", Options::brokers_of)?,
            topic: settings.text("topic", Options::name_of)?,
            partitions: count("topic_partitions", PARTITIONS_MAX)?,
            replication: count("topic_replication", REPLICATION_MAX)?,
            group: settings.text("group", Options::name_of)?,
            waiting_max,
            // the store behind takes as many at once
            batch_max: waiting_max.min(BATCH_MESSAGES_MAX),
            behind_max: settings.value("behind_max", 1..=u64::MAX)?,
            timeout: std::time::Duration::from_secs(settings.value("buffer_timeout_s", 1..=3600)?),
            ..Options::default()
        })))
    }

    /// Whether it can promise that.
    #[cfg_attr(not(feature = "kafka"), allow(unused_variables, reason = "nothing promises nothing"))]
    pub(crate) fn check(&self, durability: Durability) -> Result<(), ServiceError> {
        match self {
            Buffer::None => Ok(()),
            #[cfg(feature = "kafka")]
            Buffer::Kafka(_) if durability != Durability::Memory => Ok(()),
            #[cfg(feature = "kafka")]
            Buffer::Kafka(_) => Err(ServiceError::Setting {
                name: "the durability",
                given: durability.to_string(),
                allowed: "buffered or synced with a buffer, which has messages on disk",
            }),
        }
    }

    /// Puts it in front of a store that is as durable as is promised.
    #[cfg_attr(not(feature = "kafka"), allow(unused_variables, reason = "there is nothing to put"))]
    pub(crate) fn before(
        self,
        store: MessageStore,
        durability: Durability,
    ) -> Result<MessageStore, StartError> {
        match self {
            Buffer::None => Ok(store),
            #[cfg(feature = "kafka")]
            Buffer::Kafka(options) => {
                use tidemark_store::kafka::{Buffer, Options};
                let buffer = Buffer::open(Options { durability, ..options }, store)?;
                match buffer.durability() {
                    given if given < durability => Err(LessDurable {
                        given,
                        wanted: durability,
                        remedy: "have the topic flush each batch before it answers (flush.messages=1, \
                                 unclean.leader.election.enable=false) or name a topic that is not there yet",
                    }
                    .into()),
                    _ => Ok(buffer),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemark_service::Settings;

    use super::Buffer;

    fn read(pairs: &[(&str, &str)]) -> Result<Buffer, String> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Buffer::read(&Settings::new(crate::settings::SETTINGS, &given), 9).map_err(|error| error.to_string())
    }

    #[test]
    fn a_buffer_that_there_is_not_is_refused() {
        assert_eq!(read(&[]).unwrap(), Buffer::None);
        let error = read(&[("buffer", "bucket")]).unwrap_err();
        assert!(error.contains("bucket") && error.contains("none or kafka"), "{error}");
    }

    #[cfg(not(feature = "kafka"))]
    #[test]
    fn a_buffer_that_was_not_built_in_says_how_to_have_it() {
        let error = read(&[("buffer", "kafka"), ("brokers", "127.0.0.1:9092")]).unwrap_err();
        assert!(error.contains("--features kafka"), "{error}");
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn the_settings_of_kafka_are_read() {
        use tidemark_store::Durability;
        use tidemark_store::kafka::Options;
        let settings = [
            ("buffer", "kafka"),
            ("brokers", "127.0.0.1:9092, 127.0.0.2:9092"),
            ("topic_partitions", "6"),
            ("behind_max", "1000"),
        ];
        let buffer = read(&settings).unwrap();
        let brokers = vec!["127.0.0.1:9092".to_owned(), "127.0.0.2:9092".to_owned()];
        let expected = Options {
            brokers,
            partitions: Some(6),
            waiting_max: 9,
            batch_max: 9,
            behind_max: 1000,
            ..Options::default()
        };
        assert_eq!(buffer, Buffer::Kafka(expected));
        assert!(buffer.check(Durability::Synced).is_ok() && buffer.check(Durability::Buffered).is_ok());
        let error = buffer.check(Durability::Memory).unwrap_err().to_string();
        assert!(error.contains("buffered or synced"), "{error}");
        for (name, value) in [
            ("brokers", "nowhere"),
            ("topic", "a topic"),
            ("group", ""),
            ("topic_partitions", "129"),
            ("topic_replication", "0"),
            ("behind_max", "0"),
            ("buffer_timeout_s", "0"),
        ] {
            assert!(read(&[("buffer", "kafka"), (name, value)]).is_err(), "{name}={value}");
        }
    }
}
