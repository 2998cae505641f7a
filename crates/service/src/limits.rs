//! The bounds of a server. Nothing that a client does makes it hold more than these allow.

use std::time::Duration;

use tidemark_wire::http1::MAX_HEADERS;

use crate::ServiceError;

/// Bounds on what clients may hold or send; each one that is hit is counted in `/metrics`.
///
/// ```
/// use tidemark_service::Limits;
/// let limits = Limits { body_bytes_max: 4 * 1024, ..Limits::default() };
/// assert!(limits.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once, over all workers. One more is answered 503 and closed.
    pub connections_max: usize,
    /// Bytes of a request body. More is answered 413.
    pub body_bytes_max: usize,
    /// Bytes of a request head: request line and headers. More is answered 431.
    pub head_bytes_max: usize,
    /// Header lines of a request. More is answered 431.
    pub headers_max: usize,
    /// A connection that does not deliver a whole request head for this long is closed,
    /// whether it sends slowly or nothing at all.
    pub head_timeout: Duration,
    /// A request body must be there this long after its head, else 408. A client that takes nothing of an answer for
    /// as long is cut off.
    pub body_timeout: Duration,
    /// After the stop requests in flight have this long to finish; then their connections are cut.
    pub stop_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 16_384,
            body_bytes_max: 1024 * 1024,
            head_bytes_max: 16 * 1024,
            headers_max: 64,
            head_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            stop_deadline: Duration::from_secs(10),
        }
    }
}

/// What any client may expect to be taken.
const HEAD_BYTES_LEAST: usize = 8 * 1024;

impl Limits {
    /// Says what is wrong with these limits, if anything is.
    pub fn check(&self) -> Result<(), ServiceError> {
        let wrong = |name, given: String, allowed| Err(ServiceError::Setting { name, given, allowed });
        if self.connections_max == 0 {
            return wrong("the bound on connections", "0".into(), "at least 1");
        }
        if self.head_bytes_max < HEAD_BYTES_LEAST {
            return wrong(
                "the bound on a request head",
                self.head_bytes_max.to_string(),
                "at least 8192 bytes",
            );
        }
        if self.headers_max == 0 || self.headers_max > MAX_HEADERS {
            return wrong("the bound on header lines", self.headers_max.to_string(), "1 to 256");
        }
        for (name, time) in [("the head timeout", self.head_timeout), ("the body timeout", self.body_timeout)]
        {
            if time < Duration::from_millis(10) {
                return wrong(name, format!("{time:?}"), "at least 10 ms");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        assert!(Limits::default().check().is_ok());
        let none = Limits { connections_max: 0, ..Limits::default() };
        assert_eq!(
            none.check().unwrap_err().to_string(),
            "the bound on connections is 0; allowed is at least 1"
        );
        assert!(Limits { head_bytes_max: 100, ..Limits::default() }.check().is_err());
        assert!(Limits { body_timeout: Duration::ZERO, ..Limits::default() }.check().is_err());
    }
}
