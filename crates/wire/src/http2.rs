//! HTTP/2 as a client speaks it (RFC 9113), with its header compression (RFC 7541).
//!
//! - [`frame`]: the head of a frame, read and written.
//! - [`hpack`]: lists of headers, read and written.
//! - [`connection`]: a connection with its streams: it is fed what comes, says what that means, and appends what is to be
//!   sent to a buffer of its owner's.
//!
//! ```
//! use tidemark_wire::http2::connection::{Connection, Event, Request};
//! use tidemark_wire::http2::hpack;
//!
//! let mut out = Vec::new();
//! let mut connection = Connection::new(&mut out);
//! let mut block = Vec::new();
//! for (name, value) in [(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/")] {
//!     hpack::write_field(name.as_bytes(), value.as_bytes(), &mut block);
//! }
//! let stream = connection.request(&block, Request { owner: 7, ends: true, ..Request::default() }, &mut out).unwrap();
//!
//! // the server's SETTINGS, and `:status: 200` on stream 1, which it ends
//! let mut input = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88][..];
//! let event = connection.next(&mut input, &mut out)?.unwrap();
//! assert_eq!((stream, event), (1, Event::Head { owner: 7, status: 200, length: None, ends: true }));
//! # Ok::<(), tidemark_wire::http2::Violation>(())
//! ```

pub mod connection;
pub mod frame;
pub mod hpack;

use std::fmt;

/// Why a stream or a connection ended (RFC 9113, 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason(pub u32);

impl Reason {
    /// In order.
    pub const NO_ERROR: Reason = Reason(0);
    /// Something against the protocol.
    pub const PROTOCOL_ERROR: Reason = Reason(1);
    /// Something inside.
    pub const INTERNAL_ERROR: Reason = Reason(2);
    /// More was sent than was granted.
    pub const FLOW_CONTROL_ERROR: Reason = Reason(3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Reason = Reason(4);
    /// A frame for a stream that is over.
    pub const STREAM_CLOSED: Reason = Reason(5);
    /// A frame of a length that it cannot have.
    pub const FRAME_SIZE_ERROR: Reason = Reason(6);
    /// Nothing was done about the request.
    pub const REFUSED_STREAM: Reason = Reason(7);
    /// Nobody wants the stream any more.
    pub const CANCEL: Reason = Reason(8);
    /// A list of headers that cannot be read.
    pub const COMPRESSION_ERROR: Reason = Reason(9);
    /// The other end asks for too much.
    pub const ENHANCE_YOUR_CALM: Reason = Reason(11);

    /// What the standard calls it, if it does.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

/// What the server did against the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{words} ({reason})")]
pub struct Violation {
    /// What the server is told.
    pub reason: Reason,
    /// What was wrong.
    pub words: &'static str,
}

impl Violation {
    const fn new(reason: Reason, words: &'static str) -> Violation {
        Violation { reason, words }
    }

    const fn protocol(words: &'static str) -> Violation {
        Violation::new(Reason::PROTOCOL_ERROR, words)
    }

    const fn size(words: &'static str) -> Violation {
        Violation::new(Reason::FRAME_SIZE_ERROR, words)
    }
}

/// Whether a header of this name, in lower case, speaks of a connection of HTTP/1.1: HTTP/2 forbids it (RFC 9113, 8.2.2).
pub fn is_of_connection(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}

/// Whether a header may have this value: no control character stands in it but a tab (RFC 9110, 5.5).
pub fn is_value(value: &[u8]) -> bool {
    // without a branch, so that many bytes are looked at at once
    value.iter().fold(true, |well, byte| well & ((*byte >= b' ') & (*byte != 0x7f) | (*byte == b'\t')))
}
