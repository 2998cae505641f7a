//! Redis' serialization protocol, versions 2 and 3, as a client speaks it: commands written, replies decoded
//! (the protocol's specification: `redis.io/docs/latest/develop/reference/protocol-spec`).
//!
//! A reply becomes a [`Kind`] and bytes: a string, number or truth value is its own text; an array, set or map is JSON, so that
//! its parts are found by [path](crate::json::Path). Strings in it are JSON strings, an error in it is `{"error": "…"}`.
//! What is streamed in parts becomes the same as what comes as a whole. Buffers are used again from one reply to the next.
//!
//! ```
//! use tidemark_wire::resp::{Kind, ReplyDecoder, ReplyLimits, write_command};
//!
//! let mut out = Vec::new();
//! write_command(&[b"GET", b"k"], &mut out);
//! assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
//!
//! let mut decoder = ReplyDecoder::new(ReplyLimits::default());
//! assert!(decoder.decode(b"*2\r\n:7\r\n$2\r\nno\r\n")?.complete);
//! assert_eq!((decoder.kind(), decoder.body()), (Kind::Aggregate, &b"[7,\"no\"]"[..]));
//! # Ok::<(), tidemark_wire::resp::RespError>(())
//! ```

mod body;
mod command;

pub use command::{WORD_END, words, write_command, write_head, write_word_by, write_word_head};

use crate::http1::Decoded;
pub use crate::reply::ReplyLimits;

/// The longest line: a length, a number, a simple string or an error.
pub const MAX_LINE_BYTES: usize = 64 << 10;
/// How deep arrays and maps may lie in each other.
const MAX_DEPTH: usize = 32;
/// The lengths of strings that are read at once have so many digits at most.
const SHORT_DIGITS: usize = 7;
/// What is kept of a reply that is passed by: its beginning.
pub const BEGINNING_BYTES: usize = 512;

/// What a reply is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// A string, a number or a truth value; the body is its text.
    #[default]
    Scalar,
    /// Nothing; the body is empty.
    Null,
    /// An array, a set or a map; the body is JSON.
    Aggregate,
    /// An error; the body is its words.
    Error,
}

/// Why bytes are no reply, or none that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RespError {
    /// The connection was closed before the first byte.
    #[error("the connection was closed before any byte of the reply")]
    Empty,
    /// The connection was closed inside the reply.
    #[error("the connection was closed in the middle of the reply")]
    Truncated,
    /// The first byte of a value is none that the protocol knows.
    #[error("a value of a reply begins with {0:#04x}, which is no type of RESP")]
    Type(u8),
    /// A line without its end within [`MAX_LINE_BYTES`].
    #[error("a line of a reply is longer than the limit of {MAX_LINE_BYTES} bytes")]
    LineTooLong,
    /// A line that does not end with carriage return and line feed, or a string that does not end where its length says.
    #[error("a value of a reply does not end with carriage return and line feed where it should")]
    End,
    /// A length or a number that is none.
    #[error("a length or number in a reply is none")]
    Number,
    /// Something other than a string, array, set or map comes in parts.
    #[error("a reply streams something in parts other than a string, array, set or map")]
    Streamed,
    /// A streamed map ends behind a name.
    #[error("a map in a reply ends behind a name that has no value")]
    Entry,
    /// A map with an array for a name.
    #[error("a map in a reply has a name that is no string and no number")]
    Name,
    /// Arrays and maps that lie in each other deeper than is read.
    #[error("a reply is nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// More than [`ReplyLimits::body_bytes`].
    #[error("the reply is larger than the limit of {limit_bytes} bytes")]
    TooLarge {
        /// That limit.
        limit_bytes: usize,
    },
}

/// An array, set, map or attribute that is being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    form: Form,
    /// How many values it has, two for each entry of a map; none where its end tells.
    values: Option<u64>,
    /// Values that were there.
    had: u64,
    /// Whether it goes into the body.
    is_kept: bool,
    /// Whether it is a value; what is pushed, and what is said about a value, is none.
    is_value: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    List,
    Map,
}

