//! Why an airline cannot be served.

use tidemark_service::{ServiceError, SettingError};
use tidemark_store::StoreError;

/// Why an airline cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AirlineError {
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
    /// The store cannot be opened or filled.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server cannot serve.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The operating system refused something.
    #[error("the airline could not start: {0}")]
    Start(#[from] std::io::Error),
}
