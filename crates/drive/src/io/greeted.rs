//! Connections that begin with a conversation of their own: the loop has one once the server has agreed.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tidemark_wire::http1::Decoded;

use crate::io::{Event, Handshakes, Io};

/// What is said on a connection before its first request.
pub(crate) trait Conversation {
    /// Appends the first words.
    fn begin(&mut self, out: &mut Vec<u8>);
    /// Takes what came, and appends what is said next; how much of what came belonged to the conversation, once it is over.
    ///
    /// # Errors
    /// The server does not agree, or says something that has no place here.
    fn hear(&mut self, received: &[u8], out: &mut Vec<u8>) -> io::Result<Option<usize>>;
}

impl<C: Conversation> Conversation for &mut C {
    fn begin(&mut self, out: &mut Vec<u8>) {
        (**self).begin(out);
    }

    fn hear(&mut self, received: &[u8], out: &mut Vec<u8>) -> io::Result<Option<usize>> {
        (**self).hear(received, out)
    }
}

/// Holds a conversation over a connection that blocks.
pub(crate) fn converse(
    mut conversation: impl Conversation,
    stream: &mut (impl Read + Write),
) -> io::Result<()> {
    let mut out = Vec::new();
    conversation.begin(&mut out);
    let mut buffer = [0; 4096];
    loop {
        stream.write_all(&out)?;
        out.clear();
        let received = stream.read(&mut buffer)?;
        if received == 0 {
            let words = "the server closed the connection before it said that it is ready; does it speak this protocol?";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, words));
        }
        if conversation.hear(&buffer[..received], &mut out)?.is_some() {
            return Ok(());
        }
    }
}

/// Reads what a server of this protocol owes over a connection that blocks, until it is whole.
pub(crate) fn read_whole<E: Display>(
    stream: &mut impl Read,
    (protocol, owed): (&str, &str),
    mut decode: impl FnMut(&[u8]) -> Result<Decoded, E>,
) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let received = stream.read(&mut buffer)?;
        if received == 0 {
            let words =
                format!("the server closed the connection before it told {owed}; does it speak {protocol}?");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, words));
        }
        let decoded = decode(&buffer[..received]).map_err(|error| {
            let words = format!("the server does not speak {protocol}: {error}");
            io::Error::new(ErrorKind::InvalidData, words)
        })?;
        if decoded.complete {
            return Ok(());
        }
    }
}

/// Connections each of which begins with a conversation.
pub(crate) struct GreetedIo<I, C, N> {
    inner: I,
    /// Makes one.
    new: N,
    /// For each connection that is being made, how far it is.
    conversations: Vec<Option<Box<C>>>,
    /// When each began.
    begun: Vec<Option<Instant>>,
    /// What is said next.
    next: Vec<u8>,
}

impl<I: Io, C: Conversation, N: Fn() -> C> GreetedIo<I, C, N> {
    /// Over `inner`, which has `connections` connections.
    pub fn new(inner: I, connections: usize, new: N) -> Self {
        let conversations = (0..connections).map(|_| None).collect();
        GreetedIo { inner, new, conversations, begun: vec![None; connections], next: Vec::new() }
    }

    fn say(&mut self, connection: usize) -> Option<Event> {
        if self.next.is_empty() {
            return None;
        }
        // who asks again before it has heard is not waited for: what is said would grow without an end
        if let Err(error) = self.inner.push(connection) {
            return Some(Event::Failed(error));
        }
        if self.inner.is_sending(connection) {
            let words = "the server asked again before it had heard the answer, when it was greeted";
            return Some(Event::Failed(io::Error::new(ErrorKind::InvalidData, words)));
        }
        self.inner.output(connection).extend_from_slice(&self.next);
        self.next.clear();
        self.inner.send(connection).err().map(Event::Failed)
    }

    /// The connection is there.
    fn begin(&mut self, connection: usize) -> Option<Event> {
        let mut conversation = Box::new((self.new)());
        self.next.clear();
        conversation.begin(&mut self.next);
        self.conversations[connection] = Some(conversation);
        self.begun[connection] = Some(Instant::now());
        self.say(connection)
    }

    /// What came of the conversation, where that is known.
    fn heard(&mut self, connection: usize, closing: bool) -> Option<Event> {
        let received = self.inner.received();
        let conversation = self.conversations[connection].as_mut()?;
        self.next.clear();
        match conversation.hear(received, &mut self.next) {
            Ok(None) if closing => Some(Event::Failed(cut_short())),
            Ok(None) => self.say(connection),
            Ok(Some(bytes)) if bytes == received.len() && !closing => {
                self.conversations[connection] = None;
                Some(Event::Opened)
            }
            Ok(Some(_)) => Some(Event::Failed(cut_short())),
            Err(error) => Some(Event::Failed(error)),
        }
    }
}

fn cut_short() -> io::Error {
    io::Error::new(
        ErrorKind::UnexpectedEof,
        "the server closed the connection, or said more, when it was greeted",
    )
}

impl<I: Io, C: Conversation, N: Fn() -> C> Io for GreetedIo<I, C, N> {
    fn point(&mut self, connection: usize, address: SocketAddr) {
        self.inner.point(connection, address);
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        self.inner.open(connection)
    }

    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        self.inner.output(connection)
    }

    fn send(&mut self, connection: usize) -> io::Result<()> {
        self.inner.send(connection)
    }

    fn push(&mut self, connection: usize) -> io::Result<()> {
        self.inner.push(connection)
    }

    fn is_sending(&self, connection: usize) -> bool {
        self.inner.is_sending(connection)
    }

    fn tell_taken(&mut self, connection: usize) -> io::Result<()> {
        self.inner.tell_taken(connection)
    }

    fn close(&mut self, connection: usize) {
        self.conversations[connection] = None;
        self.inner.close(connection);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.inner.wait(at_most)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.inner.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            let (connection, event) = self.inner.next()?;
            let is_greeting = self.conversations[connection].is_some();
            let event = match event {
                Event::Opened => self.begin(connection),
                Event::Received { closing } if is_greeting => self.heard(connection, closing),
                Event::Ended if is_greeting => Some(Event::Failed(cut_short())),
                Event::Unsent(error) if is_greeting => Some(Event::Failed(error)),
                other => Some(other),
            };
            if let Some(event) = event {
                return Some((connection, event));
            }
        }
    }

    fn received(&self) -> &[u8] {
        self.inner.received()
    }

    fn arrived(&self) -> Option<u64> {
        self.inner.arrived()
    }

    fn taken_at(&self) -> Option<Instant> {
        self.inner.taken_at()
    }

    fn upcoming_socket(&self) -> Option<usize> {
        self.inner.upcoming_socket()
    }

    fn answered(&mut self, connection: usize, bytes: usize) -> bool {
        self.inner.answered(connection, bytes)
    }

    fn is_first(&self, connection: usize) -> bool {
        self.inner.is_first(connection)
    }

    fn socket_of(&self, connection: usize) -> usize {
        self.inner.socket_of(connection)
    }

    fn socket_made(&self, socket: usize) -> Option<Instant> {
        // where TLS is spoken beneath it, it began with that
        self.inner.socket_made(socket).or(self.begun[socket])
    }

    fn agreed(&self, socket: usize) -> Option<(&'static str, &'static str)> {
        self.inner.agreed(socket)
    }

    fn traffic(&self) -> (u64, u64) {
        self.inner.traffic()
    }

    fn handshakes(&self) -> Handshakes {
        self.inner.handshakes()
    }
}
