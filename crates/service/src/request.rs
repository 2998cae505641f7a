//! One request: what it is for, and the work on its answer begun.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use bytes::Bytes;
use tidemark_wire::http1::{RequestDecoder, is_host};
use tower::Service;

use crate::Answer;
use crate::answer::{Content, json, reason, typed};
use crate::metrics::{self, NO_ROUTE, WorkerCounts};
use crate::rpc::{self, Form, Refusal};
use crate::shared::{Published, Shared, State};
use crate::short_way;

/// The content type of the OpenMetrics text form.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What has become of a request that is whole.
pub(crate) struct Begun<'a> {
    pub(crate) began: Instant,
    pub(crate) in_flight: InFlight<'a>,
    pub(crate) method: Method,
    /// By the number that its route is counted under; the router's is known once the work was polled.
    pub(crate) route: usize,
    pub(crate) work: Work,
}

/// The answer, or what will make it.
pub(crate) enum Work {
    Done(Answer),
    /// An agreement to go on as a WebSocket with calls.
    Upgrade(Answer, Form),
    ShortWay(short_way::Answering),
    Method(Pin<Box<dyn Future<Output = Result<Vec<u8>, Refusal>> + Send>>),
    Router(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

/// Path and query of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Target<'a> {
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// None for what is no UTF-8, or none of the forms of a target. Of one with scheme and host, those are left out.
    fn of(method: &[u8], target: &'a [u8]) -> Option<Self> {
        let mut target = std::str::from_utf8(target).ok()?;
        if !target.starts_with('/') {
            match target.split_once("://") {
                Some((scheme, rest)) => {
                    let is_http = ["http", "https"].iter().any(|http| scheme.eq_ignore_ascii_case(http));
                    let at = rest.find(['/', '?']);
                    let host = &rest[..at.unwrap_or(rest.len())];
                    if !is_http || !is_host(host.as_bytes()) {
                        return None;
                    }
                    target = at.map_or("/", |at| &rest[at..]);
                }
                // as of a proxy
                None if method == b"CONNECT" && is_host(target.as_bytes()) => {}
                None if target == "*" => {}
                None => return None,
            }
        }
        Some(match target.split_once('?') {
            Some((path, query)) => Target { path, query: Some(query) },
            None => Target { path: target, query: None },
        })
    }
}

/// Begins the work on a request that is whole.
pub(crate) fn begin<'a>(shared: &Shared, counts: &'a WorkerCounts, request: &RequestDecoder) -> Begun<'a> {
    let (began, in_flight) = (Instant::now(), InFlight::begin(counts));
    let (Ok(method), Some(target)) =
        (Method::from_bytes(request.method()), Target::of(request.method(), request.target()))
    else {
        let refusal = reason(StatusCode::BAD_REQUEST, "the request line is not one of HTTP");
        return Begun {
            began,
            in_flight,
            method: Method::GET,
            route: NO_ROUTE,
            work: Work::Done(refusal.into()),
        };
    };
    let (work, route) = work(shared, counts, &method, target, request);
    Begun { began, in_flight, method, route, work }
}

fn work(
    shared: &Shared,
    counts: &WorkerCounts,
    method: &Method,
    target: Target<'_>,
    request: &RequestDecoder,
) -> (Work, usize) {
    let published = shared.published.get().filter(|_| shared.state() != State::Starting);
    if let Some((path, arguments)) = published.and_then(|published| published.routes.find(target.path)) {
        return (called(method, target, (path, arguments), request.body()), path.number);
    }
    match (target.path, published) {
        ("/health", _) => own(shared, "/health", method, health),
        ("/metrics", _) => own(shared, "/metrics", method, scrape),
        (_, None) => {
            let starting = reason(StatusCode::SERVICE_UNAVAILABLE, "the system is still starting");
            (Work::Done(starting.into()), NO_ROUTE)
        }
        (rpc::RPC_PATH, Some(published)) if !published.services.is_empty() => {
            shared.counts.note_matched(rpc::RPC_PATH);
            (upgrade(method, request), metrics::matched())
        }
        (rpc::OPENAPI_PATH, Some(published)) if !published.services.is_empty() => {
            own(shared, rpc::OPENAPI_PATH, method, describe)
        }
        (_, Some(published)) => routed(published, counts, method, target, request),
    }
}

