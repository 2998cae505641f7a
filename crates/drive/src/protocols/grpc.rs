//! gRPC on the streams of HTTP/2 ([`http2`](crate::protocols::http2)): messages are written into a request's body and cut
//! out of its answer's, whose status stands behind it.
//!
//! A request has JSON for messages, a constant one its bytes. An answer's messages are counted, and become JSON only where
//! something looks at them. A call is a stream; a stream that a step opens is bound to its session until it is over.
//!
//! What the server says of a call is its status, also where it resets the stream or answers in plain HTTP (the protocol's
//! tables). A connection that cannot be made or is lost is no status: nobody said anything.

mod questions;
mod reflection;
mod reply;
mod request;
mod talk;
mod transport;

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use tidemark_record::Outcome;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Limits, RequestKind};
use tidemark_scenario::protobuf::Types;

use crate::error::DriveError;
use crate::io::Io;
use crate::protocols::http2::Streams;
use crate::protocols::http2::greet::{NotHttp2, greet};
use crate::protocols::transport::{Client, Event, Setup, Transport};
use crate::session::failure::Failure;
pub use questions::{Unserved, check_health};
use reply::Reply;
use request::{Prepared, Room};
use talk::Talk;

/// Bytes of messages that no step has taken, beyond which no more are read between steps.
const WAITING_BYTES: usize = 1 << 20;

/// What is known of a server that speaks gRPC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grpc {
    /// Its message types, where they are known; else its reflection tells them when it is greeted.
    pub types: Option<Types>,
    /// Most streams that it takes on a connection, once it was greeted.
    pub most_streams: Option<usize>,
}

impl Grpc {
    /// Begins to speak with the server over a connection that blocks, and has it tell its types where they are not known.
    ///
    /// # Errors
    /// What a person has to know who wants to call this server.
    pub(crate) fn meet(
        &mut self,
        (authority, is_secured): (&str, bool),
        stream: &mut (impl Read + Write),
    ) -> io::Result<()> {
        let met = match self.types {
            Some(_) => greet(stream),
            None => reflection::types((authority, is_secured), stream).map(|(types, most_streams)| {
                self.types = Some(types);
                most_streams
            }),
        };
        self.most_streams = Some(met.map_err(|error| with_way_out(error, is_secured))?);
        Ok(())
    }
}

/// What a person may do about a server that does not say hello.
fn with_way_out(error: io::Error, is_secured: bool) -> io::Error {
    let way_out = match (NotHttp2::of(&error), is_secured) {
        (Some(NotHttp2::Http1), false) => "it is not a server of gRPC; is it REST? http:// drives that",
        (Some(NotHttp2::Http1), true) => "it is not a server of gRPC; is it REST? https:// drives that",
        (Some(NotHttp2::Tls), _) => "write grpcs://",
        (Some(NotHttp2::Closed), false) => "does it speak gRPC there, or TLS (grpcs://)?",
        (Some(NotHttp2::Closed), true) => "does it speak gRPC there?",
        (None, _) => return error,
    };
    io::Error::new(error.kind(), format!("{error}; {way_out}"))
}

impl Client for Grpc {
    fn name(&self) -> &'static str {
        "gRPC"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Grpc(_))
    }

    /// A method that its server does not have, or a message that this does not take.
    fn refusal(&self, plan: &Plan) -> Option<DriveError> {
        let steps = plan.requests.iter().filter_map(|request| request.grpc());
        request::refusal(self.types.as_ref(), &plan.source_name, steps).map(DriveError::Grpc)
    }

    fn depth(&self, limits: &Limits) -> usize {
        limits.streams.min(self.most_streams.unwrap_or(usize::MAX))
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        Box::new(Calls::new(self.types.as_ref(), io, &setup))
    }
}

/// What the step under way on a stream waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Awaiting {
    /// Nothing: no step is under way.
    #[default]
    Nothing,
    /// All of the answer.
    Whole,
    /// That the call has begun.
    Begun,
    /// A message.
    Message,
    /// The status; messages before it are passed over.
    Status,
}

/// A stream: its answer, and what waits for it.
struct Call {
    reply: Reply,
    awaiting: Awaiting,
    /// What the step that was written waits for once it is sent.
    next: Awaiting,
    /// Of an open one: the request that opened it.
    opened_by: Option<usize>,
    /// Of one that a program holds.
    talk: Option<Talk>,
    /// Why nothing more comes of it, where that is no status and no step has heard it.
    broken: Option<Failure>,
    /// Whether a step has heard that it is over.
    is_told: bool,
}

impl Call {
    /// Whether it is a stream that stays open.
    fn is_open(&self) -> bool {
        self.opened_by.is_some() || self.talk.is_some()
    }

    /// Why nothing more can be expected of an open stream.
    fn over(&self) -> Failure {
        Failure::Other(Outcome::Reset, format!("the stream is over: {}", self.reply.words()).into())
    }
}

/// Calls over a back end's connections.
struct Calls<I> {
    http: Streams<I>,
    /// What calls of programs are made with.
    types: Option<Types>,
    authority: String,
    is_secured: bool,
    /// The plan's; in words why one cannot be sent.
    requests: Vec<Result<Prepared, String>>,
    calls: Vec<Call>,
    /// Streams that were still open when their session was over.
    left_open: u64,
    /// Streams that are opened while the server takes no more of them yet.
    opening: Vec<u32>,
    /// The stream whose program has just heard a message.
    hearing: Option<u32>,
    /// What is to be told.
    notices: VecDeque<(u32, Event)>,
    /// Whether the last event is of what was read.
    is_of_reading: bool,
    room: Room,
    /// What was written last, where somebody wants to know.
    written: Option<Vec<u8>>,
}

