//! Protocols in which a connection's bytes are one request and then one answer, in turn.
//!
//! A [`Codec`] knows no socket, clock or thread: it writes a request, is fed with the bytes that come, and says when the
//! answer is whole and what it is. [`ByteTransport`] carries what it writes over any back end.

use std::io;
use std::time::{Duration, Instant};

use tidemark_record::Outcome;
use tidemark_scenario::{Context, Unmet};

use crate::io::pipeline::PipelineIo;
use crate::io::prefetch::prefetch;
use crate::io::{self as back_end, Io};
use crate::protocols::transport::{
    Conversations, Copies, Counts, Event, Readings, Refusal, Sent, Setup, Transport,
};
use crate::protocols::upload::Upload;
use crate::session::answer::Answer;
use crate::session::failure::{Failure, Violation};
use crate::session::jar::Jar;
use crate::session::program::{Outgoing, ProgramRequest};

/// What a call to [`Codec::decode`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Bytes that belong to the answer; never more than were given.
    pub consumed: usize,
    /// Whether the answer is whole.
    pub complete: bool,
}

impl From<tidemark_wire::http1::Decoded> for Decoded {
    fn from(decoded: tidemark_wire::http1::Decoded) -> Self {
        Decoded { consumed: decoded.consumed, complete: decoded.complete }
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

/// What a request lacks that builds on what its session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It fails, in these words.
    Refused(&'static str),
    /// It has nothing to do any more.
    Needless,
}

/// One connection's requests and answers.
pub(crate) trait Codec {
    /// A request made ready: what does not vary is put together once.
    type Request;

    /// For answers whose bodies have so many bytes at most.
    fn new(body_bytes: usize) -> Self;
    /// The connection is made anew.
    fn opened(&mut self) {}
    /// The connection is closed.
    fn closed(&mut self) {}
    /// Whether what its session began on the connection is open: a transaction.
    fn is_held(&self) -> bool {
        false
    }
    /// What is the matter with a request on a connection that is held, or is not.
    fn is_lost(_request: &Self::Request, _is_held: bool) -> Option<Lost> {
        None
    }
    /// Appends a request to `out`, nothing of it where something that it needs is not there, and awaits its answer.
    /// `scratch` is room.
    fn write(
        &mut self,
        request: &Self::Request,
        cx: &mut Context<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet>;
    /// Appends a request that a program has made, with the cookies of this time; `frame` is the last of the requests.
    fn write_made(
        &mut self,
        _frame: &Self::Request,
        _request: &ProgramRequest,
        _cookies: (&Jar, i64),
        _out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        Err(Failure::Unsendable("a program's requests go over HTTP".into()))
    }
    /// What is to be sent behind what was written, where that is read from files.
    fn upload(&mut self) -> Option<Upload> {
        None
    }
    /// Takes bytes from the front of `received`, up to the end of the answer.
    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation>;
    /// The peer closed the connection. Well where that is how the answer ends.
    fn finish(&mut self) -> Result<(), Closed>;
    /// Whether the connection can carry another request behind this answer.
    fn keeps_open(&self) -> bool;
    /// Whether the connection speaks another protocol from this answer on, so that what is behind it is awaited.
    fn goes_over(&self) -> bool {
        false
    }
    /// The answer, once it is whole.
    fn answer(&self) -> &dyn Answer;
}

/// What every request looks at. Aligned, so that a small codec and its flags take one cache line.
#[repr(align(64))]
pub(crate) struct Connection<C> {
    codec: C,
    /// Whether an answer is to come; what comes otherwise is nothing that was asked for.
    is_awaited: bool,
    /// Whether first bytes of its answer came, and it was not whole by them.
    is_partial: bool,
    /// Whether something is still to be read and sent of its request.
    has_upload: bool,
    /// Whether its request is sent in pieces and one has been taken, so that not all of it is unsent if the next is not.
    is_begun: bool,
}

/// What few requests look at.
#[derive(Default)]
struct Cold {
    /// When the first bytes of the answer came, where it was not whole by them.
    begun: Option<Instant>,
    /// What is still to be read and sent of the request.
    upload: Option<Upload>,
}

/// Carries the requests of a codec.
pub(crate) struct ByteTransport<I, C: Codec> {
    /// Sockets.
    pub io: I,
    requests: Vec<C::Request>,
    /// Most bytes of an answer's body.
    body_bytes: usize,
    /// Those that have been opened at least once.
    connections: Vec<Connection<C>>,
    /// What few requests look at of each of them; what is said there holds where its connection says that there is something.
    cold: Vec<Cold>,
    /// Where the last answer ends in what was received.
    pub answer_end: usize,
    /// Whose answer that is.
    answer_of: usize,
    scratch: Vec<u8>,
    /// Answers that came before the body of their request, which is sent in pieces, was sent whole.
    uploads_cut: u64,
    /// Answers that came and that nobody had asked for.
    unsolicited: u64,
    /// What was written last, where somebody wants to know.
    written: Option<Vec<u8>>,
}

/// A transport over these sockets, on each of which requests are pipelined where the plan wants that.
pub(crate) fn byte_transport<I: Io + 'static, C: Codec + 'static>(
    io: I,
    setup: &Setup<'_>,
    requests: Vec<C::Request>,
) -> Box<dyn Transport> {
    let body_bytes = setup.plan.limits.body_bytes;
    match setup.depth {
        1 => Box::new(ByteTransport::<I, C>::new(io, requests, body_bytes)),
        depth => {
            let io = PipelineIo::new(io, setup.sockets, depth, setup.plan.limits.batch);
            Box::new(ByteTransport::<_, C>::new(io, requests, body_bytes))
        }
    }
}

/// Keeps what was written, where somebody wants to know.
#[inline]
fn keep(written: &mut Option<Vec<u8>>, bytes: &[u8]) {
    if let Some(written) = written {
        written.clear();
        written.extend_from_slice(bytes);
    }
}

impl<I: Io, C: Codec> ByteTransport<I, C> {
    fn lacks(&self, c: Option<u32>, request: usize) -> Option<Lost> {
        let connection = c.and_then(|c| self.connections.get(c as usize));
        C::is_lost(&self.requests[request], connection.is_some_and(|connection| connection.codec.is_held()))
    }

    /// For answers whose bodies have so many bytes at most.
    pub fn new(io: I, requests: Vec<C::Request>, body_bytes: usize) -> Self {
        let connections = Vec::new();
        ByteTransport {
            io,
            requests,
            body_bytes,
            connections,
            cold: Vec::new(),
            answer_end: 0,
            answer_of: 0,
            scratch: Vec::new(),
            uploads_cut: 0,
            unsolicited: 0,
            written: None,
        }
    }

    /// What a connection's requests and answers are.
    pub fn codec(&self, c: usize) -> &C {
        &self.connections[c].codec
    }

    /// The same, to be changed.
    pub fn codec_mut(&mut self, c: usize) -> &mut C {
        &mut self.connections[c].codec
    }

    /// What is sent next over a connection: these bytes, one behind the other.
    pub fn put(&mut self, c: usize, parts: &[&[u8]]) {
        let out = self.io.output(c);
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }

    /// The bytes that came last, and the codec that they are for, where a connection's bytes go on behind an answer.
    pub fn parts(&mut self, c: usize) -> (&[u8], &mut C) {
        (self.io.received(), &mut self.connections[c].codec)
    }

    /// Writes what a program has made, also where that asks for a WebSocket.
    pub fn write_any_made(
        &mut self,
        c: usize,
        outgoing: &Outgoing,
        cookies: (&Jar, i64),
    ) -> Result<(), Failure> {
        let Some(frame) = self.requests.last() else { return Ok(()) };
        let Outgoing::Request(request @ ProgramRequest { stays_open: false, .. }) = outgoing else {
            return Err(Failure::Unsendable("a stream that stays open needs HTTP/2".into()));
        };
        let (connection, out) = (&mut self.connections[c], self.io.output(c));
        let begin = out.len();
        connection.codec.write_made(frame, request, cookies, out)?;
        (connection.has_upload, connection.is_begun) = (false, false);
        keep(&mut self.written, &out[begin..]);
        Ok(())
    }

    /// What something that happened on a socket means; nothing yet where an answer is not whole by it.
    pub fn on_io(&mut self, c: usize, event: back_end::Event) -> Option<Event> {
        let is_awaited = self.connections[c].is_awaited;
        Some(match event {
            back_end::Event::Opened => Event::Opened,
            back_end::Event::Received { closing } if is_awaited => match self.read(c, closing) {
                Ok(keeps_open) => Event::Answered { keeps_open: keeps_open? },
                Err(violation) => Event::Wrong(Failure::Protocol(violation)),
            },
            back_end::Event::Taken => return self.go_on(c),
            back_end::Event::Ended if is_awaited => self.finish(c),
            back_end::Event::Received { .. } => {
                self.unsolicited += 1;
                Event::Ended { within: false }
            }
            back_end::Event::Ended => Event::Ended { within: false },
            back_end::Event::Unsent(error) if self.connections[c].is_begun => Event::Failed(error),
            back_end::Event::Unsent(error) => Event::Unsent(error),
            back_end::Event::Failed(error) => Event::Failed(error),
        })
    }

    /// What was sent has been taken: the next piece of the request's body follows, where there is one.
    fn go_on(&mut self, c: usize) -> Option<Event> {
        let connection = &mut self.connections[c];
        let upload = self.cold[c].upload.as_mut().filter(|_| connection.has_upload)?;
        connection.is_begun = true;
        if let Err(error) = upload.read(self.io.output(c)) {
            return Some(Event::Failed(error));
        }
        let is_over = upload.is_over();
        // What the peer said before it went, or its end, is told when that is read.
        let is_sent = self.io.send(c).is_ok();
        if is_over || !is_sent {
            self.end_upload(c);
            return None;
        }
        self.io.tell_taken(c).err().map(Event::Failed)
    }

    /// Nothing more of a request is to be read and sent; whether there was something.
    fn end_upload(&mut self, c: usize) -> bool {
        let had_upload = std::mem::take(&mut self.connections[c].has_upload);
        if had_upload {
            self.cold[c].upload = None;
        }
        had_upload
    }

    /// Bytes of an answer came: whether the connection can carry another request, once it is whole; nothing if it is not
    /// whole by them.
    #[inline(always)]
    fn read(&mut self, c: usize, closing: bool) -> Result<Option<bool>, Violation> {
        let connection = &mut self.connections[c];
        let decoded = connection.codec.decode(self.io.received())?;
        (self.answer_end, self.answer_of) = (decoded.consumed, c);
        if !decoded.complete {
            if !std::mem::replace(&mut connection.is_partial, true) {
                self.cold[c].begun = Some(self.io.taken_at().unwrap_or_else(Instant::now));
            }
            return Ok(None);
        }
        connection.is_awaited = false;
        // Bytes behind the answer, or a part of the request that the server did not want: out of step.
        let (is_begun, keeps_open) = (connection.is_begun, connection.codec.keeps_open());
        let goes_over = connection.codec.goes_over();
        let had_upload = self.end_upload(c);
        let is_sent = !had_upload && !self.io.is_sending(c);
        self.uploads_cut += u64::from((is_begun || had_upload) && !is_sent);
        let is_last = self.io.answered(c, decoded.consumed);
        self.unsolicited += u64::from(!is_last && !goes_over);
        Ok(Some(is_last && is_sent && !closing && keeps_open))
    }

    /// The peer closed a connection of which an answer was to come.
    fn finish(&mut self, c: usize) -> Event {
        self.connections[c].is_awaited = false;
        if self.answer_of != c {
            // its own bytes are gone: others' came behind them
            self.answer_end = 0;
        }
        let is_cut = self.end_upload(c);
        match self.connections[c].codec.finish() {
            Ok(()) => {
                self.uploads_cut += u64::from(is_cut);
                Event::Answered { keeps_open: false }
            }
            Err(closed) => Event::Ended { within: closed == Closed::Within },
        }
    }
}

impl<I: Io + 'static, C: Codec> Transport for ByteTransport<I, C> {
    fn open(&mut self, c: usize) -> io::Result<()> {
        while self.connections.len() <= c {
            let codec = C::new(self.body_bytes);
            self.connections.push(Connection {
                codec,
                is_awaited: false,
                is_partial: false,
                has_upload: false,
                is_begun: false,
            });
            self.cold.push(Cold::default());
        }
        self.end_upload(c);
        let connection = &mut self.connections[c];
        (connection.is_awaited, connection.is_begun) = (false, false);
        connection.codec.opened();
        self.io.open(c)
    }

    fn write(&mut self, c: usize, request: usize, cx: &mut Context<'_>, jar: &Jar) -> Result<(), Failure> {
        let (request, out) = (&self.requests[request], self.io.output(c));
        let begin = out.len();
        let connection = &mut self.connections[c];
        connection.codec.write(request, cx, jar, out, &mut self.scratch).map_err(Failure::Unmet)?;
        let upload = connection.codec.upload().filter(|upload| !upload.is_over());
        (connection.has_upload, connection.is_begun) = (upload.is_some(), false);
        if upload.is_some() {
            self.cold[c].upload = upload;
        }
        keep(&mut self.written, &out[begin..]);
        Ok(())
    }

    fn write_made(&mut self, c: usize, outgoing: &Outgoing, jar: &Jar, now_s: i64) -> Result<(), Failure> {
        match outgoing {
            Outgoing::Request(ProgramRequest { websocket: Some(_), .. }) => {
                Err(Failure::Unsendable("this program may ask for no WebSocket".into()))
            }
            _ => self.write_any_made(c, outgoing, (jar, now_s)),
        }
    }

    fn send(&mut self, c: usize) -> io::Result<Sent> {
        self.io.send(c)?;
        let connection = &mut self.connections[c];
        (connection.is_awaited, connection.is_partial) = (true, false);
        if connection.has_upload {
            self.io.tell_taken(c)?;
        }
        Ok(Sent::Awaiting)
    }

    fn close(&mut self, c: usize) {
        if let Some(connection) = self.connections.get_mut(c) {
            connection.is_awaited = false;
            connection.codec.closed();
            self.end_upload(c);
        }
        self.io.close(c);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.io.wait(at_most)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.io.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            let (c, event) = self.io.next()?;
            match event {
                // an answer, which most are, is not moved about as other events are
                back_end::Event::Received { closing } if self.connections[c].is_awaited => {
                    match self.read(c, closing) {
                        Ok(Some(keeps_open)) => return Some((c, Event::Answered { keeps_open })),
                        Ok(None) => {}
                        Err(violation) => return Some((c, Event::Wrong(Failure::Protocol(violation)))),
                    }
                }
                event => {
                    if let Some(event) = self.on_io(c, event) {
                        return Some((c, event));
                    }
                }
            }
        }
    }

    fn answer(&self, c: usize) -> &dyn Answer {
        self.connections[c].codec.answer()
    }

    fn is_first(&self, c: usize) -> bool {
        self.io.is_first(c)
    }

    fn socket_of(&self, c: usize) -> usize {
        self.io.socket_of(c)
    }

    fn sockets(&self) -> &dyn Io {
        &self.io
    }

    fn counts(&self) -> Counts {
        Counts {
            handshakes: self.io.handshakes(),
            uploads_cut: self.uploads_cut,
            unsolicited: self.unsolicited + self.io.unsolicited(),
            ..Counts::default()
        }
    }
}

impl<I: Io + 'static, C: Codec> Readings for ByteTransport<I, C> {
    fn received(&self) -> &[u8] {
        let all = self.io.received();
        // behind its end stand other users' answers
        &all[..self.answer_end.min(all.len())]
    }

