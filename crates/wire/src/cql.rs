//! Cassandra's native protocol, version 4, as a client that prepares statements and executes them speaks it
//! (`native_protocol_v4.spec` of Cassandra's sources): frames written, replies decoded, values to and from text.
//!
//! The reply to a statement becomes a [`Kind`] and bytes: rows are a JSON array of objects, an error its code and message.
//! One request at a time is under way, as a server answers several in any order. Buffers are used again.
//!
//! ```
//! use tidemark_wire::cql::{Kind, ReplyDecoder, ReplyLimits};
//!
//! let mut decoder = ReplyDecoder::new(ReplyLimits::default());
//! decoder.start(None, true);
//! let void = b"\x84\0\0\0\x08\0\0\0\x04\0\0\0\x01";
//! assert!(decoder.decode(void)?.complete);
//! assert_eq!(decoder.kind(), Kind::Done);
//! # Ok::<(), tidemark_wire::cql::CqlError>(())
//! ```

mod frame;
mod metadata;
mod value;

pub use crate::reply::{Kind, ReplyLimits};
use std::sync::Arc;

use crate::http1::Decoded;

pub use frame::{Frame, Frames, opcode, write};
pub use metadata::{Columns, Prepared, each_value};
pub use value::{Type, WrongValue};

use self::frame::Bytes;

/// Why bytes are no reply, or none that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CqlError {
    /// The connection was closed before the first byte.
    #[error("the connection was closed before any byte of the reply")]
    Empty,
    /// The connection was closed inside the reply.
    #[error("the connection was closed in the middle of the reply")]
    Truncated,
    /// It does not begin as a frame of this version.
    #[error("a reply begins with {0:#04x}, which is no frame of version 4 of the native protocol")]
    Version(u8),
    /// It is not what its kind says.
    #[error("a frame of a reply is malformed")]
    Malformed,
    /// A frame that has no place here.
    #[error("a frame of kind {0:#04x} has no place in a reply")]
    Unexpected(u8),
    /// The server has forgotten the statement, or has it only now.
    #[error("the statement has to be prepared anew, over another connection")]
    Unprepared,
    /// Rows with another number of values than the statement had when it was prepared.
    #[error(
        "rows have other columns than were told; the statement has to be prepared anew, over another connection"
    )]
    Columns,
    /// Only some of the rows.
    #[error(
        "the server sends only the first page of the rows, so that the others would be missed; ask for fewer with LIMIT"
    )]
    Pages,
    /// Types in types.
    #[error("types in a reply are nested more than {} deep", value::MAX_DEPTH)]
    TooDeep,
    /// More than [`ReplyLimits::body_bytes`].
    #[error("the reply is larger than the limit of {limit_bytes} bytes")]
    TooLarge {
        /// That limit.
        limit_bytes: usize,
    },
}

/// Code and message of an error's body, for a person.
///
/// # Errors
/// It is malformed.
pub fn error_words(body: &[u8]) -> Result<String, CqlError> {
    let mut bytes = Bytes(body);
    let (code, message) = (bytes.int()?, bytes.string()?);
    Ok(format!("0x{code:04x}: {}", String::from_utf8_lossy(message)))
}

/// A statement that the server does not know by this number any more.
const UNPREPARED: i32 = 0x2500;

/// Decodes replies to statements.
///
/// [`start`](Self::start) for each that was sent, then [`decode`](Self::decode) with what comes until it is complete. The
/// accessors hold from then until the next `start`. After an error the connection is of no more use.
#[derive(Debug)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    keep_body: bool,
    frames: Frames,
    columns: Option<Arc<Columns>>,
    has_begun: bool,
    kind: Kind,
    changes_schema: bool,
    body: Vec<u8>,
    failed: Option<CqlError>,
}

impl ReplyDecoder {
    /// A decoder; [`start`](Self::start) makes it ready.
    pub fn new(limits: ReplyLimits) -> Self {
        ReplyDecoder {
            limits,
            keep_body: true,
            frames: Frames::new(limits.body_bytes),
            columns: None,
            has_begun: false,
            kind: Kind::Done,
            changes_schema: false,
            body: Vec::new(),
            failed: None,
        }
    }

