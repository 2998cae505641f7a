//! HTTP/2 behind the seam of protocols: each stream is a connection to the loop.
//!
//! A typed request becomes a header block, and its answer is looked at as it comes; so due times, time-outs, checks,
//! cookies and bounds are the same ones, whatever the version. Frames and header blocks are those of
//! [`tidemark_wire::http2`], which reads what came and writes what is to be sent.
//!
//! What is said about one stream ends that one: a reset, a time-out (which cancels it). What is said about the
//! connection ends all of them, each with its own failure. After a GOAWAY, or when nothing at all came for the whole
//! time of a request that is given up, a connection takes no further request. What a server had not taken when it ended
//! the connection in order goes over another one.

mod answer;
mod backlog;
pub(in crate::protocols) mod blocking;
mod failure;
pub(in crate::protocols) mod greet;
mod link;
pub(in crate::protocols) mod request;
mod stream;
mod transport;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Limits, RequestKind};
use tidemark_wire::http2::connection::{OUTPUT_BYTES, PIECE_BYTES, Request, StreamError};
use tidemark_wire::http2::hpack::Fields;

use crate::error::DriveError;
use crate::io::stream_failure::{self, broken};
use crate::io::{self as back_end, Io};
use crate::protocols::transport::{Client, Event, Sent, Setup, Transport};
use crate::session::failure::Failure;
use backlog::{BACKLOG_BYTES, Backlog};
use greet::{NotHttp2, greet};
use link::{Link, LinkState, Pinged};
use request::{Destination, Message, Prepared};
use stream::{Exchange, Piece, Stream, Unanswered};

/// Bytes that wait to be sent over a connection whose server does not read; then it is given up.
const UNSENT_BYTES: usize = 16 << 20;
/// Bytes that may wait on an open stream until its server takes them. One message may be larger.
const WAITING_BYTES: usize = 16 << 20;
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
        let most_streams = greet(stream).map_err(|error| {
            let hint = match NotHttp2::of(&error) {
                Some(NotHttp2::Tls) => "write https://",
                _ => "ask for HTTP/1.1, or for auto over TLS",
            };
            io::Error::new(error.kind(), format!("{error}; {hint}"))
        })?;
        Ok(Http2 { most_streams })
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
    /// Where the requests of programs go.
    destination: Destination,
    scratch: Vec<u8>,
    /// Most bytes of an answer's body.
    body_bytes: usize,
    keep_alive: bool,
    /// Most streams of a connection.
    each: usize,
    links: Vec<Link>,
    streams: Vec<Stream>,
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
    /// What waits on open streams.
    backlog: Backlog,
    /// How often something was read.
    readings: u64,
    /// The reading that the last event is of, where streams share connections.
    reading: Option<u64>,
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

    /// Where a stream's next request is written.
    pub fn message(&mut self, s: usize) -> &mut Message {
        &mut self.streams[s].message
    }

    /// Takes the request that was written there, whose answer is offered in parts; it may stay open for what is said later.
    pub fn ask(&mut self, s: usize, stays_open: bool) {
        let stream = &mut self.streams[s];
        (stream.stays_open, stream.in_parts, stream.reset) = (stays_open, true, None);
        stream.ask(true, 0);
    }

    /// Takes what is said next on a stream that is open, and whether something is waited for then.
    pub fn put(&mut self, s: usize, data: Bytes, ends: bool, awaits: bool) {
        self.streams[s].piece = Some(Piece { data, ends, awaits });
    }

    /// What was offered has been read: the server may send more.
    pub fn take_part(&mut self, s: usize) {
        let stream = &mut self.streams[s];
        stream.reply.begin_part();
        let (Some(l), Some(exchange)) = (stream.link, &stream.exchange) else { return };
        let link = &mut self.links[l as usize];
        if let Some(client) = &mut link.client {
            client.release(exchange.number, &mut link.output);
        }
        if !link.output.is_empty() {
            self.dirty.push(l);
        }
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

    /// Swaps the headers in front of the body and behind it with these.
    pub fn swap_headers(&mut self, s: usize, lists: (&mut Fields, &mut Fields)) {
        self.streams[s].reply.swap_headers(lists);
    }
}

