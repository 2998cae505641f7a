//! PostgreSQL's frontend/backend protocol, version 3, as a client of the extended query protocol speaks it
//! (`postgresql.org/docs/current/protocol.html`): messages written, replies decoded.
//!
//! Parameters and values are text. The reply to a statement becomes a [`Kind`] and bytes: rows are a JSON array of objects,
//! whose numbers and truth values are such where the column's type is; a statement without rows has its command tag
//! (`INSERT 0 1`); an error has its SQLSTATE and its message. Buffers are used again from one reply to the next.
//!
//! ```
//! use tidemark_wire::postgres::{Kind, ReplyDecoder, ReplyLimits};
//!
//! let mut decoder = ReplyDecoder::new(ReplyLimits::default());
//! decoder.start(None, true);
//! let reply = b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";
//! assert!(decoder.decode(reply)?.complete);
//! assert_eq!((decoder.kind(), decoder.body()), (Kind::Done, &b"INSERT 0 1"[..]));
//! # Ok::<(), tidemark_wire::postgres::PostgresError>(())
//! ```

mod messages;
mod rows;
mod values;

pub use crate::reply::{Kind, ReplyLimits};
use std::sync::Arc;

use crate::http1::Decoded;

pub use messages::{Authentication, Message, Messages, error_words, write};
pub use rows::Columns;
pub use values::Types;

/// Why bytes are no reply, or none that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostgresError {
    /// The connection was closed before the first byte.
    #[error("the connection was closed before any byte of the reply")]
    Empty,
    /// The connection was closed inside the reply.
    #[error("the connection was closed in the middle of the reply")]
    Truncated,
    /// A message that is none, or not what its kind says.
    #[error("a message of a reply is malformed")]
    Malformed,
    /// A message that has no place in a reply.
    #[error("a message {:?} has no place in a reply", char::from(*.0))]
    Unexpected(u8),
    /// Rows of which nobody said what they are, or with another number of values.
    #[error("a row has not the columns that were told")]
    Columns,
    /// `COPY` with the client.
    #[error("COPY with the client is not spoken")]
    Copy,
    /// A transaction is left open.
    #[error("a transaction is left open, which others would go on in; each request is one of its own")]
    Transaction,
    /// More than [`ReplyLimits::body_bytes`].
    #[error("the reply is larger than the limit of {limit_bytes} bytes")]
    TooLarge {
        /// That limit.
        limit_bytes: usize,
    },
}

/// Decodes the replies to statements, each of which ended with a `Sync`.
///
/// [`start`](Self::start) for each that was sent, then [`decode`](Self::decode) with what comes until it is complete. The
/// accessors hold from then until the next `start`. After an error the connection is of no more use.
#[derive(Debug)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    keep_body: bool,
    messages: Messages,
    columns: Option<Arc<Columns>>,
    has_begun: bool,
    /// Whether the statement has ended, well or not: only then is the server's being ready the end of the reply.
    has_ended: bool,
    kind: Kind,
    rows: u64,
    body: Vec<u8>,
    body_bytes: usize,
    tag: Vec<u8>,
    /// A row, before it is counted.
    row: Vec<u8>,
    failed: Option<PostgresError>,
    /// Whether a transaction may be open behind the reply.
    may_be_open: bool,
    /// Whether one is.
    is_open: bool,
}

impl ReplyDecoder {
    /// A decoder; [`start`](Self::start) makes it ready.
    pub fn new(limits: ReplyLimits) -> Self {
        ReplyDecoder {
            limits,
            keep_body: true,
            messages: Messages::new(limits.body_bytes),
            columns: None,
            has_begun: false,
            has_ended: false,
            kind: Kind::Done,
            rows: 0,
            body: Vec::new(),
            body_bytes: 0,
            tag: Vec::new(),
            row: Vec::new(),
            failed: None,
            may_be_open: false,
            is_open: false,
        }
    }

    /// Whether a transaction may be open behind the replies that begin from now on; otherwise that is an error.
    pub fn allow_transaction(&mut self, may_be_open: bool) {
        self.may_be_open = may_be_open;
    }

    /// Whether a transaction is open behind the last reply, well or failed.
    pub fn is_in_transaction(&self) -> bool {
        self.is_open
    }

    /// The connection is closed, and with it the transaction.
    pub fn closed(&mut self) {
        self.is_open = false;
    }

    /// Begins the reply to a statement that has these columns, where they are known and there are some; otherwise the reply
    /// itself may tell. `keep_body`: what it holds is kept; otherwise only an error's words are.
    pub fn start(&mut self, columns: Option<Arc<Columns>>, keep_body: bool) {
        self.keep_body = keep_body;
        self.messages.clear();
        self.kind = if columns.is_some() { Kind::NoRows } else { Kind::Done };
        self.columns = columns;
        self.has_begun = false;
        self.has_ended = false;
        self.rows = 0;
        self.body.clear();
        self.body_bytes = 0;
        self.tag.clear();
        self.failed = None;
    }

