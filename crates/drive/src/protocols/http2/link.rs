//! One connection of HTTP/2, and who is on it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

use tidemark_wire::http2::connection::Connection;

use crate::io::stream_failure;

/// What a connection is good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LinkState {
    /// There is none.
    #[default]
    Closed,
    /// It is being made.
    Connecting,
    /// It takes requests.
    Open,
    /// It only ends what is under way.
    Retired,
    /// It is closed, and those on it have not all heard of it.
    Lost,
}

/// What came of a look at a connection's silence.
pub(super) enum Pinged {
    /// It is not silent, has nothing under way, or cannot be pinged.
    No,
    /// A ping is to be sent.
    Sent,
    /// The last ping was not answered.
    InVain,
}

/// A connection.
#[derive(Default)]
pub(super) struct Link {
    /// What it is good for.
    pub state: LinkState,
    /// There while it is open or retired.
    pub client: Option<Connection>,
    /// What is to be sent.
    pub output: Vec<u8>,
    /// The streams that belong to it, with or without a request.
    pub attached: Vec<u32>,
    /// How many have a request under way.
    pub active: usize,
    /// Streams whose request waits until the server takes one more.
    pub held: VecDeque<u32>,
    /// How often bytes have come.
    pub receptions: u64,
    /// The same when that was looked at last; none where no request was under way then.
    looked: Option<u64>,
    /// Whether it was pinged then.
    is_pinged: bool,
    /// Why it was lost.
    pub loss: Option<io::Error>,
}

impl Link {
    /// The socket is there: what is said first is to be sent.
    pub fn begin(&mut self) {
        self.output.clear();
        self.client = Some(Connection::new(&mut self.output));
        (self.receptions, self.looked, self.is_pinged) = (0, None, false);
        self.state = LinkState::Open;
    }

    /// Pings, if requests are under way and nothing came since the last look.
    pub fn ping(&mut self) -> Pinged {
        let looked = (self.active > 0).then_some(self.receptions);
        let is_silent = looked.is_some() && self.looked == looked;
        self.looked = looked;
        let was_pinged = std::mem::take(&mut self.is_pinged);
        let Some(client) = self.client.as_mut().filter(|_| is_silent) else { return Pinged::No };
        if was_pinged {
            return Pinged::InVain;
        }
        client.ping(&mut self.output);
        self.is_pinged = true;
        Pinged::Sent
    }

    /// Whether the server takes one more request now.
    pub fn has_room(&self) -> bool {
        self.active < self.client.as_ref().map_or(0, Connection::most_streams)
    }

    /// Resets a stream whose answer nobody waits for, unless it is over.
    pub fn give_up(&mut self, stream: u32) {
        if let Some(client) = &mut self.client {
            client.give_up(stream, &mut self.output);
        }
    }

    /// Takes a stream off it.
    pub fn detach(&mut self, stream: u32) {
        self.attached.retain(|attached| *attached != stream);
        self.held.retain(|held| *held != stream);
    }

    /// The error of its loss, for one of those on it.
    pub fn lost(&self) -> io::Error {
        self.loss.as_ref().map_or_else(|| ErrorKind::ConnectionReset.into(), stream_failure::again)
    }
}
