//! gRPC over HTTP/2: messages with their length in front, [`metadata`], deadlines, texts of statuses.
//!
//! ```
//! use tidemark_wire::grpc::{Messages, write_message};
//!
//! let mut bytes = Vec::new();
//! write_message(b"hello", &mut bytes);
//! let mut messages = Messages::new(1_000);
//! messages.push(&bytes[..3]);
//! assert_eq!(messages.next()?, None);
//! messages.push(&bytes[3..]);
//! let message = messages.next()?.unwrap();
//! assert_eq!((message.is_compressed, message.bytes), (false, &b"hello"[..]));
//! # Ok::<(), tidemark_wire::grpc::GrpcError>(())
//! ```

pub mod metadata;

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes in front of a message: whether it is compressed, and its length.
pub const PREFIX_BYTES: usize = 5;
/// Room for messages that is kept for the next ones.
const RETAINED_BYTES: usize = 1 << 20;
/// Most digits of a deadline.
const TIMEOUT_MAX: u128 = 99_999_999;

/// Why bytes are no messages of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrpcError {
    /// The first byte is neither 0 nor 1.
    #[error("a message of the answer begins with {0}, where 0 or 1 says whether it is compressed")]
    Flag(u8),
    /// A message is larger than it may be.
    #[error("a message of the answer has {bytes} bytes, more than the limit of {limit_bytes}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit that was given.
        limit_bytes: usize,
    },
}

/// A message as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Whether it is compressed, as `grpc-encoding` says.
    pub is_compressed: bool,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Cuts what comes over a stream into messages. It keeps what has come and is not taken yet.
#[derive(Debug)]
pub struct Messages {
    kept: Vec<u8>,
    /// What of it has been taken.
    taken: usize,
    limit_bytes: usize,
}

impl Messages {
    /// For messages of at most so many bytes.
    pub fn new(limit_bytes: usize) -> Self {
        Messages { kept: Vec::new(), taken: 0, limit_bytes }
    }

    /// Another stream begins.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.kept.shrink_to(RETAINED_BYTES);
        self.taken = 0;
    }

    /// Bytes came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.kept.drain(..self.taken);
            self.taken = 0;
        }
        self.kept.extend_from_slice(bytes);
    }

    /// Whether nothing is there of a message that has not been taken.
    pub fn is_empty(&self) -> bool {
        self.taken == self.kept.len()
    }

    /// Bytes that came and were not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.kept.len() - self.taken
    }

    /// Takes the next message, once it is whole.
    ///
    /// # Errors
    /// What comes is no message, or one that is too large: its length is told before it is there.
    #[allow(clippy::should_implement_trait, reason = "what it lends is its own")]
    pub fn next(&mut self) -> Result<Option<Message<'_>>, GrpcError> {
        let waiting = &self.kept[self.taken..];
        let Some((&[flag, a, b, c, d], behind)) = waiting.split_first_chunk::<PREFIX_BYTES>() else {
            return waiting
                .first()
                .filter(|flag| **flag > 1)
                .map_or(Ok(None), |flag| Err(GrpcError::Flag(*flag)));
        };
        if flag > 1 {
            return Err(GrpcError::Flag(flag));
        }
        let bytes = u32::from_be_bytes([a, b, c, d]) as usize;
        if bytes > self.limit_bytes {
            return Err(GrpcError::TooLarge { bytes, limit_bytes: self.limit_bytes });
        }
        if behind.len() < bytes {
            return Ok(None);
        }
        let begin = self.taken + PREFIX_BYTES;
        self.taken = begin + bytes;
        Ok(Some(Message { is_compressed: flag == 1, bytes: &self.kept[begin..begin + bytes] }))
    }
}

/// Appends a message that is not compressed.
pub fn write_message(message: &[u8], out: &mut Vec<u8>) {
    let begin = begin_message(out);
    out.extend_from_slice(message);
    end_message(begin, out);
}

/// Begins a message, which is then appended; what [`end_message`] takes.
pub fn begin_message(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    out.len()
}

/// Writes the length of the message that was appended since it was begun.
pub fn end_message(begin: usize, out: &mut [u8]) {
    let length = u32::try_from(out.len() - begin).unwrap_or(u32::MAX);
    out[begin - PREFIX_BYTES + 1..begin].copy_from_slice(&length.to_be_bytes());
}

