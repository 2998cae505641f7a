//! PostgreSQL's protocol: how a connection begins, statements that are prepared then, and the replies to them.

mod authentication;
mod beginning;

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use tidemark_scenario::plan::{RequestKind, TransactionPart};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::postgres::{Columns, Kind, PostgresError, ReplyDecoder, ReplyLimits, write};

use self::beginning::Beginning;
use crate::io::greeted::{GreetedIo, converse};
use crate::io::{BoxedIo, Io};
use crate::protocols::codec::{Closed, Codec, Decoded, Lost, byte_transport};
use crate::protocols::store_status::of_statement;
use crate::protocols::tls_request::TlsRequest;
use crate::protocols::transport::{Client, Setup, Transport};
use crate::session::answer::{Answer, Wrote};
use crate::session::failure::Violation;
use crate::session::jar::Jar;

/// A server that speaks PostgreSQL's protocol, and who comes to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Postgres {
    /// The user.
    pub user: String,
    /// Its password; empty where there is none.
    pub password: String,
    /// The database.
    pub database: String,
    /// Whether it is spoken without TLS where the server has none, though TLS is asked for (`sslmode=prefer`).
    pub may_be_plain: bool,
}

/// `SSLRequest`: its length and its code.
const SSL_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 47];

impl Client for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL's protocol"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Sql(_))
    }

    fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        converse(Beginning::new(self.clone(), Rc::default()), stream)
    }

    fn tls_request(&self) -> Option<TlsRequest> {
        Some(TlsRequest { question: SSL_REQUEST, answers: *b"SN", is_optional: self.may_be_plain })
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let mut statements: Vec<Rc<Statement>> = Vec::new();
        let mut requests = Vec::new();
        for request in &setup.plan.requests {
            let RequestKind::Sql(asked) = &request.ask else { continue };
            let known = statements.iter().find(|statement| statement.text == asked.text).cloned();
            let statement = known.unwrap_or_else(|| {
                let made = Rc::new(Statement::new(statements.len(), &asked.text));
                statements.push(Rc::clone(&made));
                made
            });
            let parameters = asked.parameters.clone();
            let (part, needs_body) = (asked.part, request.needs_body());
            requests.push(Request { statement, parameters, part, needs_body });
        }
        let (server, statements) = (self.clone(), Rc::<[_]>::from(statements));
        let begin = move || Beginning::new(server.clone(), Rc::clone(&statements));
        let io: BoxedIo = Box::new(GreetedIo::new(io, setup.sockets, begin));
        byte_transport::<_, Replies>(io, &setup, requests)
    }
}

/// A statement of the plan, prepared by each connection when it begins.
#[derive(Debug)]
pub(crate) struct Statement {
    name: String,
    text: String,
    prepared: RefCell<Prepared>,
    /// Its place among all.
    index: usize,
    /// Whether it failed with 0A000 or 26000 right after it was prepared, and has not succeeded since: preparing it anew is no
    /// help.
    is_always_failing: Cell<bool>,
}

impl Statement {
    fn new(index: usize, text: &str) -> Self {
        Statement {
            name: format!("t{index}"),
            text: text.to_owned(),
            prepared: RefCell::new(Prepared::NotYet),
            index,
            is_always_failing: Cell::new(false),
        }
    }
}

/// What has become of preparing a statement.
#[derive(Debug)]
enum Prepared {
    NotYet,
    /// Each connection has it; the columns of its rows, if it has some.
    Everywhere(Option<Arc<Columns>>),
    /// A connection could not prepare it: a table was not there yet. It is prepared anew by each request, which then
    /// tells of the error.
    Not,
}

/// A request made ready.
#[derive(Debug)]
pub(crate) struct Request {
    statement: Rc<Statement>,
    parameters: Vec<Template>,
    /// What it is to a transaction.
    part: TransactionPart,
    /// Whether the reply is kept.
    needs_body: bool,
}

impl Request {
    /// Whether the statement was prepared before, and the columns of its rows where they are known.
    fn append(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(bool, Option<Arc<Columns>>), Unmet> {
        let (name, columns) = match &*self.statement.prepared.borrow() {
            Prepared::Everywhere(columns) => (self.statement.name.as_str(), Some(columns.clone())),
            Prepared::NotYet | Prepared::Not => ("", None),
        };
        if columns.is_none() {
            write::parse("", &self.statement.text, out);
        }
        let count = u16::try_from(self.parameters.len()).unwrap_or(u16::MAX);
        let bind = write::Bind::begin(name, count, out);
        for parameter in &self.parameters {
            bind.parameter(out, |out| parameter.render(cx, out))?;
        }
        bind.end(out);
        if columns.is_none() {
            write::describe_portal(out);
        }
        write::execute(out);
        write::sync(out);
        Ok((columns.is_some(), columns.flatten()))
    }
}

/// A connection's replies.
#[derive(Debug)]
pub(crate) struct Replies {
    decoder: ReplyDecoder,
    /// The statement whose reply is awaited or was the last.
    statement: Option<Rc<Statement>>,
    /// Whether it was prepared when the connection began, not with the request.
    was_prepared: bool,
    /// Of each statement by its index, whether it has succeeded since the connection was made.
    succeeded: Vec<bool>,
    keeps_open: bool,
}

impl Replies {
    /// The reply is whole. Where what was prepared holds no more, as a table is another one than it was, or the server has
    /// forgotten it, each further request of the connection would fail: a new one prepares it anew. Unless it fails so right after
    /// it was prepared: then a new connection is no help.
    fn ended(&mut self) {
        self.keeps_open = true;
        let Some(statement) = &self.statement else { return };
        match self.decoder.sqlstate() {
            Some(b"0A000" | b"26000") if self.was_prepared => {
                let has_succeeded = self.succeeded.get(statement.index) == Some(&true);
                self.keeps_open = !has_succeeded && statement.is_always_failing.replace(!has_succeeded);
            }
            Some(_) => {}
            None => {
                if self.succeeded.len() <= statement.index {
                    self.succeeded.resize(statement.index + 1, false);
                }
                self.succeeded[statement.index] = true;
                statement.is_always_failing.set(false);
            }
        }
    }
}

impl Codec for Replies {
    type Request = Request;

