//! What can be set about an intake.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use tidemark_service::{Limits, Setting, Settings};
use tidemark_store::Durability;

use crate::buffer::Buffer;
use crate::error::IngestError;
use crate::stores::Kind;

/// How to serve an intake.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The directory of the store; needed for any durability but `memory`.
    pub data_dir: Option<PathBuf>,
    /// What an acknowledged message is worth.
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

const SETTINGS: &[Setting] = &[
    Setting {
        name: "waiting_max",
        default: "8192",
        allowed: "1 to 1000000",
        help: "messages that wait for the store at once; one more is answered 503 with Retry-After, or held back a little where many are",
    },
    Setting {
        name: "memory_mb",
        default: "384",
        allowed: "1 to 1000000",
        help: "megabytes of messages kept with durability memory; a message beyond that is answered 503",
    },
    Setting {
        name: "store",
        default: "embedded",
        allowed: "embedded or cassandra",
        help: "where messages are kept: in this process, or in Apache Cassandra",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "contact",
        default: "127.0.0.1:9042",
        allowed: "HOST:PORT, several with commas between",
        help: "store=cassandra: addresses of some of its nodes; the others are learnt from them",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "keyspace",
        default: "tidemark",
        allowed: "up to 48 small letters, digits and underscores",
        help: "store=cassandra: the keyspace of its tables; made if it is not there",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "replication",
        default: "auto",
        allowed: "1 to 9, or auto",
        help: "store=cassandra: on how many nodes each message is kept; auto: as many as contact names, at most 3",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "consistency",
        default: "quorum",
        allowed: "one, quorum, local-quorum or all",
        help: "store=cassandra: how many of these acknowledge a message; so many are read that none is missed",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "in_flight",
        default: "1024",
        allowed: "1 to 100000",
        help: "store=cassandra: writes sent and not answered at once; more wait their turn",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "node_connections",
        default: "1",
        allowed: "1 to 64",
        help: "store=cassandra: connections of each worker to each node",
    },
    #[cfg(feature = "cassandra")]
    Setting {
        name: "timeout_s",
        default: "10",
        allowed: "1 to 3600",
        help: "store=cassandra: how many seconds an answer is waited for, retries included",
    },
    Setting {
        name: "buffer",
        default: "none",
        allowed: "none or kafka",
        help: "what acknowledges messages before the store has them: nothing, or Apache Kafka; see /behind",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "brokers",
        default: "127.0.0.1:9092",
        allowed: "HOST:PORT, several with commas between",
        help: "buffer=kafka: addresses of some of its brokers; the others are learnt from them",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic",
        default: "tidemark-messages",
        allowed: "up to 249 letters, digits, dots, underscores and hyphens",
        help: "buffer=kafka: the topic; made if it is not there",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic_partitions",
        default: "auto",
        allowed: "1 to 128, or auto",
        help: "buffer=kafka: partitions that the topic is made with; auto: one for each broker",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "topic_replication",
        default: "auto",
        allowed: "1 to 9, or auto",
        help: "buffer=kafka: on how many brokers each message is kept, at least a majority of which has it when it is acknowledged; \
               auto: on all, at most 3",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "group",
        default: "tidemark",
        allowed: "up to 249 letters, digits, dots, underscores and hyphens",
        help: "buffer=kafka: the consumer group; intakes of one group and one store share the work of storing",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "behind_max",
        default: "10000000",
        allowed: "1 to 18446744073709551615",
        help: "buffer=kafka: messages that the store may lack; when it lacks more, the next are answered 503",
    },
    #[cfg(feature = "kafka")]
    Setting {
        name: "buffer_timeout_s",
        default: "10",
        allowed: "1 to 3600",
        help: "buffer=kafka: how many seconds it has to take a message, retries included, and to be reached at the start",
    },
    Limits::CONNECTIONS_MAX,
    Limits::HELD_MIB_MAX,
    Limits::HEAD_TIMEOUT_S,
    Limits::STOP_DEADLINE_S,
];

/// A body may be this much larger than a message, so that one that is too long is told so as a message.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// All settings, for help texts.
pub fn settings() -> &'static [Setting] {
    SETTINGS
}

/// Whether a setting can be served with.
///
/// # Errors
/// That it is unknown, or does not take this value.
pub fn check_setting(name: &str, value: &str) -> Result<(), IngestError> {
    Values::read(&BTreeMap::from([(name.to_owned(), value.to_owned())])).map(drop)
}

/// The settings as values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) waiting_max: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) store: Kind,
    pub(crate) buffer: Buffer,
    pub(crate) limits: Limits,
}

impl Values {
    /// Reads settings; names the nearest right one for a wrong name.
    pub(crate) fn read(given: &BTreeMap<String, String>) -> Result<Self, IngestError> {
        let settings = Settings::new(SETTINGS, given);
        let waiting_max = settings.value("waiting_max", 1..=1_000_000)?;
        // before the names, since the settings of a store that was not built in are unknown
        let store = Kind::read(&settings, waiting_max)?;
        let buffer = Buffer::read(&settings, waiting_max)?;
        settings.check_names()?;
        let limits = Limits { body_bytes_max: BODY_BYTES_MAX, ..Limits::read(&settings)? };
        let memory_mb: u64 = settings.value("memory_mb", 1..=1_000_000)?;
        Ok(Values { waiting_max, store, buffer, memory_bytes: memory_mb * 1024 * 1024, limits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_takes_its_default_and_says_what_it_is() {
        for setting in settings() {
            assert!(check_setting(setting.name, setting.default).is_ok(), "{}", setting.name);
            assert!(!setting.help.is_empty() && !setting.help.contains('\n'));
            let error = check_setting(setting.name, "many!").unwrap_err().to_string();
            assert!(error.contains(setting.name) && error.contains(setting.allowed), "{error}");
        }
    }

    #[test]
    fn a_wrong_name_is_told_the_nearest_right_one() {
        let error = check_setting("waitingmax", "5").unwrap_err().to_string();
        assert!(error.contains("did you mean waiting_max?"), "{error}");
    }
}
