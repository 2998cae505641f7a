//! Why an intake cannot be served.

use tidemark_service::{ServiceError, SettingError};
use tidemark_store::StoreError;

/// Why an intake cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// A setting is not one, or has a value that it does not take.
    #[error(transparent)]
    Setting(#[from] SettingError),
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
    #[error("what its servers acknowledge is {given}, not {wanted}; ask for durability {given}, or {remedy}")]
    LessDurable {
        /// What they keep.
        given: tidemark_store::Durability,
        /// What was asked for.
        wanted: tidemark_store::Durability,
        /// What would make them keep it.
        remedy: &'static str,
    },
    /// A buffer keeps more than was asked for.
    #[error("a buffer has messages on disk; with it, ask for durability buffered or synced")]
    BufferOnDisk,
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server cannot serve.
    #[error(transparent)]
    Service(#[from] ServiceError),
}