impl<I: Io + 'static> Calls<I> {
    fn new(types: Option<&Types>, io: I, setup: &Setup<'_>) -> Self {
        let limit_bytes = setup.plan.limits.body_bytes;
        let call = |_| Call {
            reply: Reply::new(limit_bytes),
            awaiting: Awaiting::Nothing,
            next: Awaiting::Nothing,
            opened_by: None,
            talk: None,
            broken: None,
            is_told: false,
        };
        Calls {
            requests: Prepared::all(types, setup),
            types: types.cloned(),
            authority: setup.origin.authority.to_owned(),
            is_secured: setup.origin.is_secured,
            calls: (0..setup.sockets * setup.depth).map(call).collect(),
            left_open: 0,
            opening: Vec::new(),
            hearing: None,
            notices: VecDeque::new(),
            is_of_reading: false,
            room: Room::default(),
            written: None,
            http: Streams::in_parts(io, setup),
        }
    }

    /// Something came on a stream: what is to be told of it, if anything is yet.
    fn on_event(&mut self, s: usize, event: Event) -> Option<Event> {
        match event {
            Event::Offered => {
                if let Err(failure) = self.read(s) {
                    return Some(Event::Wrong(failure));
                }
                self.offer(s)
            }
            Event::Answered { keeps_open } => {
                if let Err(failure) = self.read(s) {
                    return Some(Event::Wrong(failure));
                }
                let status = self.status(s);
                self.http.swap_headers(s, self.calls[s].reply.headers());
                if let Err(failure) = self.calls[s].reply.end(status) {
                    return Some(Event::Wrong(failure));
                }
                self.whole(s, keeps_open)
            }
            Event::Failed(error) => {
                let call = &mut self.calls[s];
                let is_open = call.is_open();
                match self.http.reset(s).filter(|_| is_open || call.awaiting != Awaiting::Nothing) {
                    Some(reason) => {
                        call.reply.reset(reason, &error.to_string());
                        self.whole(s, false)
                    }
                    None => Some(Event::Failed(error)),
                }
            }
            other => Some(other),
        }
    }

    /// Takes what came on an open stream while no step waited for it: messages for later steps, and how it ended.
    fn look(&mut self, s: usize) {
        let call = &self.calls[s];
        let is_over = call.reply.has_status() || call.broken.is_some();
        if call.opened_by.is_none() || is_over || call.reply.waiting_bytes() > WAITING_BYTES {
            return;
        }
        let Some(event) = self.http.look_aside(s) else { return };
        self.calls[s].broken = match self.on_event(s, event) {
            Some(Event::Failed(error) | Event::Unsent(error)) => Some(Failure::Broken(error)),
            Some(Event::Wrong(failure)) => Some(failure),
            _ => None,
        };
    }

    fn status(&self, s: usize) -> u16 {
        Transport::answer(&self.http, s).status()
    }

    /// Takes what has come of a stream's answer.
    fn read(&mut self, s: usize) -> Result<(), Failure> {
        let call = &mut self.calls[s];
        let answer = Transport::answer(&self.http, s);
        let takes_all = !call.is_open();
        call.reply.push(answer, takes_all)?;
        self.http.take_part(s);
        Ok(())
    }

    /// A message that the step under way waits for, if there is one.
    fn offer(&mut self, s: usize) -> Option<Event> {
        let call = &mut self.calls[s];
        match call.awaiting {
            Awaiting::Message => match call.reply.next_message() {
                Ok(true) => Some(Event::Offered),
                Ok(false) => None,
                Err(failure) => Some(Event::Wrong(failure)),
            },
            Awaiting::Status => call.reply.pass_over().err().map(Event::Wrong),
            Awaiting::Nothing if call.talk.is_some() => self.hear(s),
            Awaiting::Nothing | Awaiting::Whole | Awaiting::Begun => None,
        }
    }

    /// A stream's answer is whole.
    fn whole(&mut self, s: usize, keeps_open: bool) -> Option<Event> {
        let call = &mut self.calls[s];
        match call.awaiting {
            Awaiting::Message => {
                match call.reply.next_message() {
                    // its status is told to the step behind
                    Ok(true) => return Some(Event::Offered),
                    Ok(false) => {}
                    Err(failure) => return Some(Event::Wrong(failure)),
                }
                Some(Event::Wrong(call.over()))
            }
            Awaiting::Status => {
                if let Err(failure) = call.reply.pass_over() {
                    return Some(Event::Wrong(failure));
                }
                (call.opened_by, call.awaiting) = (None, Awaiting::Nothing);
                Some(Event::Answered { keeps_open })
            }
            Awaiting::Whole => {
                call.awaiting = Awaiting::Nothing;
                match call.reply.check_count() {
                    Ok(()) => Some(Event::Answered { keeps_open }),
                    Err(failure) => Some(Event::Wrong(failure)),
                }
            }
            Awaiting::Nothing if call.talk.is_some() => self.hear(s),
            // the next step is told, or the end of the session
            Awaiting::Nothing if call.opened_by.is_some() => None,
            Awaiting::Begun | Awaiting::Nothing => Some(Event::Ended { within: false }),
        }
    }
}
