//! The seam of I/O back ends.
//!
//! It is shaped like a completion queue: the loop fills a connection's output and says [`Io::send`]; the back end
//! reports what came of it as [`Event`]s. A back end that only hears of readiness ([`Readiness`], over epoll or what
//! a library offers elsewhere) does the reads and writes itself, so the loop does not know the difference.

pub(crate) mod address;
pub(crate) mod connection_limit;
pub(crate) mod greeted;
pub(crate) mod machine;
pub(crate) mod prefetch;
pub(crate) mod stream_failure;
pub(crate) mod tls_settings;

#[cfg(target_os = "linux")]
pub(crate) mod epoll;
pub(crate) mod pipeline;
pub(crate) mod portable;
pub(crate) mod shared;
#[cfg(target_os = "linux")]
pub(crate) mod stamps;
mod system;
pub(crate) mod tls;
#[cfg(target_os = "linux")]
pub(crate) mod uring;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::io::address::Dialer;
pub use tls::Handshakes;

pub(crate) use system::Poller;
#[cfg(test)]
pub(crate) use system::SystemIo;
pub use system::{IoChoice, Timestamps};

/// Bytes read from a socket at once; what more it has waits until the others had their turn.
const RECEIVE_BYTES: usize = 64 << 10;
/// Output buffers larger than this are given back to the system when their connection closes.
const OUTPUT_KEPT_BYTES: usize = 64 << 10;

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// It is made.
    Opened,
    /// Bytes came; [`Io::received`] has them until the next call of [`Io::next`].
    Received {
        /// Whether the peer has already closed behind them.
        closing: bool,
    },
    /// All of its output has been taken, of which somebody [wanted to be told](Io::tell_taken).
    Taken,
    /// The peer closed it in order.
    Ended,
    /// It was gone before anything of its output was taken, which [`Io::send`] could not know yet.
    Unsent(io::Error),
    /// It could not be made, or broke.
    Failed(io::Error),
}

/// Wakes a thread out of [`Io::wait`], from any other.
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;

