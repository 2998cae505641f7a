//! Times of requests, of what they wait for, and of groups of them.

use tidemark_record::Outcome;

/// The times of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// When it was due.
    pub due_ns: u64,
    /// When its first byte was sent, if it was.
    pub sent_ns: Option<u64>,
    /// When it ended.
    pub end_ns: u64,
    /// How much of the time in between was the driver's own doing.
    pub own_ns: u64,
}

/// What came of a group of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupEnd {
    /// Index into the plan's groups.
    pub group: u16,
    /// Good where all its requests were.
    pub outcome: Outcome,
    /// From when its first request was due, and sent, to when its last one ended.
    pub times: Times,
}

/// How a connection was made for a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Connecting {
    /// When the last attempt began.
    pub begun_ns: u64,
    /// How long it took until sockets were there.
    pub connect_ns: u64,
    /// How long what was spoken on them first took.
    pub handshake_ns: u64,
}

impl Connecting {
    /// A connection is open; its socket was there before, if more was spoken on it.
    pub fn over(&mut self, socket_ns: Option<u64>, now_ns: u64) {
        let socket_ns = socket_ns.unwrap_or(now_ns).max(self.begun_ns).min(now_ns);
        self.connect_ns += socket_ns.saturating_sub(self.begun_ns);
        self.handshake_ns += now_ns - socket_ns;
        self.begun_ns = now_ns;
    }
}
