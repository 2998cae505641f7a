//! Answers of a server that is read back by its own protocol, one behind the other over a connection that blocks.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use tidemark_drive::{Stream, Target};
use tidemark_wire::http1::Decoded;

use super::search::{Bounds, DirectStore, PartReader, StoredContents, Unfinished};
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

/// Reads each of several servers. One that cannot be read keeps nobody from reading the others: it is noted in `unread`,
/// unless none could be read.
///
/// # Errors
/// If none could be read, or the search may not go on.
pub fn each_readable<T>(
    servers: &[T],
    name: impl Fn(&T) -> String,
    unread: &OnceLock<String>,
    mut read: impl FnMut(&T) -> Result<(), Unfinished>,
) -> Result<(), Unfinished> {
    let mut gone = Vec::new();
    for server in servers {
        match read(server) {
            Err(Unfinished::Failed(why)) if servers.len() > 1 => {
                gone.push(format!("{} ({why})", name(server)));
            }
            read => read?,
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    let told = format!("{} of {} servers could not be read: {}", gone.len(), servers.len(), gone.join(", "));
    if gone.len() == servers.len() {
        return Err(Unfinished::Failed(told));
    }
    let _ = unread.set(told);
    Ok(())
}

/// What a server, or several, hold under the keys that match a pattern.
pub struct Matching<'a> {
    /// Where it is.
    pub target: &'a Target,
    /// Which, by their keys.
    pub pattern: &'a str,
    /// What there is instead, where no key matches.
    pub unmatched: OnceLock<String>,
    /// Which of several servers could not be read.
    pub unread: OnceLock<String>,
    read: Read,
}

/// Reads all that matches.
type Read = fn(&Matching<'_>, &Bounds, &mut dyn FnMut(&[u8])) -> Result<(), Unfinished>;

impl<'a> Matching<'a> {
    /// Read by this protocol.
    pub fn new(target: &'a Target, pattern: &'a str, read: Read) -> Matching<'a> {
        Matching { target, pattern, unmatched: OnceLock::new(), unread: OnceLock::new(), read }
    }
}

impl DirectStore for Matching<'_> {}

impl StoredContents for Matching<'_> {
    fn reader(&self) -> Result<Box<dyn PartReader + '_>, Unfinished> {
        Ok(Box::new(self))
    }

    fn unread(&self) -> Option<String> {
        self.unread.get().cloned()
    }

    /// What may be wrong with `keys`, where there is something else.
    fn hint(&self) -> Option<String> {
        let (pattern, there_is) = (self.pattern, self.unmatched.get()?);
        Some(format!("no key matches \"{pattern}\" (`keys` of `verify`): {there_is}"))
    }
}

impl PartReader for &Matching<'_> {
    fn read(&mut self, _: usize, bounds: &Bounds, visit: &mut dyn FnMut(&[u8])) -> Result<(), Unfinished> {
        (self.read)(self, bounds, visit)
    }
}

/// Why a server could not be read.
pub fn failed(server: &'static str, what: &str, why: impl Display) -> Unfinished {
    Unfinished::Failed(format!("{server}: {what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_gone_keeps_nobody_from_reading_the_others() {
        let unread = OnceLock::new();
        let mut seen = Vec::new();
        let name = |port: &u16| format!("h:{port}");
        let read = |gone: &[u16], unread: &OnceLock<String>, seen: &mut Vec<u16>| {
            each_readable(&[1, 2, 3], name, unread, |port| {
                seen.push(*port);
                if gone.contains(port) { Err(failed("Redis", "no connection", "refused")) } else { Ok(()) }
            })
        };
        assert_eq!(read(&[], &unread, &mut seen), Ok(()));
        assert_eq!(unread.get(), None);
        assert_eq!(read(&[1], &unread, &mut seen), Ok(()));
        assert_eq!(seen, [1, 2, 3, 1, 2, 3]);
        let told = "1 of 3 servers could not be read: h:1 (Redis: no connection: refused)";
        assert_eq!(unread.get().map(String::as_str), Some(told));
        let none = read(&[1, 2, 3], &OnceLock::new(), &mut seen).unwrap_err().to_string();
        assert!(none.starts_with("3 of 3 servers could not be read: h:1 ("), "{none}");
        let stopped = each_readable(&[1, 2], name, &OnceLock::new(), |_| Err(Unfinished::Stopped));
        assert_eq!(stopped, Err(Unfinished::Stopped));
        let alone = each_readable(&[1], name, &OnceLock::new(), |_| Err(failed("Redis", "x", "y")));
        assert_eq!(alone, Err(Unfinished::Failed("Redis: x: y".into())));
    }
}
