//! Where operations are told, one by one: read from the settings, and opened.

use std::path::Path;
use std::sync::Arc;

use tidemark_service::{OperationLog, SettingError, Settings, StartError};
use tidemark_store::events::{Account, EventFile, EventLog, IN_FILE};

use crate::operations::NAMES;

/// Where operations are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventsIn {
    /// Nowhere.
    Off,
    /// In the file that the server is started with, if any.
    File,
    /// In a topic of Apache Kafka.
    #[cfg(feature = "kafka")]
    Kafka(tidemark_store::kafka::Options),
}

impl EventsIn {
    /// Reads the settings of each; those of one that is not taken, too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        let kafka = Self::kafka(settings)?;
        let not_built_in = SettingError::NotBuiltIn { store: "Apache Kafka", feature: "kafka" };
        settings.text("events", |word| match word {
            "off" => Some(Ok(EventsIn::Off)),
            "file" => Some(Ok(EventsIn::File)),
            "kafka" => Some(kafka.ok_or(not_built_in)),
            _ => None,
        })?
    }

    #[cfg(not(feature = "kafka"))]
    fn kafka(_: &Settings<'_>) -> Result<Option<Self>, SettingError> {
        Ok(None)
    }

    #[cfg(feature = "kafka")]
    fn kafka(settings: &Settings<'_>) -> Result<Option<Self>, SettingError> {
        use tidemark_store::kafka::Options;
        let brokers = settings.text("brokers", Options::brokers_of)?;
        let topic = settings.text("topic", Options::name_of)?;
        Ok(Some(EventsIn::Kafka(Options { brokers, topic, ..Options::default() })))
    }

    pub(crate) fn open(&self, file: Option<&Path>) -> Result<Option<Arc<OperationLog>>, StartError> {
        let begin = |place| {
            let account = file.map(|path| {
                Account::begin(path, place)
                    .map_err(|error| format!("cannot write {}: {error}", path.display()))
            });
            account.transpose()
        };
        let (log, account): (Box<dyn EventLog>, _) = match (self, file) {
            (EventsIn::File, Some(path)) => {
                let account = begin(IN_FILE)?;
                (Box::new(EventFile::open(path)?), account)
            }
            (EventsIn::Off, _) | (EventsIn::File, None) => return Ok(None),
            #[cfg(feature = "kafka")]
            (EventsIn::Kafka(options), _) => {
                let events = tidemark_store::kafka::Events::open(options)?;
                (Box::new(events), begin(tidemark_store::events::IN_KAFKA)?)
            }
        };
        Ok(Some(OperationLog::start(&NAMES, log, account)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<EventsIn, String> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        EventsIn::read(&Settings::new(crate::settings::SETTINGS, &given)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_place_that_there_is_not_is_refused_and_a_file_is_written_where_one_is_named() {
        assert!(read(&[("events", "diary")]).unwrap_err().contains("diary"));
        assert_eq!(read(&[]).unwrap(), EventsIn::File);
        assert!(EventsIn::File.open(None).unwrap().is_none());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("told");
        assert!(read(&[("events", "off")]).unwrap().open(Some(&path)).unwrap().is_none() && !path.exists());
        assert!(EventsIn::File.open(Some(&path)).unwrap().is_some() && path.exists());
        let error = EventsIn::File.open(Some(dir.path())).unwrap_err().to_string();
        assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
    }

    #[cfg(not(feature = "kafka"))]
    #[test]
    fn a_topic_that_was_not_built_in_says_how_to_have_it() {
        assert!(read(&[("events", "kafka")]).unwrap_err().contains("--features kafka"));
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn the_settings_of_kafka_are_read() {
        let EventsIn::Kafka(options) = read(&[("events", "kafka"), ("brokers", "a:1, b:2")]).unwrap() else {
            panic!("not Kafka")
        };
        assert_eq!(options.brokers, ["a:1", "b:2"]);
        assert_eq!(options.topic, tidemark_store::events::TOPIC);
        for (name, value) in [("brokers", "nowhere"), ("topic", "a b")] {
            assert!(read(&[(name, value)]).is_err(), "{name}={value}");
        }
    }
}