/// Connections of one thread by number: to one address, where they are not [pointed](Io::point) elsewhere.
pub(crate) trait Io {
    /// From now on a connection that is closed is made there.
    fn point(&mut self, connection: usize, address: SocketAddr);
    /// Begins to make a connection: `Opened` or `Failed` follows, or the error at once.
    fn open(&mut self, connection: usize) -> io::Result<()>;
    /// The connection's output, to be appended to before [`Io::send`].
    fn output(&mut self, connection: usize) -> &mut Vec<u8>;
    /// Sends what the output holds, now or as soon as there is room. An error means that nothing was taken.
    fn send(&mut self, connection: usize) -> io::Result<()>;
    /// What was sent leaves now, where it is held back to go out together with more.
    fn push(&mut self, _connection: usize) -> io::Result<()> {
        Ok(())
    }
    /// Whether a part of the output has not been taken yet.
    fn is_sending(&self, connection: usize) -> bool;
    /// [`Event::Taken`] follows once all of the output has been taken: never within this call, also where it is taken
    /// already, so that who sends much gives others their turn.
    ///
    /// # Errors
    /// Nobody can be told: several share the socket.
    fn tell_taken(&mut self, _connection: usize) -> io::Result<()> {
        Err(io::Error::new(
            ErrorKind::Unsupported,
            "a body is sent in pieces over connections of one request at a time only",
        ))
    }
    /// Closes a connection; no event of it follows.
    fn close(&mut self, connection: usize);
    /// Waits until something happens or the time is over (forever without one).
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()>;
    /// What was sent leaves now, on every connection, where it is held back to go out together.
    fn hand_over(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// The next thing that happened, until there is none.
    fn next(&mut self) -> Option<(usize, Event)>;
    /// The bytes of the last `Received`.
    fn received(&self) -> &[u8];
    /// When the kernel had the last of them, nanoseconds of the wall clock; none where it was not asked, or does not tell.
    fn arrived(&self) -> Option<u64> {
        None
    }
    /// When the driver had what the last event is of, before anything was made of it; none where that is now.
    fn taken_at(&self) -> Option<Instant> {
        None
    }
    /// The answer that the last `Received` brought to a connection ends behind so many bytes of it. Whether nothing is
    /// left that nobody asked for.
    fn answered(&mut self, _connection: usize, bytes: usize) -> bool {
        bytes == self.received().len()
    }
    /// Answers that came with nobody in line for them, where that is known here.
    fn unsolicited(&self) -> u64 {
        0
    }
    /// The number of the reading that brought what the last event is about, where several events may come of one reading.
    fn reading(&self) -> Option<u64> {
        None
    }
    /// Which connection's answer comes as the nth from now (1: the next) on the socket of the one that was
    /// [answered](Io::answered) last, where they share it, or on the one that is [upcoming](Io::upcoming_socket). It is a guess:
    /// fewer answers may come at once than are awaited.
    fn upcoming(&self, _nth: usize) -> Option<usize> {
        None
    }
    /// Which socket the next thing that happened is probably of, where one is known.
    fn upcoming_socket(&self) -> Option<usize> {
        None
    }
    /// Whether what was sent over a connection's socket waits for more that is to leave with it.
    fn is_filling(&self, _connection: usize) -> bool {
        false
    }
    /// Whether a connection is the first of those that share its socket; where none does, it is.
    fn is_first(&self, _connection: usize) -> bool {
        true
    }
    /// Which socket carries a connection's requests.
    fn socket_of(&self, connection: usize) -> usize {
        connection
    }
    /// When a socket was there, where more was spoken over it before its connection was open.
    fn socket_made(&self, _socket: usize) -> Option<Instant> {
        None
    }
    /// Version and cipher suite of TLS that a socket speaks, once that is agreed on.
    fn agreed(&self, _socket: usize) -> Option<(&'static str, &'static str)> {
        None
    }
    /// Bytes sent and received so far.
    fn traffic(&self) -> (u64, u64);
    /// Handshakes so far, where there are any.
    fn handshakes(&self) -> Handshakes {
        Handshakes::default()
    }
}

/// Any sockets behind one type, so that each protocol is compiled once for TLS, proxies, greetings and several targets.
pub(crate) type BoxedIo = Box<dyn Io>;

impl Io for BoxedIo {
    fn point(&mut self, connection: usize, address: SocketAddr) {
        (**self).point(connection, address)
    }
    fn open(&mut self, connection: usize) -> io::Result<()> {
        (**self).open(connection)
    }
    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        (**self).output(connection)
    }
    fn send(&mut self, connection: usize) -> io::Result<()> {
        (**self).send(connection)
    }
    fn push(&mut self, connection: usize) -> io::Result<()> {
        (**self).push(connection)
    }
    fn is_sending(&self, connection: usize) -> bool {
        (**self).is_sending(connection)
    }
    fn tell_taken(&mut self, connection: usize) -> io::Result<()> {
        (**self).tell_taken(connection)
    }
    fn close(&mut self, connection: usize) {
        (**self).close(connection)
    }
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        (**self).wait(at_most)
    }
    fn hand_over(&mut self) -> io::Result<()> {
        (**self).hand_over()
    }
    fn next(&mut self) -> Option<(usize, Event)> {
        (**self).next()
    }
    fn received(&self) -> &[u8] {
        (**self).received()
    }
    fn arrived(&self) -> Option<u64> {
        (**self).arrived()
    }
    fn taken_at(&self) -> Option<Instant> {
        (**self).taken_at()
    }
    fn answered(&mut self, connection: usize, bytes: usize) -> bool {
        (**self).answered(connection, bytes)
    }
    fn unsolicited(&self) -> u64 {
        (**self).unsolicited()
    }
    fn reading(&self) -> Option<u64> {
        (**self).reading()
    }
    fn upcoming(&self, nth: usize) -> Option<usize> {
        (**self).upcoming(nth)
    }
    fn upcoming_socket(&self) -> Option<usize> {
        (**self).upcoming_socket()
    }
    fn is_filling(&self, connection: usize) -> bool {
        (**self).is_filling(connection)
    }
    fn is_first(&self, connection: usize) -> bool {
        (**self).is_first(connection)
    }
    fn socket_of(&self, connection: usize) -> usize {
        (**self).socket_of(connection)
    }
    fn socket_made(&self, socket: usize) -> Option<Instant> {
        (**self).socket_made(socket)
    }
    fn agreed(&self, socket: usize) -> Option<(&'static str, &'static str)> {
        (**self).agreed(socket)
    }
    fn traffic(&self) -> (u64, u64) {
        (**self).traffic()
    }
    fn handshakes(&self) -> Handshakes {
        (**self).handshakes()
    }
}

