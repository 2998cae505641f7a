//! Remote calls as bytes: what stands in the binary messages of a WebSocket whose subprotocol is [`JSON`] or
//! [`BINARY`]. `docs/rpc.md` is the format's description; this is its codec.
//!
//! One frame carries many calls, or many answers, behind each other. What repeats is left out: methods are numbers
//! that the server names once in its [`Greeting`], and an item's id, method and time are told only where they are not
//! what the item before makes one expect. A small call takes two bytes beside its payload, and so does its answer.
//!
//! Frames are written by [`CallWriter`] and [`AnswerWriter`] into a buffer of the caller, and read by [`CallReader`]
//! and [`AnswerReader`] as slices of the frame. A frame means the same whatever frames came before it.
//!
//! ```
//! use tidemark_wire::rpc::{Answer, AnswerReader, AnswerWriter, CallReader, CallWriter, Limits, Request};
//!
//! let mut frame = Vec::new();
//! let mut calls = CallWriter::new();
//! calls.call(&mut frame, 7, 0, 5000, b"[{\"name\":\"ibm\",\"amount\":1}]");
//! calls.call(&mut frame, 8, 0, 5000, b"[{\"name\":\"ibm\",\"amount\":2}]");
//!
//! let mut answers = AnswerWriter::new();
//! let mut answer = Vec::new();
//! let mut reader = CallReader::new(Limits::default());
//! while let Some(request) = reader.next(&frame)? {
//!     let Request::Call(call) = request else { continue };
//!     assert_eq!((call.method, call.deadline_ms), (0, 5000));
//!     answers.answer(&mut answer, call.id, b"true");
//! }
//! let answers: Result<Vec<_>, _> = AnswerReader::new(Limits::default()).all(&answer).collect();
//! let of = |id| Answer::Done { id, payload: b"true" };
//! assert_eq!(answers?, [of(7), of(8)]);
//! # Ok::<(), tidemark_wire::rpc::RpcError>(())
//! ```

mod greeting;
mod read;
mod varint;
mod write;

pub use greeting::Greeting;
pub use read::{Answer, AnswerReader, Call, CallReader, Request};
pub use write::{AnswerWriter, CallWriter};

use crate::websocket;

/// The WebSocket subprotocol with payloads in JSON.
pub const JSON: &str = "tidemark-rpc.1+json";
/// The WebSocket subprotocol with payloads in postcard, a compact binary form.
pub const BINARY: &str = "tidemark-rpc.1+bin";

/// Most methods that a greeting names.
pub const METHODS_MAX: usize = 4096;
/// Most bytes of a method's name.
pub const NAME_BYTES_MAX: usize = 255;
/// Most bytes of the words of an error; longer ones are cut when they are written.
pub const REASON_BYTES_MAX: usize = 1024;

/// Error codes are those of HTTP, so that a call fails in the same way over both.
pub mod code {
    /// The payload is not what the method takes.
    pub const BAD_PAYLOAD: u16 = 400;
    /// There is no such method.
    pub const NO_METHOD: u16 = 404;
    /// The answer is larger than the limits allow.
    pub const TOO_LARGE: u16 = 413;
    /// The caller took the call back.
    pub const CANCELLED: u16 = 499;
    /// The method failed in a way that it does not tell.
    pub const INTERNAL: u16 = 500;
    /// The server cannot do it now.
    pub const UNAVAILABLE: u16 = 503;
    /// The call's time was over before its answer was ready.
    pub const DEADLINE: u16 = 504;
}

/// How much of a frame is taken before the decoder gives up on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame.
    pub frame_bytes: usize,
    /// Items of a frame: calls and cancels, or answers.
    pub items: usize,
    /// Bytes of one payload.
    pub payload_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { frame_bytes: 1 << 20, items: 1 << 16, payload_bytes: 256 << 10 }
    }
}

/// Why a frame is not one that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// The frame ends within an item.
    #[error("a frame ends within an item")]
    CutOff,
    /// A number in more bytes than it may have.
    #[error("a number is too large, or not in its shortest form")]
    Number,
    /// An item's first byte means nothing here.
    #[error("an item begins with {0:#04x}, which means nothing here")]
    Item(u8),
    /// The first call of a frame has to say which method and how much time.
    #[error("the first call of a frame names no method, or has no deadline")]
    NothingBefore,
    /// A call without time.
    #[error("a call has a deadline of 0 ms, or of more than 32 bits")]
    Deadline,
    /// An id below 0 or of more than 64 bits.
    #[error("an id is out of range")]
    Id,
    /// An error whose code is none.
    #[error("an error has a code outside of 400 to 599")]
    Code,
    /// Words that are not UTF-8.
    #[error("a name or a reason is not UTF-8")]
    Text,
    /// A frame above the limit.
    #[error("a frame is larger than the limit of {limit_bytes} bytes")]
    FrameTooLarge {
        /// [`Limits::frame_bytes`].
        limit_bytes: usize,
    },
    /// Too many items in one frame.
    #[error("a frame has more than the limit of {limit} items")]
    TooManyItems {
        /// [`Limits::items`].
        limit: usize,
    },
    /// A payload above the limit.
    #[error("a payload is larger than the limit of {limit_bytes} bytes")]
    PayloadTooLarge {
        /// [`Limits::payload_bytes`].
        limit_bytes: usize,
    },
    /// A greeting with too many methods, or too long a name.
    #[error("a greeting has more than {METHODS_MAX} methods, or a name longer than {NAME_BYTES_MAX} bytes")]
    GreetingTooLarge,
    /// The server's first frame is something else.
    #[error("the first frame of the server is no greeting")]
    NoGreeting,
}

impl RpcError {
    /// The code with which the WebSocket is to be closed.
    pub fn close_code(self) -> u16 {
        match self {
            RpcError::FrameTooLarge { .. }
            | RpcError::TooManyItems { .. }
            | RpcError::PayloadTooLarge { .. }
            | RpcError::GreetingTooLarge => websocket::TOO_LARGE,
            _ => websocket::PROTOCOL_ERROR,
        }
    }
}

// An item's first byte: what it is, and what stands behind it.
const KIND: u8 = 0x0f;
const CALL: u8 = 1;
const CANCEL: u8 = 2;
const ANSWER: u8 = 1;
const FAILURE: u8 = 2;
const GREETING: u8 = 3;
/// The id is not the one after that of the item before: the difference follows.
const JUMP: u8 = 0x10;
/// The method is not that of the call before: its number follows.
const METHOD: u8 = 0x20;
/// The deadline is not that of the call before: its milliseconds follow.
const TIME: u8 = 0x40;
