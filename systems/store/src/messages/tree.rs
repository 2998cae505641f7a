//! Messages in one directory: an ordered table of the embedded engine.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::memory::PAGE_BYTES_MAX;
use super::{Message, MessageId, Messages, PAYLOAD_BYTES_MAX, Page, Place, Query, check};
use crate::answer::Answer;
use crate::durability::Durability;
use crate::engine::bytes::{Malformed, Reader};
use crate::engine::disk::Watch;
use crate::engine::ordered::count::{self, Counting};
use crate::engine::ordered::{Key, Ordered, OrderedRow, entry};
use crate::engine::table::Tables;
use crate::engine::{Engine, LOG_BYTES, Options, describe};
use crate::error::StoreError;
use crate::metrics::{OwnMetric, StoreMetrics};

/// Bytes of a table in memory unless told otherwise.
const TABLE_BYTES: usize = 64 * 1024 * 1024;
/// And at most so many, as places in a table are of 32 bits.
const TABLE_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Messages that wait for the committer or are being committed, unless told otherwise.
const WAITING_MAX: usize = 8 * 1024;

const _: () = assert!(PAYLOAD_BYTES_MAX <= entry::VALUE_BYTES_MAX);

/// User and place: the order of everything. A row of two messages with different ids is two.
pub(crate) type MessageKey = (u64, Place);

impl Key for MessageKey {
    fn write(&self, to: &mut Vec<u8>) {
        let (user, Place { time_ms, kind, id }) = self;
        to.extend_from_slice(&user.to_be_bytes());
        to.extend_from_slice(&time_ms.to_be_bytes());
        to.extend_from_slice(kind);
        to.extend_from_slice(id.as_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        let user = u64::from_be_bytes(bytes.array()?);
        let (time_ms, kind) = (u64::from_be_bytes(bytes.array()?), bytes.array()?);
        Ok((user, Place { time_ms, kind, id: MessageId::from_bytes(bytes.array()?) }))
    }

    /// When the intake took it. A sender may give the same time for ever.
    fn locality(&self) -> u64 {
        self.1.id.given_ms().unwrap_or(self.1.time_ms)
    }
}

impl OrderedRow for Message {
    const TABLE: u8 = 11;
    const NAME: &'static str = "messages-by-id";
    type Key = MessageKey;

    fn key(&self) -> MessageKey {
        (self.user, self.place())
    }

    fn value(&self) -> &[u8] {
        &self.payload
    }

    fn of((user, place): MessageKey, payload: Bytes) -> Self {
        Message::at(user, place, payload)
    }
}

/// The tables of a message intake.
pub(crate) fn tables(messages: &Arc<Ordered<Message>>) -> Tables {
    Tables::default().ordered(messages)
}

/// How a [`Tree`] is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeOptions {
    /// What an acknowledged message is worth: `Buffered` or `Synced`; for `Memory` there is
    /// [`Memory`](super::Memory).
    pub durability: Durability,
    /// A table in memory is written as a run when it has this many bytes, at most 1 GiB; there are up to four at a time.
    pub table_bytes: usize,
    /// At most this many messages are taken and not answered; one more is [`StoreError::Busy`].
    pub waiting_max: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions { durability: Durability::Synced, table_bytes: TABLE_BYTES, waiting_max: WAITING_MAX }
    }
}

/// Messages in one directory, durable. Dropping it commits what waits and unlocks the directory.
///
/// ```
/// use tidemark_store::messages::{Message, MessageId, Messages, Query, Tree, TreeOptions};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
/// let store = Tree::open(dir, TreeOptions::default())?;
/// let message = Message { user: 1, time_ms: 7, kind: *b"ABC", id: MessageId::unique(), payload: "0000000001…".into() };
/// store.add(message).await?; // on disk now
/// let all = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 10 };
/// assert_eq!(store.of_user(all).await?.messages[0].payload, "0000000001…");
/// # Ok::<(), tidemark_store::StoreError>(())
/// # }).unwrap();
/// ```
pub struct Tree {
    engine: Engine,
    messages: Arc<Ordered<Message>>,
    counting: Arc<Counting>,
}

