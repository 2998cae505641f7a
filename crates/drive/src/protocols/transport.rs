//! The seam of protocols: what the loop asks of whatever carries requests.
//!
//! To the loop a connection is whatever carries one request at a time: a socket, a lane of a pipelined one, a stream of
//! HTTP/2, a place for a call. It opens one, has a request written and sent on it, and is told what came of it as
//! [`Event`]s. What the bytes look like, and how many connections share a socket, is a transport's own affair.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use tidemark_scenario::plan::{Limits, RequestKind};
use tidemark_scenario::{Context, Plan};

use crate::error::DriveError;
use crate::io::{Handshakes, Io};
use crate::protocols::proxy::Proxy;
use crate::protocols::sharding::Shards;
use crate::protocols::tls_request::TlsRequest;
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::program::Outgoing;
use crate::session::sockets::{Heard, Said};

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// It is made.
    Opened,
    /// The answer is whole; [`Transport::answer`] has it until the connection's next request is written.
    Answered {
        /// Whether the connection can carry another request.
        keeps_open: bool,
    },
    /// All of the request is sent, which nothing answers.
    Sent,
    /// Something came that may be the answer: [`Transport::answer`] has it, and it is to be
    /// [accepted](Conversations::accept) or [declined](Conversations::decline).
    Offered,
    /// The answer is whole and refuses what was asked for; its connection is of no more use.
    Refused(Failure),
    /// What came is no answer; its connection is of no more use.
    Wrong(Failure),
    /// The peer closed it in order, or said something that nobody had asked for.
    Ended {
        /// Whether a part of an answer had come.
        within: bool,
    },
    /// It was gone before anything of its request was taken, which [`Transport::send`] could not know yet.
    Unsent(io::Error),
    /// It could not be made, or broke.
    Failed(io::Error),
    /// Something came over a program's WebSocket, or it is over: [`Conversations::news`] has it.
    Heard,
    /// What a program left is sent whole: the connection is of no more use.
    Left,
    /// What it is bound to broke off while no request was under way; [`Conversations::lost`] says more.
    Lost,
}

/// What became of a request as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Its answer is awaited.
    Awaiting,
    /// What may be its answer is there already, as where [`Event::Offered`] tells so.
    Offered,
    /// All of it is sent, which nothing answers.
    Whole,
}

/// What became of what a program says over its WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// It is sent, now or as soon as there is room.
    Said,
    /// It is not, as the program had closed before.
    Unsaid,
    /// It is sent, and the program has left by it.
    Left,
}

/// Why a request cannot go over the connection that its session holds.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// In words.
    pub failure: Failure,
    /// Whether the session has nothing more to do, lest it fails as fast as it can.
    pub ends_session: bool,
}

/// What came over event streams so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Streams that began.
    pub streams: u64,
    /// All events.
    pub received: u64,
    /// Those that a step waited for and took.
    pub taken: u64,
    /// Those that were larger than an event may be, and were passed over.
    pub too_large: u64,
    /// Streams that the server ended in order, of which no step knew.
    pub ended: u64,
    /// Those that were kept for a step and given up before it waited, since others came.
    pub dropped: u64,
}

impl std::ops::AddAssign for EventCounts {
    fn add_assign(&mut self, more: EventCounts) {
        self.streams += more.streams;
        self.received += more.received;
        self.taken += more.taken;
        self.too_large += more.too_large;
        self.ended += more.ended;
        self.dropped += more.dropped;
    }
}

/// What came of there being several servers, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redirects {
    /// Requests that were sent on because another server has their slot.
    pub moved: u64,
    /// Requests that were sent on this once, while their slot moves.
    pub asked: u64,
    /// How often the map of a cluster was read again.
    pub maps: u64,
    /// Requests that waited for a place at their server while others had some.
    pub held: u64,
}

impl std::ops::AddAssign for Redirects {
    fn add_assign(&mut self, more: Redirects) {
        self.moved += more.moved;
        self.asked += more.asked;
        self.maps += more.maps;
        self.held += more.held;
    }
}

/// What a transport has counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Handshakes, where there are any.
    pub handshakes: Handshakes,
    /// How often a request had to wait here, because the server takes fewer at once than was thought.
    pub held: u64,
    /// What came and no request took as its answer, where that is no mistake.
    pub unclaimed: u64,
    /// Answers that nobody had asked for; their connections were closed.
    pub unsolicited: u64,
    /// Answers that came before the body of their request was sent whole; the rest was not sent.
    pub uploads_cut: u64,
    /// Streams of gRPC that were still open when their session was over.
    pub left_open: u64,
    /// What came over event streams.
    pub events: EventCounts,
    /// What came of there being several servers.
    pub redirects: Redirects,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.handshakes.add(more.handshakes);
        self.held += more.held;
        self.unclaimed += more.unclaimed;
        self.unsolicited += more.unsolicited;
        self.uploads_cut += more.uploads_cut;
        self.left_open += more.left_open;
        self.events += more.events;
        self.redirects += more.redirects;
    }
}

