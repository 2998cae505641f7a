//! HTTP/1.1, and the WebSockets that begin with a request of it.

mod codec;
mod messages;
mod websocket;

use tidemark_scenario::plan::{Ask, Limits, WebSocketStep};

use crate::codec::{ByteTransport, byte_transport};
use crate::io::Io;
use crate::transport::{Client, Setup, Transport};
use codec::{Answers, Request};
use messages::Messages;

/// HTTP/1.1 as a client speaks it.
#[derive(Debug)]
pub(crate) struct Http1;

impl Client for Http1 {
    fn name(&self) -> &'static str {
        "HTTP/1.1"
    }

    fn takes(&self, ask: &Ask) -> bool {
        matches!(ask, Ask::Http(_) | Ask::WebSocket(_))
    }

    fn depth(&self, limits: &Limits) -> usize {
        limits.pipeline
    }

    fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        let requests = setup.plan.requests.iter().map(|request| {
            let protocols = match &request.ask {
                Ask::WebSocket(WebSocketStep::Connect { protocols, .. }) => Some(protocols.as_slice().into()),
                _ => None,
            };
            request.http().map(|http| Request::new(http, request.needs_body(), protocols, &setup))
        });
        let requests = requests.collect();
        // The connections of sessions with WebSockets are not pipelined: a scenario that wants both is refused.
        if setup.depth > 1 || !setup.plan.has_websockets() {
            return byte_transport::<I, Answers>(io, &setup, requests);
        }
        let http = ByteTransport::new(io, requests, setup.plan.limits.body_bytes);
        Box::new(Messages::new(http, setup))
    }
}
