//! Answers that refuse: a status and the reason, as JSON; when to come again, if that helps.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tidemark_store::StoreError;

use crate::payload::NotAMessage;

/// Seconds until a client that was refused may try again: a queue that is full is empty long before.
const RETRY_AFTER_S: &str = "1";

/// Why a request is not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// 400.
    BadRequest(Cow<'static, str>),
    /// 503.
    Unavailable(Cow<'static, str>),
}

impl From<NotAMessage> for Refusal {
    fn from(error: NotAMessage) -> Self {
        Refusal::BadRequest(error.to_string().into())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid { what, reason } => Refusal::BadRequest(format!("{what}: {reason}").into()),
            StoreError::Busy { .. } => Refusal::Unavailable("too many messages wait; try again later".into()),
            // The store itself logs its failures, once; here one would be logged for each request.
            error => {
                tracing::debug!(%error, "a request failed in the store");
                Refusal::Unavailable("the store does not work; the log has the details".into())
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Refusal::BadRequest(reason) => tidemark_service::reason(StatusCode::BAD_REQUEST, &reason),
            Refusal::Unavailable(reason) => {
                let mut response = tidemark_service::reason(StatusCode::SERVICE_UNAVAILABLE, &reason);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
                response
            }
        }
    }
}
