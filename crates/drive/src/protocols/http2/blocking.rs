//! A few exchanges over a connection that blocks, before anything is measured: what a protocol on HTTP/2 asks its server.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use tidemark_wire::http2::connection::{Connection, Request};

use super::failure;
use super::greet::NotHttp2;
use super::request::Message;
use super::stream::{Exchange, Stream, Unanswered};
use crate::io::stream_failure::broken;
use crate::session::answer::Answer;

/// Bytes of a reading.
const READ_BYTES: usize = 16 << 10;
/// Most bytes of an answer's body.
const BODY_BYTES: usize = 64 << 20;

/// A connection on which one request follows another.
pub(in crate::protocols) struct Caller<'s, S: Read + Write> {
    stream: &'s mut S,
    connection: Connection,
    /// Whether anything has come.
    is_heard: bool,
    output: Vec<u8>,
    /// When all answers must be there.
    until: Instant,
}

impl<'s, S: Read + Write> Caller<'s, S> {
    /// Begins; the server's hello is heard with its first answer. All answers must come within this time.
    pub fn begin(stream: &'s mut S, within: Duration) -> Self {
        let mut output = Vec::new();
        let connection = Connection::new(&mut output);
        Caller { stream, connection, is_heard: false, output, until: Instant::now() + within }
    }

    /// Sends a request and reads all of its answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn ask(&mut self, message: &Message) -> io::Result<impl Answer + use<S>> {
        let body = message.body();
        let request = Request { ends: body.is_empty(), is_head: message.is_head(), ..Request::default() };
        let number = self.connection.request(message.block(), request, &mut self.output);
        let number = number.ok_or_else(failure::unsent)?;
        if !body.is_empty() {
            self.connection.send(number, body, true, |sent| message.rest(sent), &mut self.output);
        }
        let mut stream = Stream::default();
        stream.reply.begin(message.is_head(), true, 0);
        stream.exchange = Some(Exchange::new(number, false, false, 0));
        let mut room = [0; READ_BYTES];
        loop {
            self.write()?;
            // what is no answer does not give more time
            if Instant::now() > self.until {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
            let bytes = match self.stream.read(&mut room) {
                Ok(0) if self.connection.is_greeted() => {
                    return Err(broken("the server closed the connection of HTTP/2"));
                }
                Ok(0) => return Err(NotHttp2::Closed.into()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "the server does not answer"));
                }
                Err(error) => return Err(self.unheard(error)),
                Ok(bytes) => bytes,
            };
            if !std::mem::replace(&mut self.is_heard, true)
                && let Some(what) = NotHttp2::begun_by(&room[..bytes])
            {
                return Err(what.into());
            }
            self.read(&room[..bytes], &mut stream)?;
            let ended = stream.exchange.as_mut().and_then(|exchange| exchange.ended.take());
            match ended {
                None => {}
                Some(Ok(())) => {
                    self.write()?;
                    return Ok(stream.reply);
                }
                Some(Err(Unanswered::Error(error))) => return Err(failure::told(error)),
                Some(Err(Unanswered::Violation(violation))) => {
                    return Err(io::Error::new(ErrorKind::InvalidData, violation.to_string()));
                }
            }
        }
    }

    /// Most streams that the server takes at once, as far as it has said.
    pub fn most_streams(&self) -> usize {
        self.connection.most_streams()
    }

    /// An error before the server has said hello may be all that it has to say.
    fn unheard(&self, error: io::Error) -> io::Error {
        if self.connection.is_greeted() { error } else { NotHttp2::or_closed(error) }
    }

    fn write(&mut self) -> io::Result<()> {
        loop {
            self.connection.pump(&mut self.output);
            if self.output.is_empty() {
                return Ok(());
            }
            let sent = self.stream.write_all(&self.output).and_then(|()| self.stream.flush());
            sent.map_err(|error| self.unheard(error))?;
            self.output.clear();
            self.connection.taken();
        }
    }

    /// Takes what came.
    fn read(&mut self, mut input: &[u8], stream: &mut Stream) -> io::Result<()> {
        let came = (Instant::now(), 0);
        while let Some(event) = self.connection.next(&mut input, &mut self.output).map_err(failure::wrong)? {
            stream.take(event, self.connection.fields(), came, BODY_BYTES);
        }
        Ok(())
    }
}
