//! What a product is asked for, and what its answers mean: the seam between a product and everything that is the same
//! for all of them.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};

use tidemark_drive::Stream;

use super::{memcached, redis};

/// Longest answer that is taken, bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// All products.
pub static ALL: &[&dyn Product] = &[&redis::Redis, &memcached::Memcached];

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All figures.
    All,
    /// Only what tells whether something of [`Product::kinds`] is under way.
    Kinds,
}

/// A product that tells figures of itself.
pub trait Product: Sync {
    /// What the URLs of its servers begin with.
    fn schemes(&self) -> &'static [&'static str];

    /// The port of its servers where a URL names none.
    fn port(&self) -> u16;

    /// Whether a connection begins as the driver's do, with a password and what else its URL says.
    fn is_greeted(&self) -> bool;

    /// Asks a server, and gives back what it says.
    ///
    /// # Errors
    /// Where the connection breaks, or the answer is none.
    fn ask(&self, wire: &mut Wire<'_>, of: Of) -> io::Result<Said>;

    /// What is kept of that, in this order.
    fn figures(&self) -> &'static [Figure];

    /// What its servers do at times beside their work.
    fn kinds(&self) -> &'static [Kind] {
        &[]
    }
}

/// A figure that is kept.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Under which name it is kept.
    pub name: &'static str,
    /// What the product calls it.
    pub of: &'static str,
    /// What is kept of it.
    pub how: How,
}

/// What is kept of what a server says.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// The number.
    Now,
    /// How fast it rose since the look before.
    PerSecond,
    /// 1 where it is this word, else 0.
    Is(&'static str),
}

/// Something that a server does beside its work; all names are those of the product.
#[derive(Debug)]
pub struct Kind {
    /// The word of faults and events.
    pub word: &'static str,
    /// The command that asks for it.
    pub command: &'static [&'static [u8]],
    /// 1 while it is under way.
    pub under_way: &'static str,
    /// 1 where it is to begin soon.
    pub scheduled: &'static str,
    /// What is another value once it has been under way; the first of them that the server tells.
    pub counted: &'static [&'static str],
    /// `ok` where the last one succeeded.
    pub status: &'static str,
    /// Size of what it makes smaller, bytes.
    pub size: &'static str,
    /// Memory copied by the last one because it was written to meanwhile, bytes.
    pub copied: &'static str,
    /// How long the last fork took, microseconds.
    pub fork: &'static str,
}

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said(HashMap<String, String>);

impl Said {
    /// Of lines: a name, what stands between, a value.
    pub fn of(lines: &str, between: char) -> Said {
        let line = |line: &str| {
            let (name, value) = line.trim_end().split_once(between)?;
            Some((name.to_owned(), value.to_owned()))
        };
        Said(lines.lines().filter_map(line).collect())
    }

    /// A text by its name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number by its name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A count or size by its name.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

/// A connection to a server.
pub struct Wire<'s>(BufReader<&'s mut dyn Stream>);

impl<'s> Wire<'s> {
    /// On this one.
    pub fn new(stream: &'s mut dyn Stream) -> Wire<'s> {
        Wire(BufReader::new(stream))
    }

    /// Sends all of this.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.0.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// Takes a line, without its end.
    ///
    /// # Errors
    /// The connection broke, or the line is too long.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        (&mut self.0).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(match line.len() {
                0..ANSWER_LINE_MAX => io::ErrorKind::UnexpectedEof.into(),
                _ => too_long(),
            });
        }
        let text = String::from_utf8_lossy(&line);
        Ok(text.trim_end_matches('\r').to_owned())
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// The connection broke, or these are too many.
    pub fn bytes(&mut self, count: u64) -> io::Result<String> {
        if count > ANSWER_BYTES_MAX {
            return Err(too_long());
        }
        let mut bytes = Vec::new();
        (&mut self.0).take(count).read_to_end(&mut bytes)?;
        match bytes.len() as u64 == count {
            true => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The same for a line without an end.
const ANSWER_LINE_MAX: usize = ANSWER_BYTES_MAX as usize - 1;

fn too_long() -> io::Error {
    io::Error::other("it answers with more than is taken")
}
