//! From an HTTP request to a WebSocket for calls.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use tidemark_wire::websocket::handshake::{self, HandshakeError, Key};

use crate::Form;
use tidemark_service::{EndpointRequest, not_allowed, reason};

/// The answer to a request for a WebSocket and the form of its payloads, or why not.
pub(crate) fn agree(request: &EndpointRequest<'_>) -> Result<(Response<Body>, Form), Box<Response<Body>>> {
    let (key, form) = check(request)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::from_bytes(&handshake::accept(&key)) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(form.protocol()));
    Ok((response, form))
}

fn check(request: &EndpointRequest<'_>) -> Result<(Key, Form), Box<Response<Body>>> {
    let headers = request.headers;
    let refused = |error: HandshakeError| Box::new(reason(StatusCode::BAD_REQUEST, &error.to_string()));
    if *request.method != Method::GET {
        return Err(Box::new(not_allowed("GET")));
    }
    if !has_token(headers, header::UPGRADE, "websocket") {
        let text = format!("calls are made over a WebSocket: {}", HandshakeError::Upgrade);
        let mut refusal = reason(StatusCode::UPGRADE_REQUIRED, &text);
        refusal.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        return Err(Box::new(refusal));
    }
    if !has_token(headers, header::CONNECTION, "upgrade") || request.version != Version::HTTP_11 {
        return Err(refused(HandshakeError::Connection));
    }
    if only(headers, header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        let mut refusal = reason(StatusCode::UPGRADE_REQUIRED, &HandshakeError::Version.to_string());
        refusal.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(Box::new(refusal));
    }
    let key = only(headers, header::SEC_WEBSOCKET_KEY).and_then(|key| Key::try_from(key.as_bytes()).ok());
    let key = key.filter(handshake::is_key).ok_or_else(|| refused(HandshakeError::Key))?;
    let offered = tokens(headers, header::SEC_WEBSOCKET_PROTOCOL);
    let form = offered.into_iter().find_map(Form::of_protocol).ok_or_else(|| {
        let known = [Form::Json, Form::Binary].map(Form::protocol).join(" or ");
        Box::new(reason(
            StatusCode::BAD_REQUEST,
            &format!("offer a subprotocol that is spoken here: {known}"),
        ))
    })?;
    Ok((key, form))
}

/// The value of a header that must not stand there twice: who would take the first, and who the last?
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

fn tokens(headers: &HeaderMap, name: header::HeaderName) -> Vec<&str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).collect()
}

fn has_token(headers: &HeaderMap, name: header::HeaderName, token: &str) -> bool {
    tokens(headers, name).iter().any(|part| part.eq_ignore_ascii_case(token))
}
