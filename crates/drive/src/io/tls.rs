//! TLS over any back end: what goes out is encrypted into its output, what comes in is decrypted before anybody
//! sees it. A connection is open once its handshake is done.
//!
//! The client's last message of a handshake leaves together with the first request, unless the server waits for it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use super::{Event, Io};
use crate::io::tls_settings::{ALPN_2, Tls, Ways, explain};

/// Buffers larger than this are given back to the system when their connection closes.
const OUTPUT_KEPT_BYTES: usize = 64 << 10;

/// The handshakes of a drive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// With certificates.
    pub full: u64,
    /// Resumed by a ticket or a session of an earlier one.
    pub resumed: u64,
    /// Version and cipher suite of the first.
    pub spoken: Option<String>,
}

impl Handshakes {
    /// Adds another thread's.
    pub fn add(&mut self, other: Handshakes) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.spoken = self.spoken.take().or(other.spoken);
    }
}

#[derive(Default)]
struct Secured {
    session: Option<ClientConnection>,
    /// Whether the handshake is done.
    is_open: bool,
    /// When it began.
    begun: Option<Instant>,
    /// What is to be encrypted.
    output: Vec<u8>,
    /// Whether the inner output is one that was asked for, not only words of the protocol.
    is_asked: bool,
}

/// Connections over another back end's.
pub(crate) struct TlsIo<I> {
    inner: I,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    ways: Ways,
    connections: Vec<Secured>,
    received: Vec<u8>,
    received_bytes: usize,
    /// What else came of the bytes that the last event was about.
    following: Option<(usize, Event)>,
    handshakes: Handshakes,
}

impl<I: Io> TlsIo<I> {
    /// Over `inner`, which has `connections` connections.
    pub fn new(inner: I, tls: &Tls, connections: usize) -> Self {
        let (config, name) = tls.of_thread(connections);
        TlsIo {
            inner,
            config,
            name,
            ways: tls.ways(),
            connections: (0..connections).map(|_| Secured::default()).collect(),
            received: Vec::new(),
            received_bytes: 0,
            following: None,
            handshakes: Handshakes::default(),
        }
    }

    /// The socket is there: the handshake begins.
    fn begin(&mut self, index: usize) -> Option<Event> {
        let session = match ClientConnection::new(self.config.clone(), self.name.clone()) {
            Ok(mut session) => {
                // A request is bounded by the scenario, and leaves at once.
                session.set_buffer_limit(None);
                session
            }
            Err(error) => return Some(Event::Failed(broken(&error, false, self.ways))),
        };
        self.connections[index].session = Some(session);
        self.connections[index].begun = Some(Instant::now());
        self.flush(index).err().map(Event::Failed)
    }

    /// Hands over what the session has for the server. What the inner output still holds is not overtaken: the rest
    /// leaves with the next request then.
    fn flush(&mut self, index: usize) -> io::Result<()> {
        let Some(session) = self.connections[index].session.as_mut() else { return Ok(()) };
        if !session.wants_write() {
            return Ok(());
        }
        self.inner.push(index)?;
        if self.inner.is_sending(index) {
            return Ok(());
        }
        let output = self.inner.output(index);
        while session.wants_write() {
            session.write_tls(output)?;
        }
        self.connections[index].is_asked = false;
        self.inner.send(index)
    }

    /// What was handed over has been taken: what the session has kept back leaves before anybody is told. If the peer does not
    /// take it, that is told when its end is read.
    fn taken(&mut self, index: usize) -> Option<Event> {
        self.flush(index).ok()?;
        if !self.inner.is_sending(index) {
            return Some(Event::Taken);
        }
        self.inner.tell_taken(index).err().map(Event::Failed)
    }

