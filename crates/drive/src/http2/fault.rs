//! What the library says of a stream or a connection, as the back end tells it.

use std::io::{self, ErrorKind};

use h2::Reason;

use crate::stream_fault::{self, broken, violation};

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

/// Whether the server ends the connection in order and has done nothing about this request, so that it may go over another
/// connection: its stream is behind the last one that the GOAWAY names (RFC 9113, 6.8).
pub(super) fn was_not_taken(error: &h2::Error) -> bool {
    error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}

/// Of a request that was sent and [not taken](was_not_taken).
pub(super) fn untaken() -> io::Error {
    stream_fault::untaken("the server is going away (NO_ERROR) and did not take the request")
}

/// Of a request whose answer had begun when the server said that it had not taken it.
pub(super) fn left_within() -> io::Error {
    broken("the server is going away (NO_ERROR) and left its answer, which had begun, unfinished")
}
