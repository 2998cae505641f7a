//! The seam of protocols: what the loop asks of one that has requests and answers on a connection.
//!
//! A codec knows no socket, clock or thread. It is told of a request that was sent, is fed with the bytes that come, and says
//! when the answer is whole and what it is. How a request is written is beside it, in what [`Prepared`](crate::request::Prepared)
//! is made of.

use std::fmt;

use tidemark_wire::http1::Decoded;

use crate::answer::Answer;
use crate::target::{Protocol, Target};
use crate::{http1, redis};

/// What a codec has to know of the request whose answer comes next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    /// Whether the answer's body is kept.
    pub needs_body: bool,
    /// Whether the answer has no body whatever its head says.
    pub is_head: bool,
    /// Whether the server may go over to another protocol.
    pub asks_upgrade: bool,
}

/// Why what came is no answer, in words.
#[derive(Debug)]
pub(crate) struct Violation(pub Box<str>);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far an answer was when the peer closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Nothing of it had come.
    Before,
    /// It was not whole.
    Within,
}

/// One connection's answers.
pub(crate) trait Codec: fmt::Debug {
    /// A request was sent.
    fn start(&mut self, expected: Expected);
    /// Takes bytes from the front of `received`, up to the end of the answer.
    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation>;
    /// The peer closed the connection. Well where that is how the answer ends.
    fn finish(&mut self) -> Result<(), Closed>;
    /// Whether the connection can carry another request behind this answer.
    fn keeps_open(&self) -> bool;
    /// The answer, once it is whole.
    fn answer(&self) -> &dyn Answer;
    /// The same as one of HTTP/1.1, which may be that of a handshake.
    fn http(&self) -> Option<&tidemark_wire::http1::ResponseDecoder> {
        None
    }
}

/// The codec of a target's connections: every protocol that has one.
pub(crate) fn codec(target: &Target, body_bytes: usize) -> Box<dyn Codec> {
    match &target.protocol {
        Protocol::Redis(_) => Box::new(redis::Replies::new(body_bytes)),
        // the others bring their answers as text of HTTP/1.1
        Protocol::Http1 | Protocol::Http2(_) | Protocol::Calls(_) => {
            Box::new(http1::Answers::new(body_bytes))
        }
    }
}
