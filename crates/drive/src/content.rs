//! What an answer's body was before it was encoded for its way.

use tidemark_wire::encoding::{EncodingError, Scratch, decode};

/// The header that tells of it, in lower case.
pub(crate) const ENCODING: &str = "content-encoding";

/// A body that is read where its answer says that it is encoded, and somebody looks at it.
#[derive(Debug, Default)]
pub(crate) struct Content {
    state: State,
    decoded: Vec<u8>,
    room: Scratch,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Plain,
    Decoded,
    Unreadable(Box<str>),
}

impl Content {
    /// Another answer is to come.
    pub fn forget(&mut self) {
        self.state = State::Plain;
    }

    /// The body is whole, and these are its encodings; once read it may have so many bytes.
    pub fn take<'h>(
        &mut self,
        encodings: impl IntoIterator<Item = &'h [u8]>,
        body: &[u8],
        limit_bytes: usize,
    ) {
        self.state = match decode(encodings, body, limit_bytes, &mut self.decoded, &mut self.room) {
            Ok(true) => State::Decoded,
            Ok(false) => State::Plain,
            Err(error @ EncodingError::TooLarge { .. }) => {
                State::Unreadable(format!("{error} (`limits: body`)").into())
            }
            Err(error) => State::Unreadable(error.to_string().into()),
        };
    }

    /// The body, which came as this.
    pub fn body<'a>(&'a self, came: &'a [u8]) -> &'a [u8] {
        match &self.state {
            State::Plain => came,
            State::Decoded => &self.decoded,
            State::Unreadable(_) => b"",
        }
    }

    /// Why it cannot be read, in words.
    pub fn unreadable(&self) -> Option<&str> {
        match &self.state {
            State::Unreadable(words) => Some(words),
            _ => None,
        }
    }
}
