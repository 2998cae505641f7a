//! HTTP/2 behind the seam of protocols: each stream is a connection to the loop.
//!
//! A typed request becomes the library's (`h2`), and its answer is looked at as it comes from there; so due times,
//! time-outs, checks, cookies and bounds are the same ones, whatever the version. The library reads and writes buffers
//! ([`pipe`]); no runtime is involved: it is polled when bytes have come and when something is to be sent.
//!
//! What is said about one stream ends that one: a reset, a time-out (which cancels it). What is said about the
//! connection ends all of them, each with its own failure. After a GOAWAY, or when nothing at all came for the whole
//! time of a request that is given up, a connection takes no further request. What a server had not taken when it ended
//! the connection in order goes over another one.

mod answer;
mod bell;
pub(in crate::protocols) mod blocking;
mod failure;
mod greet;
mod link;
mod pipe;
mod pseudo;
pub(in crate::protocols) mod request;
mod stream;
mod transport;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Limits, RequestKind};

use crate::error::DriveError;
use crate::io::stream_failure;
use crate::io::{self as back_end, Io};
use crate::protocols::transport::{Client, Event, Sent, Setup, Transport};
use crate::session::failure::Failure;
use bell::{Rung, bells};
use greet::greet;
use link::{CONNECTION_WINDOW_BYTES, Link, LinkState, Pinged};
use pipe::{OUTPUT_BYTES, Pipe};
use request::{Frame, Message, Prepared};
use stream::{Came, Exchange, Piece, Stream, Unanswered};

/// Unread bytes of a connection that are never too many.
const UNREAD_BYTES: usize = 1 << 20;
/// The same that are always too many: more than its flow control lets a server send.
const UNREAD_BYTES_EACH: usize = CONNECTION_WINDOW_BYTES as usize + UNREAD_BYTES;
/// The same of all connections of a thread.
const UNREAD_BYTES_ALL: usize = 64 << 20;
/// A wait tells of what came over so many connections at least.
const LINKS_PER_WAIT: usize = 512;

/// What is known of a server that speaks HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2 {
    /// Most streams that it takes on a connection.
    pub most_streams: usize,
}

impl Http2 {
    pub(crate) fn greet(stream: &mut (impl Read + Write)) -> io::Result<Http2> {
        let most = greet(stream).map_err(|error| {
            let text = format!("{error}; ask for HTTP/1.1, or for auto over TLS");
            io::Error::new(error.kind(), text)
        })?;
        Ok(Http2 { most_streams: most.map_or(usize::MAX, |most| most as usize) })
    }
}

impl Client for Http2 {
    fn name(&self) -> &'static str {
        "HTTP/2"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Http(_))
    }

    fn refusal(&self, plan: &Plan) -> Option<DriveError> {
        let of_sockets = plan.has_websockets().then_some(DriveError::WebSocketOverHttp2);
        of_sockets.or(plan.has_event_streams().then_some(DriveError::EventStreamOverHttp2))
    }

    fn depth(&self, limits: &Limits) -> usize {
        limits.streams.min(self.most_streams)
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        Box::new(Streams::new(io, &setup))
    }
}

/// Streams of HTTP/2 over a back end's connections.
pub(in crate::protocols) struct Streams<I> {
    inner: I,
    /// The plan's; in words why one cannot be sent.
    requests: Vec<Result<Prepared, String>>,
    /// What the requests of programs are put into; in words why none can be sent.
    frame: Result<Frame, String>,
    scratch: Vec<u8>,
    /// Most bytes of an answer's body.
    body_bytes: usize,
    keep_alive: bool,
    /// Most streams of a connection.
    each: usize,
    links: Vec<Link>,
    streams: Vec<Stream>,
    link_bells: Vec<Waker>,
    stream_bells: Vec<Waker>,
    rung_links: Rung,
    rung_streams: Rung,
    /// Streams to be looked at.
    woken: VecDeque<u32>,
    /// Links with something to be sent.
    dirty: Vec<u32>,
    /// Links whose socket had no room.
    unsent: Vec<u32>,
    /// What is to be told, and whether it is of a new connection.
    notices: VecDeque<(u32, Event, bool)>,
    /// Streams that were to be opened while no connection had room.
    waiting: VecDeque<u32>,
    open: u64,
    held: u64,
    ping: Option<Pinging>,
}

