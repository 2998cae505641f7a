//! The protocols of the driver, each in a module of its own: here is their list.

pub(crate) mod aerospike;
pub(crate) mod cassandra;
pub(crate) mod codec;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod memcached;
pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod redis;
pub(crate) mod rpc;
pub(crate) mod sharding;
pub(crate) mod store_status;
pub(crate) mod target;
pub(crate) mod targets;
pub(crate) mod tls_request;
pub(crate) mod transport;
pub(crate) mod upload;

use std::io::{self, Read, Write};

use tidemark_scenario::Plan;
use tidemark_scenario::plan::Limits;

use crate::error::DriveError;
use crate::io::Io;
use crate::protocols::aerospike::Aerospike;
use crate::protocols::cassandra::Cassandra;
use crate::protocols::grpc::Grpc;
use crate::protocols::http1::Http1;
use crate::protocols::http2::Http2;
use crate::protocols::memcached::Memcached;
use crate::protocols::postgres::Postgres;
use crate::protocols::redis::Redis;
use crate::protocols::rpc::Rpc;
use crate::protocols::sharding::Shards;
use crate::protocols::tls_request::TlsRequest;
use crate::protocols::transport::{Client, Setup, Transport};

/// Makes the list, and what is asked of whichever of them it is.
macro_rules! protocols {
    ($($(#[$words:meta])* $name:ident($server:ty),)*) => {
        /// What is spoken with a server, and what is known of it.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub enum Protocol {
            /// HTTP/1.1, and WebSockets that begin with it.
            #[default]
            Http1,
            $($(#[$words])* $name($server),)*
        }

        impl Protocol {
            /// What it is called in reports.
            pub fn name(&self) -> &'static str {
                match self {
                    Protocol::Http1 => Http1.name(),
                    $(Protocol::$name(server) => server.name(),)*
                }
            }

            /// Whether all that a plan does can be carried.
            pub(crate) fn check(&self, plan: &Plan) -> Result<(), DriveError> {
                match self {
                    Protocol::Http1 => check(&Http1, plan),
                    $(Protocol::$name(server) => check(server, plan),)*
                }
            }

            /// Requests at once on a connection, at least 1.
            pub(crate) fn depth(&self, limits: &Limits) -> usize {
                let depth = match self {
                    Protocol::Http1 => Http1.depth(limits),
                    $(Protocol::$name(server) => server.depth(limits),)*
                };
                depth.max(1)
            }

            /// How it is asked whether it speaks TLS, where that begins on a connection that is there.
            pub(crate) fn tls_request(&self) -> Option<TlsRequest> {
                match self {
                    Protocol::Http1 => Http1.tls_request(),
                    $(Protocol::$name(server) => server.tls_request(),)*
                }
            }

            /// From now on the server is not spoken with in clear, where it was asked for TLS.
            pub(crate) fn require_tls(&mut self) {
                if let Protocol::Postgres(server) = self {
                    server.may_be_plain = false;
                }
            }

            /// The servers that share the requests, where there are several.
            pub fn shards(&self) -> Option<&Shards> {
                match self {
                    Protocol::Http1 => Http1.shards(),
                    $(Protocol::$name(server) => server.shards(),)*
                }
            }

            /// Begins to speak with the server over a connection that blocks.
            pub(crate) fn greet(&mut self, stream: &mut (impl Read + Write)) -> io::Result<()> {
                match self {
                    Protocol::Http1 => Http1.greet(stream),
                    $(Protocol::$name(server) => server.greet(stream),)*
                }
            }

            /// What carries a thread's requests over its sockets.
            pub(crate) fn transport<I: Io + 'static>(&self, io: I, setup: Setup<'_>) -> Box<dyn Transport> {
                match self {
                    Protocol::Http1 => Http1.transport(io, setup),
                    $(Protocol::$name(server) => server.transport(io, setup),)*
                }
            }
        }
    };
}

// Another protocol is a line here.
protocols! {
    /// HTTP/2.
    Http2(Http2),
    /// gRPC.
    Grpc(Grpc),
    /// Remote calls over a WebSocket.
    Calls(Rpc),
    /// Redis' protocol.
    Redis(Redis),
    /// memcached's text protocol.
    Memcached(Memcached),
    /// PostgreSQL's protocol.
    Postgres(Postgres),
    /// Cassandra's native protocol.
    Cassandra(Cassandra),
    /// Aerospike's protocol.
    Aerospike(Aerospike),
}

fn check(client: &impl Client, plan: &Plan) -> Result<(), DriveError> {
    match client.refusal(plan) {
        Some(refusal) => Err(refusal),
        None if plan.requests.iter().all(|request| client.takes(&request.ask)) => Ok(()),
        None => Err(DriveError::Protocol(client.name())),
    }
}
