//! HTTP/1.1 as bytes: answers and requests decoded from whatever pieces the socket delivers, request heads written.
//!
//! Both decoders are fed with [`decode`](ResponseDecoder::decode) and say how much they took and whether the message
//! is whole. They never take a byte of the next message, so pipelined messages are decoded by feeding what is left.
//! Buffers are used again from one message to the next: after the first few, nothing is allocated.
//!
//! What two parties could understand differently (two lengths, a length beside chunks, folded lines, blanks before
//! a colon, odd chunk sizes) is an error, never a guess.

mod body;
pub mod cookie;
mod head;
mod host;
mod location;
pub mod request;
mod request_decoder;
mod response;
mod token;

pub use host::{is_host, without_port};
pub use location::{LocationError, Origin, is_relative, resolve_location};
pub use request_decoder::RequestDecoder;
pub use response::ResponseDecoder;
pub use token::is_token;

/// The most headers that any decoder takes, whatever [`DecoderLimits::headers`] says: their table is on the stack.
pub const MAX_HEADERS: usize = 256;
/// The most bytes of a head that any decoder takes, whatever [`DecoderLimits::head_bytes`] says.
pub const MAX_HEAD_BYTES: usize = 16 << 20;
/// The most interim answers (100, 102, 103) before a final one.
pub const MAX_INTERIM_ANSWERS: u32 = 16;
/// The most bytes of one chunk-size line, extensions included.
pub const MAX_CHUNK_LINE_BYTES: usize = 4096;
/// The most bytes of blank lines that are overlooked in front of a message.
pub const MAX_BLANK_BYTES: usize = 8;

/// How large a message may be before its decoder gives up on it. [`MAX_HEADERS`] and [`MAX_HEAD_BYTES`] hold in any
/// case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Bytes of the start line and the headers together; also of a chunked body's trailers.
    pub head_bytes: usize,
    /// Number of headers.
    pub headers: usize,
    /// Bytes of a body, kept or only counted. One that is announced to be longer fails before any of it has come.
    pub body_bytes: usize,
}

impl Default for DecoderLimits {
    fn default() -> Self {
        DecoderLimits { head_bytes: 64 << 10, headers: 128, body_bytes: 16 << 20 }
    }
}

impl DecoderLimits {
    /// Within what the decoders can do at all.
    fn possible(self) -> Self {
        DecoderLimits {
            head_bytes: self.head_bytes.min(MAX_HEAD_BYTES),
            headers: self.headers.min(MAX_HEADERS),
            body_bytes: self.body_bytes,
        }
    }
}

/// What a call to `decode` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that belong to this message; never more than were given.
    pub consumed: usize,
    /// Whether the message is whole.
    pub complete: bool,
}

/// Why bytes are not a message, or not one that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The connection was closed before the first byte of the message.
    #[error("the connection was closed before any byte of the message")]
    Empty,
    /// The connection was closed inside the message.
    #[error("the connection was closed in the middle of the message")]
    Truncated,
    /// Start line or headers are not HTTP/1.
    #[error("malformed head: {0}")]
    MalformedHead(&'static str),
    /// No end of the head within the limit.
    #[error("the head is larger than the limit of {limit_bytes} bytes")]
    HeadTooLarge {
        /// [`DecoderLimits::head_bytes`].
        limit_bytes: usize,
    },
    /// More headers than the limit.
    #[error("more headers than the limit of {limit}")]
    TooManyHeaders {
        /// [`DecoderLimits::headers`].
        limit: usize,
    },
    /// A body larger than the limit, by its Content-Length or by what came.
    #[error("the body is larger than the limit of {limit_bytes} bytes")]
    BodyTooLarge {
        /// [`DecoderLimits::body_bytes`].
        limit_bytes: usize,
    },
    /// A Content-Length that is no number.
    #[error("Content-Length is not a whole number")]
    ContentLengthInvalid,
    /// Two Content-Length headers that differ.
    #[error("two Content-Length headers contradict each other")]
    ContentLengthConflict,
    /// Content-Length and Transfer-Encoding in one message.
    #[error("Content-Length and Transfer-Encoding in one message")]
    ContentLengthWithTransferEncoding,
    /// A Transfer-Encoding other than exactly `chunked`, or one in HTTP/1.0.
    #[error("Transfer-Encoding is not exactly `chunked` in HTTP/1.1")]
    TransferEncodingUnsupported,
    /// A request of HTTP/1.1 must have one Host header, and what it names must be a host.
    #[error("a request of HTTP/1.1 must have exactly one Host header: a host, or host:port")]
    HostInvalid,
    /// A chunk size that is no hexadecimal number, or too large a number.
    #[error("malformed chunk size")]
    ChunkSizeInvalid,
    /// A chunk-size line longer than [`MAX_CHUNK_LINE_BYTES`].
    #[error("a chunk-size line is longer than the limit of {MAX_CHUNK_LINE_BYTES} bytes")]
    ChunkLineTooLong,
    /// A chunk that does not end where its size says.
    #[error("a chunk does not end where its size says")]
    ChunkEndMissing,
    /// A trailer that is no header line.
    #[error("malformed trailer after the last chunk")]
    TrailerMalformed,
    /// More than [`MAX_INTERIM_ANSWERS`] answers before the final one.
    #[error("more interim answers than the limit of {MAX_INTERIM_ANSWERS}")]
    TooManyInterim,
    /// A header to be written holds a line break or a zero byte.
    #[error("a header to be sent holds a line break or a zero byte")]
    UnwritableHeader,
}
