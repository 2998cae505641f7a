//! What a server is told to do.

use std::time::Duration;

use crate::Delay;

/// How a server behaves. The default answers everything at once.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// How long a request is kept, by shard: the number at the end of a path, modulo how many there are, says which
    /// (a path without one is of shard 0). None: no delay, one shard.
    pub delays: Vec<Delay>,
    /// How requests are answered, in turn: request `n` by `faults[n % len]`. None: all as they should.
    pub faults: Vec<Fault>,
    /// Time between two accepted connections; the first waits for it too. None: at once.
    pub accept_every: Option<Duration>,
    /// Requests that it is able to serve in a second, one after the other in the order in which they came.
    pub capacity_per_s: Option<f64>,
    /// A freeze by itself.
    pub freeze: Option<Freeze>,
    /// Seed of the random delays.
    pub seed: u64,
    /// Whether it speaks TLS, with a certificate that nobody trusts.
    pub tls: bool,
}

/// A time in which nothing is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// Its begin, counted from the first request.
    pub after: Duration,
    /// Its length.
    pub length: Duration,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Nothing.
    None,
    /// The connection is reset in place of an answer.
    Reset,
    /// The connection is closed in place of an answer.
    Close,
    /// Half of the answer, then the connection is closed.
    HalfAnswer,
    /// The length that the answer names is more than what comes; the connection stays open.
    LengthTooLong,
    /// The length that the answer names is less than what comes.
    LengthTooShort,
    /// Bytes that are no HTTP.
    NotHttp,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::None,
        Fault::Reset,
        Fault::Close,
        Fault::HalfAnswer,
        Fault::LengthTooLong,
        Fault::LengthTooShort,
        Fault::NotHttp,
    ];

    /// What is written; empty where the connection ends without.
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Fault::None => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            Fault::Reset | Fault::Close => b"",
            Fault::HalfAnswer => b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf",
            Fault::LengthTooLong => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok",
            Fault::LengthTooShort => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
            Fault::NotHttp => b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        }
    }

    /// Whether the connection is closed behind it.
    pub(crate) fn closes(self) -> bool {
        matches!(self, Fault::Reset | Fault::Close | Fault::HalfAnswer)
    }
}
