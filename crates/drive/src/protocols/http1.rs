//! HTTP/1.1, and the WebSockets and event streams that begin with a request of it.

mod codec;
mod event_stream;
mod inbox;
mod messages;
mod streams;
mod websocket;

use tidemark_scenario::plan::{EventStreamStep, RequestKind, WebSocketStep};

use crate::io::Io;
use crate::protocols::codec::{ByteTransport, byte_transport};
use crate::protocols::transport::{Client, Setup, Transport};
use codec::{Answers, BodyUse, Request};
use messages::Messages;
use streams::EventStreams;

/// HTTP/1.1 as a client speaks it.
#[derive(Debug)]
pub(crate) struct Http1;

impl Client for Http1 {
    fn name(&self) -> &'static str {
        "HTTP/1.1"
    }

    fn takes(&self, ask: &RequestKind) -> bool {
        matches!(ask, RequestKind::Http(_) | RequestKind::WebSocket(_) | RequestKind::EventStream(_))
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let requests = setup.plan.requests.iter().map(|request| {
            let protocols = match &request.ask {
                RequestKind::WebSocket(WebSocketStep::Connect { protocols, .. }) => {
                    Some(protocols.as_slice().into())
                }
                _ => None,
            };
            let body_use = match &request.ask {
                RequestKind::EventStream(EventStreamStep::Connect(_)) => BodyUse::Streamed,
                _ if request.needs_body() => BodyUse::Kept,
                _ if request.shown_body_bytes > 0 => BodyUse::Shown(request.shown_body_bytes),
                _ => BodyUse::Counted,
            };
            let looked_at = (body_use, request.needs_target());
            request.http().map(|http| Request::new(http, looked_at, protocols, &setup))
        });
        // what the requests of programs are put into
        let requests = requests.chain([Some(Request::frame(&setup))]).collect();
        // The connections of sessions with WebSockets or event streams are not pipelined: a scenario that wants both is
        // refused.
        let (sockets, streams) = (setup.has_websockets(), setup.plan.has_event_streams());
        if setup.depth > 1 || !(sockets || streams) {
            return byte_transport::<I, Answers>(io, &setup, requests);
        }
        let http = ByteTransport::new(io, requests, setup.plan.limits.body_bytes);
        if streams { Box::new(EventStreams::new(http, &setup)) } else { Box::new(Messages::new(http, setup)) }
    }
}