    /// What the reply is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it holds: see [`Kind`].
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes of that, kept or not.
    pub fn body_bytes(&self) -> Option<usize> {
        Some(if self.keep_body { self.body.len() } else { self.body_bytes })
    }

    /// The command tag: `INSERT 0 1`, `SELECT 3`; empty where there was an error.
    pub fn tag(&self) -> &[u8] {
        &self.tag
    }

    /// The number of rows that came or were written, where the command tells.
    pub fn rows(&self) -> Option<&[u8]> {
        let last = self.tag.rsplit(|byte| *byte == b' ').next()?;
        Some(last).filter(|word| !word.is_empty() && word.iter().all(u8::is_ascii_digit))
    }

    /// The SQLSTATE of an error.
    pub fn sqlstate(&self) -> Option<&[u8]> {
        self.body.get(..5).filter(|_| self.kind == Kind::Error)
    }

    /// The peer closed the connection, before the reply was whole. An error that the server told before is the reply.
    ///
    /// # Errors
    /// How far the reply was.
    pub fn finish(&mut self) -> Result<(), PostgresError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.kind == Kind::Error => Ok(()),
            None if self.has_begun => Err(PostgresError::Truncated),
            None => Err(PostgresError::Empty),
        }
    }

    /// Takes the bytes of the current reply from the front of `input`; bytes of a next one are left alone.
    ///
    /// # Errors
    /// The bytes are no reply, or larger than the limits; repeated until `start`.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, PostgresError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(input);
        self.failed = result.err();
        result
    }

    fn advance(&mut self, input: &[u8]) -> Result<Decoded, PostgresError> {
        self.has_begun |= !input.is_empty();
        let mut messages = std::mem::replace(&mut self.messages, Messages::new(0));
        let result = messages.each(input, |message| self.take(message));
        self.messages = messages;
        result
    }

    /// One message; true if it ends the reply.
    fn take(&mut self, message: Message<'_>) -> Result<bool, PostgresError> {
        let payload = message.payload;
        match message.kind {
            // parsed, bound, closed; what is said of parameters, settings and warnings
            b'1' | b'2' | b'3' | b't' | b'S' | b'N' | b'A' | b'n' => {}
            // behind an error or the end of the statement nothing comes but that the server is ready, and rows are described once
            b'T' | b'D' | b'C' | b'I' if self.has_ended => {
                return Err(PostgresError::Unexpected(message.kind));
            }
            // an empty statement
            b'I' => self.has_ended = true,
            b'T' if self.rows > 0 => return Err(PostgresError::Unexpected(b'T')),
            b'T' => {
                self.columns = Some(Arc::new(Columns::read(payload)?));
                self.kind = Kind::NoRows;
            }
            b'D' => self.row(payload)?,
            b'C' => {
                let tag = payload.strip_suffix(&[0]).ok_or(PostgresError::Malformed)?;
                self.tag.clear();
                self.tag.extend_from_slice(tag);
                self.has_ended = true;
            }
            // also behind the end of the statement: what is looked at only when it is committed was not so
            b'E' => {
                self.has_ended = true;
                self.kind = Kind::Error;
                self.body.clear();
                self.tag.clear();
                messages::write_error(payload, &mut self.body)?;
            }
            b'Z' => {
                self.is_open = match payload {
                    b"I" => false,
                    b"T" | b"E" => true,
                    _ => return Err(PostgresError::Malformed),
                };
                return match (self.is_open, self.has_ended) {
                    (true, _) if !self.may_be_open => Err(PostgresError::Transaction),
                    (_, false) => Err(PostgresError::Unexpected(b'Z')),
                    (_, true) => {
                        self.end();
                        Ok(true)
                    }
                };
            }
            b'G' | b'H' | b'W' => return Err(PostgresError::Copy),
            other => return Err(PostgresError::Unexpected(other)),
        }
        Ok(false)
    }

    fn row(&mut self, payload: &[u8]) -> Result<(), PostgresError> {
        let columns = self.columns.as_ref().ok_or(PostgresError::Columns)?;
        self.row.clear();
        self.row.push(if self.rows == 0 { b'[' } else { b',' });
        columns.write_row(payload, &mut self.row)?;
        self.rows += 1;
        self.kind = Kind::Rows;
        self.body_bytes += self.row.len();
        if self.body_bytes >= self.limits.body_bytes {
            return Err(PostgresError::TooLarge { limit_bytes: self.limits.body_bytes });
        }
        if self.keep_body {
            self.body.extend_from_slice(&self.row);
        }
        Ok(())
    }

    fn end(&mut self) {
        match self.kind {
            Kind::Error => {}
            _ if !self.keep_body => {}
            Kind::Done => self.body.extend_from_slice(&self.tag),
            Kind::Rows => self.body.push(b']'),
            Kind::NoRows => self.body.extend_from_slice(b"[]"),
        }
    }
}

#[cfg(test)]
mod tests;
