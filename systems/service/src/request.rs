//! One request: whether it is taken, and its body.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use bytes::Bytes;
use hyper::body::Incoming;
use tidemark_wire::http1::is_host;

use crate::Limits;
use crate::answer::reason;
use crate::dispatch::{outgoing, respond};
use crate::framing::Wrong;
use crate::handle::{BodyRefusal, ConnectionHandle};
use crate::metrics::{Bound, NO_ROUTE};
use crate::outgoing::Outgoing;

const NO_ROOM_TEXT: &str = "the server's memory for requests and answers is taken; try again in a second";
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    connection: close\r\nretry-after: 1\r\ncontent-length: 89\r\n\r\n\
    {\"reason\":\"the server's memory for requests and answers is taken; try again in a second\"}";

/// The answer where there is no room before a head is whole; one to HEAD has no body.
pub(crate) fn no_room(is_without_body: bool) -> &'static [u8] {
    let body_bytes = if is_without_body { NO_ROOM_TEXT.len() + br#"{"reason":""}"#.len() } else { 0 };
    &NO_ROOM[..NO_ROOM.len() - body_bytes]
}

/// The client has gone within its request.
#[derive(Debug, thiserror::Error)]
#[error("it was closed within a request")]
pub(crate) struct Gone;

/// Why a request is not taken; the connection ends behind the answer to it.
struct Refused {
    /// What the client hit.
    bound: Option<Bound>,
    answer: Box<Response<Body>>,
}

impl Refused {
    fn malformed(text: &str) -> Self {
        Refused { bound: None, answer: Box::new(reason(StatusCode::BAD_REQUEST, text)) }
    }

    fn beyond(bound: Bound, status: StatusCode, text: &str) -> Self {
        Refused { bound: Some(bound), answer: Box::new(reason(status, text)) }
    }

    fn no_room() -> Self {
        let mut refused = Refused::beyond(Bound::Held, StatusCode::SERVICE_UNAVAILABLE, NO_ROOM_TEXT);
        refused.answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        refused
    }
}

/// Sees a request to its answer.
pub(crate) async fn serve(
    handle: Arc<ConnectionHandle>,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Gone> {
    let (parts, body) = request.into_parts();
    let (began, head_bytes) = (Instant::now(), head_bytes(&parts));
    handle.state().begin(head_bytes);
    let taken = match check(&parts, &body, head_bytes, &handle.shared.limits) {
        Ok(()) => collect(&handle, head_bytes, body).await?,
        Err(refused) => Err(refused),
    };
    match taken {
        Ok(body) => Ok(respond(handle, parts, body).await),
        Err(refused) => Ok(refuse(handle, &parts.method, refused, began)),
    }
}

/// How many bytes a head has, but for blanks that mean nothing.
fn head_bytes(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + target_bytes(&parts.uri) + "  HTTP/1.1\r\n\r\n".len();
    let header = |(name, value): (&header::HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 4;
    line + parts.headers.iter().map(header).sum::<usize>()
}

fn target_bytes(uri: &Uri) -> usize {
    let host = uri.authority().map_or(0, |host| host.as_str().len() + "http://".len());
    host + uri.path_and_query().map_or(0, |path| path.as_str().len())
}

/// The answer to a head that hyper does not get to read, and the bound that it hit.
pub(crate) fn refusal_of_head(
    wrong: Wrong,
    limits: &Limits,
    is_without_body: bool,
) -> (Option<Bound>, Vec<u8>) {
    let limit = limits.head_bytes_max;
    let (bound, status, text) = match wrong {
        Wrong::Line => (None, "400 Bad Request", "a line of the request does not end in CR LF".to_owned()),
        Wrong::Target => (Some(Bound::Head), "414 URI Too Long", target_too_long(limit)),
        Wrong::Head => (Some(Bound::Head), "431 Request Header Fields Too Large", head_too_large(limit)),
    };
    let body = serde_json::json!({ "reason": text }).to_string();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    if !is_without_body {
        answer += &body;
    }
    (bound, answer.into_bytes())
}

fn target_too_long(limit: usize) -> String {
    format!("the target does not fit into a head of {limit} bytes")
}

fn head_too_large(limit: usize) -> String {
    format!("the head is larger than the limit of {limit} bytes")
}

/// Whether a request is one, and one that is taken.
fn check(parts: &Parts, body: &Incoming, head_bytes: usize, limits: &Limits) -> Result<(), Refused> {
    let limit = limits.head_bytes_max;
    if head_bytes > limit {
        return Err(if target_bytes(&parts.uri) > limit / 2 {
            Refused::beyond(Bound::Head, StatusCode::URI_TOO_LONG, &target_too_long(limit))
        } else {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            Refused::beyond(Bound::Head, status, &head_too_large(limit))
        });
    }
    if !has_a_host(&parts.headers, parts.version) {
        let text = "a request of HTTP/1.1 must have exactly one Host header: a host, or host:port";
        return Err(Refused::malformed(text));
    }
    if !is_target(&parts.method, &parts.uri) {
        return Err(Refused::malformed("the request line is not one of HTTP"));
    }
    if body.is_end_stream() {
        return Ok(());
    }
    let mut codings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(|coding| !is_chunked(coding)) || codings.next().is_some() {
        return Err(Refused::malformed("Transfer-Encoding is not exactly `chunked`"));
    }
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(too_large(limits));
    }
    Ok(())
}

fn too_large(limits: &Limits) -> Refused {
    let text = format!("the body is larger than {} bytes", limits.body_bytes_max);
    Refused::beyond(Bound::Body, StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// An empty one is one, for a client that knows no name.
fn has_a_host(headers: &HeaderMap, version: Version) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version == Version::HTTP_10,
        (Some(host), None) => host.is_empty() || is_host(host.as_bytes()),
        _ => false,
    }
}

/// Whether this is one of the forms of a target: a path, a URL of HTTP, `*`, or what CONNECT has.
fn is_target(method: &Method, uri: &Uri) -> bool {
    match (uri.scheme_str(), uri.authority()) {
        (None, None) => true,
        (None, Some(host)) => *method == Method::CONNECT && is_host(host.as_str().as_bytes()),
        (Some("http" | "https"), Some(host)) => is_host(host.as_str().as_bytes()),
        _ => false,
    }
}

/// The whole body. One that has come in one piece is not copied.
async fn collect(
    handle: &ConnectionHandle,
    head_bytes: usize,
    mut body: Incoming,
) -> Result<Result<Bytes, Refused>, Gone> {
    let limits = &handle.shared.limits;
    let (mut whole, mut pieces) = (Bytes::new(), Vec::new());
    while !body.is_end_stream() {
        let frame = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => match handle.state().await_body(head_bytes + whole.len() + pieces.capacity()) {
                Some(body_refusal) => Poll::Ready(Err(body_refusal)),
                None => Poll::Pending,
            },
        });
        let piece = match frame.await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(error))) if is_cut_off(&error) => return Err(Gone),
            Ok(Some(Err(_))) => return Ok(Err(Refused::malformed("malformed chunk"))),
            Err(BodyRefusal::Late) => {
                let text = "the body did not arrive in time";
                return Ok(Err(Refused::beyond(Bound::BodyTime, StatusCode::REQUEST_TIMEOUT, text)));
            }
            Err(BodyRefusal::NoRoom) => return Ok(Err(Refused::no_room())),
        };
        if whole.len() + pieces.len() + piece.len() > limits.body_bytes_max {
            return Ok(Err(too_large(limits)));
        }
        if whole.is_empty() && pieces.is_empty() {
            whole = piece;
        } else {
            // twice as much, but no more than is announced
            let rest = body.size_hint().upper().map_or(usize::MAX, |rest| rest as usize);
            let bytes = whole.len() + piece.len();
            if pieces.capacity() - pieces.len() < bytes {
                pieces.reserve_exact(bytes + rest.min(pieces.len() + bytes));
            }
            pieces.extend_from_slice(&std::mem::take(&mut whole));
            pieces.extend_from_slice(&piece);
        }
    }
    if !pieces.is_empty() {
        whole = pieces.into();
    }
    let has_room = handle.state().work(head_bytes + whole.len());
    Ok(if has_room { Ok(whole) } else { Err(Refused::no_room()) })
}

