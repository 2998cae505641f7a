//! What can be set about an airline.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use tidemark_service::{Limits, Setting, Settings};
use tidemark_store::Durability;

use crate::customers::CUSTOMERS_MAX;
use crate::error::AirlineError;
use crate::stores::Choice;
use crate::timetable::DAYS_MAX;

/// How to serve an airline.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The directory of the store; needed for any durability but `memory`.
    pub data_dir: Option<PathBuf>,
    /// What an acknowledged write is worth.
    pub durability: Durability,
    /// Worker threads; as many as there are processors where nothing is said.
    pub workers: Option<usize>,
    /// Settings by name; [`settings`] lists them.
    pub settings: BTreeMap<String, String>,
    /// Whether to print `listening http://ADDRESS` on standard output.
    pub announce: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 9080)),
            data_dir: None,
            durability: Durability::default(),
            workers: None,
            settings: BTreeMap::new(),
            announce: true,
        }
    }
}

/// Most sessions or bookings that can be allowed.
const RECORDS_MAX: u64 = 1_000_000_000;

const SETTINGS: &[Setting] = &[
    Setting {
        name: "customers",
        default: "200",
        allowed: "1 to 10000000",
        help: "customers made at the start, uid0@email.com and so on; those that are there already are kept",
    },
    Setting {
        name: "days",
        default: "30",
        allowed: "1 to 366",
        help: "days of flights on offer, from today (UTC) on; the published traffic wants at least 13",
    },
    Setting {
        name: "session_hours",
        default: "24",
        allowed: "1 to 8760",
        help: "how long a login lasts; using it does not prolong it",
    },
    Setting {
        name: "sessions_max",
        default: "10000000",
        allowed: "1 to 1000000000",
        help: "sessions kept at once; a login beyond that is answered 503",
    },
    Setting {
        name: "bookings_max",
        default: "20000000",
        allowed: "1 to 1000000000",
        help: "bookings kept at once; a booking beyond that is answered 503",
    },
    Setting {
        name: "customers_in",
        default: "embedded",
        allowed: "embedded or postgres",
        help: "where customers are kept: in this process, or in PostgreSQL",
    },
    Setting {
        name: "sessions_in",
        default: "embedded",
        allowed: "embedded, postgres or redis",
        help: "where sessions are kept: in this process, in PostgreSQL, or in Redis",
    },
    Setting {
        name: "bookings_in",
        default: "embedded",
        allowed: "embedded or postgres",
        help: "where bookings are kept: in this process, or in PostgreSQL",
    },
    #[cfg(feature = "postgres")]
    Setting {
        name: "postgres",
        default: "postgres://postgres@127.0.0.1:5432/postgres",
        allowed: "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        help: "where PostgreSQL is; the tables are made in the schema tidemark of that database",
    },
    #[cfg(feature = "postgres")]
    Setting {
        name: "postgres_connections",
        default: "16",
        allowed: "1 to 256",
        help: "connections to PostgreSQL; many requests share one",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis",
        default: "redis://127.0.0.1:6379",
        allowed: "redis://USER:PASSWORD@HOST:PORT/NUMBER",
        help: "where Redis is; the database with that number must hold nothing else",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis_connections",
        default: "2",
        allowed: "1 to 256",
        help: "connections to Redis; many requests share one",
    },
    #[cfg(feature = "redis")]
    Setting {
        name: "redis_durability",
        default: "same",
        allowed: "same, memory, buffered or synced",
        help: "what an acknowledged session is to be worth in Redis; same: as all else",
    },
    #[cfg(any(feature = "postgres", feature = "redis"))]
    Setting {
        name: "store_timeout_s",
        default: "5",
        allowed: "1 to 3600",
        help: "seconds that an answer of PostgreSQL or Redis is waited for; then the request is answered 503",
    },
    #[cfg(any(feature = "postgres", feature = "redis"))]
    Setting {
        name: "store_start_timeout_s",
        default: "30",
        allowed: "1 to 3600",
        help: "seconds that the start waits for PostgreSQL or Redis to be there",
    },
    #[cfg(any(feature = "postgres", feature = "redis"))]
    Setting {
        name: "store_waiting_max",
        default: "8192",
        allowed: "1 to 1000000",
        help: "requests to PostgreSQL or Redis that wait at once, for each; one more is answered 503",
    },
    Limits::CONNECTIONS_MAX,
    Setting {
        name: "body_bytes_max",
        default: "1048576",
        allowed: "1024 to 67108864",
        help: "size of a request body; a larger one is answered 413",
    },
    Limits::HELD_MIB_MAX,
    Limits::HEAD_TIMEOUT_S,
    Limits::STOP_DEADLINE_S,
];

/// All settings, for help texts.
pub fn settings() -> &'static [Setting] {
    SETTINGS
}

/// Whether a setting can be served with.
///
/// # Errors
/// That it is unknown, or does not take this value.
pub fn check_setting(name: &str, value: &str) -> Result<(), AirlineError> {
    Values::read(&BTreeMap::from([(name.to_owned(), value.to_owned())])).map(drop)
}

/// The settings as values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) customers: u64,
    pub(crate) days: u32,
    pub(crate) session_ms: i64,
    pub(crate) sessions_max: u64,
    pub(crate) bookings_max: u64,
    pub(crate) choice: Choice,
    pub(crate) limits: Limits,
}

impl Values {
    /// Reads settings; names the nearest right one for a wrong name.
    pub(crate) fn read(given: &BTreeMap<String, String>) -> Result<Self, AirlineError> {
        let settings = Settings::new(SETTINGS, given);
        // before the names, since the settings of a store that was not built in are unknown
        let choice = Choice::read(&settings)?;
        settings.check_names()?;
        let hours: i64 = settings.value("session_hours", 1..=8760)?;
        let limits = Limits {
            body_bytes_max: settings.value("body_bytes_max", 1024..=64 * 1024 * 1024)?,
            ..Limits::read(&settings)?
        };
        Ok(Values {
            customers: settings.value("customers", 1..=CUSTOMERS_MAX)?,
            days: settings.value("days", 1..=DAYS_MAX)?,
            session_ms: hours * 3_600_000,
            sessions_max: settings.value("sessions_max", 1..=RECORDS_MAX)?,
            bookings_max: settings.value("bookings_max", 1..=RECORDS_MAX)?,
            choice,
            limits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Values, AirlineError> {
        Values::read(&pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    #[test]
    fn what_is_not_set_is_as_the_table_says() {
        let values = read(&[]).unwrap();
        assert_eq!((values.customers, values.days, values.session_ms), (200, 30, 86_400_000));
        assert_eq!(values.limits, Limits::default());
        assert_eq!(read(&[("customers", "3000000")]).unwrap().customers, 3_000_000);
    }

    #[test]
    fn a_wrong_name_is_told_the_nearest_right_one() {
        let error = read(&[("custmers", "5")]).unwrap_err().to_string();
        assert!(error.contains("custmers") && error.contains("did you mean customers?"), "{error}");
    }

    #[test]
    fn a_wrong_value_is_told_what_is_allowed() {
        for (name, value) in [("days", "0"), ("days", "367"), ("days", "many"), ("customers", "-1")] {
            let setting = SETTINGS.iter().find(|setting| setting.name == name).unwrap();
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains(value) && error.contains(setting.allowed),
                "{error}"
            );
        }
    }
}