/// How silent connections are pinged.
struct Pinging {
    /// After how much silence.
    every: Duration,
    /// When it is looked at next.
    at: Instant,
    /// How many waits began since then. Once what had come by then is read, it is looked at.
    waits: usize,
}

/// What a protocol on these streams asks of them: it writes its requests and reads its answers itself, piece by piece.
impl<I: Io> Streams<I> {
    /// Streams that bound no body, as whoever reads it piece by piece does.
    pub fn in_parts(inner: I, setup: &Setup<'_>) -> Self {
        Streams { body_bytes: usize::MAX, ..Streams::new(inner, setup) }
    }

    /// Takes a request whose answer is offered in parts; it may stay open for what is said later.
    pub fn ask(&mut self, s: usize, message: Message, stays_open: bool) {
        let stream = &mut self.streams[s];
        (stream.stays_open, stream.in_parts, stream.reset) = (stays_open, true, None);
        stream.ask(message, true, 0);
    }

    /// Takes what is said next on a stream that is open, and whether something is waited for then.
    pub fn put(&mut self, s: usize, data: Bytes, ends: bool, awaits: bool) {
        self.streams[s].piece = Some(Piece { data, ends, awaits });
    }

    /// What was offered has been read.
    pub fn take_part(&mut self, s: usize) {
        self.streams[s].reply.begin_part();
    }

    /// Nothing is waited for until something is said next.
    pub fn rest(&mut self, s: usize) {
        if let Some(exchange) = &mut self.streams[s].exchange {
            exchange.is_awaited = false;
        }
    }

    /// What came on a stream while nothing was waited for, if anything did; nothing is waited for after it either.
    pub fn look_aside(&mut self, s: usize) -> Option<Event> {
        self.streams[s].exchange.as_mut()?.is_awaited = true;
        let event = self.look(s);
        self.rest(s);
        event
    }

    /// Whether the request of a stream has left, and its answer is not whole.
    pub fn is_under_way(&self, s: usize) -> bool {
        self.streams[s].exchange.is_some()
    }

    /// Why the server reset a stream, if it did.
    pub fn reset(&self, s: usize) -> Option<u32> {
        self.streams[s].reset
    }

    /// The headers in front of the body and behind it; they are gone then.
    pub fn take_headers(&mut self, s: usize) -> (HeaderMap, HeaderMap) {
        self.streams[s].reply.take_headers()
    }
}

impl<I: Io> Streams<I> {
    fn new(inner: I, setup: &Setup<'_>) -> Self {
        let Setup { plan, origin, sockets: connections, depth: each, .. } = *setup;
        let requests = plan.requests.iter().map(|request| match &request.ask {
            RequestKind::Http(http) => Prepared::new(http, request.needs_body(), origin).map(|mut one| {
                one.shown_bytes = request.shown_body_bytes;
                one
            }),
            _ => Err("it is not an HTTP request".to_owned()),
        });
        let (rung_links, rung_streams) = (Rung::default(), Rung::default());
        Streams {
            inner,
            requests: requests.collect(),
            frame: Frame::new(origin),
            scratch: Vec::new(),
            body_bytes: plan.limits.body_bytes,
            keep_alive: plan.limits.keep_alive,
            each,
            links: (0..connections).map(|_| Link::default()).collect(),
            streams: (0..connections * each).map(|_| Stream::default()).collect(),
            link_bells: bells(connections, &rung_links),
            stream_bells: bells(connections * each, &rung_streams),
            rung_links,
            rung_streams,
            woken: VecDeque::new(),
            dirty: Vec::new(),
            unsent: Vec::new(),
            notices: VecDeque::new(),
            waiting: VecDeque::new(),
            open: 0,
            held: 0,
            ping: plan.limits.ping.map(|every| Pinging { every, at: Instant::now() + every, waits: 0 }),
        }
    }

    /// Finds a connection for a stream: an open one that nobody is on, else a new one while there may be more, else
    /// the one with the fewest.
    fn attach(&mut self, s: usize) -> io::Result<()> {
        let rank = |link: &Link| match link.state {
            LinkState::Open if link.attached.is_empty() => Some(0),
            LinkState::Closed => Some(1),
            LinkState::Connecting | LinkState::Open if link.attached.len() < self.each => {
                Some(1 + link.attached.len())
            }
            _ => None,
        };
        let ranked = self.links.iter().enumerate().filter_map(|(l, link)| Some((rank(link)?, l)));
        let best = ranked.min().map(|(_, l)| l);
        let Some(l) = best else {
            self.waiting.push_back(s as u32);
            return Ok(());
        };
        match self.links[l].state {
            LinkState::Closed => {
                self.inner.open(l)?;
                self.links[l].state = LinkState::Connecting;
            }
            LinkState::Open => self.notices.push_back((s as u32, Event::Opened, false)),
            _ => {}
        }
        self.links[l].attached.push(s as u32);
        self.streams[s].link = Some(l as u32);
        Ok(())
    }