/// What is kept of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// All that it holds, which is bounded.
    #[default]
    All,
    /// The first [`BEGINNING_BYTES`] of that, however large it is.
    Beginning,
    /// The same, and nothing at all of a string that is there as a whole: [`ReplyDecoder::seen`] finds its beginning in the
    /// bytes that it came in.
    Nothing,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    /// A value's line.
    #[default]
    Line,
    /// So many bytes of a string, then its end. The bytes of its format (`txt:`) are not a part of it.
    Text { left: usize, format_left: usize },
    /// So many bytes of a string's end.
    TextEnd(u8),
    /// Nothing: the reply is whole.
    Done,
}

/// Decodes one reply after the other from a connection's bytes.
///
/// [`start`](Self::start) for each command that was sent, then [`decode`](Self::decode) with what comes until it is
/// complete. The accessors hold from then until the next `start`. What the server pushes in between is passed
/// over. After an error the connection is of no more use.
///
/// It is small, as there may be thousands, each used once in a while: what a whole string that nobody keeps does not need,
/// which most replies are under load, lies apart.
#[derive(Debug)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    cold: Box<Cold>,
    keep: Keep,
    kind: Kind,
    has_begun: bool,
    /// One more than the bytes of a string that was taken at once; 0 where none was.
    whole: u32,
    /// Whether `cold` is not as it is before a reply.
    is_cold_used: bool,
}

/// What the decoder of a reply keeps of any but a string that is passed by.
#[derive(Debug, Default)]
struct Cold {
    reading: Reading,
    line: Vec<u8>,
    frames: Vec<Frame>,
    /// Whether the string that is read is an error within an array.
    in_error: bool,
    /// Whether the string that is read comes in parts.
    in_parts: bool,
    body: Vec<u8>,
    /// Bytes of a string that comes in pieces, kept or not.
    text_bytes: usize,
    /// Errors within arrays and maps, and the words of the first: at most [`BEGINNING_BYTES`].
    errors: u64,
    error: Vec<u8>,
    failed: Option<RespError>,
}

impl Cold {
    /// As before a reply; buffers are kept.
    fn clear(&mut self) {
        self.reading = Reading::Line;
        self.line.clear();
        self.frames.clear();
        self.in_error = false;
        self.in_parts = false;
        self.body.clear();
        self.text_bytes = 0;
        self.errors = 0;
        self.error.clear();
        self.failed = None;
    }
}

impl ReplyDecoder {
    /// A decoder ready for a reply, keeping its body.
    pub fn new(limits: ReplyLimits) -> Self {
        ReplyDecoder {
            limits,
            cold: Box::default(),
            keep: Keep::All,
            kind: Kind::Scalar,
            has_begun: false,
            whole: 0,
            is_cold_used: false,
        }
    }

    /// From the next reply on these limits hold.
    #[inline]
    pub fn limit(&mut self, limits: ReplyLimits) {
        self.limits = limits;
    }

    /// Begins the reply to a new command, of which this is kept.
    #[inline]
    pub fn start(&mut self, keep: Keep) {
        self.keep = keep;
        self.kind = Kind::Scalar;
        self.has_begun = false;
        self.whole = 0;
        if std::mem::take(&mut self.is_cold_used) {
            self.cold.clear();
        }
    }

    /// Whether all that it holds is kept.
    fn keeps_all(&self) -> bool {
        self.keep == Keep::All
    }

