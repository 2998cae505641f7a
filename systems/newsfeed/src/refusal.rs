//! Answers that refuse: a status and the reason, as JSON.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use tidemark_store::StoreError;

use crate::operations::Fails;

/// Why a request is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: Cow<'static, str>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<Cow<'static, str>>) -> Self {
        Refusal { status, error: error.into() }
    }

    /// 400.
    pub(crate) fn bad(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// 404 for a participant.
    pub(crate) fn nobody(id: u64) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no participant {id}"))
    }

    /// 503.
    pub(crate) fn unavailable(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }
}

/// The answer that says why: `{"error": "…"}`.
pub(crate) fn refuse(status: StatusCode, error: &str) -> Response<Body> {
    tidemark_service::json(status, serde_json::json!({ "error": error }).to_string())
}

impl Fails for Refusal {
    fn status(&self) -> StatusCode {
        self.status
    }
}

impl Fails for StoreError {
    fn status(&self) -> StatusCode {
        match self {
            StoreError::Invalid { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = error.status();
        match error {
            StoreError::Invalid { what, reason } => Refusal::new(status, format!("{what}: {reason}")),
            StoreError::Busy { what } => {
                Refusal::new(status, format!("a store is busy: {what}; try again later"))
            }
            // The store itself logs its failures, once; here one would be logged for each request.
            error => {
                tracing::debug!(%error, "a request failed in a store");
                Refusal::new(status, "a store does not work; the log has the details")
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        refuse(self.status, &self.error)
    }
}
