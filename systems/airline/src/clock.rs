//! The wall clock, so that tests can put another in its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the airline takes the time from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The computer's clock.
    #[default]
    System,
    /// A clock that stands until somebody sets it, in milliseconds since 1970.
    Set(Arc<AtomicI64>),
}

impl Clock {
    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        match self {
            // Before 1970 and after year 292 million it is 1970.
            Clock::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()
                .and_then(|since| i64::try_from(since.as_millis()).ok())
                .unwrap_or(0),
            Clock::Set(time) => time.load(Ordering::SeqCst),
        }
    }
}
