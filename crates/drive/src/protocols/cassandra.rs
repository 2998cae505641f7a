//! Cassandra's native protocol: how a connection begins, statements that are prepared then, and the replies to them.

mod beginning;

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use tidemark_scenario::plan::{Limits, RequestKind};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::cql::{Columns, CqlError, Kind, ReplyDecoder, ReplyLimits, Type, WrongValue, write};

use self::beginning::Beginning;
use crate::io::greeted::{GreetedIo, converse};
use crate::io::{BoxedIo, Io};
use crate::protocols::codec::{Closed, Codec, Decoded, byte_transport};
use crate::protocols::store_status::of_statement;
use crate::protocols::transport::{Client, Setup, Transport};
use crate::session::answer::{Answer, Wrote};
use crate::session::failure::Violation;
use crate::session::jar::Jar;

/// A node that speaks Cassandra's native protocol, and who comes to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cassandra {
    /// User and password, for a server that asks.
    pub login: Option<(String, String)>,
    /// The keyspace that names without one are in.
    pub keyspace: Option<String>,
    /// The consistency of each statement, as the protocol counts them.
    pub consistency: u16,
}

impl Client for Cassandra {
    fn name(&self) -> &'static str {
        "Cassandra's native protocol"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Cql(_))
    }

    fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        converse(Beginning::new(self.clone(), Rc::default()), stream)
    }

    /// One at a time: a node answers several in any order.
    fn depth(&self, _: &Limits) -> usize {
        1
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let mut statements: Vec<Rc<Statement>> = Vec::new();
        let mut requests = Vec::new();
        for request in &setup.plan.requests {
            let RequestKind::Cql(asked) = &request.ask else { continue };
            let known = statements.iter().find(|statement| statement.text == asked.text).cloned();
            let statement = known.unwrap_or_else(|| {
                let prepared = RefCell::new(Prepared::NotYet);
                let made = Rc::new(Statement { text: asked.text.clone(), prepared });
                statements.push(Rc::clone(&made));
                made
            });
            let parameters = asked.parameters.clone();
            let names = (1..=parameters.len()).map(|number| format!("value {number} of a statement").into());
            requests.push(Request {
                statement,
                names: names.collect(),
                parameters,
                consistency: self.consistency,
                needs_body: request.needs_body(),
            });
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
    text: String,
    prepared: RefCell<Prepared>,
}

/// What has become of preparing a statement.
#[derive(Debug)]
enum Prepared {
    NotYet,
    /// The node has it.
    Known {
        id: Box<[u8]>,
        values: Box<[Type]>,
        columns: Option<Arc<Columns>>,
    },
    /// It could not be prepared: a table was not there yet. Each request tells of the error.
    Not,
}

/// A request made ready.
#[derive(Debug)]
pub(crate) struct Request {
    statement: Rc<Statement>,
    parameters: Vec<Template>,
    /// What each is called where it is wrong.
    names: Vec<Arc<str>>,
    consistency: u16,
    /// Whether the reply is kept.
    needs_body: bool,
}

impl Request {
    fn append(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Arc<Columns>>, Unmet> {
        let prepared = self.statement.prepared.borrow();
        let Prepared::Known { id, values, columns } = &*prepared else {
            match self.parameters.is_empty() {
                true => write::query(&self.statement.text, self.consistency, out),
                // the answer is the error; where there is none any more, a connection that begins anew has it
                false => write::prepare(0, &self.statement.text, out),
            }
            return Ok(None);
        };
        if values.len() != self.parameters.len() {
            let text = Arc::from(format!(
                "a statement with {} places and {} values",
                values.len(),
                self.parameters.len()
            ));
            return Err(Unmet::Expression { text, reason: "there is a value for each place" });
        }
        let count = u16::try_from(values.len()).unwrap_or(u16::MAX);
        write::execute(id, self.consistency, columns.is_some(), count, out, |out| {
            for ((kind, parameter), name) in values.iter().zip(&self.parameters).zip(&self.names) {
                scratch.clear();
                parameter.render(cx, scratch)?;
                let wrong = |WrongValue(reason)| Unmet::Expression { text: Arc::clone(name), reason };
                write::value(out, |out| kind.write(scratch, out).map_err(wrong))?;
            }
            Ok(())
        })?;
        Ok(columns.clone())
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
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let begin = out.len();
        match request.append(cx, out, scratch) {
            Ok(columns) => self.0.start(columns, request.needs_body),
            Err(unmet) => {
                out.truncate(begin);
                return Err(unmet);
            }
        }
        Ok(())
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        self.0
            .decode(received)
            .map(Decoded::from)
            .map_err(|error| Violation::of(&error, matches!(error, CqlError::TooLarge { .. })))
    }

    fn finish(&mut self) -> Result<(), Closed> {
        match self.0.finish() {
            CqlError::Empty => Err(Closed::Before),
            _ => Err(Closed::Within),
        }
    }

    /// Behind a change of the schema a new connection prepares what could not be prepared before it.
    fn keeps_open(&self) -> bool {
        !self.0.changes_schema()
    }

    fn answer(&self) -> &dyn Answer {
        &self.0
    }
}

impl Answer for ReplyDecoder {
    fn status(&self) -> u16 {
        of_statement(self.kind()).0
    }

    fn status_words(&self) -> String {
        of_statement(self.kind()).1.into()
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
