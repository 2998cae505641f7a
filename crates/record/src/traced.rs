//! Requests that are kept as they were, with their answers.

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// A request of HTTP and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// Index into the plan's labels.
    pub label: u16,
    /// Where it went last: 0 is the system, what follows are the plan's targets.
    pub target: u16,
    /// When it was due, milliseconds since 1970 UTC.
    pub due_ms: i64,
    /// What was sent, the last of its hops; of a long one the begin.
    pub sent: Vec<u8>,
    /// Bytes of all of it.
    pub sent_bytes: usize,
    /// The redirects that were followed before that: status and location of each.
    pub hops: Vec<(u16, String)>,
    /// The answer, if it is there.
    pub answer: Option<LoggedAnswer>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// The session's variables that are secrets, as they were when it was sent and when it was over: names and values.
    pub secrets: Vec<(String, String)>,
    /// Where its time went.
    pub parts: RequestParts,
    /// Driving thread, and socket of that.
    pub connection: (u16, u32),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedAnswer {
    /// The status, or what stands for it; 0 where there is none.
    pub status: u16,
    /// The same in words.
    pub status_words: String,
    /// Whether it is a redirect that nobody follows and no check is about.
    pub is_unfollowed: bool,
    /// The headers, where there are any.
    pub headers: Vec<(String, String)>,
    /// The body, or the message; of a long one the begin.
    pub body: Vec<u8>,
    /// Bytes of all of it.
    pub body_bytes: usize,
    /// Bytes of the body as it came, encoded or not.
    pub received_bytes: u64,
    /// Whether `body` is what it was before it was encoded, where it is.
    pub is_decoded: bool,
    /// Why it cannot be read, where it cannot; it is empty then.
    pub unreadable: Option<String>,
}

/// Where the time of a request went, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestParts {
    /// Until it was sent, or a connection was begun for it.
    pub wait_us: u64,
    /// Until its socket was there; none where none was made for it.
    pub connect_us: Option<u64>,
    /// What was spoken on that first.
    pub handshake_us: Option<u64>,
    /// From first byte sent to first byte received, or to its end.
    pub first_byte_us: u64,
    /// From there to its last byte.
    pub transfer_us: u64,
}
