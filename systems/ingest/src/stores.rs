//! Which store an intake has, and how it is opened.

use tidemark_service::{Options, SettingError, Settings, StartError};
use tidemark_store::Durability;
use tidemark_store::messages::{Memory, MessageStore, Tree, TreeOptions};

/// The store that an intake has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In this process.
    Embedded,
    /// In Apache Cassandra.
    #[cfg(feature = "cassandra")]
    Cassandra(tidemark_store::cassandra::Options),
}

impl Kind {
    /// Reads the settings of stores; those of a store that is not taken are read too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>, waiting_max: usize) -> Result<Self, SettingError> {
        let cassandra = Self::cassandra(settings, waiting_max)?;
        let not_built_in = SettingError::NotBuiltIn { store: "Apache Cassandra", feature: "cassandra" };
        settings.text("store", |store| match store {
            "embedded" => Some(Ok(Kind::Embedded)),
            "cassandra" => Some(cassandra.ok_or(not_built_in)),
            _ => None,
        })?
    }

    #[cfg(not(feature = "cassandra"))]
    fn cassandra(_: &Settings<'_>, _: usize) -> Result<Option<Self>, SettingError> {
        Ok(None)
    }

    #[cfg(feature = "cassandra")]
    fn cassandra(settings: &Settings<'_>, waiting_max: usize) -> Result<Option<Self>, SettingError> {
        use tidemark_store::cassandra::{IN_FLIGHT_MAX, Options};
        let contact = settings.text("contact", Options::contact_of)?;
        let replication = settings.text("replication", |text| Options::replication_of(text, &contact))?;
        Ok(Some(Kind::Cassandra(Options {
            contact,
            keyspace: settings.text("keyspace", Options::keyspace_of)?,
            replication,
            consistency: settings.text("consistency", |text| text.parse().ok())?,
            waiting_max,
            in_flight: settings.value("in_flight", 1..=IN_FLIGHT_MAX)?,
            connections: settings.value("node_connections", 1..=64)?,
            timeout: std::time::Duration::from_secs(settings.value("timeout_s", 1..=3600)?),
            ..Options::default()
        })))
    }

    /// Whether its data is in a directory of this process.
    pub(crate) fn is_here(&self) -> bool {
        *self == Kind::Embedded
    }
}

/// The servers of a store, or of a buffer, keep less than was asked for.
#[cfg(any(feature = "cassandra", feature = "kafka"))]
#[derive(Debug, thiserror::Error)]
#[error("what its servers acknowledge is {given}, not {wanted}; ask for durability {given}, or {remedy}")]
pub(crate) struct LessDurable {
    /// What they keep.
    pub(crate) given: Durability,
    /// What was asked for.
    pub(crate) wanted: Durability,
    /// What would make them keep it.
    pub(crate) remedy: &'static str,
}

impl Kind {
    /// Opens it, with so many messages that may wait and, where they are in memory, so many bytes of them.
    pub(crate) fn open(
        &self,
        options: &Options,
        waiting_max: usize,
        memory_bytes: u64,
    ) -> Result<MessageStore, StartError> {
        let durability = options.durability;
        match (self, options.data_dir.as_deref()) {
            (Kind::Embedded, Some(dir)) if durability != Durability::Memory => {
                let tree = TreeOptions { durability, waiting_max, ..TreeOptions::default() };
                Ok(Tree::open(dir, tree)?)
            }
            (Kind::Embedded, _) => Ok(Memory::new(memory_bytes)),
            #[cfg(feature = "cassandra")]
            (Kind::Cassandra(options), _) => cassandra(options.clone(), durability),
        }
    }
}

#[cfg(feature = "cassandra")]
fn cassandra(
    options: tidemark_store::cassandra::Options,
    wanted: Durability,
) -> Result<MessageStore, StartError> {
    let store = tidemark_store::cassandra::Cassandra::open(options)?;
    let given = store.durability();
    let remedy = match given {
        Durability::Memory => "alter the keyspace to durable_writes = true, or name another one",
        _ => "let Cassandra's commit log be synced before it answers (commitlog_sync: batch or group)",
    };
    if given >= wanted { Ok(store) } else { Err(LessDurable { given, wanted, remedy }.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Kind, SettingError> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Kind::read(&Settings::new(crate::settings::SETTINGS, &given), 9)
    }

    #[test]
    fn a_store_that_there_is_not_is_refused() {
        assert_eq!(read(&[]).unwrap(), Kind::Embedded);
        let error = read(&[("store", "shoebox")]).unwrap_err().to_string();
        assert!(error.contains("shoebox") && error.contains("embedded or cassandra"), "{error}");
    }

    #[cfg(not(feature = "cassandra"))]
    #[test]
    fn a_store_that_was_not_built_in_says_how_to_have_it() {
        let settings = [("store", "cassandra"), ("contact", "127.0.0.1:9042")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let error = Kind::read(&Settings::new(crate::settings::SETTINGS, &settings.into()), 9)
            .unwrap_err()
            .to_string();
        assert!(error.contains("--features cassandra"), "{error}");
    }

    #[cfg(feature = "cassandra")]
    #[test]
    fn the_settings_of_cassandra_are_read() {
        use tidemark_store::cassandra::{Consistency, Options};
        let settings = [
            ("store", "cassandra"),
            ("contact", "127.0.0.1:9042, 127.0.0.2:9042"),
            ("replication", "3"),
            ("consistency", "all"),
        ];
        let Ok(Kind::Cassandra(options)) = read(&settings) else { panic!("not Cassandra") };
        let contact = vec!["127.0.0.1:9042".to_owned(), "127.0.0.2:9042".to_owned()];
        let expected = Options {
            contact,
            replication: 3,
            consistency: Consistency::All,
            waiting_max: 9,
            ..Options::default()
        };
        assert_eq!(options, expected);
        for (contact, replication) in [("a:1", 1), ("a:1,b:1,c:1", 3), ("a:1,b:1,c:1,d:1", 3)] {
            let Ok(Kind::Cassandra(options)) = read(&[("store", "cassandra"), ("contact", contact)]) else {
                panic!("not Cassandra")
            };
            assert_eq!(options.replication, replication, "{contact}");
        }
        for (name, value) in
            [("contact", "nowhere"), ("replication", "0"), ("consistency", "some"), ("keyspace", "A-B")]
        {
            assert!(read(&[("store", "cassandra"), (name, value)]).is_err(), "{name}={value}");
        }
    }
}
