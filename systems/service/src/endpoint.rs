//! What answers requests for paths of its own, before the router is asked.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Version};
use prometheus_client::collector::Collector;
use tokio::net::TcpStream;

use crate::metrics::Counts;
use crate::{Answer, Held, ServiceError};

/// An answer that is being worked on.
pub type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Answers requests for paths of its own, before health, metrics and the router are asked.
pub trait Endpoint: Send + Sync + 'static {
    /// Called once, before the first request.
    ///
    /// # Errors
    /// It cannot be served; the system does not start.
    fn start(&mut self, server: &mut Starting<'_>) -> Result<(), ServiceError>;

    /// Begins the work on a request; none where the path is not one of its own. A panic is a 500.
    fn begin(&self, request: &EndpointRequest<'_>) -> Option<(RouteId, Begun)>;
}

/// The number that a route has among the server's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteId(pub(crate) usize);

/// What has become of a request at its endpoint.
pub enum Begun {
    /// Its answer is there.
    Done(Answer),
    /// Its answer is being worked on.
    Answering(Answering),
    /// With this answer the connection leaves HTTP, and goes on with the other protocol.
    Upgrade(Answer, Box<dyn Upgrade>),
}

/// Another protocol than HTTP, which a connection goes on with.
pub trait Upgrade: Send {
    /// Serves the connection until it ends, and gives it back to be closed.
    fn run<'a>(
        self: Box<Self>,
        connection: Upgraded<'a>,
    ) -> Pin<Box<dyn Future<Output = TcpStream> + Send + 'a>>;
}

/// A connection that has left HTTP.
pub struct Upgraded<'a> {
    /// The connection.
    pub stream: TcpStream,
    /// What came behind the request.
    pub input: Vec<u8>,
    /// The number of the worker that it belongs to, from 0.
    pub worker: usize,
    /// Its part of the memory that all connections may hold together.
    pub held: Held,
    /// After so much silence a client is gone.
    pub silence_max: Duration,
    /// Completes when the server stops.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
}

/// A server that starts, as its endpoints see it.
pub struct Starting<'a> {
    /// What the system is called.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How many workers there are.
    pub workers: usize,
    pub(crate) counts: &'a Counts,
    pub(crate) collectors: &'a mut Vec<Box<dyn Collector>>,
}

impl Starting<'_> {
    /// The number of a route, under whose pattern its requests are counted.
    pub fn route(&self, pattern: &str) -> RouteId {
        RouteId(self.counts.number_of(pattern))
    }

    /// More metrics for `/metrics`.
    pub fn metrics(&mut self, collector: impl Collector) {
        self.collectors.push(Box::new(collector));
    }
}

/// A request that is whole, as endpoints see it.
pub struct EndpointRequest<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its path, still encoded.
    pub path: &'a str,
    /// What is behind the question mark.
    pub query: Option<&'a str>,
    /// Its version of HTTP.
    pub version: Version,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body.
    pub body: &'a [u8],
}

impl<'a> EndpointRequest<'a> {
    pub(crate) fn new(parts: &'a Parts, body: &'a [u8]) -> Self {
        let Parts { method, uri, version, headers, .. } = parts;
        EndpointRequest { method, path: uri.path(), query: uri.query(), version: *version, headers, body }
    }
}

/// The endpoint of one path, made from a function.
pub(crate) struct FastPath<B> {
    pub(crate) path: &'static str,
    pub(crate) route: RouteId,
    pub(crate) begin: B,
}

impl<B, F> Endpoint for FastPath<B>
where
    B: Fn(&EndpointRequest<'_>) -> Option<F> + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    fn start(&mut self, server: &mut Starting<'_>) -> Result<(), ServiceError> {
        self.route = server.route(self.path);
        Ok(())
    }

    fn begin(&self, request: &EndpointRequest<'_>) -> Option<(RouteId, Begun)> {
        if request.path != self.path {
            return None;
        }
        let begin = || (self.begin)(request);
        let answering: Answering = match catch_unwind(AssertUnwindSafe(begin)) {
            Ok(answering) => Box::pin(answering?),
            // goes on where the answer is waited for, so that it counts under this path
            Err(panic) => Box::pin(async { resume_unwind(panic) }),
        };
        Some((self.route, Begun::Answering(answering)))
    }
}
