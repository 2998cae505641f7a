//! Remote calls behind the seam of protocols: a place for a call is a connection to the loop.
//!
//! A call is one among many on one of few WebSockets, in the format of `docs/rpc.md`. So due times, time-outs, checks, bounds and the ledger are the same ones. What sessions send in one turn
//! of the loop leaves together, in as few frames as the server takes; nothing waits for more.
//!
//! Each stream has a slot of its own on one link. A call's id is its slot, and how many calls the stream has made
//! before: ids of neighbours follow one another, nothing grows, and the late answer to a call that was given up is
//! told from that to the next one.
//!
//! What is said about one call ends that one. What is said about the connection ends all calls on it, each with its
//! own failure; none is sent again. When nothing at all came for the whole time of a call that is given up, its
//! connection takes no further call.

mod call;
mod greet;
mod link;
mod transport;

use std::collections::VecDeque;
use std::io;

use tidemark_scenario::plan::{Limits, RequestKind};

use crate::io::stream_failure::{self, broken, violation};
use crate::io::{self as back_end, Io};
use crate::protocols::transport::{Client, Event, Setup, Transport};
use call::{Call, Calls, Reply};
pub(crate) use greet::greet;
use link::{Endpoint, Link, LinkState, Loss, News};

/// What is known of a server that takes remote calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rpc {
    /// The path of the WebSocket.
    pub path: String,
    /// Most calls that it works on at once for a connection.
    pub most_calls: usize,
}

impl Client for Rpc {
    fn name(&self) -> &'static str {
        "RPC over WebSocket (JSON)"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Call(_))
    }

    fn depth(&self, limits: &Limits) -> usize {
        limits.streams.min(self.most_calls)
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        Box::new(CallStreams::new(io, self.path.clone(), setup))
    }
}

/// What a stream is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StreamState {
    /// Nobody uses it, or its connection is gone.
    #[default]
    Closed,
    /// It waits until its link takes calls.
    Opening,
    /// It can make a call.
    Idle,
    /// Its call waits until the server takes one more.
    Held,
    /// Its call is under way; when it was sent, its link had received so often.
    Calling { receptions: u64 },
}

/// What stands above takes it for a connection.
#[derive(Default)]
struct Stream {
    state: StreamState,
    /// Whether its connection was made for it; others came to it later.
    is_first: bool,
    /// Counts its openings, so that news of an earlier one are passed over.
    opening: u32,
    /// Counts its calls.
    calls: u64,
    /// Its call, where that is held.
    held: Call,
}

/// What is to be told to a stream.
struct Notice {
    stream: u32,
    opening: u32,
    event: Event,
    /// Whether its connection was made for it.
    made: bool,
}

/// Calls over a back end's connections.
struct CallStreams<I> {
    inner: I,
    endpoint: Endpoint,
    random: fastrand::Rng,
    calls: Calls,
    links: Vec<Link>,
    /// Most calls at once on a link.
    each: usize,
    /// Stream `s` has slot `s / links` of link `s % links`.
    streams: Vec<Stream>,
    notices: VecDeque<Notice>,
    /// The link whose bytes are being read, and how far they are.
    reading: Option<(usize, usize)>,
    /// Links with something to be sent.
    dirty: Vec<u32>,
    /// Links whose socket had no room.
    unsent: Vec<u32>,
    /// The call that was written, which is sent before there is another.
    written: Call,
    /// The answer of the last event.
    reply: Reply,
    open: u64,
    held: u64,
}

impl<I: Io> CallStreams<I> {
    fn new(inner: I, path: String, setup: Setup<'_>) -> Self {
        let Setup { plan, origin, sockets: connections, depth: each, random, .. } = setup;
        let payload_bytes = plan.limits.body_bytes;
        CallStreams {
            inner,
            endpoint: Endpoint { authority: origin.authority.to_owned(), path },
            random: random.fork(),
            calls: Calls::new(&plan.requests),
            links: (0..connections).map(|_| Link::new(payload_bytes)).collect(),
            each,
            streams: (0..connections * each).map(|_| Stream::default()).collect(),
            notices: VecDeque::new(),
            reading: None,
            dirty: Vec::new(),
            unsent: Vec::new(),
            written: Call::default(),
            reply: Reply::default(),
            open: 0,
            held: 0,
        }
    }

    fn link_of(&self, s: usize) -> usize {
        s % self.links.len()
    }

    /// The streams of a link.
    fn streams_of(&self, l: usize) -> impl Iterator<Item = usize> + use<I> {
        (l..self.streams.len()).step_by(self.links.len())
    }

    fn tell(&mut self, s: usize, event: Event, made: bool) {
        let opening = self.streams[s].opening;
        self.notices.push_back(Notice { stream: s as u32, opening, event, made });
    }