/// A socket can be read or written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    /// What it was added with.
    pub token: u64,
    /// There is something to read.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The peer closed, or there is an error to fetch.
    pub closing: bool,
}

/// Tells which sockets are ready, each change once (edge-triggered).
pub(crate) trait Selector {
    /// The form in which it takes sockets.
    type Stream: Read + Write;
    /// Watches a socket, for reading and writing, until it is dropped. It may be a unix socket: the form only says
    /// who closes it.
    fn add(&mut self, stream: TcpStream, token: u64) -> io::Result<Self::Stream>;
    /// When the kernel had the last bytes that were read, nanoseconds of the wall clock, where it told.
    fn arrived(_stream: &Self::Stream) -> Option<u64> {
        None
    }
    /// The socket's pending error.
    fn error_of(stream: &Self::Stream) -> io::Result<Option<io::Error>>;
    /// Waits.
    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()>;
    /// What the last wait found, by index.
    fn ready(&self, index: usize) -> Option<Ready>;
}

/// Token of wake-ups from outside; no socket has it.
pub(crate) const WAKE_TOKEN: u64 = u64::MAX;

struct Connection<S> {
    stream: Option<S>,
    /// Counts the sockets of this number, so that news of an earlier one are told apart.
    generation: u32,
    connecting: bool,
    /// Whether its peer has closed behind what is there to be read.
    closing: bool,
    /// Whether it had its turn and has more to be read.
    is_unread: bool,
    output: Vec<u8>,
    written: usize,
    /// Whether somebody wants to be told when all of it is written.
    tells_taken: bool,
}

/// Sockets over a [`Selector`].
pub(crate) struct Readiness<S: Selector> {
    selector: S,
    dialer: Dialer,
    connections: Vec<Connection<S::Stream>>,
    received: Box<[u8]>,
    received_bytes: usize,
    /// When the last of them came, where that is known.
    arrived: Option<u64>,
    /// When they were read, or the end behind them.
    taken_at: Option<Instant>,
    /// Position in what the last wait found.
    cursor: usize,
    /// The connection that is to be read now.
    reading: Option<usize>,
    /// Connections that had their turn and may have more to be read; the selector tells that only once.
    unread: VecDeque<usize>,
    /// How many of them are still to have their turn before the next wait.
    unread_left: usize,
    /// Connections of which it is to be told that all was taken, and how many of them before the next wait.
    taken: VecDeque<usize>,
    taken_left: usize,
    traffic: (u64, u64),
}

impl<S: Selector> Readiness<S> {
    /// For `connections` connections that are made by the dialer.
    pub fn new(selector: S, dialer: Dialer, connections: usize) -> Self {
        let none = |_| Connection {
            stream: None,
            generation: 0,
            connecting: false,
            closing: false,
            is_unread: false,
            output: Vec::new(),
            written: 0,
            tells_taken: false,
        };
        Readiness {
            selector,
            dialer,
            connections: (0..connections).map(none).collect(),
            received: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            received_bytes: 0,
            arrived: None,
            taken_at: None,
            cursor: 0,
            reading: None,
            unread: VecDeque::with_capacity(connections),
            unread_left: 0,
            taken: VecDeque::new(),
            taken_left: 0,
            traffic: (0, 0),
        }
    }

