//! A connection by which the lab asks a server that speaks Redis' protocol.

use std::io::{self, Read, Write};
use std::ops::Range;

use tidemark_wire::resp::{Keep, Kind, ReplyDecoder, ReplyLimits, write_command};

use crate::exchange::{no_answer, read, refused};

/// Most bytes of an answer to what the lab asks: `CLUSTER NODES` has a line for each node, `INFO` a few hundred.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A connection that blocks.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    decoder: ReplyDecoder,
    buffer: Vec<u8>,
    /// What has been read and belongs to replies that are to come.
    unread: Range<usize>,
    is_complete: bool,
}

impl<S: Read + Write> Connection<S> {
    /// On this one, for small answers.
    pub fn new(stream: S) -> Self {
        Connection::with_limit(stream, ANSWER_BYTES_MAX)
    }

    /// For replies of so many bytes at most.
    pub fn with_limit(stream: S, body_bytes: usize) -> Self {
        let decoder = ReplyDecoder::new(ReplyLimits { body_bytes });
        Connection { stream, decoder, buffer: vec![0; 16 << 10], unread: 0..0, is_complete: true }
    }

    /// Sends commands in one go, without waiting for the replies.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&mut self, commands: &[&[&[u8]]]) -> io::Result<()> {
        let mut out = Vec::new();
        commands.iter().for_each(|words| write_command(words, &mut out));
        self.stream.write_all(&out)?;
        self.stream.flush()
    }

    /// Takes some of the next reply; true once that is complete.
    ///
    /// # Errors
    /// The connection broke, or what came is no reply.
    pub fn receive(&mut self) -> io::Result<bool> {
        if std::mem::take(&mut self.is_complete) {
            self.decoder.start(Keep::All);
        }
        if self.unread.is_empty() {
            self.unread = 0..read(&mut self.stream, &mut self.buffer)?;
        }
        let decoded = self.decoder.decode(&self.buffer[self.unread.clone()]).map_err(no_answer)?;
        self.unread.start += decoded.consumed;
        self.is_complete = decoded.complete;
        Ok(decoded.complete)
    }

    /// The reply that was complete.
    pub fn reply(&self) -> (Kind, &[u8]) {
        (self.decoder.kind(), self.decoder.body())
    }

    /// The answer to a command as a text, an array as JSON; or the error that it is.
    ///
    /// # Errors
    /// No answer comes.
    pub fn ask(&mut self, words: &[&str]) -> io::Result<Result<String, String>> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.send(&[&words])?;
        while !self.receive()? {}
        let (kind, text) = self.reply();
        let text = String::from_utf8_lossy(text).into_owned();
        Ok(if kind == Kind::Error { Err(text) } else { Ok(text) })
    }

    /// The same, where an error is not expected; the server's own is of [`io::ErrorKind::Other`].
    ///
    /// # Errors
    /// No answer comes, or an error.
    pub fn demand(&mut self, words: &[&str]) -> io::Result<String> {
        self.ask(words)?.map_err(|error| refused(words[0], &error))
    }
}