/// Carries the requests of one thread over connections that have numbers: to one target, or to [several](crate::protocols::targets).
///
/// This is what each protocol says. What one may say beside it has a trait of its own, which may be left empty:
/// [`Readings`], [`Conversations`] and [`Copies`].
pub(crate) trait Transport: Readings + Conversations + Copies {
    /// Begins to make a connection: `Opened` or `Failed` follows, or the error at once.
    fn open(&mut self, connection: usize) -> io::Result<()>;
    /// Writes the request of this index in the plan; nothing of it where something that it needs is not there, or the
    /// protocol cannot say it.
    fn write(
        &mut self,
        connection: usize,
        request: usize,
        cx: &mut Context<'_>,
        jar: &Jar,
    ) -> Result<(), Failure>;
    /// Writes what a program has made, with the cookies of this time.
    fn write_made(
        &mut self,
        _connection: usize,
        _outgoing: &Outgoing,
        _jar: &Jar,
        _now_s: i64,
    ) -> Result<(), Failure> {
        Err(Failure::Unsendable("a program's requests go over HTTP".into()))
    }
    /// Sends what was written, now or as soon as there is room. An error means that nothing was taken.
    fn send(&mut self, connection: usize) -> io::Result<Sent>;
    /// Closes a connection; no event of it follows.
    fn close(&mut self, connection: usize);
    /// Waits until something happens or the time is over (forever without one).
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()>;
    /// What was sent leaves now, on every connection, where it is held back to go out together.
    fn hand_over(&mut self) -> io::Result<()>;
    /// The next thing that happened, until there is none.
    fn next(&mut self) -> Option<(usize, Event)>;
    /// A connection's answer.
    fn answer(&self, connection: usize) -> &dyn Answer;
    /// Whether a connection is the first of those that share its socket; where none does, it is.
    fn is_first(&self, connection: usize) -> bool;
    /// Which socket carries a connection's requests.
    fn socket_of(&self, connection: usize) -> usize;
    /// The back end below, for what it counts and when bytes came.
    fn sockets(&self) -> &dyn Io;
    /// When the socket of a connection was there, where more was spoken over it before the connection was open.
    fn socket_made(&self, connection: usize) -> Option<Instant> {
        self.sockets().socket_made(self.socket_of(connection))
    }
    /// Version and cipher suite of TLS that a connection speaks.
    fn agreed(&self, connection: usize) -> Option<(&'static str, &'static str)> {
        self.sockets().agreed(self.socket_of(connection))
    }
    /// How many sockets are open, where `opened` have been opened and not closed, by target.
    fn connections(&self, opened: &[u64]) -> u64 {
        opened.iter().sum()
    }
    /// What it has counted so far.
    fn counts(&self) -> Counts {
        Counts { handshakes: self.sockets().handshakes(), ..Counts::default() }
    }
}

/// What a transport knows of the bytes that it reads, and of who is next: hints for the hot path.
pub(crate) trait Readings {
    /// The bytes that came last, up to the end of the answer, where the protocol is one of bytes.
    fn received(&self) -> &[u8] {
        &[]
    }
    /// The number of the reading that brought what was told of last, where several answers may come of one.
    fn reading(&self) -> Option<u64> {
        None
    }
    /// Which connection's answer comes as the nth from now (1: the next), where that is known. What is kept of it here is
    /// [fetched](crate::io::prefetch) by the way.
    fn prefetch_upcoming(&self, _nth: usize) -> Option<usize> {
        None
    }
    /// Over which socket a connection's request will leave, where that is known before it is sent.
    fn leaves_over(&self, _connection: usize) -> Option<usize> {
        None
    }
    /// When the first bytes of a connection's answer came, where it was not whole by them.
    fn answer_begun(&self, _connection: usize) -> Option<Instant> {
        None
    }
}

