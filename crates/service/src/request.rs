//! One request: from its head being read to its answer being ready.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use tower::Service;

use crate::answer::{json, reason, typed};
use crate::metrics::{self, Bound, NO_ROUTE, WorkerCounts};
use crate::rpc::{self, Upgrading};
use crate::shared::{Published, Shared, State};
use crate::short_way::Begun;
use crate::worker::ConnectionState;

/// The content type of the OpenMetrics text form.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// A body whose length is not announced starts with this much room.
const BODY_ROOM_BYTES: usize = 1024;

/// Answers a request and counts it.
pub(crate) async fn answer(
    shared: &Shared,
    worker: usize,
    connection: &ConnectionState,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let counts = &shared.counts.workers[worker];
    let began = Instant::now();
    let in_flight = InFlight::begin(counts);
    let method = request.method().clone();
    let published = shared.published.get().filter(|_| shared.state() != State::Starting);
    let found = published.and_then(|published| published.routes.find(request.uri().path()));
    let (mut response, route) = match (request.uri().path(), found, published) {
        (_, Some((path, arguments)), _) => {
            (called(shared, counts, connection, (path, arguments), request).await, path.number)
        }
        ("/health", ..) => own(shared, "/health", &method, health),
        ("/metrics", ..) => own(shared, "/metrics", &method, scrape),
        (_, _, None) => (reason(StatusCode::SERVICE_UNAVAILABLE, "the system is still starting"), NO_ROUTE),
        (rpc::RPC_PATH, _, Some(published)) if !published.services.is_empty() => {
            shared.counts.note_matched(rpc::RPC_PATH);
            (upgraded(connection, request), metrics::matched())
        }
        (rpc::OPENAPI_PATH, _, Some(published)) if !published.services.is_empty() => {
            own(shared, rpc::OPENAPI_PATH, &method, describe)
        }
        (_, _, Some(published)) => routed(shared, counts, connection, published, request).await,
    };
    if shared.state() == State::Stopping {
        // So that the client does not send the next request into a connection that is about to go.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    counts.request(route, &method, response.status(), began.elapsed());
    in_flight.finished();
    Ok(response)
}

/// An answer of the server itself, for GET and HEAD.
fn own(
    shared: &Shared,
    route: &str,
    method: &Method,
    answer: fn(&Shared) -> Response<Body>,
) -> (Response<Body>, usize) {
    shared.counts.note_matched(route);
    let response = if matches!(*method, Method::GET | Method::HEAD) {
        answer(shared)
    } else {
        let mut refusal = method_not_allowed();
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
        refusal
    };
    (response, metrics::matched())
}

fn health(shared: &Shared) -> Response<Body> {
    let (status, word) = match shared.state() {
        State::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
        State::Ready => (StatusCode::OK, "ready"),
        State::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    let body = serde_json::json!({ "status": word, "system": shared.name, "version": shared.version });
    json(status, body.to_string())
}

fn scrape(shared: &Shared) -> Response<Body> {
    match shared.metrics_text() {
        Some(text) => typed(StatusCode::OK, METRICS_TYPE, text),
        None => reason(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"),
    }
}

fn describe(shared: &Shared) -> Response<Body> {
    let document = shared.published.get().map(|published| published.openapi.clone());
    json(StatusCode::OK, document.unwrap_or_default())
}

/// Agrees to a WebSocket, or says why not.
fn upgraded(connection: &ConnectionState, mut request: Request<Incoming>) -> Response<Body> {
    let (response, upgrading) = Upgrading::accept(&mut request);
    if upgrading.is_some() {
        *connection.upgrading.lock().unwrap_or_else(PoisonError::into_inner) = upgrading;
    }
    response
}

/// Reads the body, then lets the method of a service answer.
async fn called(
    shared: &Shared,
    counts: &WorkerCounts,
    connection: &ConnectionState,
    (path, arguments): (&rpc::Path, rpc::Arguments),
    request: Request<Incoming>,
) -> Response<Body> {
    let Some(target) = path.target(request.method()).cloned() else {
        let mut refusal = method_not_allowed();
        if let Ok(allow) = HeaderValue::try_from(&path.allow) {
            refusal.headers_mut().insert(header::ALLOW, allow);
        }
        return refusal;
    };
    let (head, body) = request.into_parts();
    let body = match body_of(shared, counts, connection, body).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let request = rpc::Request::new(head.uri, arguments, body);
    let mut answering = target.service.request(target.method, request);
    let outcome =
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context))) {
            Ok(polled) => polled.map(Some),
            Err(_panic) => Poll::Ready(None),
        })
        .await;
    match outcome {
        Some(Ok(answer)) => json(StatusCode::OK, answer),
        Some(Err(refusal)) => {
            let status = StatusCode::from_u16(refusal.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            reason(status, refusal.reason())
        }
        None => panicked(counts),
    }
}

/// The whole body, or the answer to one that is not taken.
async fn body_of(
    shared: &Shared,
    counts: &WorkerCounts,
    connection: &ConnectionState,
    body: Incoming,
) -> Result<Bytes, Response<Body>> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    whole_body(shared, body).await.map_err(|fault| {
        connection.body_refused.store(true, Ordering::Relaxed);
        fault.answer(shared, counts)
    })
}