    /// What the reply is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it holds: see [`Kind`]. Of a reply that is passed by, as much as is [kept](Keep) of that.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.cold.body
    }

    /// Bytes of that, kept or not; none of an aggregate that is passed by.
    pub fn body_bytes(&self) -> Option<usize> {
        let is_known = self.keeps_all() || self.kind != Kind::Aggregate;
        is_known.then(|| match self.whole {
            0 => self.cold.text_bytes.max(self.cold.body.len()),
            whole => whole as usize - 1,
        })
    }

    /// The same as [`body`](Self::body), where nothing is kept of a string its beginning as it stands in `received`: the bytes that it came in, from its
    /// first on.
    pub fn seen<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        match whole_string(received) {
            Some((text, _)) if self.whole > 0 && self.keep == Keep::Nothing => {
                &text[..text.len().min(BEGINNING_BYTES)]
            }
            _ => self.body(),
        }
    }

    /// The beginning of the first error that stands within an array, set or map; none where there is none.
    #[inline]
    pub fn error(&self) -> Option<&[u8]> {
        (self.is_cold_used && self.cold.errors > 0).then(|| &self.cold.error[..])
    }

    /// The peer closed the connection, before the reply was whole.
    pub fn finish(&mut self) -> RespError {
        match self.cold.failed {
            Some(error) => error,
            None if self.has_begun => RespError::Truncated,
            None => RespError::Empty,
        }
    }

    /// Takes the bytes of the current reply from the front of `input`; bytes of a next one are left alone.
    ///
    /// # Errors
    /// The bytes are no reply, or one that is kept and larger than the limits; repeated until `start`.
    #[inline(always)]
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, RespError> {
        match self.take_string(input) {
            Some(consumed) => Ok(Decoded { consumed, complete: true }),
            None => self.decode_any(input),
        }
    }

    fn decode_any(&mut self, input: &[u8]) -> Result<Decoded, RespError> {
        if self.whole > 0 {
            return Ok(Decoded { consumed: 0, complete: true });
        }
        self.is_cold_used = true;
        if let Some(error) = self.cold.failed {
            return Err(error);
        }
        let result = self.advance(input);
        self.cold.failed = result.err();
        result
    }

    /// Takes a reply that is a string, and there as a whole: most are. None, and nothing is taken, where it is not.
    #[inline(always)]
    fn take_string(&mut self, input: &[u8]) -> Option<usize> {
        if self.has_begun {
            return None;
        }
        let (text, bytes) = whole_string(input)?;
        let kept = match self.keep {
            Keep::All if text.len() > self.limits.body_bytes => return None,
            Keep::All => text.len(),
            Keep::Beginning => text.len().min(BEGINNING_BYTES),
            Keep::Nothing => 0,
        };
        self.whole = text.len() as u32 + 1;
        if kept > 0 {
            self.cold.body.extend_from_slice(&text[..kept]);
            self.is_cold_used = true;
        }
        self.has_begun = true;
        Some(bytes)
    }

    fn advance(&mut self, input: &[u8]) -> Result<Decoded, RespError> {
        let mut at = 0;
        self.has_begun |= !input.is_empty();
        while self.cold.reading != Reading::Done {
            let rest = &input[at..];
            match self.cold.reading {
                Reading::Done => {}
                Reading::Line => {
                    let Some(end) = memchr::memchr(b'\n', rest) else {
                        self.gather(rest)?;
                        return Ok(Decoded { consumed: input.len(), complete: false });
                    };
                    at += end + 1;
                    if self.cold.line.is_empty() {
                        self.read_line(&rest[..end])?;
                    } else {
                        self.gather(&rest[..end])?;
                        let line = std::mem::take(&mut self.cold.line);
                        let result = self.read_line(&line);
                        self.cold.line = line;
                        self.cold.line.clear();
                        result?;
                    }
                }
                Reading::Text { left, format_left } => {
                    if rest.is_empty() {
                        return Ok(Decoded { consumed: at, complete: false });
                    }
                    let taken = left.min(rest.len());
                    let format = format_left.min(taken);
                    self.put_text(&rest[format..taken])?;
                    at += taken;
                    self.cold.reading = match left - taken {
                        0 => Reading::TextEnd(2),
                        left => Reading::Text { left, format_left: format_left - format },
                    };
                }
                Reading::TextEnd(left) => {
                    let Some(byte) = rest.first() else {
                        return Ok(Decoded { consumed: at, complete: false });
                    };
                    if *byte != if left == 2 { b'\r' } else { b'\n' } {
                        return Err(RespError::End);
                    }
                    at += 1;
                    match left {
                        2 => self.cold.reading = Reading::TextEnd(1),
                        _ if self.cold.in_parts => self.cold.reading = Reading::Line,
                        _ => self.end_text()?,
                    }
                }
            }
        }
        Ok(Decoded { consumed: at, complete: true })
    }

    fn gather(&mut self, part: &[u8]) -> Result<(), RespError> {
        if self.cold.line.len() + part.len() > MAX_LINE_BYTES {
            return Err(RespError::LineTooLong);
        }
        self.cold.line.extend_from_slice(part);
        Ok(())
    }

    /// A value's line without its line feed.
    fn read_line(&mut self, line: &[u8]) -> Result<(), RespError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(RespError::LineTooLong);
        }
        let Some((b'\r', line)) = line.split_last() else { return Err(RespError::End) };
        let Some((kind, text)) = line.split_first() else { return Err(RespError::End) };
        if memchr::memchr(b'\r', text).is_some() {
            return Err(RespError::End);
        }
        // a part follows a part, and stands nowhere else
        if self.cold.in_parts != (*kind == b';') {
            return Err(RespError::Type(*kind));
        }
        match kind {
            b'+' => self.text(text, Kind::Scalar),
            b'-' => self.text(text, Kind::Error),
            b':' => self.bare(text, is_whole(text)),
            b'(' => self.bare(text, is_whole(text)),
            b',' => self.double(text),
            b'#' => match text {
                b"t" => self.bare(b"true", true),
                b"f" => self.bare(b"false", true),
                _ => Err(RespError::Number),
            },
            b'_' if text.is_empty() => self.null(),
            b'_' => Err(RespError::End),
            b'$' if text == b"?" => {
                self.cold.in_parts = true;
                self.open_text(Kind::Scalar)
            }
            b';' => self.part(length(text)?),
            b'=' | b'!' | b'>' | b'|' if text == b"?" => Err(RespError::Streamed),
            b'$' if text == b"-1" => self.null(),
            b'$' => self.begin_text(length(text)?, Kind::Scalar, 0),
            // three letters and a colon say what it is written in
            b'=' => match length(text)? {
                bytes if bytes >= 4 => self.begin_text(bytes, Kind::Scalar, 4),
                _ => Err(RespError::Number),
            },
            b'!' => self.begin_text(length(text)?, Kind::Error, 0),
            b'*' | b'~' if text == b"?" => self.begin_frame(Form::List, None, true),
            b'%' if text == b"?" => self.begin_frame(Form::Map, None, true),
            b'.' if text.is_empty() => self.end_frame(),
            b'.' => Err(RespError::End),
            b'*' if text == b"-1" => self.null(),
            b'*' | b'~' => self.begin_frame(Form::List, Some(length(text)? as u64), true),
            b'%' => self.begin_frame(Form::Map, Some(entries(text)?), true),
            // only between replies
            b'>' if !self.cold.frames.is_empty() => Err(RespError::Type(b'>')),
            b'>' => self.begin_frame(Form::List, Some(length(text)? as u64), false),
            b'|' => self.begin_frame(Form::Map, Some(entries(text)?), false),
            other => Err(RespError::Type(*other)),
        }
    }
}

