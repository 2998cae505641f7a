//! What ends a stream of a shared connection (HTTP/2, remote calls) other than its answer, in words.

use std::io::{self, ErrorKind};

/// What went wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{words}")]
pub(crate) struct StreamFault {
    /// Whether it is against the protocol.
    pub is_violation: bool,
    words: String,
}

/// The fault in an I/O error, where it is one of ours.
pub(crate) fn of(error: &io::Error) -> Option<&StreamFault> {
    error.get_ref()?.downcast_ref()
}

/// Something against the protocol.
pub(crate) fn violation(words: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, StreamFault { is_violation: true, words: words.into() })
}

/// A request that could not be sent.
pub(crate) fn unsendable(words: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, StreamFault { is_violation: true, words: words.into() })
}

/// The end of a stream or of its connection.
pub(crate) fn broken(words: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::ConnectionReset, StreamFault { is_violation: false, words: words.into() })
}

/// The same error for one more of those whom it concerns.
pub(crate) fn again(error: &io::Error) -> io::Error {
    match of(error) {
        None => io::Error::new(error.kind(), error.to_string()),
        Some(fault) => io::Error::new(error.kind(), fault.clone()),
    }
}
