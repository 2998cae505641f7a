//! What queues over the wire have in common: messages as bytes, which are numbered, and how a link ends.
//!
//! A link carries the messages of one queue from one process to another. It numbers them from 0 on; a *position* is a number
//! of messages, hence the number of the message that comes next. Both ends keep to the ends that a queue in memory has
//! ([`Sender`](crate::Sender), [`Receiver`](crate::Receiver)), so that a program swaps one for the other where it is made.

use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sync::lock;

/// A message that a link can carry: one that serde writes and reads. It crosses in postcard's form.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Message for T {}

/// How an end of a link is to be. What is not said has a sensible default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub(crate) queue: crate::Options,
    pub(crate) message_bytes_max: usize,
    pub(crate) position: Option<u64>,
    pub(crate) replays: bool,
    pub(crate) within: Duration,
}

impl Options {
    /// Most bytes that [`message_bytes_max`](Options::message_bytes_max) can allow.
    pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

    /// A queue as it is by default, messages of 1 MiB at most, 10 s for the other side to answer.
    pub const fn new() -> Options {
        Options {
            queue: crate::Options::new(),
            message_bytes_max: 1 << 20,
            position: None,
            replays: false,
            within: Duration::from_secs(10),
        }
    }

    /// How the queue in this process is to be. A receiving end asks for as many messages ahead as it has room for; a sending
    /// end keeps as many that are not acknowledged.
    pub const fn queue(mut self, queue: crate::Options) -> Options {
        self.queue = queue;
        self
    }

    /// Most bytes of one message. The same on both sides.
    pub const fn message_bytes_max(mut self, bytes: usize) -> Options {
        self.message_bytes_max =
            if bytes > Options::MESSAGE_BYTES_MAX { Options::MESSAGE_BYTES_MAX } else { bytes };
        self
    }

    /// For a receiver that stores its position together with what the messages do: it begins with the message of this number,
    /// and nothing counts as acknowledged but what `acknowledge` is told. Without it a message is acknowledged when it is taken.
    pub const fn position(mut self, position: u64) -> Options {
        self.position = Some(position);
        self
    }

    /// For a sender that has a log of all messages: it goes on with the first message that is not acknowledged, at
    /// [`Outgoing::position`], and what the receiver has by then is passed over there.
    pub const fn replays(mut self) -> Options {
        self.replays = true;
        self
    }

    /// How long the other side may take to answer when a link is made.
    pub const fn within(mut self, within: Duration) -> Options {
        self.within = within;
        self
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

/// Why a link is not made, or ended before everything was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteError {
    /// The other side does not answer.
    Unreachable {
        /// Its address.
        place: String,
        /// What happened.
        reason: String,
    },
    /// The receiving side is gone or closed.
    Closed {
        /// The messages before this position were acknowledged, none behind it was.
        acknowledged: u64,
    },
    /// Not everything was acknowledged in time.
    Unfinished {
        /// The messages before this position were acknowledged.
        acknowledged: u64,
    },
    /// The two sides do not fit together, with the reason.
    Refused(String),
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Unreachable { place, reason } => write!(f, "{place} does not answer: {reason}"),
            RemoteError::Closed { acknowledged } => {
                write!(
                    f,
                    "the receiving side of the queue is gone or closed; it took {acknowledged} messages"
                )
            }
            RemoteError::Unfinished { acknowledged } => {
                write!(f, "not every message was acknowledged in time; the first {acknowledged} were")
            }
            RemoteError::Refused(reason) => f.write_str(reason),
        }
    }
}

impl Error for RemoteError {}

/// What a sender in another process failed with ([`Sender::fail`](crate::Sender::fail)), as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFailure(pub String);

impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RemoteFailure {}

/// What a receiver's queue fails with whose link was dropped before the end.
pub(crate) const GIVEN_UP: &str = "the link was given up before the end of the queue";

/// A message's bytes.
pub(crate) fn write<T: Message>(message: &T, number: u64, bytes_max: usize) -> Result<Vec<u8>, RemoteError> {
    let refused = |why: String| RemoteError::Refused(format!("message {number} cannot be sent: {why}"));
    let bytes = postcard::to_stdvec(message).map_err(|error| refused(error.to_string()))?;
    if bytes.len() > bytes_max {
        return Err(refused(format!("it has {} bytes, and {bytes_max} are allowed", bytes.len())));
    }
    Ok(bytes)
}

/// The message that these bytes are, all of them.
pub(crate) fn read<T: Message>(bytes: &[u8], number: u64) -> Result<T, RemoteError> {
    let refused =
        |why: &dyn fmt::Display| RemoteError::Refused(format!("message {number} cannot be read: {why}"));
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(refused(&format_args!("{} bytes are left over", rest.len()))),
        Err(error) => Err(refused(&error)),
    }
}

/// The sending end's hold on its link. Dropped before [`finish`](Outgoing::finish), it gives the link up: what is not
/// acknowledged may be lost.
pub struct Outgoing {
    position: u64,
    link: Arc<Link>,
}

impl Outgoing {
    pub(crate) fn new(position: u64) -> Outgoing {
        Outgoing { position, link: Arc::default() }
    }

    /// The link, for whoever works for it.
    pub(crate) fn link(&self) -> Arc<Link> {
        self.link.clone()
    }

    /// The number of the first message that is sent: all before are the receiver's.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The messages before this position are acknowledged, and need not be sent again whatever happens.
    pub fn acknowledged(&self) -> u64 {
        self.link.acknowledged.load(Ordering::Acquire).max(self.position)
    }

    /// Waits, once all senders of the queue are dropped, until everything and the end are acknowledged.
    ///
    /// # Errors
    /// If the link ended before that, or the time is over, which ends it.
    pub fn finish(self, within: Duration) -> Result<(), RemoteError> {
        let begun = Instant::now();
        let mut state = lock(&self.link.state);
        loop {
            if let Some(outcome) = state.outcome.clone() {
                return outcome;
            }
            let Some(left) = within.checked_sub(begun.elapsed()) else {
                drop(state);
                return Err(RemoteError::Unfinished { acknowledged: self.acknowledged() });
            };
            let waited = self.link.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        lock(&self.link.state).given_up = true;
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("position", &self.position)
            .field("acknowledged", &self.acknowledged())
            .finish()
    }
}

/// What an [`Outgoing`] and the thread that sends know of each other.
#[derive(Default)]
pub(crate) struct Link {
    acknowledged: AtomicU64,
    state: std::sync::Mutex<LinkState>,
    ended: std::sync::Condvar,
}

#[derive(Default)]
struct LinkState {
    outcome: Option<Result<(), RemoteError>>,
    given_up: bool,
}

impl Link {
    pub(crate) fn is_given_up(&self) -> bool {
        lock(&self.state).given_up
    }

    pub(crate) fn set_acknowledged(&self, position: u64) {
        self.acknowledged.store(position, Ordering::Release);
    }

    pub(crate) fn end(&self, outcome: Result<(), RemoteError>) {
        lock(&self.state).outcome.get_or_insert(outcome);
        self.ended.notify_all();
    }
}

/// A number that nobody else has or knows: of a sender, a handshake, a mask.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A thread of this name.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), RemoteError> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    spawned.map(drop).map_err(|error| RemoteError::Refused(format!("no thread can be started: {error}")))
}