    fn new(body_bytes: usize) -> Self {
        Replies {
            decoder: ReplyDecoder::new(ReplyLimits { body_bytes }),
            statement: None,
            was_prepared: false,
            succeeded: Vec::new(),
            keeps_open: true,
        }
    }

    fn opened(&mut self) {
        self.succeeded.clear();
    }

    fn closed(&mut self) {
        self.decoder.closed();
    }

    fn is_held(&self) -> bool {
        self.decoder.is_in_transaction()
    }

    fn is_lost(request: &Request, is_held: bool) -> Option<Lost> {
        match request.part {
            _ if is_held => None,
            TransactionPart::Within | TransactionPart::Commit => {
                Some(Lost::Refused("the transaction is over: its connection was closed, or BEGIN failed"))
            }
            TransactionPart::Rollback => Some(Lost::Needless),
            TransactionPart::Alone | TransactionPart::Begin => None,
        }
    }

    fn write(
        &mut self,
        request: &Request,
        cx: &mut Context<'_>,
        _: &Jar,
        out: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let begin = out.len();
        match request.append(cx, out) {
            Ok((was_prepared, columns)) => {
                self.was_prepared = was_prepared;
                self.statement = Some(Rc::clone(&request.statement));
                let may_be_open = matches!(request.part, TransactionPart::Begin | TransactionPart::Within);
                self.decoder.allow_transaction(may_be_open);
                self.decoder.start(columns, request.needs_body);
            }
            Err(unmet) => {
                out.truncate(begin);
                return Err(unmet);
            }
        }
        Ok(())
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        let decoded = self
            .decoder
            .decode(received)
            .map_err(|error| Violation::of(&error, matches!(error, PostgresError::TooLarge { .. })))?;
        if decoded.complete {
            self.ended();
        }
        Ok(decoded.into())
    }

    fn finish(&mut self) -> Result<(), Closed> {
        self.decoder.finish().map_err(|error| match error {
            PostgresError::Empty => Closed::Before,
            _ => Closed::Within,
        })
    }

    fn keeps_open(&self) -> bool {
        self.keeps_open
    }

    fn answer(&self) -> &dyn Answer {
        &self.decoder
    }
}

impl Answer for ReplyDecoder {
    fn status(&self) -> u16 {
        of_statement(self.kind()).0
    }

    fn status_words(&self) -> String {
        of_statement(self.kind()).1.into()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        match name {
            "rows" => self.rows(),
            "sqlstate" => self.sqlstate(),
            _ => None,
        }
    }

    fn body(&self) -> &[u8] {
        self.body()
    }

    fn body_bytes(&self) -> Option<u64> {
        self.body_bytes().map(|bytes| bytes as u64)
    }

    fn wrote(&self) -> Wrote {
        if self.kind() == Kind::Error { Wrote::Unknown } else { Wrote::Yes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &[u8] = b"E\0\0\0\x16SERROR\0C0A000\0Mm\0\0Z\0\0\0\x05I";
    const DONE: &[u8] = b"2\0\0\0\x04C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

    fn keeps(replies: &mut Replies, statement: &Rc<Statement>, was_prepared: bool, reply: &[u8]) -> bool {
        replies.statement = Some(Rc::clone(statement));
        replies.was_prepared = was_prepared;
        replies.decoder.start(None, true);
        assert!(replies.decode(reply).unwrap().complete);
        replies.keeps_open()
    }

    #[test]
    fn a_plan_that_holds_no_more_is_made_anew_by_each_connection() {
        let statement = Rc::new(Statement::new(3, "SELECT 1"));
        let mut all = [Replies::new(100), Replies::new(100)];
        for replies in &mut all {
            assert!(keeps(replies, &statement, true, DONE));
        }
        for replies in &mut all {
            assert!(!keeps(replies, &statement, true, FAILED));
            replies.opened();
            assert!(keeps(replies, &statement, true, DONE));
        }
        assert!(!keeps(&mut all[0], &statement, true, FAILED), "and again");
    }

    #[test]
    fn what_fails_right_after_it_was_prepared_makes_no_more_connections() {
        let [statement, other] = [0, 1].map(|index| Rc::new(Statement::new(index, "SELECT f()")));
        let mut replies = Replies::new(100);
        assert!(
            !keeps(&mut replies, &statement, true, FAILED),
            "the table may be another since it was prepared"
        );
        replies.opened();
        for _ in 0..5 {
            assert!(keeps(&mut replies, &statement, true, FAILED));
            assert!(keeps(&mut replies, &other, true, DONE));
        }
        assert!(keeps(&mut replies, &statement, true, DONE));
        assert!(!keeps(&mut replies, &statement, true, FAILED), "it had succeeded");
        assert!(keeps(&mut replies, &statement, false, FAILED), "prepared by the request itself");
    }
}