    /// Reads once; `None` when there is nothing (more).
    fn read(&mut self, index: usize) -> Option<Event> {
        self.reading = None;
        let connection = &mut self.connections[index];
        let closing = connection.closing;
        let stream = connection.stream.as_mut()?;
        loop {
            return match stream.read(&mut self.received) {
                Ok(0) => {
                    self.taken_at = Some(Instant::now());
                    Some(Event::Ended)
                }
                Ok(n) => {
                    self.taken_at = Some(Instant::now());
                    self.received_bytes = n;
                    self.arrived = S::arrived(stream);
                    self.traffic.1 += n as u64;
                    // With less than there was room for the socket is empty, and what comes later is a new edge.
                    if n == self.received.len() {
                        connection.is_unread = true;
                        self.unread.push_back(index);
                    } else if closing {
                        self.reading = Some(index);
                    }
                    Some(Event::Received { closing })
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => None,
                Err(e) => Some(Event::Failed(e)),
            };
        }
    }

    /// Has a connection read now; one that waits for its turn already stays in line.
    fn begin_reading(&mut self, index: usize, closing: bool) {
        let connection = &mut self.connections[index];
        connection.closing |= closing;
        if !connection.is_unread {
            self.reading = Some(index);
        }
    }

    /// The next of those that are unread has its turn, where one is still to have it.
    fn go_on_reading(&mut self) -> bool {
        if self.unread_left == 0 {
            return false;
        }
        self.unread_left -= 1;
        if let Some(index) = self.unread.pop_front() {
            self.connections[index].is_unread = false;
            self.begin_reading(index, false);
        }
        true
    }

    /// Writes until all is taken or there is no room; an error only where this call wrote nothing.
    fn write(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let Some(stream) = connection.stream.as_mut() else {
            return Err(ErrorKind::NotConnected.into());
        };
        let before = connection.written;
        while connection.written < connection.output.len() {
            match stream.write(&connection.output[connection.written..]) {
                Ok(n) => connection.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if connection.written == before => return Err(e),
                // Something was taken: the socket's end is reported when it is read.
                Err(_) => break,
            }
        }
        self.traffic.0 += (connection.written - before) as u64;
        Ok(())
    }

    /// What a ready socket means.
    fn look(&mut self, ready: Ready) -> Option<(usize, Event)> {
        let index = (ready.token & u64::from(u32::MAX)) as usize;
        let connection = self.connections.get_mut(index)?;
        if connection.generation != (ready.token >> 32) as u32 {
            return None;
        }
        let stream = connection.stream.as_ref()?;
        if connection.connecting {
            if !ready.writable && !ready.closing {
                return None;
            }
            match S::error_of(stream) {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => return Some((index, Event::Failed(error))),
            }
            connection.connecting = false;
            if ready.readable || ready.closing {
                self.begin_reading(index, ready.closing);
            }
            return Some((index, Event::Opened));
        }
        // who sends much may have been answered before it was not taken, which is read below
        let is_in_pieces = connection.tells_taken;
        if ready.writable
            && connection.written < connection.output.len()
            && let Err(error) = self.write(index)
            && !is_in_pieces
        {
            return Some((index, Event::Failed(error)));
        }
        if ready.readable || ready.closing {
            self.begin_reading(index, ready.closing);
        }
        self.is_taken(index).then_some((index, Event::Taken))
    }

    /// Whether all of a connection's output is taken, and somebody waits to be told.
    fn is_taken(&mut self, index: usize) -> bool {
        let connection = &mut self.connections[index];
        connection.tells_taken
            && connection.written == connection.output.len()
            && std::mem::take(&mut connection.tells_taken)
    }

    /// The next of those that were taken as they were sent.
    fn next_taken(&mut self) -> Option<usize> {
        while self.taken_left > 0 {
            self.taken_left -= 1;
            let index = self.taken.pop_front()?;
            if self.is_taken(index) {
                return Some(index);
            }
        }
        None
    }
}

impl<S: Selector> Io for Readiness<S> {
    fn point(&mut self, index: usize, address: SocketAddr) {
        self.dialer.point(index, address);
    }