    fn reading(&self) -> Option<u64> {
        self.io.reading()
    }

    fn prefetch_upcoming(&self, nth: usize) -> Option<usize> {
        let c = self.io.upcoming(nth)?;
        prefetch(self.connections.get(c)?);
        Some(c)
    }

    fn answer_begun(&self, c: usize) -> Option<Instant> {
        if self.connections[c].is_partial { self.cold[c].begun } else { None }
    }

    fn leaves_over(&self, c: usize) -> Option<usize> {
        Some(self.io.socket_of(c))
    }
}

impl<I: Io + 'static, C: Codec> Conversations for ByteTransport<I, C> {
    fn refusal(&self, c: Option<u32>, request: usize) -> Option<Refusal> {
        match self.lacks(c, request)? {
            Lost::Refused(words) => {
                Some(Refusal { failure: Failure::Other(Outcome::Reset, words.into()), ends_session: false })
            }
            Lost::Needless => None,
        }
    }

    fn is_needless(&self, c: Option<u32>, request: usize) -> bool {
        self.lacks(c, request) == Some(Lost::Needless)
    }

    /// What is left open is undone by the server.
    fn leave(&mut self, c: usize) -> bool {
        !self.connections.get(c).is_some_and(|connection| connection.codec.is_held())
    }
}

impl<I: Io + 'static, C: Codec> Copies for ByteTransport<I, C> {
    fn keep_written(&mut self) {
        self.written = Some(Vec::new());
    }

    fn written(&mut self, _: usize) -> &[u8] {
        self.written.as_deref().unwrap_or_default()
    }
}
