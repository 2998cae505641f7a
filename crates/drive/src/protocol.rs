//! The protocols of the driver, each in a module of its own: here is their list.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::Limits;

use crate::error::DriveError;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::io::Io;
use crate::redis::Redis;
use crate::rpc::Rpc;
use crate::transport::{Client, Setup, Transport};

/// What is spoken with a server, and what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, and WebSockets that begin with it.
    #[default]
    Http1,
    /// HTTP/2.
    Http2(Http2),
    /// Remote calls over a WebSocket.
    Calls(Rpc),
    /// Redis' protocol.
    Redis(Redis),
}

/// Does something with what a protocol has of its own. Another protocol is a line here.
macro_rules! with_each {
    ($protocol:expr, $one:ident => $done:expr) => {
        match $protocol {
            Protocol::Http1 => with_each!(@ &Http1, $one => $done),
            Protocol::Http2(server) => with_each!(@ server, $one => $done),
            Protocol::Calls(server) => with_each!(@ server, $one => $done),
            Protocol::Redis(server) => with_each!(@ server, $one => $done),
        }
    };
    (@ $server:expr, $one:ident => $done:expr) => {{
        let $one = $server;
        $done
    }};
}

impl Protocol {
    /// Whether all that a plan does can be carried.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), DriveError> {
        let (takes_all, refusal) = with_each!(self, one => {
            (plan.requests.iter().all(|request| one.takes(&request.ask)), one.refusal(plan))
        });
        match refusal {
            Some(refusal) => Err(refusal),
            None if takes_all => Ok(()),
            None => Err(DriveError::Protocol),
        }
    }

    /// Requests at once on a connection, at least 1.
    pub(crate) fn depth(&self, limits: &Limits) -> usize {
        with_each!(self, one => one.depth(limits)).max(1)
    }

    /// What carries a thread's requests over its sockets.
    pub(crate) fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
        with_each!(self, one => one.transport(io, setup))
    }
}
