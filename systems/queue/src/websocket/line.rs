//! A WebSocket as two threads have it: one that reads and one that writes, both blocking.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Mutex;
use std::time::Duration;

use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder};
use tidemark_wire::websocket::{
    Decoder, Event, Kind, Limits, Role, handshake, write_message, write_ping, write_pong,
};

use super::frame::{Frame, PROTOCOL};
use crate::remote::random;
use crate::sync::lock;

/// Read at once.
const READ_BYTES: usize = 64 << 10;
/// Who says nothing for so long, or takes nothing, is gone. Both sides say something every [`BEAT`].
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often a side that has nothing to say says so.
pub(super) const BEAT: Duration = Duration::from_secs(2);
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// The reading half.
pub(super) struct Reading {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
    /// What was read and not decoded yet.
    at: usize,
    have: usize,
}

/// The writing half, for both threads: the one that reads answers pings.
pub(super) struct Writing {
    stream: TcpStream,
    /// Held while a message is written.
    turn: Mutex<()>,
    is_client: bool,
}

fn odd(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_string())
}

/// Connects to `ws://HOST:PORT/PATH`.
pub(super) fn dial(url: &str, message_bytes_max: usize) -> io::Result<(Reading, Writing)> {
    let rest = url.strip_prefix("ws://").ok_or_else(|| odd("a URL of a queue begins with ws://"))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let mut refused = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => return greet(stream, authority, path, message_bytes_max),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn greet(
    stream: TcpStream,
    authority: &str,
    path: &str,
    message_bytes_max: usize,
) -> io::Result<(Reading, Writing)> {
    let random: Vec<u8> = [random(), random()].iter().flat_map(|number| number.to_le_bytes()).collect();
    let key = handshake::key(random.try_into().unwrap_or_default());
    let mut request = Vec::new();
    handshake::write_request(&mut request, path.as_bytes(), authority.as_bytes(), &key, &[PROTOCOL])
        .map_err(odd)?;
    let (mut reading, writing) = halves(stream, Role::Client, message_bytes_max)?;
    writing.send(&request)?;
    let mut answer = ResponseDecoder::new(DecoderLimits::default());
    reading.head(|input| {
        let decoded = answer.decode(input).map_err(odd)?;
        Ok((decoded.consumed, decoded.complete))
    })?;
    match handshake::check_answer(&answer, &key, &[PROTOCOL]).map_err(odd)? {
        Some(_) => Ok((reading, writing)),
        None => Err(odd(format!("the server does not speak {PROTOCOL}"))),
    }
}

/// Takes a client's connection.
pub(super) fn accept(stream: TcpStream, message_bytes_max: usize) -> io::Result<(Reading, Writing)> {
    let (mut reading, writing) = halves(stream, Role::Server, message_bytes_max)?;
    let mut request = RequestDecoder::new(DecoderLimits::default());
    reading.head(|input| {
        let decoded = request.decode(input).map_err(odd)?;
        Ok((decoded.consumed, decoded.complete))
    })?;
    let mut answer = Vec::new();
    let offer = handshake::check_request(&request).map_err(odd)?;
    if !offer.protocols().any(|offered| offered == PROTOCOL) {
        return Err(odd(format!("the client does not speak {PROTOCOL}")));
    }
    handshake::write_answer(&mut answer, offer.key, Some(PROTOCOL)).map_err(odd)?;
    writing.send(&answer)?;
    Ok((reading, writing))
}

fn halves(stream: TcpStream, role: Role, message_bytes_max: usize) -> io::Result<(Reading, Writing)> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let limits = Limits { frame_bytes: message_bytes_max, message_bytes: message_bytes_max };
    let writing =
        Writing { stream: stream.try_clone()?, turn: Mutex::new(()), is_client: role == Role::Client };
    let reading =
        Reading { stream, decoder: Decoder::new(role, limits), input: vec![0; READ_BYTES], at: 0, have: 0 };
    Ok((reading, writing))
}

impl Reading {
    fn fill(&mut self) -> io::Result<()> {
        (self.at, self.have) = (0, self.stream.read(&mut self.input)?);
        if self.have == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Lets whatever comes go by, until the other side hangs up.
    pub(super) fn drain(&mut self) {
        while self.fill().is_ok() {}
    }

    /// Feeds what comes until that is whole.
    fn head(&mut self, mut decode: impl FnMut(&[u8]) -> io::Result<(usize, bool)>) -> io::Result<()> {
        loop {
            self.fill()?;
            let (consumed, is_whole) = decode(&self.input[..self.have])?;
            self.at = consumed;
            if is_whole {
                return Ok(());
            }
        }
    }

    /// The next thing that the other side says. An end of the connection is an error.
    pub(super) fn read(&mut self, writing: &Writing) -> io::Result<Frame<'_>> {
        loop {
            if self.at == self.have {
                self.fill()?;
            }
            let decoded = self.decoder.decode(&self.input[self.at..self.have]).map_err(odd)?;
            self.at += decoded.consumed;
            match decoded.event {
                Some(Event::Message(Kind::Binary)) => break,
                Some(Event::Ping) => {
                    writing.write(|out, key| write_pong(out, self.decoder.control(), key))?
                }
                Some(Event::Pong) | None => {}
                Some(Event::Message(Kind::Text)) => return Err(odd("a text, which no end of a queue sends")),
                Some(Event::Close) => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        Frame::of_bytes(self.decoder.message()).ok_or_else(|| odd("what no end of a queue says"))
    }
}

impl Writing {
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let _turn = lock(&self.turn);
        (&self.stream).write_all(bytes)
    }

    fn write(&self, write: impl FnOnce(&mut Vec<u8>, Option<[u8; 4]>)) -> io::Result<()> {
        let mut out = Vec::new();
        // 4 of its 8 bytes
        write(&mut out, self.is_client.then(|| (random() as u32).to_le_bytes()));
        self.send(&out)
    }

    /// Says what these bytes of a frame are.
    pub(super) fn bytes(&self, frame: &[u8]) -> io::Result<()> {
        self.write(|out, key| write_message(out, Kind::Binary, frame, key))
    }

    pub(super) fn frame(&self, frame: &Frame<'_>) -> io::Result<()> {
        self.bytes(&frame.to_bytes())
    }

    pub(super) fn ping(&self) -> io::Result<()> {
        self.write(|out, key| write_ping(out, &[], key))
    }

    /// Another hold on the connection, by which it can be cut.
    pub(super) fn cutter(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Cuts the connection: who reads or writes gets an error.
    pub(super) fn cut(&self) {
        // it may be cut already
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Cuts a connection when it is dropped, also by a panic: its other thread ends then.
pub(super) struct CutAtLast<'a>(pub(super) &'a Writing);

impl Drop for CutAtLast<'_> {
    fn drop(&mut self) {
        self.0.cut();
    }
}
