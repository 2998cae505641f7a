//! PostgreSQL's protocol: how a connection begins, statements that are prepared then, and the replies to them.

mod authentication;
mod beginning;

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use tidemark_scenario::plan::{Ask, Limits};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::postgres::{Columns, Kind, PostgresError, ReplyDecoder, ReplyLimits, write};

use self::beginning::Beginning;
use crate::answer::Answer;
use crate::codec::{Closed, Codec, Decoded, byte_transport};
use crate::fault::Violation;
use crate::greeted::{GreetedIo, converse};
use crate::io::Io;
use crate::jar::Jar;
use crate::transport::{Client, Setup, Transport};

/// The status of a reply that is an error.
const ERROR: u16 = 500;
/// The status where a statement that has rows had none.
const NO_ROWS: u16 = 204;
/// The status of all others.
const FINE: u16 = 200;

/// A server that speaks PostgreSQL's protocol, and who comes to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Postgres {
    /// The user.
    pub user: String,
    /// Its password; empty where there is none.
    pub password: String,
    /// The database.
    pub database: String,
}

impl Client for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL's protocol"
    }

    fn takes(&self, ask: &Ask) -> bool {
        matches!(ask, Ask::Sql(_))
    }

    fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        converse(Beginning::new(self.clone(), Rc::default()), stream)
    }

    fn depth(&self, limits: &Limits) -> usize {
        limits.pipeline
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let mut statements: Vec<Rc<Statement>> = Vec::new();
        let mut requests = Vec::new();
        for request in &setup.plan.requests {
            let Ask::Sql(asked) = &request.ask else { continue };
            let known = statements.iter().find(|statement| statement.text == asked.text).cloned();
            let statement = known.unwrap_or_else(|| {
                let name = format!("t{}", statements.len());
                let prepared = RefCell::new(Prepared::NotYet);
                let made = Rc::new(Statement { name, text: asked.text.clone(), prepared });
                statements.push(Rc::clone(&made));
                made
            });
            let parameters = asked.parameters.clone();
            requests.push(Request { statement, parameters, needs_body: request.needs_body() });
        }
        let (server, statements) = (self.clone(), Rc::<[_]>::from(statements));
        let begin = move || Beginning::new(server.clone(), Rc::clone(&statements));
        let io = GreetedIo::new(io, setup.sockets, begin);
        byte_transport::<_, Replies>(io, &setup, requests)
    }
}

/// A statement of the plan, prepared by each connection when it begins.
#[derive(Debug)]
pub(crate) struct Statement {
    name: String,
    text: String,
    prepared: RefCell<Prepared>,
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
    /// Whether the reply is kept.
    needs_body: bool,
}

impl Request {
    fn append(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<Option<Arc<Columns>>, Unmet> {
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
        Ok(columns.flatten())
    }
}

/// A connection's replies.
#[derive(Debug)]
pub(crate) struct Replies(ReplyDecoder);

impl Codec for Replies {
    type Request = Request;

    fn new(body_bytes: usize) -> Self {
        Replies(ReplyDecoder::new(ReplyLimits { body_bytes }))
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
            Ok(columns) => self.0.start(columns, request.needs_body),
            Err(unmet) => {
                out.truncate(begin);
                return Err(unmet);
            }
        }
        Ok(())
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        self.0.decode(received).map(Decoded::from).map_err(|error| match error {
            PostgresError::TooLarge { .. } => Violation(format!("{error} that `limits: body` sets").into()),
            _ => Violation(error.to_string().into()),
        })
    }

    fn finish(&mut self) -> Result<(), Closed> {
        self.0.finish().map_err(|error| match error {
            PostgresError::Empty => Closed::Before,
            _ => Closed::Within,
        })
    }

    /// Where what was prepared holds no more, as a table is another one than it was, or the server has forgotten it, each further
    /// request of the connection would fail: a new one prepares it anew.
    fn keeps_open(&self) -> bool {
        !matches!(self.0.sqlstate(), Some(b"0A000" | b"26000"))
    }

    fn answer(&self) -> &dyn Answer {
        &self.0
    }
}

impl Answer for ReplyDecoder {
    fn status(&self) -> u16 {
        match self.kind() {
            Kind::Error => ERROR,
            Kind::NoRows => NO_ROWS,
            Kind::Rows | Kind::Done => FINE,
        }
    }

    fn status_words(&self) -> String {
        match self.kind() {
            Kind::Error => "an error".into(),
            Kind::NoRows => "no rows".into(),
            Kind::Rows => "rows".into(),
            Kind::Done => "done".into(),
        }
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
}