/// Whether a body ended because the connection did.
fn is_cut_off(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    !source.is_some_and(|error| {
        error.kind() != std::io::ErrorKind::UnexpectedEof && error.raw_os_error().is_none()
    })
}

/// The answer to a request that is not taken.
fn refuse(
    handle: Arc<ConnectionHandle>,
    method: &Method,
    refused: Refused,
    began: Instant,
) -> Response<Outgoing> {
    let Refused { bound, mut answer } = refused;
    let counts = handle.counts();
    let now = Instant::now();
    match bound {
        Some(bound) => counts.bound_hit(bound),
        None => drop(counts.broken_connections.fetch_add(1, Ordering::Relaxed)),
    }
    let mut state = handle.state();
    counts.request(NO_ROUTE, method, answer.status(), now.saturating_duration_since(began));
    state.linger();
    drop(state);
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    outgoing(handle, (*answer).into(), HeaderMap::new(), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_path_or_names_a_host() {
        let is = |method, target: &str| target.parse().is_ok_and(|uri| is_target(&method, &uri));
        for target in
            ["/a/b", "/a?x=/://?", "/a://b", "http://host:80/a?b", "http://host", "*", "HTTPS://[::1]:80/a"]
        {
            assert!(is(Method::GET, target), "{target}");
        }
        for wrong in [
            "http:///x",
            "http://?x",
            "http://u@h/",
            "http://a b/",
            "ftp://host/",
            "://host/",
            "x",
            "x/y",
            "h:80",
        ] {
            assert!(!is(Method::GET, wrong), "{wrong}");
        }
        assert!(is(Method::CONNECT, "h:80"));
    }

    #[test]
    fn the_answer_without_a_head_says_the_same_as_with_one() {
        let text = std::str::from_utf8(NO_ROOM).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{} bytes", body.len());
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["reason"], NO_ROOM_TEXT);
        assert_eq!((no_room(false), no_room(true)), (NO_ROOM, format!("{head}\r\n\r\n").as_bytes()));
    }
}
