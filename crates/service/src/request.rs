//! One request: what it is for, and the work on its answer begun.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use tidemark_wire::http1::{RequestDecoder, is_host};
use tower::Service;

use crate::Answer;
use crate::answer::{json, not_allowed, reason, typed};
use crate::endpoint::{self, Answering, EndpointRequest, RouteId, Upgrade};
use crate::metrics::{self, NO_ROUTE, WorkerCounts};
use crate::shared::{Published, Shared, State};

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
    /// An agreement to leave HTTP.
    Upgrade(Answer, Box<dyn Upgrade>),
    Answering(Answering),
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
    if let Some(begun) =
        published.and_then(|published| at_endpoint(published, counts, method, target, request))
    {
        return begun;
    }
    match (target.path, published) {
        ("/health", _) => own(shared, "/health", method, health),
        ("/metrics", _) => own(shared, "/metrics", method, scrape),
        (_, None) => {
            let starting = reason(StatusCode::SERVICE_UNAVAILABLE, "the system is still starting");
            (Work::Done(starting.into()), NO_ROUTE)
        }
        (_, Some(published)) => (routed(published, method, request), NO_ROUTE),
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
    let response =
        if matches!(*method, Method::GET | Method::HEAD) { answer(shared) } else { not_allowed("GET,HEAD") };
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

/// The first endpoint that has the path.
fn at_endpoint(
    published: &Published,
    counts: &WorkerCounts,
    method: &Method,
    target: Target<'_>,
    decoder: &RequestDecoder,
) -> Option<(Work, usize)> {
    let request = EndpointRequest { method, path: target.path, query: target.query, decoder };
    let begin = || published.endpoints.iter().find_map(|endpoint| endpoint.begin(&request));
    let Ok(begun) = catch_unwind(AssertUnwindSafe(begin)) else {
        return Some((Work::Done(panicked(counts)), NO_ROUTE));
    };
    let (RouteId(route), begun) = begun?;
    let work = match begun {
        endpoint::Begun::Done(answer) => Work::Done(answer),
        endpoint::Begun::Answering(answering) => Work::Answering(answering),
        endpoint::Begun::Upgrade(answer, upgrade) => Work::Upgrade(answer, upgrade),
    };
    Some((work, route))
}

/// What the router makes of it.
fn routed(published: &Published, method: &Method, request: &RequestDecoder) -> Work {
    let Some(request) = for_router(method, request) else { return Work::Done(not_a_request().into()) };
    let answering = published.router.clone().call(request);
    let answering = async { answering.await.unwrap_or_else(|never| match never {}) };
    Work::Router(Box::pin(answering))
}

/// The request as the router takes it. Its header values are parts of one copy of the head.
pub(crate) fn for_router(method: &Method, request: &RequestDecoder) -> Option<Request<Body>> {
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
    /// What the connection goes on with behind the answer; the rest is dropped.
    pub(crate) fn into_upgrade(self) -> Option<Box<dyn Upgrade>> {
        if let Work::Upgrade(_, upgrade) = self { Some(upgrade) } else { None }
    }

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
            Work::Answering(answering) => answering.as_mut().poll(context),
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