    /// Bytes came.
    fn decrypt(&mut self, index: usize, mut closing: bool) -> Option<Event> {
        self.received_bytes = 0;
        let secured = &mut self.connections[index];
        let session = secured.session.as_mut()?;
        let mut bytes = self.inner.received();
        let (mut failure, mut has_ended) = (None, false);
        while !bytes.is_empty() && failure.is_none() {
            match session.read_tls(&mut bytes) {
                Ok(0) => break, // behind the peer's last word
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
            match session.process_new_packets() {
                Ok(state) => {
                    let end = self.received_bytes + state.plaintext_bytes_to_read();
                    if self.received.len() < end {
                        self.received.resize(end, 0);
                    }
                    let room = &mut self.received[self.received_bytes..end];
                    match session.reader().read_exact(room) {
                        Ok(()) => self.received_bytes = end,
                        Err(error) => failure = Some(error),
                    }
                    has_ended = state.peer_has_closed();
                    closing |= has_ended;
                }
                Err(error) => failure = Some(broken(&error, secured.is_open, self.ways)),
            }
        }
        let (is_done, is_open) = (!session.is_handshaking(), secured.is_open);
        if let Some(error) = failure {
            // An alert tells the server why; whether it still hears it does not matter.
            let _ = self.flush(index);
            return Some(Event::Failed(error));
        }
        if !is_done {
            return self.flush(index).err().map(Event::Failed);
        }
        if is_open {
            // The answer to a change of keys; a socket that is broken says so when it is read.
            let _ = self.flush(index);
        }
        let news = (self.received_bytes > 0).then_some(Event::Received { closing });
        if !is_open {
            if let Some(error) = self.disagreement(index) {
                return Some(Event::Failed(error));
            }
            self.made(index);
            self.following = news.or(has_ended.then_some(Event::Ended)).map(|event| (index, event));
            return Some(Event::Opened);
        }
        match (news, has_ended) {
            (Some(news), true) => {
                self.following = Some((index, Event::Ended));
                Some(news)
            }
            (None, true) => Some(Event::Ended),
            (news, false) => news,
        }
    }

    /// HTTP/2 is spoken only where the server agrees to it by name.
    fn disagreement(&self, index: usize) -> Option<io::Error> {
        let needs_2 = self.config.alpn_protocols == [ALPN_2];
        let agreed = self.connections[index].session.as_ref()?.alpn_protocol() == Some(ALPN_2);
        let words = "TLS handshake: the server does not agree to HTTP/2 any more";
        (needs_2 && !agreed).then(|| io::Error::new(ErrorKind::InvalidData, words))
    }

    fn made(&mut self, index: usize) {
        let secured = &mut self.connections[index];
        secured.is_open = true;
        let Some(session) = &secured.session else { return };
        match session.handshake_kind() {
            Some(HandshakeKind::Resumed) => self.handshakes.resumed += 1,
            _ => self.handshakes.full += 1,
        }
        if self.handshakes.spoken.is_none() {
            let (version, suite) = agreed(session);
            self.handshakes.spoken = Some(format!("{version}, {suite}"));
        }
    }

    /// The socket ended without the peer's last word: nobody can tell whether what came is all.
    fn cut_short(&self, index: usize) -> Event {
        let text = match self.connections[index].is_open {
            true => "TLS: closed without a close_notify; what came may be cut short",
            false => "TLS handshake: the server closed the connection",
        };
        Event::Failed(io::Error::new(ErrorKind::UnexpectedEof, text))
    }
}

/// Version and cipher suite of a session.
fn agreed(session: &ClientConnection) -> (&'static str, &'static str) {
    let version = match session.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
        _ => "TLS 1.2",
    };
    let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    (version, suite.unwrap_or("unknown suite"))
}

fn broken(error: &rustls::Error, is_open: bool, ways: Ways) -> io::Error {
    let within = if is_open { "TLS" } else { "TLS handshake" };
    io::Error::new(ErrorKind::InvalidData, format!("{within}: {}", explain(error, ways)))
}

impl<I: Io> Io for TlsIo<I> {
    fn point(&mut self, index: usize, address: SocketAddr) {
        self.inner.point(index, address);
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        debug_assert!(self.connections[index].session.is_none(), "closed before it is opened again");
        self.inner.open(index)
    }

    fn output(&mut self, index: usize) -> &mut Vec<u8> {
        let output = &mut self.connections[index].output;
        output.clear();
        output
    }

    fn send(&mut self, index: usize) -> io::Result<()> {
        let secured = &mut self.connections[index];
        let session = secured.session.as_mut().ok_or(ErrorKind::NotConnected)?;
        session.writer().write_all(&secured.output)?;
        self.flush(index)?;
        self.connections[index].is_asked = true;
        Ok(())
    }

    fn push(&mut self, index: usize) -> io::Result<()> {
        self.inner.push(index)
    }

    fn is_sending(&self, index: usize) -> bool {
        self.inner.is_sending(index)
    }

    fn tell_taken(&mut self, index: usize) -> io::Result<()> {
        self.inner.tell_taken(index)
    }

    fn close(&mut self, index: usize) {
        let secured = &mut self.connections[index];
        if let Some(session) = secured.session.as_mut().filter(|_| secured.is_open) {
            session.send_close_notify();
            // A last word; whether anybody still hears it does not matter.
            let _ = self.flush(index);
        }
        let secured = &mut self.connections[index];
        secured.session = None;
        secured.is_open = false;
        secured.is_asked = false;
        secured.output.clear();
        secured.output.shrink_to(OUTPUT_KEPT_BYTES);
        if self.following.as_ref().is_some_and(|(following, _)| *following == index) {
            self.following = None;
        }
        self.inner.close(index);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        debug_assert!(self.following.is_none(), "every event is taken before the next wait");
        self.inner.wait(at_most)
    }

    fn arrived(&self) -> Option<u64> {
        self.inner.arrived()
    }

    fn taken_at(&self) -> Option<Instant> {
        self.inner.taken_at()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.inner.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        if let Some(following) = self.following.take() {
            return Some(following);
        }
        loop {
            let (index, event) = self.inner.next()?;
            let event = match event {
                Event::Opened => self.begin(index),
                Event::Received { closing } => self.decrypt(index, closing),
                Event::Ended => Some(self.cut_short(index)),
                Event::Taken => self.taken(index),
                // A word of the protocol was not taken: requests before it may have been.
                Event::Unsent(error) if !self.connections[index].is_asked => Some(Event::Failed(error)),
                other => Some(other),
            };
            if let Some(event) = event {
                return Some((index, event));
            }
        }
    }

    fn received(&self) -> &[u8] {
        &self.received[..self.received_bytes]
    }

    fn socket_made(&self, socket: usize) -> Option<Instant> {
        self.connections[socket].begun
    }

    fn agreed(&self, socket: usize) -> Option<(&'static str, &'static str)> {
        let secured = &self.connections[socket];
        secured.session.as_ref().filter(|_| secured.is_open).map(agreed)
    }

    fn traffic(&self) -> (u64, u64) {
        self.inner.traffic()
    }

    fn handshakes(&self) -> Handshakes {
        self.handshakes.clone()
    }
}