/// Appends a message that is compressed by gzip.
pub fn write_compressed(message: &[u8], out: &mut Vec<u8>) {
    let begin = begin_message(out);
    out[begin - PREFIX_BYTES] = 1;
    let mut encoder = GzEncoder::new(&mut *out, Compression::fast());
    // a vector takes all
    let _ = encoder.write_all(message);
    let _ = encoder.finish();
    end_message(begin, out);
}

/// A time as `grpc-timeout` says it, in the finest unit of which 8 digits are enough; never less than it is.
pub fn timeout(time: Duration) -> String {
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    let nanoseconds = time.as_nanos();
    for (unit, name) in units {
        let count = nanoseconds.div_ceil(unit);
        if count <= TIMEOUT_MAX {
            return format!("{count}{name}");
        }
    }
    format!("{}H", nanoseconds.div_ceil(3_600_000_000_000).min(TIMEOUT_MAX))
}

/// The text of a `grpc-message`, which is percent-encoded; what is wrong in it stays as it is.
pub fn status_text(encoded: &[u8], out: &mut Vec<u8>) {
    let mut rest = encoded;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let byte = behind.split_first_chunk::<2>().filter(|_| *first == b'%').and_then(|(digits, behind)| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            Some((digit(digits[0])? * 16 + digit(digits[1])?, behind))
        });
        match byte {
            Some((byte, behind)) => {
                out.push(byte as u8);
                rest = behind;
            }
            None => out.push(*first),
        }
    }
}

/// The number of the code of gRPC that stands for a status of HTTP without `grpc-status`, as the protocol's table has it.
pub fn code_of_http(status: u16) -> u32 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    }
}

/// The number of the code of gRPC that stands for the reason of a reset stream, as the protocol's table has it.
pub fn code_of_reset(reason: u32) -> u32 {
    match reason {
        // REFUSED_STREAM
        7 => 14,
        // CANCEL
        8 => 1,
        // ENHANCE_YOUR_CALM
        11 => 8,
        // INADEQUATE_SECURITY
        12 => 7,
        _ => 13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_wherever_their_bytes_are() {
        let mut all = Vec::new();
        write_message(b"", &mut all);
        write_message(b"one", &mut all);
        all.extend_from_slice(b"\x01\0\0\0\x02zz");
        for step in 1..=all.len() {
            let (mut messages, mut found) = (Messages::new(3), Vec::new());
            for piece in all.chunks(step) {
                messages.push(piece);
                while let Some(message) = messages.next().unwrap() {
                    found.push((message.is_compressed, message.bytes.to_vec()));
                }
            }
            let wanted = [(false, b"".to_vec()), (false, b"one".to_vec()), (true, b"zz".to_vec())];
            assert_eq!(found, wanted, "by {step}");
            assert!(messages.is_empty());
        }
    }

    #[test]
    fn what_is_too_large_or_none_is_told_at_once() {
        let mut messages = Messages::new(3);
        messages.push(&[0, 0, 0, 0, 4]);
        assert_eq!(messages.next(), Err(GrpcError::TooLarge { bytes: 4, limit_bytes: 3 }));
        messages.clear();
        messages.push(b"H");
        assert_eq!(messages.next(), Err(GrpcError::Flag(b'H')));
        messages.clear();
        messages.push(&[0, 0, 0, 0, 3, 1]);
        assert_eq!(messages.next(), Ok(None));
        assert_eq!((messages.is_empty(), messages.waiting_bytes()), (false, 6));
    }

    #[test]
    fn a_deadline_has_eight_digits_at_most_and_is_never_shorter() {
        for (time, text) in [
            (Duration::from_nanos(7), "7n"),
            (Duration::from_millis(99), "99000000n"),
            (Duration::from_millis(100), "100000u"),
            (Duration::from_secs(30), "30000000u"),
            (Duration::from_nanos(100_000_000_001), "100001m"),
            (Duration::from_secs(1_000_000), "1000000S"),
            (Duration::MAX, "99999999H"),
        ] {
            assert_eq!(timeout(time), text);
        }
    }

    #[test]
    fn a_status_has_its_text() {
        for (encoded, text) in [
            ("no such cart", "no such cart"),
            ("50%25 %E2%82%AC", "50% €"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
        ] {
            let mut out = Vec::new();
            status_text(encoded.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