/// What goes over a connection and builds on what went before, so that the connection is bound to its session: a WebSocket,
/// an event stream, a stream that stays open, a transaction.
pub(crate) trait Conversations {
    /// Whether a connection is bound to the session that holds it: no request of it goes once more over another one.
    fn is_bound(&self, _connection: usize) -> bool {
        false
    }
    /// The session that holds a connection is over: whether another one may have it.
    fn leave(&mut self, _connection: usize) -> bool {
        true
    }
    /// Why the request of this index cannot follow what its session has done so far, on the connection that it holds.
    fn refusal(&self, _connection: Option<u32>, _request: usize) -> Option<Refusal> {
        None
    }
    /// Whether the request of this index has nothing to do any more, after what its session did over the connection that it
    /// holds.
    fn is_needless(&self, _connection: Option<u32>, _request: usize) -> bool {
        false
    }
    /// Whether the request of this index only closes the connection, without a word, and nothing is wrong with that.
    fn leaves(&self, _connection: usize, _request: usize) -> bool {
        false
    }
    /// Whether what a connection is bound to broke off without any request's having known of it: the request that began
    /// it, and why.
    fn lost(&mut self, _connection: usize) -> Option<(usize, Failure)> {
        None
    }
    /// What was offered is the answer: whether the connection can carry another request.
    fn accept(&mut self, _connection: usize) -> bool {
        true
    }
    /// What was offered is not the answer: whether something else is offered at once.
    fn decline(&mut self, _connection: usize) -> bool {
        false
    }
    /// What came for the request under way that was not its answer, in words, where the protocol tells.
    fn instead(&self, _connection: usize) -> Option<String> {
        None
    }
    /// What came last over a program's WebSocket.
    fn news(&self, _connection: usize) -> Option<Heard<'_>> {
        None
    }
    /// Why that is a failure, if it is.
    fn breaks(&self, _connection: usize) -> Option<Failure> {
        None
    }
    /// Says something over a program's WebSocket. An error means that it is of no more use.
    fn say(&mut self, _connection: usize, _said: &Said) -> io::Result<Spoken> {
        Err(io::Error::other("there is no WebSocket"))
    }
    /// How much came so far that is a sign of life though it answers no request.
    fn heard(&self) -> u64 {
        0
    }
}

/// Copies of what is sent, for whoever looks at single requests.
pub(crate) trait Copies {
    /// From now on keeps what is written.
    fn keep_written(&mut self) {}
    /// What was written last, for this connection, where it is kept.
    fn written(&mut self, _connection: usize) -> &[u8] {
        &[]
    }
}

/// What a protocol brings: which requests it carries, how many at once, and what carries them.
pub(crate) trait Client {
    /// What the protocol is called in reports.
    fn name(&self) -> &'static str;
    /// Whether it carries such a request.
    fn takes(&self, ask: &RequestKind) -> bool;
    /// Why it does not carry a plan, though it may take its requests.
    fn refusal(&self, _plan: &Plan) -> Option<DriveError> {
        None
    }
    /// Begins to speak with the server, over a connection that blocks, and asks whether it is ready. Where the version of
    /// HTTP or the methods of a service are settled meanwhile, the target does that instead.
    ///
    /// # Errors
    /// What a person has to know who wants to drive this server.
    fn greet(&mut self, _stream: &mut (impl Read + Write)) -> io::Result<()> {
        Ok(())
    }
    /// How it is asked whether it speaks TLS, where that begins on a connection that is there.
    fn tls_request(&self) -> Option<TlsRequest> {
        None
    }
    /// The servers that share the requests, where there are several.
    fn shards(&self) -> Option<&Shards> {
        None
    }
    /// Requests at once on a connection, as the plan wants it and the server takes them.
    fn depth(&self, limits: &Limits) -> usize {
        limits.pipeline
    }
    /// What carries them over these sockets.
    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport>;
}

/// What requests say of the server that they go to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// Its name and port.
    pub authority: &'a str,
    /// Put in front of every path.
    pub base_path: &'a str,
    /// Whether TLS is spoken.
    pub is_secured: bool,
    /// The proxy that requests are sent to in its place, which they name their server to.
    pub proxy: Option<&'a Proxy>,
}

/// What a transport is made for.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    /// Its requests and bounds.
    pub plan: &'a Plan,
    /// Where to.
    pub origin: Origin<'a>,
    /// Sockets.
    pub sockets: usize,
    /// Requests at once on each.
    pub depth: usize,
    /// Whether programs may ask for WebSockets.
    pub opens_websockets: bool,
    /// The thread's random numbers.
    pub random: &'a mut fastrand::Rng,
}

impl Setup<'_> {
    /// Whether connections may become WebSockets.
    pub fn has_websockets(&self) -> bool {
        self.opens_websockets || self.plan.has_websockets()
    }
}
