//! How a connection to Cassandra begins: who comes, the keyspace, then the statements of the plan, prepared.

use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;

use tidemark_wire::cql::{self, CqlError, Frame, Frames, opcode, write};

use super::{Cassandra, Prepared, Statement};
use crate::io::greeted::Conversation;

/// The longest frame of the beginning.
const FRAME_BYTES: usize = 1 << 20;

/// What is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Ready,
    Keyspace,
    /// So many statements are still to be answered.
    Statements(usize),
}

/// The beginning of a connection.
#[derive(Debug)]
pub(crate) struct Beginning {
    server: Cassandra,
    statements: Rc<[Rc<Statement>]>,
    frames: Frames,
    awaited: Awaited,
}

impl Beginning {
    pub fn new(server: Cassandra, statements: Rc<[Rc<Statement>]>) -> Self {
        Beginning { server, statements, frames: Frames::new(FRAME_BYTES), awaited: Awaited::Ready }
    }

    /// One frame; true once the conversation is over.
    fn take(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> io::Result<bool> {
        match (self.awaited, frame.opcode) {
            (Awaited::Ready, opcode::AUTHENTICATE) => {
                let Some((user, password)) = &self.server.login else {
                    let words = "the server wants a password; put it into the URL: cql://USER:PASSWORD@HOST, best as \
                                 ${env('NAME')}";
                    return Err(io::Error::new(ErrorKind::PermissionDenied, words));
                };
                write::login(user, password, out);
                Ok(false)
            }
            (Awaited::Ready, opcode::READY | opcode::AUTH_SUCCESS) => match &self.server.keyspace {
                Some(keyspace) => {
                    let quoted = keyspace.replace('"', "\"\"");
                    write::query(&format!("USE \"{quoted}\""), self.server.consistency, out);
                    self.awaited = Awaited::Keyspace;
                    Ok(false)
                }
                None => Ok(self.prepare(out)),
            },
            (Awaited::Keyspace, opcode::RESULT) => Ok(self.prepare(out)),
            (Awaited::Statements(left), opcode::RESULT | opcode::ERROR) => {
                let number = usize::try_from(frame.stream).ok().and_then(|stream| stream.checked_sub(1));
                let statement = number.and_then(|number| self.statements.get(number));
                let statement = statement.ok_or_else(|| malformed(CqlError::Malformed))?;
                *statement.prepared.borrow_mut() = match frame.opcode {
                    opcode::ERROR => Prepared::Not,
                    _ => {
                        let read = cql::Prepared::read(frame.body).map_err(malformed)?;
                        Prepared::Known {
                            id: read.id,
                            values: read.values,
                            columns: read.columns.map(Arc::new),
                        }
                    }
                };
                self.awaited = Awaited::Statements(left - 1);
                Ok(left == 1)
            }
            (_, opcode::ERROR) => Err(refused(frame)),
            (_, other) => Err(malformed(CqlError::Unexpected(other))),
        }
    }

    /// Sends all statements; true if there are none.
    fn prepare(&mut self, out: &mut Vec<u8>) -> bool {
        for (number, statement) in (1_i16..).zip(self.statements.iter()) {
            write::prepare(number, &statement.text, out);
        }
        self.awaited = Awaited::Statements(self.statements.len());
        self.statements.is_empty()
    }
}

impl Conversation for Beginning {
    fn begin(&mut self, out: &mut Vec<u8>) {
        write::startup(out);
    }

    fn hear(&mut self, received: &[u8], out: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut frames = std::mem::replace(&mut self.frames, Frames::new(0));
        let mut wrong = None;
        let decoded = frames.each(received, |frame| match self.take(frame, out) {
            Ok(is_over) => Ok(is_over),
            Err(error) => {
                wrong = Some(error);
                Ok(true)
            }
        });
        self.frames = frames;
        if let Some(error) = wrong {
            return Err(error);
        }
        let decoded = decoded.map_err(malformed)?;
        Ok(decoded.complete.then_some(decoded.consumed))
    }
}

fn malformed(error: CqlError) -> io::Error {
    let words = format!("the server does not speak Cassandra's native protocol, version 4: {error}");
    io::Error::new(ErrorKind::InvalidData, words)
}

/// A server that is there and does not let us in.
fn refused(frame: Frame<'_>) -> io::Error {
    let words = cql::error_words(frame.body).unwrap_or_else(|error| error.to_string());
    let way_out = match words.get(..6) {
        Some("0x0100") => "; user and password stand in the URL: cql://USER:PASSWORD@HOST",
        Some("0x2200") => "; the keyspace stands in the URL: cql://HOST/KEYSPACE",
        _ => "",
    };
    io::Error::new(ErrorKind::PermissionDenied, format!("the server answered \"{words}\"{way_out}"))
}