    fn mark(&mut self, l: usize) {
        if !std::mem::replace(&mut self.links[l].is_dirty, true) {
            self.dirty.push(l as u32);
        }
    }

    /// The id of a stream's call.
    fn id(&self, s: usize) -> u64 {
        let slot = (s / self.links.len()) as u64;
        self.streams[s].calls.wrapping_mul(self.each as u64).wrapping_add(slot)
    }

    /// Begins the call that was written.
    fn begin(&mut self, s: usize, l: usize) {
        self.streams[s].calls += 1;
        let id = self.id(s);
        let (stream, link) = (&mut self.streams[s], &mut self.links[l]);
        match link.call(id, &self.written, &self.calls, &mut self.random) {
            Ok(()) => {
                stream.state = StreamState::Calling { receptions: link.receptions };
                link.active += 1;
                self.mark(l);
            }
            Err(error) => {
                stream.state = StreamState::Idle;
                self.tell(s, Event::Failed(error), false);
            }
        }
    }

    /// Begins calls that were held, as far as there is room.
    fn release(&mut self, l: usize) {
        while !self.links[l].held.is_empty() && self.links[l].has_room() {
            let Some((s, opening)) = self.links[l].held.pop_front() else { return };
            let stream = &mut self.streams[s as usize];
            if stream.opening == opening && stream.state == StreamState::Held {
                std::mem::swap(&mut self.written, &mut stream.held);
                self.begin(s as usize, l);
            }
        }
    }

    /// Lets a call wait until the server takes one more.
    fn hold(&mut self, s: usize, l: usize) {
        self.held += 1;
        self.streams[s].state = StreamState::Held;
        std::mem::swap(&mut self.written, &mut self.streams[s].held);
        let (links, streams) = (&mut self.links, &self.streams);
        let held = &mut links[l].held;
        if held.len() >= 2 * self.each {
            held.retain(|(s, opening)| streams[*s as usize].opening == *opening);
        }
        held.push_back((s as u32, streams[s].opening));
    }

    /// An answer came; the stream whose call it answers, if somebody still waits for it.
    fn answered(&mut self, l: usize, id: u64) -> Result<Option<usize>, Loss> {
        let (slot, calls) = (id % self.each as u64, id / self.each as u64);
        let s = slot as usize * self.links.len() + l;
        let (stream, link) = (&mut self.streams[s], &mut self.links[l]);
        if stream.calls == calls && matches!(stream.state, StreamState::Calling { .. }) {
            stream.state = StreamState::Idle;
            link.active -= 1;
            self.release(l);
            return Ok(Some(s));
        }
        if calls <= stream.calls && link.owed > 0 {
            link.owed -= 1;
            self.release(l);
            return Ok(None);
        }
        let error =
            violation(format!("the server answered {id}, which is not a call that waits for an answer"));
        Err(Loss { error, close_code: Some(tidemark_wire::websocket::PROTOCOL_ERROR) })
    }

    /// Goes on with the bytes that a link has received.
    fn read(&mut self) -> Option<(usize, Event)> {
        while let Some((l, mut at)) = self.reading {
            let link = &mut self.links[l];
            let was_out = link.out.len();
            let news = link.read(self.inner.received(), &mut at, &mut self.reply, &mut self.random);
            self.reading = Some((l, at));
            if self.links[l].out.len() > was_out {
                self.mark(l);
            }
            match news {
                Ok(None) => self.reading = None,
                Ok(Some(News::Opened)) => self.opened(l),
                Ok(Some(News::Answered(id))) => match self.answered(l, id) {
                    Ok(Some(s)) => {
                        let keeps_open = self.links[l].state != LinkState::Retired;
                        return Some((s, Event::Answered { keeps_open }));
                    }
                    Ok(None) => {}
                    Err(loss) => self.lose(l, loss),
                },
                Err(loss) => self.lose(l, loss),
            }
        }
        None
    }

    /// A link takes calls: so do its streams.
    fn opened(&mut self, l: usize) {
        self.open += 1;
        self.links[l].opening = 0;
        let mut made = true;
        for s in self.streams_of(l) {
            if self.streams[s].state == StreamState::Opening {
                self.streams[s].state = StreamState::Idle;
                self.tell(s, Event::Opened, std::mem::take(&mut made));
            }
        }
    }

