//! One connection of HTTP/2: the library's state of it, and who is on it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};

use super::pipe::Pipe;
use super::pseudo::Watch;
use crate::io::stream_failure;

/// What a server may send on a stream before more is granted.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// What it may send on a connection.
pub(super) const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Largest list of headers of an answer.
const HEADERS_BYTES: u32 = 64 << 10;
/// Streams that were given up and whose late frames are still told from wrong ones, and for how long.
const GIVEN_UP_STREAMS: usize = 4_096;
const GIVEN_UP_FOR: Duration = Duration::from_secs(30);

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

/// The library's part.
pub(super) struct Client {
    /// Begins requests.
    pub sender: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    pings: Option<PingPong>,
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
    /// What goes between the library and the socket.
    pub pipe: Pipe,
    /// Looks through what comes.
    pub watch: Watch,
    /// There while it is open or retired.
    pub client: Option<Client>,
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
    /// The socket is there: the library begins. What it says first is in the pipe.
    pub fn begin(&mut self, streams: usize, cx: &mut Context<'_>) -> Result<(), h2::Error> {
        self.pipe = Pipe::default();
        self.watch = Watch::default();
        (self.receptions, self.looked, self.is_pinged) = (0, None, false);
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(HEADERS_BYTES)
            .initial_max_send_streams(streams)
            .max_concurrent_reset_streams(GIVEN_UP_STREAMS)
            .reset_stream_duration(GIVEN_UP_FOR)
            .max_local_error_reset_streams(None)
            .enable_push(false);
        // Nothing in it has to wait: the pipe takes all at once.
        let shake = pin!(builder.handshake::<_, Bytes>(self.pipe.clone()));
        match shake.poll(cx) {
            Poll::Ready(Ok((sender, mut connection))) => {
                let pings = connection.ping_pong();
                self.client = Some(Client { sender, connection, pings });
                self.state = LinkState::Open;
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(h2::Reason::INTERNAL_ERROR.into()),
        }
    }

    /// Lets the library read what came and write what is to go; why it is over, once it is.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Option<Result<(), h2::Error>> {
        let client = self.client.as_mut()?;
        match Pin::new(&mut client.connection).poll(cx) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    /// Pings, if requests are under way and nothing came since the last look.
    pub fn ping(&mut self, cx: &mut Context<'_>) -> Pinged {
        let looked = (self.active > 0).then_some(self.receptions);
        let is_silent = looked.is_some() && self.looked == looked;
        self.looked = looked;
        let was_pinged = std::mem::take(&mut self.is_pinged);
        let Some(pings) = self.client.as_mut().and_then(|client| client.pings.as_mut()) else {
            return Pinged::No;
        };
        // what is answered makes room for the next
        let _ = pings.poll_pong(cx);
        if !is_silent {
            return Pinged::No;
        }
        if was_pinged {
            return Pinged::InVain;
        }
        // where an earlier one has no answer yet, that is waited for
        let _ = pings.send_ping(Ping::opaque());
        self.is_pinged = true;
        Pinged::Sent
    }

    /// Whether it takes no new request, because the server said so.
    pub fn is_going_away(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(client) = self.client.as_mut() else { return true };
        matches!(client.sender.poll_ready(cx), Poll::Ready(Err(_)))
    }

    /// Whether the server takes one more request now.
    pub fn has_room(&self) -> bool {
        let most = self.client.as_ref().map_or(0, |client| client.connection.max_concurrent_send_streams());
        self.active < most
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