/// The text of a string that stands at the front of these bytes as a whole, and how many bytes of them it is; none where there
/// is no such string, or one of a length of more than [`SHORT_DIGITS`] digits.
#[inline(always)]
fn whole_string(input: &[u8]) -> Option<(&[u8], usize)> {
    if input.first() != Some(&b'$') {
        return None;
    }
    let mut bytes = 0;
    let mut at = 1;
    loop {
        let digit = input.get(at)?.wrapping_sub(b'0');
        if digit > 9 || at > SHORT_DIGITS {
            break;
        }
        bytes = bytes * 10 + usize::from(digit);
        at += 1;
    }
    let (end, text) = input.get(at..at + bytes + 4)?.split_at(2);
    let (text, text_end) = text.split_at(bytes);
    let is_right = at > 1 && end == b"\r\n" && text_end == b"\r\n";
    is_right.then_some((text, at + bytes + 4))
}

/// A length.
fn length(text: &[u8]) -> Result<usize, RespError> {
    if text.is_empty() || text.len() > 18 {
        return Err(RespError::Number);
    }
    text.iter().try_fold(0_usize, |length, byte| match byte {
        b'0'..=b'9' => Ok(length * 10 + usize::from(byte - b'0')),
        _ => Err(RespError::Number),
    })
}

/// The values of so many entries of a map.
fn entries(text: &[u8]) -> Result<u64, RespError> {
    Ok(length(text)? as u64 * 2)
}

fn is_whole(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests;
