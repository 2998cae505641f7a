//! Who answers a request that is taken, and the answer.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use tower::Service;

use crate::Answer;
use crate::answer::{Content, json, not_allowed, reason, typed};
use crate::endpoint::{Begun, EndpointRequest, RouteId};
use crate::handle::ConnectionHandle;
use crate::metrics::{self, NO_ROUTE, WorkerCounts};
use crate::outgoing::Outgoing;
use crate::shared::{Published, Shared, State};

/// The content type of the OpenMetrics text form.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Who answers a request.
enum Next<'a> {
    /// It has begun, and is counted under this number.
    Begun(usize, Begun),
    Router(&'a Router),
}

/// Answers a request that is whole.
pub(crate) async fn respond(
    handle: Arc<ConnectionHandle>,
    mut parts: Parts,
    body: Bytes,
) -> Response<Outgoing> {
    let (began, counts) = (Instant::now(), handle.counts());
    let in_flight = InFlight::begin(counts);
    let method = parts.method.clone();
    let mut route = NO_ROUTE;
    let mut headers = HeaderMap::new();
    let answer = match begin(&handle.shared, counts, &parts, &body) {
        Next::Begun(number, begun) => {
            route = number;
            // nothing of the request is kept while it waits; its table of headers becomes the answer's
            drop(body);
            headers = std::mem::take(&mut parts.headers);
            headers.clear();
            match begun {
                Begun::Done(answer) => answer,
                Begun::Upgrade(answer, upgrade) => {
                    handle.state().upgrade_to(upgrade);
                    answer
                }
                Begun::Answering(mut work) => {
                    poll_fn(|context| poll_caught(work.as_mut(), context).map(|done| of_caught(done, counts)))
                        .await
                }
            }
        }
        Next::Router(router) => {
            let mut work = pin!(router.clone().call(Request::from_parts(parts, Body::from(body))));
            let answer = poll_fn(|context| {
                // A handler begins to run within the first poll, and the note that a route was matched is made there.
                metrics::clear_matched();
                let polled = poll_caught(work.as_mut(), context);
                if route == NO_ROUTE {
                    route = metrics::matched();
                }
                polled
            });
            let answer = answer.await.map(|Ok(response)| Answer::from(response));
            of_caught(answer, counts)
        }
    };
    let now = Instant::now();
    counts.request(route, &method, answer.status(), now.saturating_duration_since(began));
    in_flight.finished();
    outgoing(handle, answer, headers, now)
}

fn begin<'a>(shared: &'a Shared, counts: &WorkerCounts, parts: &Parts, body: &Bytes) -> Next<'a> {
    let published = shared.published.get().filter(|_| shared.state() != State::Starting);
    if let Some(begun) = published.and_then(|published| at_endpoint(published, counts, parts, body)) {
        return begun;
    }
    match (parts.uri.path(), published) {
        ("/health", _) => own(shared, "/health", &parts.method, health),
        ("/metrics", _) => own(shared, "/metrics", &parts.method, scrape),
        (_, None) => {
            let starting = reason(StatusCode::SERVICE_UNAVAILABLE, "the system is still starting");
            Next::Begun(NO_ROUTE, Begun::Done(starting.into()))
        }
        (_, Some(published)) => Next::Router(&published.router),
    }
}

/// An answer of the server itself, for GET and HEAD.
fn own(
    shared: &Shared,
    route: &str,
    method: &Method,
    answer: fn(&Shared) -> Response<Body>,
) -> Next<'static> {
    shared.counts.note_matched(route);
    let response =
        if matches!(*method, Method::GET | Method::HEAD) { answer(shared) } else { not_allowed("GET,HEAD") };
    Next::Begun(metrics::matched(), Begun::Done(response.into()))
}

fn health(shared: &Shared) -> Response<Body> {
    let trouble = shared.published.get().and_then(|published| (published.trouble)());
    let (status, word) = match (shared.state(), trouble) {
        (State::Starting, _) => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
        (State::Ready, None) => (StatusCode::OK, "ready"),
        (State::Ready, Some(_)) => (StatusCode::SERVICE_UNAVAILABLE, "failing"),
        (State::Stopping, _) => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    let mut body = serde_json::json!({ "status": word, "system": shared.name, "version": shared.version });
    if let Some(trouble) = trouble {
        body["reason"] = trouble.into();
    }
    json(status, body.to_string())
}

fn scrape(shared: &Shared) -> Response<Body> {
    match shared.metrics_text() {
        Some(text) => typed(StatusCode::OK, METRICS_TYPE, text),
        None => reason(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"),
    }
}

/// The first endpoint that has the path.
fn at_endpoint(
    published: &Published,
    counts: &WorkerCounts,
    parts: &Parts,
    body: &[u8],
) -> Option<Next<'static>> {
    let request = EndpointRequest::new(parts, body);
    let begin = || published.endpoints.iter().find_map(|endpoint| endpoint.begin(&request));
    let Ok(begun) = catch_unwind(AssertUnwindSafe(begin)) else {
        return Some(Next::Begun(NO_ROUTE, Begun::Done(panicked(counts))));
    };
    begun.map(|(RouteId(route), begun)| Next::Begun(route, begun))
}

/// What the work comes to, or that it panicked.
fn poll_caught<F: Future + ?Sized>(
    work: Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<std::thread::Result<F::Output>> {
    match catch_unwind(AssertUnwindSafe(|| work.poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}

fn of_caught(done: std::thread::Result<Answer>, counts: &WorkerCounts) -> Answer {
    done.unwrap_or_else(|_panic| panicked(counts))
}

/// An answer as hyper takes it, in a table of headers that is empty.
pub(crate) fn outgoing(
    handle: Arc<ConnectionHandle>,
    answer: Answer,
    mut headers: HeaderMap,
    now: Instant,
) -> Response<Outgoing> {
    let mut response = match answer.0 {
        Content::Plain { status, content_type, body } => {
            if !content_type.is_empty() {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            }
            let mut response = Response::new(Outgoing::Whole(body));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response
        }
        Content::Full(response) => response.map(|body| Outgoing::of(body, handle.clone())),
    };
    // So that the client does not send the next request into a connection that is about to go.
    if handle.shared.state() == State::Stopping && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let is_events = response.headers().get(header::CONTENT_TYPE).is_some_and(|of| of == "text/event-stream");
    handle.state().begin_answer(response.body().whole_bytes(), is_events, now);
    response
}

fn panicked(counts: &WorkerCounts) -> Answer {
    // The panic itself was printed by the panic hook.
    counts.panics.fetch_add(1, Ordering::Relaxed);
    tracing::error!("a request was answered 500 because its handler panicked");
    reason(StatusCode::INTERNAL_SERVER_ERROR, "an internal error; the log of the server has the details")
        .into()
}

/// Counts a request as being worked on until it is dropped.
pub(crate) struct InFlight<'a>(&'a WorkerCounts, bool);

impl<'a> InFlight<'a> {
    pub(crate) fn begin(counts: &'a WorkerCounts) -> Self {
        counts.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(counts, false)
    }

    pub(crate) fn finished(mut self) {
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