fn panicked(counts: &WorkerCounts) -> Response<Body> {
    // The panic itself was printed by the panic hook.
    counts.panics.fetch_add(1, Ordering::Relaxed);
    tracing::error!("a request was answered 500 because its handler panicked");
    reason(StatusCode::INTERNAL_SERVER_ERROR, "an internal error; the log of the server has the details")
}

/// The answer to a path that no route has.
pub(crate) fn not_found() -> Response<Body> {
    reason(StatusCode::NOT_FOUND, "no such path")
}

/// The answer to a method that a route does not have; the router adds `Allow`.
pub(crate) fn method_not_allowed() -> Response<Body> {
    reason(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path does not have that method; the Allow header names those it has",
    )
}

/// Reads the body, then goes the short way or lets the router answer.
async fn routed(
    shared: &Shared,
    counts: &WorkerCounts,
    connection: &ConnectionState,
    published: &Published,
    request: Request<Incoming>,
) -> (Response<Body>, usize) {
    let (head, body) = request.into_parts();
    let body = match body_of(shared, counts, connection, body).await {
        Ok(body) => body,
        Err(answer) => return (answer, NO_ROUTE),
    };
    if let Some(way) = published.short_way.as_ref().filter(|way| way.path == head.uri.path()) {
        shared.counts.note_matched(way.path);
        let route = metrics::matched();
        match way.begin(&head, body.clone()) {
            Begun::Answering(answering) => {
                // While the head is there the connection needs a second buffer to read into.
                drop((head, body));
                return (guarded(counts, answering, || ()).await, route);
            }
            Begun::NotHere => {}
            Begun::Panicked => return (panicked(counts), route),
        }
    }
    let answering = published.router.clone().call(Request::from_parts(head, Body::from(body)));
    let answering = async { answering.await.unwrap_or_else(|never| match never {}) };
    // A handler begins to run within the first poll, and the note that a route was matched is made there.
    metrics::clear_matched();
    let mut route = None;
    let note_route = || {
        route.get_or_insert_with(metrics::matched);
    };
    let response = guarded(counts, answering, note_route).await;
    (response, route.unwrap_or(NO_ROUTE))
}

/// The answer, and 500 where who makes it panics. Calls `polled` each time that it was polled.
async fn guarded(
    counts: &WorkerCounts,
    answering: impl Future<Output = Response<Body>>,
    mut polled: impl FnMut(),
) -> Response<Body> {
    let mut answering = pin!(answering);
    let outcome = poll_fn(|context| {
        let outcome = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context)));
        polled();
        match outcome {
            Ok(outcome) => outcome.map(Some),
            Err(_panic) => Poll::Ready(None),
        }
    })
    .await;
    outcome.unwrap_or_else(|| panicked(counts))
}

/// Why a body could not be read.
#[derive(Debug)]
enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
}

impl BodyFault {
    fn answer(&self, shared: &Shared, counts: &WorkerCounts) -> Response<Body> {
        let mut response = match self {
            BodyFault::TooLarge => {
                counts.bound_hit(Bound::Body);
                let text = format!("the body is larger than {} bytes", shared.limits.body_bytes_max);
                reason(StatusCode::PAYLOAD_TOO_LARGE, &text)
            }
            BodyFault::TooSlow => {
                counts.bound_hit(Bound::BodyTime);
                reason(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
            }
            BodyFault::Broken => reason(StatusCode::BAD_REQUEST, "the body is cut off or wrongly encoded"),
        };
        // What is left of the body is not waited for.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

async fn whole_body(shared: &Shared, body: Incoming) -> Result<Bytes, BodyFault> {
    let mut reading = pin!(collect(body, shared.limits.body_bytes_max));
    // Nearly every body came along with its head: no timer for those.
    if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        return done;
    }
    tokio::time::timeout(shared.limits.body_timeout, reading).await.unwrap_or(Err(BodyFault::TooSlow))
}

async fn collect(mut body: Incoming, max: usize) -> Result<Bytes, BodyFault> {
    if body.size_hint().lower() > max as u64 {
        return Err(BodyFault::TooLarge);
    }
    let mut next = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
    let mut first = Bytes::new();
    let mut more: Option<BytesMut> = None;
    while let Some(frame) = next().await {
        let Ok(chunk) = frame.map_err(|_| BodyFault::Broken)?.into_data() else { continue };
        match &mut more {
            None if first.is_empty() => first = chunk,
            None => {
                let mut whole = BytesMut::with_capacity((first.len() + chunk.len()).max(BODY_ROOM_BYTES));
                whole.extend_from_slice(&first);
                whole.extend_from_slice(&chunk);
                more = Some(whole);
            }
            Some(whole) => whole.extend_from_slice(&chunk),
        }
        if more.as_ref().map_or(first.len(), BytesMut::len) > max {
            return Err(BodyFault::TooLarge);
        }
    }
    Ok(more.map_or(first, BytesMut::freeze))
}

/// Counts a request as being worked on until it is dropped.
struct InFlight<'a>(&'a WorkerCounts, bool);

impl<'a> InFlight<'a> {
    fn begin(counts: &'a WorkerCounts) -> Self {
        counts.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(counts, false)
    }

    fn finished(mut self) {
        self.1 = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.1 {
            self.0.abandoned.fetch_add(1, Ordering::Relaxed);
        }
    }
}
