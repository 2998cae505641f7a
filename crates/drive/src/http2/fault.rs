//! What ends a stream other than its answer, in words.

use std::io::{self, ErrorKind};

/// What went wrong over HTTP/2.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(crate) struct Http2Fault {
    /// Whether what came broke the protocol.
    pub is_violation: bool,
    words: String,
}

/// The fault in an I/O error, where it is one of ours.
pub(crate) fn of(error: &io::Error) -> Option<&Http2Fault> {
    error.get_ref()?.downcast_ref()
}

/// What the library says, as the back end tells it.
pub(super) fn told(error: h2::Error) -> io::Error {
    let reason = error.reason().map_or_else(|| "no reason".to_owned(), |reason| format!("{reason:?}"));
    let (is_violation, words) = match (error.is_reset(), error.is_go_away(), error.is_remote()) {
        (true, _, true) => (false, format!("the server reset the stream ({reason})")),
        (_, true, true) => {
            (false, format!("the server is going away ({reason}) and did not take the request"))
        }
        (true, ..) | (_, true, _) => {
            (true, format!("what the server sent is not right in HTTP/2 ({reason})"))
        }
        _ if error.is_io() => return error.into_io().unwrap_or_else(|| ErrorKind::ConnectionReset.into()),
        _ => (true, format!("HTTP/2: {error}")),
    };
    let kind = if is_violation { ErrorKind::InvalidData } else { ErrorKind::ConnectionReset };
    io::Error::new(kind, Http2Fault { is_violation, words })
}

/// A request that could not be sent.
pub(super) fn unsendable(words: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, Http2Fault { is_violation: true, words })
}

/// The same error for one more of those whom it concerns.
pub(super) fn again(error: &io::Error) -> io::Error {
    match of(error) {
        None => io::Error::new(error.kind(), error.to_string()),
        Some(Http2Fault { is_violation, words }) => {
            let (is_violation, words) = (*is_violation, words.clone());
            io::Error::new(error.kind(), Http2Fault { is_violation, words })
        }
    }
}
