//! Protocols in which a connection's bytes are one request and then one answer, in turn.
//!
//! A [`Codec`] knows no socket, clock or thread: it writes a request, is fed with the bytes that come, and says when the
//! answer is whole and what it is. [`ByteTransport`] carries what it writes over any back end.

use std::io;
use std::time::Duration;

use tidemark_scenario::{Context, Unmet};

use crate::answer::Answer;
use crate::fault::{Fault, Violation};
use crate::io::pipeline::PipelineIo;
use crate::io::{self as back_end, Io};
use crate::jar::Jar;
use crate::transport::{Event, Setup, Transport};

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

/// One connection's requests and answers.
pub(crate) trait Codec {
    /// A request made ready: what does not vary is put together once.
    type Request;

    /// For answers whose bodies have so many bytes at most.
    fn new(body_bytes: usize) -> Self;
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
    /// Takes bytes from the front of `received`, up to the end of the answer.
    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation>;
    /// The peer closed the connection. Well where that is how the answer ends.
    fn finish(&mut self) -> Result<(), Closed>;
    /// Whether the connection can carry another request behind this answer.
    fn keeps_open(&self) -> bool;
    /// The answer, once it is whole.
    fn answer(&self) -> &dyn Answer;
    /// Whether the connection is a WebSocket from this answer on, or why it is none, where the request asked for one.
    fn upgraded(&self) -> Option<Result<(), Fault>> {
        None
    }
}

/// What a connection's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nothing that was asked for.
    Nothing,
    /// An answer.
    Answer,
    /// Frames of a WebSocket.
    Frames,
}

struct Connection<C> {
    codec: C,
    reading: Reading,
}

/// Carries the requests of a codec.
pub(crate) struct ByteTransport<I, C: Codec> {
    io: I,
    requests: Vec<C::Request>,
    /// Most bytes of an answer's body.
    body_bytes: usize,
    /// Those that have been opened at least once.
    connections: Vec<Connection<C>>,
    scratch: Vec<u8>,
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
            let io = PipelineIo::new(io, setup.sockets, depth);
            Box::new(ByteTransport::<_, C>::new(io, requests, body_bytes))
        }
    }
}

impl<I: Io, C: Codec> ByteTransport<I, C> {
    fn new(io: I, requests: Vec<C::Request>, body_bytes: usize) -> Self {
        ByteTransport { io, requests, body_bytes, connections: Vec::new(), scratch: Vec::new() }
    }

    /// Bytes of an answer came; nothing if it is not whole by them.
    fn read(&mut self, c: usize, closing: bool) -> Option<Event> {
        let connection = &mut self.connections[c];
        let decoded = match connection.codec.decode(self.io.received()) {
            Ok(decoded) if decoded.complete => decoded,
            Ok(_) => return None,
            Err(violation) => return Some(Event::Wrong(violation)),
        };
        connection.reading = Reading::Nothing;
        match connection.codec.upgraded() {
            None => {
                // Bytes behind the answer, or a part of the request that the server did not want: out of step.
                let is_sent = !self.io.is_sending(c);
                let in_step = self.io.answered(c, decoded.consumed) && is_sent;
                let keeps_open = in_step && !closing && connection.codec.keeps_open();
                Some(Event::Answered { keeps_open })
            }
            Some(Ok(())) => {
                connection.reading = Reading::Frames;
                Some(Event::Upgraded { answer_bytes: decoded.consumed })
            }
            Some(Err(fault)) => Some(Event::Refused(fault)),
        }
    }

    /// The peer closed a connection of which an answer was to come.
    fn finish(&mut self, c: usize) -> Event {
        let connection = &mut self.connections[c];
        connection.reading = Reading::Nothing;
        match (connection.codec.finish(), connection.codec.upgraded()) {
            (Ok(()), Some(Err(fault))) => Event::Refused(fault),
            (Ok(()), _) => Event::Answered { keeps_open: false },
            (Err(closed), _) => Event::Ended { within: closed == Closed::Within },
        }
    }
}

impl<I: Io + 'static, C: Codec> Transport for ByteTransport<I, C> {
    fn open(&mut self, c: usize) -> io::Result<()> {
        while self.connections.len() <= c {
            self.connections.push(Connection { codec: C::new(self.body_bytes), reading: Reading::Nothing });
        }
        self.connections[c].reading = Reading::Nothing;
        self.io.open(c)
    }

    fn write(&mut self, c: usize, request: usize, cx: &mut Context<'_>, jar: &Jar) -> Result<(), Fault> {
        let (request, out) = (&self.requests[request], self.io.output(c));
        self.connections[c].codec.write(request, cx, jar, out, &mut self.scratch).map_err(Fault::Unmet)
    }

    fn send(&mut self, c: usize) -> io::Result<()> {
        self.io.send(c)?;
        self.connections[c].reading = Reading::Answer;
        Ok(())
    }

    fn close(&mut self, c: usize) {
        if let Some(connection) = self.connections.get_mut(c) {
            connection.reading = Reading::Nothing;
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
            let reading = self.connections[c].reading;
            let event = match event {
                back_end::Event::Opened => Event::Opened,
                back_end::Event::Received { closing } if reading == Reading::Answer => {
                    match self.read(c, closing) {
                        Some(event) => event,
                        None => continue,
                    }
                }
                back_end::Event::Received { .. } if reading == Reading::Frames => Event::Received,
                back_end::Event::Ended if reading == Reading::Answer => self.finish(c),
                back_end::Event::Received { .. } | back_end::Event::Ended => Event::Ended { within: false },
                back_end::Event::Unsent(error) => Event::Unsent(error),
                back_end::Event::Failed(error) => Event::Failed(error),
            };
            return Some((c, event));
        }
    }

    fn answer(&self, c: usize) -> &dyn Answer {
        self.connections[c].codec.answer()
    }

    fn received(&self) -> &[u8] {
        self.io.received()
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

    fn send_frames(&mut self, c: usize, frames: &[u8]) -> io::Result<()> {
        self.io.output(c).extend_from_slice(frames);
        self.io.send(c)
    }

    fn push(&mut self, c: usize) -> io::Result<()> {
        self.io.push(c)
    }

    fn is_sending(&self, c: usize) -> bool {
        self.io.is_sending(c)
    }
}
