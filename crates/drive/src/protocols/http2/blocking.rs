//! A few exchanges over a connection that blocks, before anything is measured: what a protocol on HTTP/2 asks its server.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use tidemark_wire::http2::connection::{Connection, Event, Request};

use super::answer::Reply;
use super::failure;
use super::request::Message;
use crate::io::stream_failure::broken;
use crate::session::answer::Answer;
use crate::session::failure::Violation;

/// Bytes of a reading.
const READ_BYTES: usize = 16 << 10;
/// Most bytes of an answer's body.
const BODY_BYTES: usize = 64 << 20;

/// A connection on which one request follows another.
pub(in crate::protocols) struct Caller<'s, S: Read + Write> {
    stream: &'s mut S,
    connection: Connection,
    output: Vec<u8>,
    /// When all answers must be there.
    until: Instant,
}

impl<'s, S: Read + Write> Caller<'s, S> {
    /// Begins; the server's hello is heard with its first answer. All answers must come within this time.
    pub fn begin(stream: &'s mut S, within: Duration) -> Self {
        let mut output = Vec::new();
        let connection = Connection::new(&mut output);
        Caller { stream, connection, output, until: Instant::now() + within }
    }

    /// Sends a request and reads all of its answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn ask(&mut self, message: &Message) -> io::Result<impl Answer + use<S>> {
        let mut reply = Reply::default();
        reply.begin(message.is_head(), true, 0);
        let body = message.body();
        let request = Request { ends: body.is_empty(), is_head: message.is_head(), ..Request::default() };
        let stream = self.connection.request(message.block(), request, &mut self.output);
        let stream = stream.ok_or_else(failure::unsent)?;
        if !body.is_empty() {
            self.connection.send(stream, body, true, |sent| message.rest(sent), &mut self.output);
        }
        let mut room = [0; READ_BYTES];
        loop {
            self.write()?;
            // what is no answer does not give more time
            if Instant::now() > self.until {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
            let bytes = self.stream.read(&mut room)?;
            if bytes == 0 {
                return Err(broken("the server closed the connection of HTTP/2"));
            }
            if self.read(&room[..bytes], &mut reply)? {
                self.write()?;
                return Ok(reply);
            }
        }
    }

    /// Most streams that the server takes at once, as far as it has said.
    pub fn most_streams(&self) -> usize {
        self.connection.most_streams()
    }

    fn write(&mut self) -> io::Result<()> {
        loop {
            self.connection.pump(&mut self.output);
            if self.output.is_empty() {
                return Ok(());
            }
            self.stream.write_all(&self.output)?;
            self.stream.flush()?;
            self.output.clear();
            self.connection.taken();
        }
    }

    /// Takes what came; whether the answer is whole.
    fn read(&mut self, mut input: &[u8], reply: &mut Reply) -> io::Result<bool> {
        let wrong = |violation: Violation| io::Error::new(ErrorKind::InvalidData, violation.to_string());
        let mut is_whole = false;
        while let Some(event) = self.connection.next(&mut input, &mut self.output).map_err(failure::wrong)? {
            match event {
                Event::Interim { .. } => {}
                Event::Head { status, ends, .. } => {
                    is_whole = ends;
                    reply.take_head(status, self.connection.fields(), BODY_BYTES).map_err(wrong)?;
                }
                Event::Data { bytes, ends, .. } => {
                    is_whole = ends;
                    reply.take_body(bytes, BODY_BYTES).map_err(wrong)?;
                }
                Event::Trailers { .. } => {
                    is_whole = true;
                    reply.take_trailers(self.connection.fields()).map_err(wrong)?;
                }
                Event::Failed { why, .. } => return Err(failure::told(why)),
            }
        }
        Ok(is_whole)
    }
}
