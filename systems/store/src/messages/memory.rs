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

    fn message(user: u64, time_ms: u64, kind: &[u8; 3], text: &str) -> Message {
        Message {
            user,
            time_ms,
            kind: *kind,
            id: MessageId::NONE,
            payload: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    fn read(store: &Memory, query: Query) -> (Vec<(u64, [u8; 3])>, Option<Place>) {
        let page = wait(store.of_user(query)).unwrap();
        (page.messages.iter().map(|message| (message.time_ms, message.kind)).collect(), page.next)
    }

    const ALL: Query = Query { user: 5, from_ms: 0, to_ms: u64::MAX, after: None, limit: 100 };

    #[test]
    fn a_user_is_read_in_order_of_time_then_kind_and_page_by_page() {
        let store = Memory::new(1 << 20);
        for (time_ms, kind) in [(3, b"ABC"), (1, b"DEF"), (1, b"ABC"), (2, b"MNO"), (9, b"ABC")] {
            wait(store.add(message(5, time_ms, kind, "x"))).unwrap();
        }
        wait(store.add(message(21, 1, b"ABC", "another user of the same shard"))).unwrap();
        let expected = [(1, *b"ABC"), (1, *b"DEF"), (2, *b"MNO"), (3, *b"ABC"), (9, *b"ABC")];
        assert_eq!(read(&store, ALL), (expected.to_vec(), None));
        assert_eq!(read(&store, Query { from_ms: 2, to_ms: 9, ..ALL }).0, expected[2..4]);
        assert_eq!(read(&store, Query { from_ms: 9, to_ms: 2, ..ALL }).0, []);
        let mut after = None;
        let mut heard = Vec::new();
        for _ in 0..3 {
            let (some, next) = read(&store, Query { after, limit: 2, ..ALL });
            heard.extend(some);
            after = next;
        }
        assert_eq!((heard, after), (expected.to_vec(), None));
        assert_eq!(wait(store.count()).unwrap(), 6);
    }

    #[test]
    fn a_second_message_with_the_same_key_replaces_the_first() {
        let store = Memory::new(1 << 20);
        wait(store.add(message(5, 1, b"ABC", "first"))).unwrap();
        wait(store.add(message(5, 1, b"ABC", "second"))).unwrap();
        assert_eq!(wait(store.count()).unwrap(), 1);
        assert_eq!(wait(store.of_user(ALL)).unwrap().messages[0].payload, "second");
    }

    #[test]
    fn messages_with_the_same_key_and_other_ids_are_messages_of_their_own() {
        let store = Memory::new(1 << 20);
        let first = Message { id: MessageId::unique(), ..message(5, 1, b"ABC", "same") };
        let second = Message { id: MessageId::unique(), ..first.clone() };
        for message in [&second, &first, &second] {
            wait(store.add(message.clone())).unwrap();
        }
        assert_eq!(wait(store.count()).unwrap(), 2);
        assert_eq!(wait(store.of_user(ALL)).unwrap().messages, [first.clone(), second.clone()]);
        let behind = Query { after: Some(first.place()), ..ALL };
        assert_eq!(wait(store.of_user(behind)).unwrap().messages, [second]);
    }

    #[test]
    fn what_is_too_much_is_refused_and_counted() {
        let store = Memory::new(ENTRY_BYTES + 10);
        wait(store.add(message(5, 1, b"ABC", "0123456789"))).unwrap();
        let error = wait(store.add(message(5, 2, b"ABC", ""))).unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        assert_eq!((store.metrics().writes, store.metrics().refused), (1, 1));
        let long = message(5, 1, b"ABC", &"x".repeat(super::super::PAYLOAD_BYTES_MAX + 1));
        assert!(matches!(wait(store.add(long)), Err(StoreError::Invalid { .. })));
    }
}
