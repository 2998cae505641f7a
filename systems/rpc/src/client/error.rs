//! Why there is no answer.

use std::sync::Arc;

use crate::Refusal;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The service says so.
    #[error("refused with {0}")]
    Refused(Refusal),
    /// Its time was over. Whether it was done is not known.
    #[error("no answer within the deadline; whether it was done is not known")]
    Deadline,
    /// It was not sent: there is no connection.
    #[error("not sent, there is no connection: {0}")]
    NotConnected(Arc<str>),
    /// It was in flight when the connection was cut. Whether it was done is not known; it is not sent again.
    #[error("the connection was cut before the answer came ({0}); whether it was done is not known")]
    Cut(Arc<str>),
    /// It was not sent: too many calls wait already.
    #[error("not sent, {0} calls wait already; send fewer at once, or allow more to wait")]
    TooManyWait(usize),
    /// It was not sent: it waited its whole time for others to be answered.
    #[error("not sent, there was no room for it within its deadline")]
    NoRoom,
    /// It was not sent: its arguments are larger than the server takes.
    #[error("not sent, its arguments are larger than the {0} bytes that the server takes")]
    TooLarge(usize),
    /// It was not sent: its arguments cannot be written.
    #[error("not sent, its arguments cannot be written: {0}")]
    Unwritable(Refusal),
    /// It was not sent: the server does not have the method.
    #[error("not sent, the server has no method {0}")]
    NoMethod(&'static str),
    /// It was done, but what it returned cannot be read.
    #[error("done, but the answer cannot be read: {0}; do both sides have the same version of the service?")]
    Unreadable(Arc<str>),
    /// The method has no REST route.
    #[error("not sent, the method has no REST route; call it over a WebSocket")]
    NoRoute,
}

impl CallError {
    /// The method has no REST route.
    pub fn no_route() -> Self {
        CallError::NoRoute
    }

    pub(crate) fn unreadable(error: &Refusal) -> Self {
        CallError::Unreadable(error.reason().into())
    }
}
