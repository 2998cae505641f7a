//! What can go wrong before and while serving.

use std::net::SocketAddr;

use tidemark_store::Durability;

use crate::SettingError;

/// Why a system could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}; choose another address or port (port 0 takes any free one)")]
    Listen {
        /// The address that was asked for.
        addr: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A thread or its event loop could not be started.
    #[error("cannot start a worker: {0}; check the limits on threads and open files")]
    Worker(std::io::Error),
    /// The listening socket stopped working.
    #[error("cannot accept connections any more: {0}")]
    Accept(std::io::Error),
    /// The system's own preparation failed: opening its store, loading its data.
    #[error("the system could not start: {0}")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Two methods of services cannot be told apart, or one has a route that cannot be served.
    #[error("the route {verb} {path} cannot be served: {why}")]
    Route {
        /// The method of HTTP.
        verb: &'static str,
        /// The path's pattern.
        path: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A setting of the system is none, or has a value that it does not take.
    #[error(transparent)]
    Settings(#[from] SettingError),
    /// What is durable needs a place.
    #[error("durability {0} needs a data directory; name one, or choose durability memory")]
    NoDirectory(Durability),
    /// A value is outside its bounds.
    #[error("{name} is {given}; allowed is {allowed}")]
    Setting {
        /// Which value.
        name: &'static str,
        /// What was given.
        given: String,
        /// What would be right.
        allowed: &'static str,
    },
}
