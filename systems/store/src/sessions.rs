//! Who is logged in.

use std::sync::Arc;

use crate::answer::Answer;

/// At most this many sessions are removed by one call of [`Sessions::sweep`].
pub const SWEEP_SESSIONS_MAX: usize = 1024;

/// Somebody who is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The random id that the client presents; a UUID as a number.
    pub id: u128,
    /// Whose session it is.
    pub customer_id: Arc<str>,
    /// When it began, milliseconds since 1970.
    pub created_ms: i64,
    /// From this moment on it does not count any more, milliseconds since 1970.
    pub expires_ms: i64,
}

/// Who is logged in.
pub trait Sessions: Send + Sync {
    /// Stores a session. One with the same id is replaced.
    fn create(&self, session: Session) -> Answer<'_, ()>;

    /// The session with this id, if there is one that has not expired at `now_ms`.
    /// One that has expired is absent, and is removed in passing.
    fn find(&self, id: u128, now_ms: i64) -> Answer<'_, Option<Session>>;

    /// Removes a session; tells whether it was there.
    fn remove(&self, id: u128) -> Answer<'_, bool>;

    /// How many are stored, expired ones that nobody has removed yet included.
    fn count(&self) -> Answer<'_, u64>;

    /// Removes sessions that have expired at `now_ms`, oldest first, and tells how many.
    /// One call does a bounded amount of work; call again at once while it returns
    /// [`SWEEP_SESSIONS_MAX`].
    fn sweep(&self, now_ms: i64) -> Answer<'_, u64>;
}