    fn open(&mut self, index: usize) -> io::Result<()> {
        let socket = self.dialer.dial(index)?;
        let connection = &mut self.connections[index];
        debug_assert!(connection.stream.is_none(), "a connection is closed before it is opened again");
        connection.generation = connection.generation.wrapping_add(1) & (u32::MAX >> 1);
        let token = u64::from(connection.generation) << 32 | index as u64;
        connection.stream = Some(self.selector.add(socket.into(), token)?);
        connection.connecting = true;
        connection.closing = false;
        connection.output.clear();
        connection.written = 0;
        Ok(())
    }

    fn output(&mut self, index: usize) -> &mut Vec<u8> {
        let connection = &mut self.connections[index];
        connection.output.clear();
        connection.written = 0;
        &mut connection.output
    }

    fn send(&mut self, index: usize) -> io::Result<()> {
        self.write(index)
    }

    fn is_sending(&self, index: usize) -> bool {
        let connection = &self.connections[index];
        connection.written < connection.output.len()
    }

    fn tell_taken(&mut self, index: usize) -> io::Result<()> {
        self.connections[index].tells_taken = true;
        if !self.is_sending(index) {
            self.taken.push_back(index);
        }
        Ok(())
    }

    fn close(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.tells_taken = false;
        connection.stream = None;
        connection.connecting = false;
        connection.output.clear();
        connection.output.shrink_to(OUTPUT_KEPT_BYTES);
        connection.written = 0;
        if std::mem::take(&mut connection.is_unread) {
            let at = self.unread.iter().position(|unread| *unread == index);
            debug_assert!(at.is_some(), "what is unread is listed");
            if let Some(at) = at {
                self.unread.remove(at);
                self.unread_left -= usize::from(at < self.unread_left);
            }
        }
        self.reading.take_if(|reading| *reading == index);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        debug_assert!(self.reading.is_none(), "every event is taken before the next wait");
        self.cursor = 0;
        self.unread_left = self.unread.len();
        self.taken_left = self.taken.len();
        let is_idle = self.unread_left == 0 && self.taken_left == 0;
        let at_most = if is_idle { at_most } else { Some(Duration::ZERO) };
        match self.selector.wait(at_most) {
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        self.taken_at = None;
        loop {
            if let Some(index) = self.reading
                && let Some(event) = self.read(index)
            {
                return Some((index, event));
            }
            if self.go_on_reading() {
                continue;
            }
            if let Some(index) = self.next_taken() {
                return Some((index, Event::Taken));
            }
            let ready = self.selector.ready(self.cursor)?;
            self.cursor += 1;
            if ready.token != WAKE_TOKEN
                && let Some(found) = self.look(ready)
            {
                return Some(found);
            }
        }
    }

    fn received(&self) -> &[u8] {
        &self.received[..self.received_bytes]
    }

    fn arrived(&self) -> Option<u64> {
        self.arrived
    }

    fn taken_at(&self) -> Option<Instant> {
        self.taken_at
    }

    fn upcoming_socket(&self) -> Option<usize> {
        // the token of a wake-up is beyond all connections
        let index = (self.selector.ready(self.cursor)?.token & u64::from(u32::MAX)) as usize;
        (index < self.connections.len()).then_some(index)
    }

    fn traffic(&self) -> (u64, u64) {
        self.traffic
    }
}

#[cfg(test)]
mod tests;
