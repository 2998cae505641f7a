//! Messages in the memory of the process, lost with it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;

use super::{Message, Messages, Page, Place, Query, check};
use crate::answer::Answer;
use crate::error::StoreError;
use crate::metrics::{OwnMetric, StoreMetrics};

/// Parts of the store that are locked apart, by user.
const SHARDS: usize = 16;
/// What a message costs beside its payload, roughly.
const ENTRY_BYTES: u64 = 128;
/// A page ends when its payloads have this many bytes.
pub(crate) const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

type Key = (u64, Place);
type Shard = RwLock<BTreeMap<Key, Bytes>>;

/// Messages in memory, up to a bound on their bytes: what is above is [`StoreError::Busy`].
///
/// ```
/// use tidemark_store::messages::{Memory, Message, MessageId, Messages};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = Memory::new(1_000_000);
/// let message = Message { user: 1, time_ms: 7, kind: *b"ABC", id: MessageId::unique(), payload: "0000000001…".into() };
/// store.add(message.clone()).await?;
/// store.add(message).await?; // the same again, by its id
/// assert_eq!(store.count().await?, 1);
/// # Ok::<(), tidemark_store::StoreError>(())
/// # }).unwrap();
/// ```
pub struct Memory {
    shards: [Shard; SHARDS],
    bytes_max: u64,
    bytes: AtomicU64,
    written: AtomicU64,
    refused: AtomicU64,
}

impl Memory {
    /// An empty store that holds at most `bytes_max` bytes, roughly.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Memory {
            shards: Default::default(),
            bytes_max,
            bytes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    fn shard(&self, user: u64) -> &Shard {
        &self.shards[(user % SHARDS as u64) as usize]
    }

    fn put(&self, message: Message) -> Result<(), StoreError> {
        check(&message)?;
        let cost = |payload: &Bytes| payload.len() as u64 + ENTRY_BYTES;
        let held = self.bytes.load(Ordering::Relaxed);
        if held + cost(&message.payload) > self.bytes_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Busy { what: "memory for messages is full" });
        }
        self.bytes.fetch_add(cost(&message.payload), Ordering::Relaxed);
        let key = (message.user, message.place());
        if let Some(before) = self.shard(message.user).write().insert(key, message.payload) {
            self.bytes.fetch_sub(cost(&before), Ordering::Relaxed);
        }
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn page(&self, query: &Query) -> Page {
        let Some(range) = query.range() else { return Page::default() };
        let shard = self.shard(query.user).read();
        let mut page = Page::default();
        let mut bytes = 0;
        for (&(user, place), payload) in shard.range(range) {
            if page.messages.len() >= query.limit.max(1) || bytes >= PAGE_BYTES_MAX {
                page.next = page.messages.last().map(Message::place);
                break;
            }
            bytes += payload.len();
            page.messages.push(Message::at(user, place, payload.clone()));
        }
        page
    }
}

impl Query {
    /// The keys to look at; nothing if there can be none.
    pub(crate) fn range(&self) -> Option<(Bound<Key>, Bound<Key>)> {
        let at = |time_ms| (self.user, Place::first_of(time_ms));
        let begin = match self.after {
            Some(place) if place >= at(self.from_ms).1 => Bound::Excluded((self.user, place)),
            _ => Bound::Included(at(self.from_ms)),
        };
        let (Bound::Included(first) | Bound::Excluded(first)) = begin else { return None };
        (first < at(self.to_ms)).then_some((begin, Bound::Excluded(at(self.to_ms))))
    }
}

impl Messages for Memory {
    fn add(&self, message: Message) -> Answer<'_, ()> {
        Answer::ready(self.put(message))
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.shards.iter().map(|shard| shard.read().len() as u64).sum()))
    }

    fn of_user(&self, query: Query) -> Answer<'_, Page> {
        Answer::ready(Ok(self.page(&query)))
    }

    fn metrics(&self) -> StoreMetrics {
        let bytes = OwnMetric {
            name: "memory_bytes",
            help: "Bytes that the messages take, roughly",
            is_counter: false,
            value: self.bytes.load(Ordering::Relaxed),
        };
        StoreMetrics {
            writes: self.written.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            own: vec![bytes],
            ..StoreMetrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::MessageId;

    fn wait<T>(answer: Answer<'_, T>) -> Result<T, StoreError> {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
    }

    #[test]
    fn what_is_too_much_is_refused_and_counted() {
        let store = Memory::new(ENTRY_BYTES + 10);
        let message = |time_ms, payload: Bytes| Message {
            user: 5,
            time_ms,
            kind: *b"ABC",
            id: MessageId::NONE,
            payload,
        };
        wait(store.add(message(1, "0123456789".into()))).unwrap();
        let error = wait(store.add(message(2, Bytes::new()))).unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        assert_eq!((store.metrics().writes, store.metrics().refused), (1, 1));
        let long = message(1, vec![b'x'; super::super::PAYLOAD_BYTES_MAX + 1].into());
        assert!(matches!(wait(store.add(long)), Err(StoreError::Invalid { .. })));
    }
}
