//! WebSocket (RFC 6455) as bytes, for clients and servers: the handshake, frames written, messages decoded from
//! whatever pieces the socket delivers.
//!
//! A [`Decoder`] is fed with [`decode`](Decoder::decode) and says how much it took and which [`Event`] that completed,
//! if any: a message, put together from its fragments, or a control frame, which may stand between them. It never
//! takes a byte behind that event. Frames are appended to a buffer by [`write_message`] and its kin; who writes
//! hands the masking key in, because codecs have no random numbers. Extensions are not spoken.
//!
//! ```
//! use tidemark_wire::websocket::{Decoder, Event, Kind, Limits, Role, write_message};
//!
//! let mut wire = Vec::new();
//! write_message(&mut wire, Kind::Text, "héllo".as_bytes(), Some([1, 2, 3, 4]));
//! let mut server = Decoder::new(Role::Server, Limits::default());
//! let decoded = server.decode(&wire)?;
//! assert_eq!((decoded.consumed, decoded.event), (wire.len(), Some(Event::Message(Kind::Text))));
//! assert_eq!(server.message(), "héllo".as_bytes());
//! # Ok::<(), tidemark_wire::websocket::WebSocketError>(())
//! ```

mod decoder;
pub mod handshake;
mod mask;
mod write;

pub use decoder::Decoder;
pub use mask::mask;
pub use write::{write_close, write_fragment, write_message, write_ping, write_pong};

/// Most bytes of a control frame's payload.
pub const MAX_CONTROL_BYTES: usize = 125;
/// Most bytes of the reason in a close frame.
pub const MAX_REASON_BYTES: usize = MAX_CONTROL_BYTES - 2;

/// Close code: all is well.
pub const NORMAL: u16 = 1000;
/// Close code: the endpoint goes away.
pub const GOING_AWAY: u16 = 1001;
/// Close code: the peer broke the protocol.
pub const PROTOCOL_ERROR: u16 = 1002;
/// Close code: a text was not UTF-8.
pub const INVALID_TEXT: u16 = 1007;
/// Close code: a message was too large.
pub const TOO_LARGE: u16 = 1009;

/// Which side of a connection decodes. It decides who masks: clients always, servers never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Decodes what a server sends.
    Client,
    /// Decodes what a client sends.
    Server,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text, which is UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// What is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A message; [`Decoder::message`] has it.
    Message(Kind),
    /// A ping, to be answered with a pong of the same payload, [`Decoder::control`].
    Ping,
    /// A pong.
    Pong,
    /// The peer closes; [`Decoder::close_code`] and [`Decoder::close_reason`] say why. Nothing more is taken.
    Close,
}

/// What a call to [`Decoder::decode`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that were taken; never more than were given, and none behind the event.
    pub consumed: usize,
    /// What these bytes completed.
    pub event: Option<Event>,
}

/// How large frames and messages may be before the decoder gives up on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Payload bytes of one frame.
    pub frame_bytes: usize,
    /// Payload bytes of one message, all its fragments together.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { frame_bytes: 16 << 20, message_bytes: 16 << 20 }
    }
}

/// Why bytes are no frames, or not ones that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebSocketError {
    /// A reserved bit is set though no extension was agreed on.
    #[error("a frame has a reserved bit set, but no extension was agreed on")]
    ReservedBits,
    /// An opcode that does not exist.
    #[error("a frame has the unknown opcode {0:#x}")]
    UnknownOpcode(u8),
    /// A client's frame must be masked.
    #[error("a frame from the client is not masked")]
    NotMasked,
    /// A server's frame must not be masked.
    #[error("a frame from the server is masked")]
    Masked,
    /// A length in more bytes than it needs, or of more than 63 bits.
    #[error("a frame's length is not in its shortest form, or has its highest bit set")]
    LengthForm,
    /// A control frame in fragments.
    #[error("a control frame is fragmented")]
    FragmentedControl,
    /// A control frame that is too long.
    #[error("a control frame is larger than {MAX_CONTROL_BYTES} bytes")]
    ControlTooLarge,
    /// A continuation of nothing.
    #[error("a continuation frame, but no message has begun")]
    NothingToContinue,
    /// A new message before the last fragment of the one before.
    #[error("a new message begins before the last one has ended")]
    MessageNotEnded,
    /// A frame above the limit.
    #[error("a frame is larger than the limit of {limit_bytes} bytes")]
    FrameTooLarge {
        /// [`Limits::frame_bytes`].
        limit_bytes: usize,
    },
    /// A message above the limit.
    #[error("a message is larger than the limit of {limit_bytes} bytes")]
    MessageTooLarge {
        /// [`Limits::message_bytes`].
        limit_bytes: usize,
    },
    /// Text, or the reason of a close, that is not UTF-8.
    #[error("a text is not valid UTF-8")]
    InvalidText,
    /// A close frame with one byte, or with a code that must not be sent.
    #[error("a close frame has a malformed code")]
    CloseCode,
}

impl WebSocketError {
    /// The code with which the connection is to be closed.
    pub fn close_code(self) -> u16 {
        match self {
            WebSocketError::InvalidText => INVALID_TEXT,
            WebSocketError::FrameTooLarge { .. } | WebSocketError::MessageTooLarge { .. } => TOO_LARGE,
            _ => PROTOCOL_ERROR,
        }
    }
}

/// Whether a close frame may carry this code: the registered ones, and those for libraries and applications.
pub fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
