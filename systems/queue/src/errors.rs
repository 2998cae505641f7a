//! What can go wrong, and what becomes of the message.

use std::error::Error;
use std::fmt;

/// The receiving side is gone or closed; here is the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Not sent; here is the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// No room at the moment.
    Full(T),
    /// The receiving side is gone or closed.
    Closed(T),
}

/// The receiving side is gone or closed, and took only some of a batch. The rest is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchError {
    /// Messages of the batch that were accepted before.
    pub accepted: u64,
}

/// Everything was received, and nothing more will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecvError;

/// Why there is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is none at the moment.
    Empty,
    /// Everything was received, and nothing more will come.
    Closed,
}

/// Why there is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// None came in time.
    Timeout,
    /// Everything was received, and nothing more will come.
    Closed,
}

impl<T> TrySendError<T> {
    /// The message that was not sent.
    pub fn into_message(self) -> T {
        match self {
            TrySendError::Full(message) | TrySendError::Closed(message) => message,
        }
    }
}

// A message need not have a text form for its error to have one.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

const NOT_SENT: &str = "the receiving side of the queue is gone or closed";
const NOTHING_MORE: &str = "the queue is closed and everything was received";

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NOT_SENT)
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "the queue has no room at the moment",
            TrySendError::Closed(_) => NOT_SENT,
        })
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NOT_SENT}, after {} messages of the batch", self.accepted)
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NOTHING_MORE)
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRecvError::Empty => "the queue is empty at the moment",
            TryRecvError::Closed => NOTHING_MORE,
        })
    }
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvTimeoutError::Timeout => "no message came in time",
            RecvTimeoutError::Closed => NOTHING_MORE,
        })
    }
}

impl<T> Error for SendError<T> {}
impl<T> Error for TrySendError<T> {}
impl Error for BatchError {}
impl Error for RecvError {}
impl Error for TryRecvError {}
impl Error for RecvTimeoutError {}
