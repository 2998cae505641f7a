//! What a program says and hears over its WebSockets.
//!
//! A [branch](crate::Next::Branch) whose request [asks for one](crate::ProgramRequest::websocket) holds it, once that is
//! answered with 101, until one side closes it or the branch ends. What comes is [heard](crate::Program::heard) at once;
//! what is said is no request, and waits for nothing.

/// What a program says over a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping; of a longer payload only the first 125 bytes are sent. Pongs answer pings by themselves.
    Ping(Vec<u8>),
    /// It closes, with this code and reason, and what the peer answers is heard.
    Close(u16, String),
    /// It closes, with this code, and the connection is over once that is sent. Nothing more is heard.
    Leave(u16),
}

/// What a program hears over a WebSocket. After the last three nothing follows, and its branch is asked what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A message of text.
    Text(&'a str),
    /// A message of bytes.
    Binary(&'a [u8]),
    /// A ping, which is answered.
    Ping(&'a [u8]),
    /// A pong.
    Pong(&'a [u8]),
    /// The peer has closed it, with a code, if it gave one, and a reason, which may be empty.
    Closed(Option<u16>, &'a str),
    /// The connection has ended, and nobody had closed the WebSocket.
    Ended,
    /// The connection broke, or what came is no WebSocket's, in words.
    Broken(&'a str),
}

impl Heard<'_> {
    /// Whether nothing follows.
    pub fn is_last(&self) -> bool {
        matches!(self, Heard::Closed(..) | Heard::Ended | Heard::Broken(_))
    }
}