impl<I: Io> Streams<I> {
    fn new(inner: I, setup: &Setup<'_>) -> Self {
        let Setup { plan, origin, sockets: connections, depth: each, .. } = *setup;
        let requests = plan.requests.iter().enumerate().map(|(number, request)| match &request.ask {
            RequestKind::Http(http) => {
                Prepared::new((number, http), request.needs_body(), origin).map(|mut one| {
                    one.shown_bytes = request.shown_body_bytes;
                    one
                })
            }
            _ => Err("it is not an HTTP request".to_owned()),
        });
        Streams {
            inner,
            requests: requests.collect(),
            destination: Destination::new(origin),
            scratch: Vec::new(),
            body_bytes: plan.limits.body_bytes,
            keep_alive: plan.limits.keep_alive,
            each,
            links: (0..connections).map(|_| Link::default()).collect(),
            streams: (0..connections * each).map(|_| Stream::default()).collect(),
            woken: VecDeque::new(),
            dirty: Vec::new(),
            unsent: Vec::new(),
            notices: VecDeque::new(),
            waiting: VecDeque::new(),
            backlog: Backlog::default(),
            readings: 0,
            reading: None,
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
        let Some(client) = link.client.as_mut().filter(|_| stream.is_written) else { return };
        stream.is_written = false;
        let stays_open = std::mem::take(&mut stream.stays_open);
        let in_parts = std::mem::take(&mut stream.in_parts) || stays_open;
        let message = &stream.message;
        let body = message.body();
        let ends = body.is_empty() && !stays_open;
        let request = Request { owner: s as u32, ends, is_head: message.is_head(), holds: in_parts };
        let Some(number) = client.request(message.block(), request, &mut link.output) else {
            // the numbers of its streams are used up
            self.notices.push_back((s as u32, Event::Unsent(failure::unsent()), false));
            if link.state == LinkState::Open {
                self.retire(l, &failure::unsent());
            }
            return;
        };
        if !body.is_empty() {
            client.send(number, body, !stays_open, |sent| message.rest(sent), &mut link.output);
        }
        stream.exchange = Some(Exchange::new(number, stays_open, in_parts, link.receptions));
        stream.begun = None;
        link.active += 1;
        self.dirty.push(l as u32);
    }

    /// Says what was written on a stream that is open.
    fn say(&mut self, s: usize, l: usize, piece: Piece) -> io::Result<Sent> {
        let Piece { data, ends, awaits } = piece;
        if !data.is_empty() {
            self.admit(s, data.len())?;
        }
        let (stream, link) = (&mut self.streams[s], &mut self.links[l]);
        let Some((exchange, client)) = stream.exchange.as_mut().zip(link.client.as_mut()) else {
            return Err(ErrorKind::NotConnected.into());
        };
        client.send(exchange.number, &data, ends, |sent| data.slice(sent..), &mut link.output);
        exchange.is_awaited = awaits;
        stream.begun = None;
        self.dirty.push(l as u32);
        if self.each == 1 {
            self.flush(l);
        }
        if !awaits {
            return Ok(Sent::Whole);
        }
        // something may have come before
        self.woken.push_back(s as u32);
        Ok(Sent::Awaiting)
    }

    /// A message of so many bytes is about to be sent on a stream that is open.
    ///
    /// # Errors
    /// Too much waits.
    fn admit(&mut self, s: usize, bytes: usize) -> io::Result<()> {
        let waiting_bytes = self.waiting_bytes(s);
        if waiting_bytes > 0 && waiting_bytes + bytes > WAITING_BYTES {
            return Err(failure::untakeable(WAITING_BYTES, "the stream"));
        }
        let mut backlog = std::mem::take(&mut self.backlog);
        let count = || (0..self.streams.len()).map(|s| self.waiting_bytes(s)).sum();
        let is_admitted = backlog.admits(bytes + PIECE_BYTES, count);
        self.backlog = backlog;
        match is_admitted {
            true => Ok(()),
            false => Err(failure::untakeable(BACKLOG_BYTES, "the open streams of a driving thread")),
        }
    }

    /// What waits on a stream that is open until its server takes it.
    fn waiting_bytes(&self, s: usize) -> usize {
        let stream = &self.streams[s];
        let exchange = stream.exchange.as_ref().filter(|exchange| exchange.stays_open);
        let client = stream.link.and_then(|l| self.links[l as usize].client.as_ref());
        exchange.zip(client).map_or(0, |(exchange, client)| client.waiting_bytes(exchange.number))
    }

    /// A request is over: one that was held may go.
    fn over(&mut self, l: usize) {
        self.links[l].active -= 1;
        self.begin_held(l);
    }

    /// Begins requests that were held, as far as the server takes them.
    fn begin_held(&mut self, l: usize) {
        while self.links[l].has_room() {
            let Some(next) = self.links[l].held.pop_front() else { return };
            self.begin(next as usize, l);
        }
    }

    /// Looks at a stream for which something came.
    fn look(&mut self, s: usize) -> Option<Event> {
        let stream = &mut self.streams[s];
        let l = stream.link? as usize;
        let exchange = stream.exchange.as_mut().filter(|exchange| exchange.is_awaited)?;
        let link = &self.links[l];
        let is_lost = link.state == LinkState::Lost;
        let event = match exchange.ended.take() {
            Some(Ok(())) => Event::Answered { keeps_open: link.state == LinkState::Open },
            // The stream goes on until it is closed, which cancels it.
            Some(Err(Unanswered::Violation(violation))) => {
                return Some(Event::Wrong(Failure::Protocol(violation)));
            }
            Some(Err(Unanswered::Error(error))) if failure::was_not_taken(error) => match exchange.is_taken {
                // It was taken, whatever the server says now: sent again, it would be done twice.
                true => Event::Failed(failure::left_within(error)),
                false => Event::Unsent(failure::untaken(error)),
            },
            Some(Err(Unanswered::Error(error))) => {
                if let StreamError::Reset(reason) = error {
                    stream.reset = Some(reason.0);
                }
                Event::Failed(failure::told(error))
            }
            None if exchange.in_parts && std::mem::take(&mut exchange.has_news) => {
                if is_lost {
                    self.woken.push_back(s as u32);
                }
                return Some(Event::Offered);
            }
            // It will hear nothing more.
            None if is_lost => Event::Failed(link.lost()),
            None => return None,
        };
        stream.exchange = None;
        self.over(l);
        Some(event)
    }

    /// Something happened to a connection.
    fn on_inner(&mut self, l: usize, event: back_end::Event) {
        self.reading = None;
        match event {
            back_end::Event::Opened => {
                self.links[l].begin();
                self.open += 1;
                let attached = self.links[l].attached.iter().enumerate();
                self.notices.extend(attached.map(|(index, s)| (*s, Event::Opened, index == 0)));
                self.dirty.push(l as u32);
            }
            back_end::Event::Received { .. } => self.receive(l),
            back_end::Event::Ended => {
                if self.links[l].client.is_some() {
                    self.lose(l, ended());
                }
            }
            // nobody has asked
            back_end::Event::Taken => {}
            back_end::Event::Failed(error) | back_end::Event::Unsent(error) => self.lose(l, error),
        }
    }

    /// Takes what came over a connection.
    fn receive(&mut self, l: usize) {
        self.readings += 1;
        self.reading = (self.each > 1).then_some(self.readings);
        let link = &mut self.links[l];
        link.receptions += 1;
        let Some(client) = &mut link.client else { return };
        let came = (self.inner.taken_at().unwrap_or_else(Instant::now), link.receptions);
        let mut input = self.inner.received();
        loop {
            match client.next(&mut input, &mut link.output) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    let s = event.owner();
                    let is_news =
                        self.streams[s as usize].take(event, client.fields(), came, self.body_bytes);
                    // what came before of the same answer is not looked at yet
                    if is_news && self.woken.back() != Some(&s) {
                        self.woken.push_back(s);
                    }
                }
                Err(violation) => return self.lose(l, failure::wrong(violation)),
            }
        }
        let is_going_away = link.state == LinkState::Open && client.is_going_away();
        if !link.output.is_empty() {
            self.dirty.push(l as u32);
        }
        if is_going_away {
            return self.retire(l, &failure::unsent());
        }
        // it may take more than before
        self.begin_held(l);
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
        self.reading = None;
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
        link.client = None;
        let last_words = std::mem::take(&mut link.output);
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
            match self.links[l].ping() {
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
            let link = &mut self.links[l];
            let Some(client) = &mut link.client else { return };
            client.pump(&mut link.output);
            if link.output.is_empty() {
                return;
            }
            if self.inner.is_sending(l) {
                if let Err(error) = self.inner.push(l) {
                    return self.lose(l, error);
                }
                if self.inner.is_sending(l) {
                    if link.output.len() > UNSENT_BYTES {
                        return self.lose(l, broken("the server does not read what it is sent"));
                    }
                    self.unsent.push(l as u32);
                    return;
                }
            }
            let output = self.inner.output(l);
            std::mem::swap(output, &mut link.output);
            client.taken();
            let was_full = output.len() >= OUTPUT_BYTES;
            if let Err(error) = self.inner.send(l) {
                return self.lose(l, error);
            }
            if !was_full {
                return;
            }
        }
    }

    /// Sends what all connections have to say.
    fn flush_all(&mut self) {
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