/// An answer of the server itself, for GET and HEAD.
fn own(
    shared: &Shared,
    route: &str,
    method: &Method,
    answer: fn(&Shared) -> Response<Body>,
) -> (Work, usize) {
    shared.counts.note_matched(route);
    let response = if matches!(*method, Method::GET | Method::HEAD) {
        answer(shared)
    } else {
        let mut refusal = method_not_allowed();
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
        refusal
    };
    (Work::Done(response.into()), metrics::matched())
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
fn upgrade(method: &Method, request: &RequestDecoder) -> Work {
    let Some(request) = for_router(method, request) else { return Work::Done(not_a_request().into()) };
    match rpc::agree_to_upgrade(&request) {
        Ok((response, form)) => Work::Upgrade(response.into(), form),
        Err(refusal) => Work::Done((*refusal).into()),
    }
}

/// Lets the method of a service answer.
fn called(
    method: &Method,
    target: Target<'_>,
    (path, arguments): (&rpc::Path, rpc::Arguments),
    body: &[u8],
) -> Work {
    let Some(wanted) = path.target(method) else {
        let mut refusal = method_not_allowed();
        if let Ok(allow) = HeaderValue::try_from(&path.allow) {
            refusal.headers_mut().insert(header::ALLOW, allow);
        }
        return Work::Done(refusal.into());
    };
    let request = rpc::Request::new(target.path, arguments, target.query, body);
    Work::Method(wanted.service.clone().request(wanted.method, request))
}

/// The short way, or the router's.
fn routed(
    published: &Published,
    counts: &WorkerCounts,
    method: &Method,
    target: Target<'_>,
    request: &RequestDecoder,
) -> (Work, usize) {
    if let Some((way, route)) = published.short_way.as_ref().filter(|(way, _)| way.path == target.path) {
        match way.begin(method, target.query, request.body()) {
            short_way::Begun::Answering(answering) => return (Work::ShortWay(answering), *route),
            short_way::Begun::NotHere => {}
            short_way::Begun::Panicked => return (Work::Done(panicked(counts)), *route),
        }
    }
    let Some(request) = for_router(method, request) else {
        return (Work::Done(not_a_request().into()), NO_ROUTE);
    };
    let answering = published.router.clone().call(request);
    let answering = async { answering.await.unwrap_or_else(|never| match never {}) };
    (Work::Router(Box::pin(answering)), NO_ROUTE)
}

/// The request as the router takes it. Its header values are parts of one copy of the head.
fn for_router(method: &Method, request: &RequestDecoder) -> Option<Request<Body>> {
    let mut made = Request::new(Body::from(Bytes::copy_from_slice(request.body())));
    *made.method_mut() = method.clone();
    *made.uri_mut() = Uri::try_from(request.target()).ok()?;
    *made.version_mut() = match request.minor_version() {
        0 => axum::http::Version::HTTP_10,
        _ => axum::http::Version::HTTP_11,
    };
    let head = request.head();
    let copy = Bytes::copy_from_slice(head);
    let headers = made.headers_mut();
    headers.reserve(request.headers().count());
    for (name, value) in request.headers() {
        let at = (value.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
        let value = match copy.get(at..at.wrapping_add(value.len())) {
            Some(_) => copy.slice(at..at + value.len()),
            None => Bytes::copy_from_slice(value), // an empty one may lie anywhere
        };
        headers.append(HeaderName::from_bytes(name).ok()?, HeaderValue::from_maybe_shared(value).ok()?);
    }
    Some(made)
}

fn not_a_request() -> Response<Body> {
    reason(StatusCode::BAD_REQUEST, "the target of the request or one of its headers is malformed")
}

impl Work {
    /// The answer, once it is there. A panic on the way to it is a 500. `route` is told what the router has matched.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        counts: &WorkerCounts,
        route: &mut usize,
    ) -> Poll<Answer> {
        let polled = catch_unwind(AssertUnwindSafe(|| match self {
            Work::Done(answer) | Work::Upgrade(answer, _) => {
                let taken = Answer::new(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", Bytes::new());
                Poll::Ready(std::mem::replace(answer, taken))
            }
            Work::ShortWay(answering) => answering.as_mut().poll(context),
            Work::Method(answering) => answering.as_mut().poll(context).map(of_method),
            Work::Router(answering) => {
                // A handler begins to run within the first poll, and the note that a route was matched is made there.
                metrics::clear_matched();
                let polled = answering.as_mut().poll(context);
                if *route == NO_ROUTE {
                    *route = metrics::matched();
                }
                polled.map(Answer::from)
            }
        }));
        polled.unwrap_or_else(|_panic| {
            if matches!(self, Work::Router(_)) && *route == NO_ROUTE {
                *route = metrics::matched();
            }
            Poll::Ready(panicked(counts))
        })
    }
}

fn of_method(outcome: Result<Vec<u8>, Refusal>) -> Answer {
    match outcome {
        Ok(answer) => Answer(Content::Written(answer)),
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            reason(status, refusal.reason()).into()
        }
    }
}

fn panicked(counts: &WorkerCounts) -> Answer {
    // The panic itself was printed by the panic hook.
    counts.panics.fetch_add(1, Ordering::Relaxed);
    tracing::error!("a request was answered 500 because its handler panicked");
    reason(StatusCode::INTERNAL_SERVER_ERROR, "an internal error; the log of the server has the details")
        .into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_path_and_maybe_a_query() {
        let of = |target: &'static str| Target::of(b"GET", target.as_bytes()).map(|it| (it.path, it.query));
        assert_eq!(of("/a/b"), Some(("/a/b", None)));
        assert_eq!(of("/a?x=/://?"), Some(("/a", Some("x=/://?"))));
        assert_eq!(of("/a://b"), Some(("/a://b", None)));
        assert_eq!(of("http://host:80/a?b"), Some(("/a", Some("b"))));
        assert_eq!(of("http://host?b"), Some(("", Some("b"))));
        assert_eq!(of("http://host"), Some(("/", None)));
        assert_eq!(of("*"), Some(("*", None)));
        assert_eq!(of("HTTPS://[::1]:80/a"), Some(("/a", None)));
        for wrong in [
            "http:///x",
            "http://?x",
            "http://u@h/",
            "http://a b/",
            "ftp://host/",
            "://host/",
            "x",
            "x/y",
            "?",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(Target::of(b"GET", b"/\xff"), None);
        assert_eq!((Target::of(b"GET", b"h:80"), Target::of(b"CONNECT", b"h:80").is_some()), (None, true));
    }
}
