//! Answers of a server that is read back by its own protocol, one behind the other over a connection that blocks.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::time::Duration;

use tidemark_drive::Stream;
use tidemark_wire::http1::Decoded;

use super::search::{Bounds, Unfinished};
use crate::exchange::{no_answer, read};

/// How often a connection is tried, and the wait before the second time; doubled before each further one.
const ATTEMPTS: u32 = 8;
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// What has come from a server.
pub struct Answers<'s> {
    server: &'static str,
    stream: &'s mut dyn Stream,
    buffer: Vec<u8>,
    /// What belongs to answers that are to come.
    unread: Range<usize>,
}

impl<'s> Answers<'s> {
    /// Of this server, over this connection.
    pub fn new(server: &'static str, stream: &'s mut dyn Stream) -> Self {
        Answers { server, stream, buffer: vec![0; 64 << 10], unread: 0..0 }
    }

    /// Sends a question, or several.
    pub fn ask(&mut self, question: &[u8]) -> Result<(), Unfinished> {
        let sent = self.stream.write_all(question).and_then(|()| self.stream.flush());
        sent.map_err(|error| failed(self.server, "the connection broke", error))
    }

    /// Hands what comes to `decode`, until it says that the next answer is complete.
    pub fn take<E: Display>(
        &mut self,
        bounds: &Bounds,
        mut decode: impl FnMut(&[u8]) -> Result<Decoded, E>,
    ) -> Result<(), Unfinished> {
        loop {
            if self.unread.is_empty() {
                bounds.check()?;
                let bytes = read(self.stream, &mut self.buffer);
                self.unread = 0..bytes.map_err(|error| failed(self.server, "no answer", in_words(error)))?;
            }
            let decoded = decode(&self.buffer[self.unread.clone()]);
            let decoded = decoded.map_err(|error| failed(self.server, "no answer", no_answer(error)))?;
            self.unread.start += decoded.consumed;
            if decoded.complete {
                return Ok(());
            }
        }
    }
}

/// A read that waited in vain, as a person says it.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(error.kind(), "it was silent for too long")
        }
        _ => error,
    }
}

/// What an attempt to connect comes to in the end; each next one waits longer.
pub fn patiently<T>(
    server: &'static str,
    bounds: &Bounds,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Result<T, Unfinished> {
    let mut pause = PAUSE_FIRST;
    for _ in 1..ATTEMPTS {
        bounds.check()?;
        if let Ok(done) = attempt() {
            return Ok(done);
        }
        bounds.sleep(pause)?;
        pause *= 2;
    }
    bounds.check()?;
    attempt().map_err(|error| failed(server, "no connection", error))
}

/// Why a server could not be read.
pub fn failed(server: &'static str, what: &str, why: impl Display) -> Unfinished {
    Unfinished::Failed(format!("{server}: {what}: {why}"))
}
