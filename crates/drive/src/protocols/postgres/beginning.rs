//! How a connection to PostgreSQL begins: who comes, then the statements of the plan, prepared under names.

use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;

use tidemark_wire::postgres::{
    Authentication, Columns, Message, Messages, PostgresError, error_words, write,
};

use super::authentication::Login;
use super::{Postgres, Prepared, Statement};
use crate::io::greeted::Conversation;

/// The longest message of the beginning.
const MESSAGE_BYTES: usize = 1 << 20;

/// The beginning of a connection.
#[derive(Debug)]
pub(crate) struct Beginning {
    server: Postgres,
    statements: Rc<[Rc<Statement>]>,
    messages: Messages,
    login: Login,
    /// The statement whose description is awaited; none before the server knows who came.
    at: Option<usize>,
    columns: Option<Arc<Columns>>,
    has_failed: bool,
}

impl Beginning {
    pub fn new(server: Postgres, statements: Rc<[Rc<Statement>]>) -> Self {
        Beginning {
            server,
            statements,
            messages: Messages::new(MESSAGE_BYTES),
            login: Login::default(),
            at: None,
            columns: None,
            has_failed: false,
        }
    }

    /// One message; true once the conversation is over.
    fn take(&mut self, message: Message<'_>, out: &mut Vec<u8>) -> io::Result<bool> {
        let payload = message.payload;
        match (message.kind, self.at) {
            (b'R', None) => {
                let asked = Authentication::read(payload).map_err(malformed)?;
                self.login.answer(asked, &self.server, out)?;
            }
            (b'E', None) => return Err(refused(payload)),
            (b'E', Some(_)) => self.has_failed = true,
            (b'T', Some(_)) => self.columns = Some(Arc::new(Columns::read(payload).map_err(malformed)?)),
            (b'Z', None) => {
                for statement in self.statements.iter() {
                    write::parse(&statement.name, &statement.text, out);
                    write::describe_statement(&statement.name, out);
                    // an error of one does not reach the others
                    write::sync(out);
                }
                self.at = Some(0);
                return Ok(self.statements.is_empty());
            }
            (b'Z', Some(at)) => {
                if let Some(statement) = self.statements.get(at) {
                    let mut prepared = statement.prepared.borrow_mut();
                    // what another connection does not have cannot be relied on
                    if self.has_failed {
                        *prepared = Prepared::Not;
                    } else if !matches!(*prepared, Prepared::Not) {
                        *prepared = Prepared::Everywhere(self.columns.take());
                    }
                }
                (self.has_failed, self.columns, self.at) = (false, None, Some(at + 1));
                return Ok(at + 1 == self.statements.len());
            }
            // settings, the key for cancelling, warnings; parsed, parameters, no rows
            (b'S' | b'K' | b'N' | b'v' | b'1' | b't' | b'n' | b'A', _) => {}
            (other, _) => return Err(malformed(PostgresError::Unexpected(other))),
        }
        Ok(false)
    }
}

impl Conversation for Beginning {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let settings = [
            ("user", self.server.user.as_str()),
            ("database", &self.server.database),
            ("application_name", "tidemark"),
            ("client_encoding", "UTF8"),
            // as JSON and RFC 3339 write them
            ("datestyle", "ISO"),
        ];
        write::startup(&settings, out);
    }

    fn hear(&mut self, received: &[u8], out: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut messages = std::mem::replace(&mut self.messages, Messages::new(0));
        let mut wrong = None;
        let decoded = messages.each(received, |message| match self.take(message, out) {
            Ok(is_over) => Ok(is_over),
            Err(error) => {
                wrong = Some(error);
                Ok(true)
            }
        });
        self.messages = messages;
        if let Some(error) = wrong {
            return Err(error);
        }
        let decoded = decoded.map_err(malformed)?;
        Ok(decoded.complete.then_some(decoded.consumed))
    }
}

fn malformed(error: PostgresError) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("the server does not speak PostgreSQL's protocol: {error}"),
    )
}

/// A server that is there and does not let us in.
fn refused(payload: &[u8]) -> io::Error {
    let words = error_words(payload).unwrap_or_else(|error| error.to_string());
    let way_out = match words.get(..5) {
        Some("28000") if words.contains("no encryption") => {
            "; it is let in over TLS: add ?sslmode=require to the URL"
        }
        Some("28P01" | "28000") => {
            "; user and password stand in the URL: postgres://USER:PASSWORD@HOST/DATABASE, best as ${env('NAME')}"
        }
        Some("3D000") => "; the database stands in the URL: postgres://USER:PASSWORD@HOST/DATABASE",
        Some("53300") => "; take fewer `limits: connections`, or raise the server's max_connections",
        _ => "",
    };
    io::Error::new(ErrorKind::PermissionDenied, format!("the server answered \"{words}\"{way_out}"))
}
