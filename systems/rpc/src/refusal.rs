//! Why a call is not done, as the service says it.

use std::borrow::Cow;

use tidemark_wire::rpc::code;

/// A call that is not done: a status of HTTP, and why in words. Over REST it is the answer's status, over the
/// WebSocket the error's code.
///
/// ```
/// use tidemark_rpc::Refusal;
/// let refusal = Refusal::new(409, "the seat is taken");
/// assert_eq!((refusal.code(), refusal.reason()), (409, "the seat is taken"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct Refusal {
    code: u16,
    reason: Cow<'static, str>,
}

impl Refusal {
    /// A refusal with this status; one that is none of failure (400 to 599) becomes 500.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>) -> Self {
        let code = if (400..600).contains(&code) { code } else { code::INTERNAL };
        Refusal { code, reason: reason.into() }
    }

    /// Arguments that are not what the method takes.
    pub fn bad(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::BAD_PAYLOAD, reason)
    }

    /// No such method.
    pub fn no_method() -> Self {
        Self::new(code::NO_METHOD, "no such method")
    }

    pub(crate) fn internal() -> Self {
        Self::new(code::INTERNAL, "an internal error; the log of the server has the details")
    }

    /// Its status.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
