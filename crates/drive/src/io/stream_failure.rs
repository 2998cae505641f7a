//! What ends a stream of a shared connection (HTTP/2, remote calls, a pipeline) other than its answer, in words.

use std::io::{self, ErrorKind};

/// What went wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{words}")]
pub(crate) struct StreamFailure {
    /// Whether it is against the protocol.
    pub is_violation: bool,
    /// Whether the request was sent and the server said that it did nothing about it.
    is_untaken: bool,
    words: String,
}

/// The failure in an I/O error, where it is one of ours.
pub(crate) fn of(error: &io::Error) -> Option<&StreamFailure> {
    error.get_ref()?.downcast_ref()
}

/// Something against the protocol.
pub(crate) fn violation(words: impl Into<String>) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        StreamFailure { is_violation: true, is_untaken: false, words: words.into() },
    )
}

/// A request that could not be sent.
pub(crate) fn unsendable(words: impl Into<String>) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidInput,
        StreamFailure { is_violation: true, is_untaken: false, words: words.into() },
    )
}

/// The end of a stream or of its connection.
pub(crate) fn broken(words: impl Into<String>) -> io::Error {
    io::Error::new(
        ErrorKind::ConnectionReset,
        StreamFailure { is_violation: false, is_untaken: false, words: words.into() },
    )
}

/// A request that was sent, and about which the server did nothing as it says.
pub(crate) fn untaken(words: impl Into<String>) -> io::Error {
    let failure = StreamFailure { is_violation: false, is_untaken: true, words: words.into() };
    io::Error::new(ErrorKind::ConnectionReset, failure)
}

/// A request that is given up because another one of its connection timed out: the server said nothing.
pub(crate) fn timed_out(words: impl Into<String>) -> io::Error {
    let failure = StreamFailure { is_violation: false, is_untaken: false, words: words.into() };
    io::Error::new(ErrorKind::TimedOut, failure)
}

/// Whether an error is of a request that is given up as [another timed out](timed_out).
pub(crate) fn is_time_out(error: &io::Error) -> bool {
    error.kind() == ErrorKind::TimedOut && of(error).is_some()
}

/// Whether an error is of an [untaken] request.
pub(crate) fn is_untaken(error: &io::Error) -> bool {
    of(error).is_some_and(|failure| failure.is_untaken)
}

/// The same error for one more of those whom it concerns.
pub(crate) fn again(error: &io::Error) -> io::Error {
    match of(error) {
        None => io::Error::new(error.kind(), error.to_string()),
        Some(failure) => io::Error::new(error.kind(), failure.clone()),
    }
}
