//! Answers that every system gives in the same form.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use bytes::Bytes;

/// What a request is answered with: a status and a body of some type, or any other response. The former costs no
/// table of headers, and is most of what a busy system answers.
///
/// ```
/// use axum::http::StatusCode;
/// use tidemark_service::Answer;
///
/// let taken = Answer::new(StatusCode::OK, "text/plain", "OK");
/// assert_eq!(taken.status(), 200);
/// let refused = Answer::from(tidemark_service::reason(StatusCode::BAD_REQUEST, "no such day"));
/// assert_eq!(refused.status(), 400);
/// ```
#[derive(Debug)]
pub struct Answer(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    Plain { status: StatusCode, content_type: &'static str, body: Bytes },
    // boxed: an answer is handed on from place to place, and most have no such table
    Full(Box<Response<Body>>),
}

impl Answer {
    /// An answer with a body of the given content type and no other header of its own.
    pub fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Answer(Content::Plain { status, content_type, body: body.into() })
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        match &self.0 {
            Content::Plain { status, .. } => *status,
            Content::Full(response) => response.status(),
        }
    }
}

impl From<Response<Body>> for Answer {
    fn from(response: Response<Body>) -> Self {
        Answer(Content::Full(Box::new(response)))
    }
}

impl IntoResponse for Answer {
    /// The same for the router, which makes a table of headers for every answer.
    fn into_response(self) -> Response<Body> {
        match self.0 {
            Content::Plain { status, content_type, body } => typed(status, content_type, body),
            Content::Full(response) => *response,
        }
    }
}

/// An answer that says why, as JSON: `{"reason":"…"}`. Whatever is in `reason` is escaped.
///
/// ```
/// use axum::http::StatusCode;
/// let answer = tidemark_service::reason(StatusCode::BAD_REQUEST, "fromDate is missing");
/// assert_eq!(answer.status(), 400);
/// assert_eq!(answer.headers()["content-type"], "application/json");
/// ```
pub fn reason(status: StatusCode, reason: &str) -> Response<Body> {
    #[derive(serde::Serialize)]
    struct Reason<'a> {
        reason: &'a str,
    }
    // A struct of one string always serialises.
    let body = serde_json::to_vec(&Reason { reason }).unwrap_or_default();
    json(status, body)
}

/// The answer to a method that a route does not have; the router adds `Allow`.
pub(crate) const NOT_ALLOWED_TEXT: &str =
    "this path does not have that method; the Allow header names those it has";

/// The answer to a method that a path does not have, with those it has.
pub fn not_allowed(allow: &str) -> Response<Body> {
    let mut refusal = reason(StatusCode::METHOD_NOT_ALLOWED, NOT_ALLOWED_TEXT);
    if let Ok(allow) = HeaderValue::try_from(allow) {
        refusal.headers_mut().insert(header::ALLOW, allow);
    }
    refusal
}

/// An answer whose body is already JSON.
pub fn json(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    typed(status, "application/json", body)
}

/// An answer in plain text.
pub fn text(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", body)
}

/// An answer with a body of the given content type.
pub fn typed(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reason_is_escaped() {
        let answer = reason(StatusCode::NOT_FOUND, "no \"x\"\n</script>");
        let body = axum::body::to_bytes(answer.into_body(), 1000).await.unwrap();
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["reason"], "no \"x\"\n</script>");
        assert!(!body.contains(&b'\n'));
    }
}
