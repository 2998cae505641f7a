//! Answers that refuse: a status and the reason, as JSON.

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tidemark_store::StoreError;

/// Why a request is not done.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    reason: Cow<'static, str>,
}

impl Refusal {
    /// A refusal. The reason is shown to the client.
    pub fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Refusal { status, reason: reason.into() }
    }

    /// 400.
    pub fn bad_request(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// 403.
    pub fn forbidden(reason: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason)
    }

    /// Its status.
    #[cfg(test)]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid { what, reason } => Refusal::bad_request(format!("{what}: {reason}")),
            // The store itself logs its failures, once; here one would be logged for each request.
            error => {
                tracing::debug!(%error, "a request failed in the store");
                Refusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the store does not work; the log has the details",
                )
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = tidemark_service::reason(self.status, &self.reason);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
