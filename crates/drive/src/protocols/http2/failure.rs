//! What a server did to a stream or a connection, as the back end tells it.

use std::io;

use tidemark_wire::http2::connection::StreamError;
use tidemark_wire::http2::{Reason, Violation};

use crate::io::stream_failure::{self, broken};

/// Why a stream has no answer.
pub(super) fn told(error: StreamError) -> io::Error {
    match error {
        StreamError::Reset(reason) => broken(format!("the server reset the stream ({reason})")),
        StreamError::NotTaken(reason) => {
            broken(format!("the server is going away ({reason}) and did not take the request"))
        }
        StreamError::Wrong(violation) => wrong(violation),
    }
}

/// Something against the protocol.
pub(super) fn wrong(violation: Violation) -> io::Error {
    stream_failure::violation(format!("HTTP/2 violation by the server: {violation}"))
}

/// Whether the server says that it has done nothing about this request, so that it may be sent again: it ends the connection
/// in order, and the stream is behind the last one that the GOAWAY names (RFC 9113, 6.8); or it refuses the stream (8.7).
pub(super) fn was_not_taken(error: StreamError) -> bool {
    matches!(error, StreamError::NotTaken(Reason::NO_ERROR) | StreamError::Reset(Reason::REFUSED_STREAM))
}

/// Of a request that was [not taken](was_not_taken).
pub(super) fn untaken(error: StreamError) -> io::Error {
    stream_failure::untaken(match error {
        StreamError::Reset(_) => {
            "the server refused the stream (REFUSED_STREAM) and did not take the request"
        }
        _ => "the server is going away (NO_ERROR) and did not take the request",
    })
}

/// Of a request that was not sent, since its connection takes no more of them.
pub(super) fn unsent() -> io::Error {
    stream_failure::untaken("the server is going away, and the connection takes no further request")
}

/// Of a message with which more than so many bytes would wait there.
pub(super) fn untakeable(most_bytes: usize, place: &str) -> io::Error {
    let most = most_bytes >> 20;
    stream_failure::unsendable(format!(
        "the server grants no window, or does not read: more than {most} MiB would wait on {place}"
    ))
}

/// Of a request whose answer had begun when the server said that it had [not taken](was_not_taken) it.
pub(super) fn left_within(error: StreamError) -> io::Error {
    broken(match error {
        StreamError::Reset(_) => "the server refused the stream (REFUSED_STREAM) though its answer had begun",
        _ => "the server is going away (NO_ERROR) and left its answer, which had begun, unfinished",
    })
}