    /// Gives those that wait a place, as far as there is one.
    fn attach_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(s) = self.waiting.pop_front() else { return };
            if let Err(error) = self.attach(s as usize) {
                self.notices.push_back((s, Event::Failed(error), false));
            } else if self.streams[s as usize].link.is_none() {
                // It stands at the end again; the others find no place either.
                self.waiting.rotate_right(1);
                return;
            }
        }
    }

    /// Begins the request that was written for a stream.
    fn begin(&mut self, s: usize, l: usize) {
        let (stream, link) = (&mut self.streams[s], &mut self.links[l]);
        let (Some(client), Some((request, body))) = (link.client.as_mut(), stream.request.take()) else {
            return;
        };
        // A copy does not insist that the one before has left already.
        let mut sender = client.sender.clone();
        let stays_open = std::mem::take(&mut stream.stays_open);
        let in_parts = std::mem::take(&mut stream.in_parts) || stays_open;
        let is_whole = body.is_empty() && !stays_open;
        let sent = sender.send_request(request, is_whole).and_then(|(head, mut upload)| {
            // Flow control is the library's; what it cannot send yet it keeps.
            if !body.is_empty() {
                upload.send_data(body, !stays_open)?;
            }
            Ok((head, stays_open.then_some(upload)))
        });
        match sent {
            Ok((head, upload)) => {
                stream.exchange = Some(Exchange::new(head, upload, in_parts, link.receptions));
                stream.begun = None;
                link.active += 1;
                // Looked at once, so that it can ring.
                self.woken.push_back(s as u32);
            }
            Err(error) => {
                let event = match failure::was_not_taken(&error) {
                    true => Event::Unsent(failure::untaken(&error)),
                    false => Event::Failed(failure::told(error)),
                };
                self.notices.push_back((s as u32, event, false));
            }
        }
        self.dirty.push(l as u32);
    }

    /// Says what was written on a stream that is open.
    fn say(&mut self, s: usize, l: usize, piece: Piece) -> io::Result<Sent> {
        let stream = &mut self.streams[s];
        let Some(exchange) = &mut stream.exchange else { return Err(ErrorKind::NotConnected.into()) };
        if let Some(upload) = exchange.upload.as_mut().filter(|_| piece.ends || !piece.data.is_empty()) {
            upload.send_data(piece.data, piece.ends).map_err(failure::told)?;
        }
        if piece.ends {
            exchange.upload = None;
        }
        exchange.is_awaited = piece.awaits;
        stream.begun = None;
        self.dirty.push(l as u32);
        if self.each == 1 {
            self.flush(l);
        }
        if !piece.awaits {
            return Ok(Sent::Whole);
        }
        // something may have come before
        self.woken.push_back(s as u32);
        Ok(Sent::Awaiting)
    }

    /// A request is over: one that was held may go.
    fn over(&mut self, l: usize) {
        self.links[l].active -= 1;
        while self.links[l].has_room() {
            let Some(next) = self.links[l].held.pop_front() else { return };
            self.begin(next as usize, l);
        }
    }

    /// Looks at a stream that rang.
    fn look(&mut self, s: usize) -> Option<Event> {
        let stream = &mut self.streams[s];
        let l = stream.link? as usize;
        let exchange = stream.exchange.as_mut().filter(|exchange| exchange.is_awaited)?;
        let cx = &mut Context::from_waker(&self.stream_bells[s]);
        let link = &self.links[l];
        let event = match exchange.poll(cx, &mut stream.reply, self.body_bytes) {
            // Its connection is lost, and it will hear nothing more.
            Poll::Pending if link.state == LinkState::Lost => Event::Failed(link.lost()),
            Poll::Pending => {
                if exchange.has_head() {
                    stream.begun.get_or_insert_with(|| self.inner.taken_at().unwrap_or_else(Instant::now));
                }
                return None;
            }
            // The stream goes on until it is closed, which cancels it.
            Poll::Ready(Err(Unanswered::Violation(violation))) => {
                return Some(Event::Wrong(Failure::Protocol(violation)));
            }
            Poll::Ready(Err(Unanswered::Error(error))) if failure::was_not_taken(&error) => {
                match exchange.is_taken() {
                    // It was taken, whatever the server says now: sent again, it would be done twice.
                    true => Event::Failed(failure::left_within(&error)),
                    false => Event::Unsent(failure::untaken(&error)),
                }
            }
            Poll::Ready(Err(Unanswered::Error(error))) if error.is_reset() && error.is_remote() => {
                stream.reset = error.reason().map(u32::from);
                Event::Failed(failure::told(error))
            }
            Poll::Ready(Err(Unanswered::Error(_))) if link.loss.is_some() => Event::Failed(link.lost()),
            Poll::Ready(Err(Unanswered::Error(error))) => Event::Failed(failure::told(error)),
            Poll::Ready(Ok(Came::Part)) => return Some(Event::Offered),
            Poll::Ready(Ok(Came::Whole)) => Event::Answered { keeps_open: link.state == LinkState::Open },
        };
        stream.exchange = None;
        self.over(l);
        Some(event)
    }

    /// Something happened to a connection.
    fn on_inner(&mut self, l: usize, event: back_end::Event) {
        match event {
            back_end::Event::Opened => {
                let cx = &mut Context::from_waker(&self.link_bells[l]);
                if let Err(error) = self.links[l].begin(self.each, cx) {
                    return self.lose(l, failure::told(error));
                }
                self.open += 1;
                let attached = self.links[l].attached.iter().enumerate();
                self.notices.extend(attached.map(|(index, s)| (*s, Event::Opened, index == 0)));
                self.dirty.push(l as u32);
            }
            back_end::Event::Received { .. } => {
                let link = &mut self.links[l];
                link.receptions += 1;
                if !link.watch.look(self.inner.received()) {
                    let words = "the answer has a pseudo-header that only requests have";
                    return self.lose(l, stream_failure::violation(words));
                }
                link.pipe.0.borrow_mut().feed(self.inner.received());
                self.poll(l);
                self.bound_unread(l);
            }
            back_end::Event::Ended => {
                self.links[l].pipe.0.borrow_mut().end();
                self.poll(l);
                if self.links[l].client.is_some() {
                    self.lose(l, ended());
                }
            }
            // nobody has asked
            back_end::Event::Taken => {}
            back_end::Event::Failed(error) | back_end::Event::Unsent(error) => self.lose(l, error),
        }
    }

    /// Gives up a connection whose server sends on and reads nothing, so that the library cannot answer and reads no more.
    fn bound_unread(&mut self, l: usize) {
        let unread = |link: &Link| link.pipe.0.borrow().unread();
        let own = unread(&self.links[l]);
        if own <= UNREAD_BYTES || self.links[l].client.is_none() {
            return;
        }
        let all: usize = self.links.iter().map(unread).sum();
        if own > UNREAD_BYTES_EACH || all > UNREAD_BYTES_ALL {
            let words = "the server sends on and on, and does not read what it is sent";
            self.lose(l, stream_failure::violation(words));
        }
    }

    /// Lets the library work on a connection.
    fn poll(&mut self, l: usize) {
        let link = &mut self.links[l];
        let cx = &mut Context::from_waker(&self.link_bells[l]);
        match link.poll(cx) {
            Some(Ok(())) => self.lose(l, ended()),
            Some(Err(error)) if error.is_io() => {
                self.lose(l, error.into_io().unwrap_or_else(ended));
            }
            Some(Err(error)) => self.lose(l, failure::told(error)),
            None if link.state == LinkState::Open && link.is_going_away(cx) => {
                self.retire(l, &failure::unsent());
            }
            None => {}
        }
        if !self.links[l].pipe.0.borrow().output.is_empty() {
            self.dirty.push(l as u32);
        }
    }

    /// It takes no further request: those that it holds are told why.
    fn retire(&mut self, l: usize, why: &io::Error) {
        let link = &mut self.links[l];
        link.state = LinkState::Retired;
        self.open -= 1;
        for s in &link.attached {
            if self.streams[*s as usize].exchange.is_none() && !link.held.contains(s) {
                self.notices.push_back((*s, Event::Ended { within: false }, false));
            }
        }
        for s in std::mem::take(&mut link.held) {
            self.notices.push_back((s, Event::Unsent(stream_failure::again(why)), false));
        }
    }

    /// It is gone; those on it are told, behind what they have already got.
    fn lose(&mut self, l: usize, why: io::Error) {
        let link = &mut self.links[l];
        let was = std::mem::replace(&mut link.state, LinkState::Lost);
        if was == LinkState::Open {
            self.open -= 1;
        }
        let held = std::mem::take(&mut link.held);
        for s in &link.attached {
            let event = match &self.streams[*s as usize].exchange {
                Some(_) => {
                    self.woken.push_back(*s);
                    continue;
                }
                // nothing of it was sent
                None if held.contains(s) => Event::Unsent(stream_failure::again(&why)),
                None if was == LinkState::Connecting => Event::Failed(stream_failure::again(&why)),
                None => Event::Ended { within: false },
            };
            self.notices.push_back((*s, event, false));
        }
        link.loss = Some(why);
        let last_words = std::mem::take(&mut link.pipe.0.borrow_mut().output);
        link.client = None;
        // what it still had to say is of no use
        link.pipe = Pipe::default();
        if was != LinkState::Connecting && !last_words.is_empty() && !self.inner.is_sending(l) {
            self.inner.output(l).extend_from_slice(&last_words);
            // Whether anybody still hears them does not matter.
            let _ = self.inner.send(l);
        }
        self.inner.close(l);
        self.free_if_left(l);
    }

    /// Makes the place of a connection free once nobody is on it who has not heard that it is gone.
    fn free_if_left(&mut self, l: usize) {
        let link = &mut self.links[l];
        if !link.attached.is_empty() {
            return;
        }
        let useless = match link.state {
            LinkState::Closed => return,
            LinkState::Open => !self.keep_alive,
            LinkState::Connecting | LinkState::Retired | LinkState::Lost => true,
        };
        if useless {
            if link.state == LinkState::Open {
                self.open -= 1;
            }
            if link.state != LinkState::Lost {
                self.inner.close(l);
            }
            *link = Link::default();
        }
    }

    /// Pings connections over which nothing came since the last look; one that was pinged then is lost.
    /// What came before the look has been read.
    fn ping_silent(&mut self) {
        let waits = 1 + self.links.len() / LINKS_PER_WAIT;
        if self.ping.as_ref().is_none_or(|ping| ping.waits < waits) {
            return;
        }
        for l in 0..self.links.len() {
            let cx = &mut Context::from_waker(&self.link_bells[l]);
            match self.links[l].ping(cx) {
                Pinged::No => {}
                Pinged::Sent => self.flush(l),
                Pinged::InVain => {
                    let words = "nothing comes over the connection, not even an answer to a ping";
                    self.lose(l, stream_failure::timed_out(words));
                }
            }
        }
        // from when the pings were sent
        if let Some(ping) = &mut self.ping {
            (ping.at, ping.waits) = (Instant::now() + ping.every, 0);
        }
    }

    /// Sends what a connection has to say, as far as its socket takes it.
    fn flush(&mut self, l: usize) {
        loop {
            self.poll_writing(l);
            if self.links[l].client.is_none() || self.links[l].pipe.0.borrow().output.is_empty() {
                return;
            }
            if self.inner.is_sending(l) {
                if let Err(error) = self.inner.push(l) {
                    return self.lose(l, error);
                }
                if self.inner.is_sending(l) {
                    self.unsent.push(l as u32);
                    return;
                }
            }
            let output = self.inner.output(l);
            std::mem::swap(output, &mut self.links[l].pipe.0.borrow_mut().output);
            let was_full = output.len() >= OUTPUT_BYTES;
            if let Err(error) = self.inner.send(l) {
                return self.lose(l, error);
            }
            if !was_full {
                return;
            }
        }
    }

    fn poll_writing(&mut self, l: usize) {
        let cx = &mut Context::from_waker(&self.link_bells[l]);
        match self.links[l].poll(cx) {
            Some(Ok(())) => self.lose(l, ended()),
            Some(Err(error)) => self.lose(l, failure::told(error)),
            None => {}
        }
    }

    /// Sends what all connections have to say.
    fn flush_all(&mut self) {
        bell::take(&self.rung_links, &mut self.dirty);
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        for l in &dirty {
            self.flush(*l as usize);
        }
        // What came up in between stays for the next time, in the same buffer.
        dirty.clear();
        std::mem::swap(&mut dirty, &mut self.dirty);
        self.dirty.append(&mut dirty);
    }
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::ConnectionReset, "the server closed the connection of HTTP/2")
}
