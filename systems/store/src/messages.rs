//! What a message intake needs of its store.
//!
//! A message has a place: who sent it, when, of which kind, and an [id](MessageId). The intake gives the id before the
//! message goes anywhere, so whatever is done twice behind it (a retry, a replay of a buffer) leaves one message. Two
//! messages with different ids are two, however alike they are. A user's messages are read in the order of time, page by page.

mod id;
mod memory;
mod reader;
pub(crate) mod tree;

use std::sync::Arc;

use bytes::Bytes;

use crate::answer::Answer;
use crate::error::StoreError;
use crate::metrics::StoreMetrics;

pub use id::MessageId;
pub use memory::Memory;
pub use reader::TreeReader;
pub use tree::{Tree, TreeOptions};

/// The longest payload that a store takes.
pub const PAYLOAD_BYTES_MAX: usize = 4096;

/// Milliseconds in a day: stores may keep a user's messages apart by day (in UTC).
pub const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub user: u64,
    /// When, in milliseconds since 1970 (UTC), as the sender says.
    pub time_ms: u64,
    /// Three characters that say of which kind it is.
    pub kind: [u8; 3],
    /// What tells it from others of the same user, time and kind.
    pub id: MessageId,
    /// The message as it was sent; at most [`PAYLOAD_BYTES_MAX`] bytes, of whatever form.
    pub payload: Bytes,
}

impl Message {
    /// A user's message at a place.
    pub fn at(user: u64, Place { time_ms, kind, id }: Place, payload: Bytes) -> Message {
        Message { user, time_ms, kind, id, payload }
    }

    /// Where it stands among its user's messages.
    pub fn place(&self) -> Place {
        Place { time_ms: self.time_ms, kind: self.kind, id: self.id }
    }
}

/// A place in the order of a user's messages: by time, then by kind, then by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// See [`Message::time_ms`].
    pub time_ms: u64,
    /// See [`Message::kind`].
    pub kind: [u8; 3],
    /// See [`Message::id`].
    pub id: MessageId,
}

impl Place {
    /// The first place that a message of this time can have.
    pub fn first_of(time_ms: u64) -> Place {
        Place { time_ms, kind: [0; 3], id: MessageId::NONE }
    }
}

/// Some of a user's messages, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The messages.
    pub messages: Vec<Message>,
    /// The place of the last of them, if there may be more behind it: what to ask for next `after`. A page may end
    /// before its limit, when its messages are large, and the page after it may be empty.
    pub next: Option<Place>,
}

/// Which of a user's messages to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Whose.
    pub user: u64,
    /// Not those from before this time, in milliseconds since 1970.
    pub from_ms: u64,
    /// Nor those from this time on.
    pub to_ms: u64,
    /// Only what comes behind this place; from the begin if there is none.
    pub after: Option<Place>,
    /// At most this many; at least 1.
    pub limit: usize,
}

/// Where messages are kept.
pub trait Messages: Send + Sync {
    /// Keeps a message, in place of one that has its place; the answer comes when it is as durable as the store promises. A store that has too much
    /// to do answers [`StoreError::Busy`] at once, and has then not taken the message.
    fn add(&self, message: Message) -> Answer<'_, ()>;

    /// The time of a write that begins now, in microseconds, in a store that orders messages with one key by such times:
    /// later than that of each write that was acknowledged before, by whatever process. None where what comes last stays.
    fn time_of_write(&self) -> Option<Answer<'_, i64>> {
        None
    }

    /// Whether a time can be one that [`time_of_write`](Self::time_of_write) gave, to whatever process.
    fn can_be_time(&self, _at_us: i64) -> bool {
        true
    }

    /// Keeps a message as if it had been written at such a time, however late it comes.
    fn add_as_of(&self, message: Message, _at_us: i64) -> Answer<'_, ()> {
        self.add(message)
    }

    /// Answers when such a time is past for certain. Whoever took it may acknowledge only then.
    fn past(&self, _at_us: i64) -> Answer<'_, ()> {
        Answer::ready(Ok(()))
    }

    /// How many messages (different places) there are.
    fn count(&self) -> Answer<'_, u64>;

    /// How many messages were acknowledged and cannot be counted and read yet; none where they can at once.
    fn behind(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(0))
    }

    /// A page of a user's messages.
    fn of_user(&self, query: Query) -> Answer<'_, Page>;

    /// Says that many messages will be added on the async runtime of this thread, which does I/O and goes on running as long
    /// as they do. A store that is on the other side of a network may then have connections there.
    fn settle(&self) {}

    /// Why the store takes no messages now; none where it does, as far as is known without asking.
    fn trouble(&self) -> Option<&'static str> {
        self.metrics()
            .stopped
            .then_some("a write to the store has failed; it takes no more until the system is started again")
    }

    /// The store's counters, now.
    fn metrics(&self) -> StoreMetrics;
}

/// A store for messages, as a system holds it.
pub type MessageStore = Arc<dyn Messages>;

/// Refuses what no store takes.
pub fn check(message: &Message) -> Result<(), StoreError> {
    let bytes = message.payload.len();
    if bytes > PAYLOAD_BYTES_MAX {
        let reason = format!("it has {bytes} bytes, more than {PAYLOAD_BYTES_MAX}");
        return Err(StoreError::invalid("the message", reason));
    }
    Ok(())
}