    /// Begins the reply to a statement whose rows have these columns, where they are known; otherwise the reply tells.
    /// `keep_body`: what it holds is kept; otherwise only an error's words are.
    pub fn start(&mut self, columns: Option<Arc<Columns>>, keep_body: bool) {
        self.keep_body = keep_body;
        self.frames.clear();
        self.columns = columns;
        self.has_begun = false;
        self.kind = Kind::Done;
        self.changes_schema = false;
        self.body.clear();
        self.failed = None;
    }

    /// What the reply is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether a keyspace or a table is another one now, so that what could not be prepared may be.
    pub fn changes_schema(&self) -> bool {
        self.changes_schema
    }

    /// What it holds: see [`Kind`].
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes of that; none where nothing of it is kept.
    pub fn body_bytes(&self) -> Option<usize> {
        self.keep_body.then(|| self.body().len())
    }

    /// The peer closed the connection, before the reply was whole.
    pub fn finish(&mut self) -> CqlError {
        match self.failed {
            Some(error) => error,
            None if self.has_begun => CqlError::Truncated,
            None => CqlError::Empty,
        }
    }

    /// Takes the bytes of the current reply from the front of `input`; bytes of a next one are left alone.
    ///
    /// # Errors
    /// The bytes are no reply, or larger than the limits; repeated until `start`.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, CqlError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.has_begun |= !input.is_empty();
        let mut frames = std::mem::replace(&mut self.frames, Frames::new(0));
        let result = frames.each(input, |frame| self.take(frame).map(|()| true));
        self.frames = frames;
        self.failed = result.err();
        result
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<(), CqlError> {
        // requests have the number 0
        if frame.stream != 0 {
            return Err(CqlError::Unexpected(frame.opcode));
        }
        let mut bytes = Bytes(frame.body);
        match frame.opcode {
            opcode::ERROR => {
                let (code, message) = (bytes.int()?, bytes.string()?);
                if code == UNPREPARED {
                    return Err(CqlError::Unprepared);
                }
                self.kind = Kind::Error;
                self.body.extend_from_slice(b"0x");
                self.body.extend_from_slice(format!("{code:04x}: ").as_bytes());
                self.body.extend_from_slice(message);
                Ok(())
            }
            opcode::RESULT => match bytes.int()? {
                // nothing, a keyspace is chosen
                1 | 3 => Ok(()),
                5 => {
                    self.changes_schema = true;
                    Ok(())
                }
                2 => self.rows(bytes),
                4 => Err(CqlError::Unprepared),
                _ => Err(CqlError::Malformed),
            },
            other => Err(CqlError::Unexpected(other)),
        }
    }

    fn rows(&mut self, mut bytes: Bytes<'_>) -> Result<(), CqlError> {
        let told = metadata::of_rows(&mut bytes)?;
        if told.has_more_pages {
            return Err(CqlError::Pages);
        }
        let columns = match told.columns {
            Some(columns) => Arc::new(columns),
            None => self.columns.take().ok_or(CqlError::Malformed)?,
        };
        // a table may be another one than it was
        if columns.len() != told.count {
            return Err(CqlError::Columns);
        }
        let rows = bytes.int()?;
        self.kind = if rows > 0 { Kind::Rows } else { Kind::NoRows };
        self.body.push(b'[');
        let mut counted = 0;
        for row in 0..rows {
            if row > 0 {
                self.body.push(b',');
            }
            columns.write_row(&mut bytes, &mut self.body)?;
            if counted + self.body.len() >= self.limits.body_bytes {
                return Err(CqlError::TooLarge { limit_bytes: self.limits.body_bytes });
            }
            if !self.keep_body {
                counted += self.body.len();
                self.body.clear();
            }
        }
        if self.keep_body {
            self.body.push(b']')
        } else {
            self.body.clear()
        }
        if bytes.0.is_empty() { Ok(()) } else { Err(CqlError::Malformed) }
    }
}

#[cfg(test)]
mod tests;