    /// Something happened to a connection.
    fn on_inner(&mut self, l: usize, event: back_end::Event) {
        match event {
            back_end::Event::Opened => match self.links[l].ask(&self.endpoint, &mut self.random) {
                Ok(()) => self.mark(l),
                Err(loss) => self.lose(l, loss),
            },
            back_end::Event::Received { .. } => {
                self.links[l].receptions += 1;
                self.reading = Some((l, 0));
            }
            back_end::Event::Ended => {
                self.lose(l, broken("the server closed the connection of the calls").into());
            }
            // nobody has asked
            back_end::Event::Taken => {}
            back_end::Event::Failed(error) | back_end::Event::Unsent(error) => self.lose(l, error.into()),
        }
    }

    /// It takes no further call, as one timed out and nothing came meanwhile; those under way go on.
    fn retire(&mut self, l: usize) {
        self.links[l].state = LinkState::Retired;
        self.links[l].held.clear();
        for s in self.streams_of(l) {
            let event = match self.streams[s].state {
                StreamState::Idle => Event::Ended { within: false },
                StreamState::Held => {
                    let words = "another call of its connection timed out, and nothing came meanwhile";
                    Event::Failed(stream_failure::timed_out(words))
                }
                StreamState::Closed | StreamState::Opening | StreamState::Calling { .. } => continue,
            };
            self.streams[s].state = StreamState::Closed;
            self.tell(s, event, false);
        }
    }

    /// It is gone; those on it are told, behind what they have already got.
    fn lose(&mut self, l: usize, loss: Loss) {
        for s in self.streams_of(l) {
            let event = match std::mem::take(&mut self.streams[s].state) {
                StreamState::Closed => continue,
                StreamState::Idle => Event::Ended { within: false },
                StreamState::Opening | StreamState::Held | StreamState::Calling { .. } => {
                    Event::Failed(stream_failure::again(&loss.error))
                }
            };
            self.tell(s, event, false);
        }
        if let Some(code) = loss.close_code
            && !self.inner.is_sending(l)
        {
            Link::write_last_word(code, self.inner.output(l), &mut self.random);
            // Whether anybody still hears it does not matter.
            let _ = self.inner.send(l);
        }
        self.drop_link(l);
    }

    /// Closes a connection on which nobody is any more.
    fn drop_link(&mut self, l: usize) {
        if matches!(self.links[l].state, LinkState::Open | LinkState::Retired) {
            self.open -= 1;
        }
        self.reading = self.reading.filter(|(reading, _)| *reading != l);
        self.inner.close(l);
        self.links[l].reset();
    }

    /// Makes the place of a connection free that nobody needs: one that is not made yet, or takes no further call.
    fn drop_if_left(&mut self, l: usize) {
        let link = &self.links[l];
        match link.state {
            LinkState::Connecting | LinkState::Upgrading | LinkState::Greeting if link.opening == 0 => {
                self.drop_link(l)
            }
            LinkState::Retired if link.active == 0 => {
                let opening = link.opening;
                self.drop_link(l);
                if opening > 0
                    && let Err(error) = self.connect(l, opening)
                {
                    self.lose(l, error.into());
                }
            }
            _ => {}
        }
    }

    /// Begins to make a connection, for so many streams.
    fn connect(&mut self, l: usize, opening: usize) -> io::Result<()> {
        self.inner.open(l)?;
        self.links[l].state = LinkState::Connecting;
        self.links[l].opening = opening;
        Ok(())
    }

    /// Sends what a connection has to say, as far as its socket takes it.
    fn flush(&mut self, l: usize) {
        let link = &mut self.links[l];
        link.end_frame(&mut self.random);
        if link.out.is_empty() {
            return;
        }
        if self.inner.is_sending(l) {
            if let Err(error) = self.inner.push(l) {
                return self.lose(l, error.into());
            }
            if self.inner.is_sending(l) {
                self.unsent.push(l as u32);
                return;
            }
        }
        std::mem::swap(self.inner.output(l), &mut link.out);
        match self.inner.send(l) {
            // What waited for room finds some.
            Ok(()) => self.release(l),
            Err(error) => self.lose(l, error.into()),
        }
    }

    /// Sends what all connections have to say.
    fn flush_all(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for l in dirty.drain(..) {
            self.links[l as usize].is_dirty = false;
            self.flush(l as usize);
        }
        // What came up in between stays for the next time, in the same buffer.
        std::mem::swap(&mut dirty, &mut self.dirty);
        self.dirty.append(&mut dirty);
    }

    /// A stream's call is given up: the server need not go on with it.
    fn give_up(&mut self, s: usize, l: usize, receptions: u64) {
        let id = self.id(s);
        let link = &mut self.links[l];
        link.active -= 1;
        link.owed += 1;
        let is_silent = link.receptions == receptions;
        link.cancel(id, &mut self.random);
        self.mark(l);
        if is_silent && self.links[l].state == LinkState::Open {
            self.retire(l);
        }
    }
}
