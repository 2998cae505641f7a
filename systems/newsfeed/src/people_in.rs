//! Where participants and friends are: read from the settings, and opened.

use std::sync::Arc;

use tidemark_service::{SettingError, Settings};
use tidemark_store::people::People;
use tidemark_store::{Durability, StoreError};

/// Where participants and friends are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeopleIn {
    /// In this process.
    Embedded,
    #[cfg(feature = "postgres")]
    Postgres(tidemark_store::postgres::Options),
    #[cfg(feature = "mariadb")]
    Mariadb(tidemark_store::mariadb::Options),
}

impl PeopleIn {
    /// Reads the settings of each; those of one that is not taken, too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        #[cfg(feature = "postgres")]
        let in_postgres = PeopleIn::Postgres(tidemark_store::postgres::Options::reach(
            settings.reach("postgres", "postgres_connections")?,
        )?);
        #[cfg(feature = "mariadb")]
        let in_mariadb = PeopleIn::Mariadb(tidemark_store::mariadb::Options::reach(
            settings.reach("mariadb", "mariadb_connections")?,
        )?);
        settings.text("people", |word| match word {
            "embedded" => Some(Ok(PeopleIn::Embedded)),
            #[cfg(feature = "postgres")]
            "postgres" => Some(Ok(in_postgres.clone())),
            #[cfg(not(feature = "postgres"))]
            "postgres" => Some(Err(SettingError::NotBuiltIn { store: "PostgreSQL", feature: "postgres" })),
            #[cfg(feature = "mariadb")]
            "mariadb" => Some(Ok(in_mariadb.clone())),
            #[cfg(not(feature = "mariadb"))]
            "mariadb" => Some(Err(SettingError::NotBuiltIn { store: "MariaDB", feature: "mariadb" })),
            _ => None,
        })?
    }

    /// The word of the setting.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            PeopleIn::Embedded => "embedded",
            #[cfg(feature = "postgres")]
            PeopleIn::Postgres(_) => "postgres",
            #[cfg(feature = "mariadb")]
            PeopleIn::Mariadb(_) => "mariadb",
        }
    }

    /// Opens the server's store. None where they are in this process.
    pub(crate) fn open(&self, durability: Durability) -> Result<Option<Arc<dyn People>>, StoreError> {
        #[cfg(not(any(feature = "mariadb", feature = "postgres")))]
        let _ = durability;
        match self {
            PeopleIn::Embedded => Ok(None),
            #[cfg(feature = "postgres")]
            PeopleIn::Postgres(options) => {
                let options = tidemark_store::postgres::Options { durability, ..options.clone() };
                Ok(Some(tidemark_store::postgres::PostgresPeople::open(options)?))
            }
            #[cfg(feature = "mariadb")]
            PeopleIn::Mariadb(options) => {
                let options = tidemark_store::mariadb::Options { durability, ..options.clone() };
                Ok(Some(tidemark_store::mariadb::MariadbPeople::open(options)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::stores::Choice;
    use tidemark_service::{SettingError, Settings};

    fn read(pairs: &[(&str, &str)]) -> Result<Choice, SettingError> {
        let given = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Choice::read(&Settings::new(crate::settings::SETTINGS, &given))
    }

    #[test]
    fn everything_is_here_and_nothing_cached_unless_told_otherwise() {
        let choice = read(&[]).unwrap();
        assert_eq!((choice.people.name(), choice.cache.name(), choice.is_here()), ("embedded", "off", true));
        let error = read(&[("people", "redis")]).unwrap_err().to_string();
        assert!(error.contains("embedded, postgres or mariadb"), "{error}");
        assert_eq!(read(&[("cache", "embedded")]).unwrap().cache.name(), "embedded");
    }

    #[cfg(not(all(feature = "mariadb", feature = "postgres", feature = "redis")))]
    #[test]
    fn a_store_that_was_not_built_in_says_how_to_have_it() {
        let missing = [
            #[cfg(not(feature = "mariadb"))]
            ("people", "mariadb"),
            #[cfg(not(feature = "postgres"))]
            ("people", "postgres"),
            #[cfg(not(feature = "redis"))]
            ("cache", "redis"),
        ];
        for (setting, word) in missing {
            let error = read(&[(setting, word)]).unwrap_err().to_string();
            assert!(error.contains(&format!("--features {word}")), "{error}");
        }
    }

    #[cfg(all(feature = "mariadb", feature = "postgres", feature = "redis"))]
    #[test]
    fn each_is_chosen_on_its_own() {
        for people in ["embedded", "postgres", "mariadb"] {
            for cache in ["off", "embedded", "redis"] {
                let choice = read(&[("people", people), ("cache", cache)]).unwrap();
                assert_eq!((choice.people.name(), choice.cache.name()), (people, cache));
            }
        }
        for (name, url) in [
            ("postgres", "postgres://me:hunter2@host:x/db"),
            ("mariadb", "mysql://me:hunter2@host:x/db"),
            ("redis", "redis://:hunter2@host:x"),
        ] {
            let error = read(&[(name, url)]).unwrap_err().to_string();
            assert!(error.contains("of the form") && !error.contains("hunter2"), "{error}");
            let good = url.replace(":x", "");
            assert!(!format!("{:?}", read(&[(name, &good), ("people", "postgres")])).contains("hunter2"));
        }
    }
}
