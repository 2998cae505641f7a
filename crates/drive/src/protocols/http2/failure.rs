//! What the library says of a stream or a connection, as the back end tells it.

use std::io::{self, ErrorKind};

use h2::Reason;

use crate::io::stream_failure::{self, broken, violation};

pub(super) fn told(error: h2::Error) -> io::Error {
    let reason = error.reason().map_or_else(|| "no reason".to_owned(), |reason| format!("{reason:?}"));
    match (error.is_reset(), error.is_go_away(), error.is_remote()) {
        (true, _, true) => broken(format!("the server reset the stream ({reason})")),
        (_, true, true) => {
            broken(format!("the server is going away ({reason}) and did not take the request"))
        }
        (true, ..) | (_, true, _) => {
            violation(format!("what the server sent is not right in HTTP/2 ({reason})"))
        }
        _ if error.is_io() => error.into_io().unwrap_or_else(|| ErrorKind::ConnectionReset.into()),
        _ => violation(format!("HTTP/2: {error}")),
    }
}

/// Whether the server says that it has done nothing about this request, so that it may be sent again: it ends the connection
/// in order, and the stream is behind the last one that the GOAWAY names (RFC 9113, 6.8); or it refuses the stream (8.7).
pub(super) fn was_not_taken(error: &h2::Error) -> bool {
    let is_left = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (is_left || is_refused)
}

/// Of a request that was [not taken](was_not_taken).
pub(super) fn untaken(error: &h2::Error) -> io::Error {
    stream_failure::untaken(match error.is_reset() {
        true => "the server refused the stream (REFUSED_STREAM) and did not take the request",
        false => "the server is going away (NO_ERROR) and did not take the request",
    })
}

/// Of a request that was not sent, since its connection takes no more of them.
pub(super) fn unsent() -> io::Error {
    stream_failure::untaken("the server is going away, and the connection takes no further request")
}

/// Of a request whose answer had begun when the server said that it had [not taken](was_not_taken) it.
pub(super) fn left_within(error: &h2::Error) -> io::Error {
    broken(match error.is_reset() {
        true => "the server refused the stream (REFUSED_STREAM) though its answer had begun",
        false => "the server is going away (NO_ERROR) and left its answer, which had begun, unfinished",
    })
}
