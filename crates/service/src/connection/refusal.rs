//! Requests that are not taken.

use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use tidemark_wire::http1::{HttpError, RequestDecoder};

use super::Connection;
use crate::Answer;
use crate::answer::reason;
use crate::metrics::{Bound, WorkerCounts};

/// The answer to a request that is not taken; the connection ends behind it.
pub(super) struct Refused {
    pub(super) answer: Answer,
    /// Where it is known that far, it is counted as a request.
    pub(super) method: Option<Method>,
    /// It is answered without a body.
    pub(super) is_head: bool,
}

impl Refused {
    /// One whose head is there, if there is one.
    pub(super) fn whose_head_is_there(answer: Response<Body>, decoder: Option<&RequestDecoder>) -> Self {
        let method = decoder.and_then(|decoder| Method::from_bytes(decoder.method()).ok());
        Refused { answer: answer.into(), is_head: method == Some(Method::HEAD), method }
    }

    /// One that is none, or larger than is taken; `bytes` are its latest.
    pub(super) fn of(
        error: HttpError,
        decoder: &RequestDecoder,
        bytes: &[u8],
        counts: &WorkerCounts,
    ) -> Self {
        // the decoder has put nothing aside of what was wrong from its first byte on
        let head = if decoder.head().is_empty() { bytes } else { decoder.head() };
        let (status, text) = match error {
            HttpError::HeadTooLarge { limit_bytes } => {
                counts.bound_hit(Bound::Head);
                let line_bytes = head.iter().position(|&byte| byte == b'\n').unwrap_or(head.len());
                if line_bytes > limit_bytes / 2 {
                    let text = format!("the target does not fit into a head of {limit_bytes} bytes");
                    (StatusCode::URI_TOO_LONG, text)
                } else {
                    (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, error.to_string())
                }
            }
            HttpError::TooManyHeaders { .. } => {
                counts.bound_hit(Bound::Head);
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, error.to_string())
            }
            HttpError::BodyTooLarge { limit_bytes } => {
                counts.bound_hit(Bound::Body);
                let text = format!("the body is larger than {limit_bytes} bytes");
                return Self::whose_head_is_there(
                    reason(StatusCode::PAYLOAD_TOO_LARGE, &text),
                    Some(decoder),
                );
            }
            error => {
                counts.broken_connections.fetch_add(1, Ordering::Relaxed);
                (StatusCode::BAD_REQUEST, error.to_string())
            }
        };
        let is_head = head.trim_ascii_start().starts_with(b"HEAD ");
        Refused { answer: reason(status, &text).into(), method: None, is_head }
    }
}

impl Connection<'_> {
    /// All connections together hold as much as they may.
    pub(super) fn no_room(&self, decoder: Option<&RequestDecoder>) -> Refused {
        self.counts.bound_hit(Bound::Held);
        let text = "the server's memory for requests and answers is taken; try again in a second";
        let mut answer = reason(StatusCode::SERVICE_UNAVAILABLE, text);
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        Refused::whose_head_is_there(answer, decoder)
    }
}
