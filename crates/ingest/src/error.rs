//! Why an intake cannot be served.

use tidemark_service::ServiceError;
use tidemark_store::StoreError;

/// Why an intake cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// There is no setting of this name.
    #[error("unknown setting {name:?}; did you mean {nearest}? The settings are {known}")]
    UnknownSetting {
        /// What was given.
        name: String,
        /// The setting that is most like it.
        nearest: &'static str,
        /// All of them.
        known: String,
    },
    /// A setting has a value that it does not take.
    #[error("the setting {name} is {given:?}; allowed is {allowed}")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// What was given.
        given: String,
        /// What would be right.
        allowed: &'static str,
    },
    /// A durable store needs a place.
    #[error("durability {0} needs a data directory; name one, or choose durability memory")]
    NoDirectory(tidemark_store::Durability),
    /// A store that this program was built without.
    #[error(
        "this program was built without {store}; build it with: cargo build --release -p tidemark --features {feature}"
    )]
    NotBuiltIn {
        /// The store.
        store: &'static str,
        /// The cargo feature that has it.
        feature: &'static str,
    },
    /// The store's servers keep less than was asked for.
    #[error(
        "what the store acknowledges is {given}, not {wanted}; ask for durability {given}, or let Cassandra's commit \
         log be synced before it answers (commitlog_sync: batch or group)"
    )]
    LessDurable {
        /// What they keep.
        given: tidemark_store::Durability,
        /// What was asked for.
        wanted: tidemark_store::Durability,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server cannot serve.
    #[error(transparent)]
    Service(#[from] ServiceError),
}
