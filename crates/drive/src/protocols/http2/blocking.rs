//! A few exchanges over a connection that blocks, before anything is measured: what a protocol on HTTP/2 asks its server.

use std::io::{self, ErrorKind, Read, Write};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{self, Connection, SendRequest};
use http::Response;

use super::answer::Reply;
use super::failure;
use super::pipe::Pipe;
use super::request::Message;
use crate::io::stream_failure::broken;
use crate::session::answer::Answer;

/// Bytes of a reading.
const READ_BYTES: usize = 16 << 10;
/// Most bytes of an answer's body.
const BODY_BYTES: usize = 64 << 20;

/// A connection on which one request follows another.
pub(in crate::protocols) struct Caller<'s, S: Read + Write> {
    stream: &'s mut S,
    pipe: Pipe,
    sender: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    /// When all answers must be there.
    until: Instant,
}

impl<'s, S: Read + Write> Caller<'s, S> {
    /// Says hello; the server's hello is heard with its first answer. All answers must come within this time.
    ///
    /// # Errors
    /// If the library cannot begin.
    pub fn begin(stream: &'s mut S, within: Duration) -> io::Result<Self> {
        let until = Instant::now() + within;
        let pipe = Pipe::default();
        let cx = &mut Context::from_waker(Waker::noop());
        // nothing in it has to wait: the pipe takes all at once
        match pin!(client::Builder::new().enable_push(false).handshake::<_, Bytes>(pipe.clone())).poll(cx) {
            Poll::Ready(Ok((sender, connection))) => Ok(Caller { stream, pipe, sender, connection, until }),
            Poll::Ready(Err(error)) => Err(failure::told(error)),
            Poll::Pending => Err(broken("HTTP/2 could not begin")),
        }
    }

    /// Sends a request and reads all of its answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn ask(&mut self, (request, body): Message) -> io::Result<impl Answer + use<S>> {
        let mut reply = Reply::default();
        reply.begin(request.method(), true, 0);
        let (mut head, mut upload) =
            self.sender.send_request(request, body.is_empty()).map_err(failure::told)?;
        if !body.is_empty() {
            upload.send_data(body, true).map_err(failure::told)?;
        }
        let answer: Response<RecvStream> =
            self.wait(|cx| Pin::new(&mut head).poll(cx))?.map_err(failure::told)?;
        let wrong = |violation: crate::session::failure::Violation| {
            io::Error::new(ErrorKind::InvalidData, violation.to_string())
        };
        let mut body = reply.take_head(answer, BODY_BYTES).map_err(wrong)?;
        while let Some(piece) = self.wait(|cx| body.poll_data(cx))? {
            let piece = piece.map_err(failure::told)?;
            body.flow_control().release_capacity(piece.len()).map_err(failure::told)?;
            reply.take_body(&piece, BODY_BYTES).map_err(wrong)?;
        }
        let trailers = self.wait(|cx| body.poll_trailers(cx))?.map_err(failure::told)?;
        reply.take_trailers(trailers.unwrap_or_default()).map_err(wrong)?;
        Ok(reply)
    }

    /// Most streams that the server takes at once, as far as it has said.
    pub fn most_streams(&self) -> usize {
        self.connection.max_concurrent_send_streams()
    }

    /// Reads and writes until something is there.
    fn wait<R>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>) -> io::Result<R> {
        let cx = &mut Context::from_waker(Waker::noop());
        let mut room = [0; READ_BYTES];
        loop {
            let over = Pin::new(&mut self.connection).poll(cx);
            let output = std::mem::take(&mut self.pipe.0.borrow_mut().output);
            if !output.is_empty() {
                self.stream.write_all(&output)?;
                self.stream.flush()?;
            }
            if let Poll::Ready(result) = poll(cx) {
                return Ok(result);
            }
            match over {
                Poll::Ready(Err(error)) => return Err(failure::told(error)),
                Poll::Ready(Ok(())) => return Err(broken("the server closed the connection of HTTP/2")),
                // what polling brought up leaves before anything is waited for
                Poll::Pending if !output.is_empty() => continue,
                Poll::Pending => {}
            }
            // what is no answer does not give more time
            if Instant::now() > self.until {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
            }
            match self.stream.read(&mut room)? {
                0 => self.pipe.0.borrow_mut().end(),
                bytes => self.pipe.0.borrow_mut().feed(&room[..bytes]),
            }
        }
    }
}
