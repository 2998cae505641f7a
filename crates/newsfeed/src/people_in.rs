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
}

impl PeopleIn {
    /// Reads the settings of each; those of one that is not taken, too, so that mistakes show.
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        #[cfg(feature = "postgres")]
        let in_postgres = PeopleIn::Postgres(postgres(settings)?);
        settings.text("people", |word| match word {
            "embedded" => Some(Ok(PeopleIn::Embedded)),
            #[cfg(feature = "postgres")]
            "postgres" => Some(Ok(in_postgres.clone())),
            #[cfg(not(feature = "postgres"))]
            "postgres" => Some(Err(SettingError::NotBuiltIn { store: "PostgreSQL", feature: "postgres" })),
            _ => None,
        })?
    }

    /// The word of the setting.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            PeopleIn::Embedded => "embedded",
            #[cfg(feature = "postgres")]
            PeopleIn::Postgres(_) => "postgres",
        }
    }

    /// Opens the server's store. None where they are in this process.
    pub(crate) fn open(&self, durability: Durability) -> Result<Option<Arc<dyn People>>, StoreError> {
        #[cfg(not(feature = "postgres"))]
        let _ = durability;
        match self {
            PeopleIn::Embedded => Ok(None),
            #[cfg(feature = "postgres")]
            PeopleIn::Postgres(options) => {
                let options = tidemark_store::postgres::Options { durability, ..options.clone() };
                Ok(Some(tidemark_store::postgres::PostgresPeople::open(options)?))
            }
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(settings: &Settings<'_>) -> Result<tidemark_store::postgres::Options, SettingError> {
    let options = tidemark_store::postgres::Options {
        // the check tells mistakes without the password
        url: settings.text("postgres", |url| Some(url.to_owned()))?,
        connections: settings.value("postgres_connections", 1..=256)?,
        waiting_max: settings.value("store_waiting_max", 1..=1_000_000)?,
        timeout: std::time::Duration::from_secs(settings.value("store_timeout_s", 1..=3600)?),
        start_timeout: std::time::Duration::from_secs(settings.value("store_start_timeout_s", 1..=3600)?),
        ..Default::default()
    };
    options.check()?;
    Ok(options)
}