impl Tree {
    /// Opens the store in `dir`, making it if need be, and reads back what no run has yet.
    pub fn open(dir: &Path, options: TreeOptions) -> Result<Arc<Self>, StoreError> {
        Self::open_watched(dir, options, None)
    }

    pub(crate) fn open_watched(
        dir: &Path,
        options: TreeOptions,
        watch: Option<Arc<dyn Watch>>,
    ) -> Result<Arc<Self>, StoreError> {
        let options = Options {
            durability: options.durability,
            waiting_max: options.waiting_max,
            is_refusing: true,
            table_bytes: options.table_bytes.min(TABLE_BYTES_MAX),
            log_bytes_min: LOG_BYTES,
        };
        let messages = Arc::default();
        let engine = Engine::open(dir, options, tables(&messages), watch)?;
        Ok(Arc::new(Tree { engine, messages, counting: Arc::default() }))
    }

    /// Runs `work`, which reads files, where it holds up nobody.
    fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Ordered<Message>) -> std::io::Result<T> + Send + 'static,
    ) -> Answer<'static, T> {
        let (dir, messages) = (self.engine.dir().to_owned(), self.messages.clone());
        Answer::boxed(async move {
            let work = move || work(&messages).map_err(|error| describe(&dir, &error));
            tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Closed))
        })
    }
}

fn read_page(messages: &Ordered<Message>, query: &Query) -> std::io::Result<Page> {
    let Some((begin, Bound::Excluded(end))) = query.range() else { return Ok(Page::default()) };
    let mut page = Page::default();
    let mut bytes = 0;
    for message in messages.view().rows::<Message>(begin, Some(end)) {
        let message = message?;
        if page.messages.len() >= query.limit.max(1) || bytes >= PAGE_BYTES_MAX {
            page.next = page.messages.last().map(Message::place);
            break;
        }
        bytes += message.payload.len();
        page.messages.push(message);
    }
    Ok(page)
}

impl Messages for Tree {
    fn add(&self, message: Message) -> Answer<'_, ()> {
        match check(&message) {
            Ok(()) => {
                let put = move |out: &mut Vec<u8>| {
                    Ordered::put(&message, out);
                    1
                };
                self.engine.submit(put, |_| ())
            }
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn count(&self) -> Answer<'_, u64> {
        let (counting, messages) = (self.counting.clone(), self.messages.clone());
        let dir = self.engine.dir().to_owned();
        Answer::boxed(async move {
            let work = move || count::distinct(&messages.view()).map_err(|error| describe(&dir, &error));
            counting.count(work).await
        })
    }

    fn of_user(&self, query: Query) -> Answer<'_, Page> {
        self.aside(move |messages| read_page(messages, &query))
    }

    fn metrics(&self) -> StoreMetrics {
        let (counters, view) = (self.engine.counters(), self.messages.view());
        let own = OwnMetric::gauge;
        let counter = OwnMetric::counter;
        let missing = "Messages that damaged logs no longer had at the start, at least";
        StoreMetrics {
            own: vec![
                own("tables", "Tables of messages in memory", view.tables.len() as u64),
                own("table_bytes", "Bytes of those tables, roughly", view.table_bytes() as u64),
                own("runs", "Ordered files of messages", view.runs.len() as u64),
                own("missing", missing, self.engine.opened.missing),
                counter("stalls", "Times that the committer waited for room in memory", &counters.stalls),
                counter("stall_us", "Microseconds that it waited", &counters.stall_sum_us),
                counter("flushes", "Tables written as runs", &counters.flushes),
                counter("merges", "Times that runs were made one", &counters.merges),
                counter("merged_messages", "Messages written again by that", &counters.merged_rows),
            ],
            ..self.engine.metrics()
        }
    }
}
