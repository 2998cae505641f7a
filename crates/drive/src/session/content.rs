//! What an answer's body was before it was encoded for its way.

use std::time::Instant;

use tidemark_wire::encoding::{EncodingError, Scratch, decode, forget};

use crate::clock::nanoseconds;

/// The header that tells of it, in lower case.
pub(crate) const ENCODING: &str = "content-encoding";

/// A body that is read where its answer says that it is encoded, and somebody looks at it.
#[derive(Debug, Default)]
pub(crate) struct Content {
    state: State,
    decoded: Vec<u8>,
    room: Scratch,
    /// How long the reading took.
    took_ns: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Plain,
    Decoded,
    Unreadable(Box<str>),
}

impl Content {
    /// Another answer is to come; memory that the last one needed beyond the usual is given back.
    pub fn forget(&mut self) {
        self.state = State::Plain;
        self.took_ns = 0;
        forget(&mut self.decoded, &mut self.room);
    }

    /// The body is whole, and these are its encodings; once read it may have so many bytes.
    pub fn take<'h>(
        &mut self,
        encodings: impl IntoIterator<Item = &'h [u8]>,
        body: &[u8],
        limit_bytes: usize,
    ) {
        let begun = Instant::now();
        self.state = match decode(encodings, body, limit_bytes, &mut self.decoded, &mut self.room) {
            Ok(true) => State::Decoded,
            Ok(false) => State::Plain,
            Err(error @ EncodingError::TooLarge { .. }) => {
                State::Unreadable(format!("{error} (`limits: body`)").into())
            }
            Err(error) => State::Unreadable(error.to_string().into()),
        };
        self.took_ns = nanoseconds(begun.elapsed());
    }

    /// The body, which came as this.
    pub fn body<'a>(&'a self, came: &'a [u8]) -> &'a [u8] {
        match &self.state {
            State::Plain => came,
            State::Decoded => &self.decoded,
            State::Unreadable(_) => b"",
        }
    }

    /// Whether it came encoded, and was read.
    pub fn is_decoded(&self) -> bool {
        matches!(self.state, State::Decoded)
    }

    /// How long the reading took, nanoseconds.
    pub fn took_ns(&self) -> u64 {
        self.took_ns
    }

    /// Why it cannot be read, in words.
    pub fn unreadable(&self) -> Option<&str> {
        match &self.state {
            State::Unreadable(words) => Some(words),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 MiB of zeros, in gzip twice.
    const ZEROS: &str = "1f8b0800000000000203eddaad0dc2601486d1fe201a04e011740c0c82902050986ac21038441324861548a866\
        059882b00341a009a51f43209a73d4abaf7c7247fb2c0a92f4718de3669487cff9997523000000a0e5cafb2e0d\
        3120caebdb7c59000000006db7eef73abf28f05e0da7ce01000000ad574dc67968018357bd99251e25000000e0\
        0f2ec5e2b83d3523fe020e73c8b6c83f0000";

    #[test]
    fn a_large_body_is_given_back() {
        let byte = |at: usize| u8::from_str_radix(&ZEROS[at..at + 2], 16).unwrap();
        let came: Vec<u8> = (0..ZEROS.len()).step_by(2).map(byte).collect();
        let mut content = Content::default();
        content.take([b"gzip,gzip".as_slice()], &came, 16 << 20);
        assert_eq!(content.unreadable(), None);
        assert_eq!((content.body(&came).len(), content.is_decoded()), (16 << 20, true));
        content.forget();
        assert_eq!((content.body(&came), content.is_decoded()), (&came[..], false));
        assert!(content.decoded.capacity() <= 1 << 20, "{}", content.decoded.capacity());
    }
}
