//! Messages in one directory: a log for what was just taken, ordered runs for the rest.
//!
//! ```text
//! add ─▶ bounded queue ─▶ committer: append the group to the log, sync once ─▶ table in memory ─▶ wake the senders
//!                                          table full: a new log and a new table; the old table ─▶ run
//!                                          eight runs of a size ─▶ one larger run
//! read ─▶ tables and runs, merged; the youngest of several with the same key counts
//! ```
//!
//! It is a log-structured merge tree reduced to what messages need: they are written once, in bulk, with keys that
//! are small, and read in order afterwards. Compared with a tree for everything, a group costs one write and one
//! sync and an entry in one ordered map; nothing is looked up when a message comes. Each merge joins eight runs, so
//! thirty million messages have been written three times (log, run, merged run) and lie in about a dozen runs.
//!
//! **Counting.** A message that replaces another must not be counted twice, and looking each one up when it comes
//! would cost more than storing it. Two messages with the same key have the same time, and what was written at
//! different times mostly has different times too: so the count is the sum of all sources, less what is found twice
//! in those blocks whose times meet those of another source. Exact always, and quick unless old times keep coming.
//!
//! **Damage.** Checksums say whose bytes they are and where; the manifest names every file that counts, and where each
//! log ends, or a marker that is written before each acknowledgement does. So what is changed, cut off, exchanged or
//! missing is told: at the start, for a block of a run when it is read. Only what a process that dies can leave, a torn
//! tail of the newest log behind all that was acknowledged, is cut off.
//!
//! **Bounds.** The queue by messages and bytes: what is above is refused at once. Memory by tables: when runs are
//! not written as fast as tables fill, the committer waits (counted as a stall), the queue fills and senders are
//! refused. **Fail-stop**: as everywhere here, see `commit`.

#[cfg(test)]
mod any_bytes;
mod background;
mod commit;
mod count;
mod entry;
#[cfg(test)]
mod faults;
mod found;
mod lane;
mod log;
mod manifest;
mod marker;
mod merge;
#[cfg(all(test, unix))]
mod power_loss;
mod reader;
mod run;
mod seal;
mod table;

use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock};

use self::background::{Background, Files, Levelled};
use self::commit::Intake;
use self::count::Counting;
use self::entry::Key;
use self::found::Found;
use self::manifest::LogLine;
use self::marker::{Marker, MarkerFile};
use self::merge::{Merge, Source};
pub use self::reader::TreeReader;
use self::table::Table;
use super::memory::PAGE_BYTES_MAX;
use super::{Message, Messages, MessagesMetrics, OwnMetric, Page, Place, Query, check};
use crate::answer::Answer;
use crate::disk::{Disk, Watch};
use crate::durability::Durability;
use crate::error::StoreError;
use crate::files::{Lock, make_dir};

/// Entries that are copied out of a table in one go.
const TABLE_CHUNK: usize = 1024;
/// Bytes of a table in memory unless told otherwise.
const TABLE_BYTES: usize = 64 * 1024 * 1024;
/// And at most so many, as places in a table are of 32 bits.
const TABLE_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Messages that wait for the committer or are being committed, unless told otherwise.
const WAITING_MAX: usize = 8 * 1024;
/// Full tables that wait to be written as runs; with another, the committer waits.
const FULL_TABLES_MAX: usize = 2;

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

/// A table with the number of the log that has the same messages.
pub(crate) struct Logged {
    log_id: u64,
    table: RwLock<Table>,
}

/// Where the messages are at a moment.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// From the oldest; the last one is the one that is being filled.
    tables: Vec<Arc<Logged>>,
    /// From the oldest, all older than the tables.
    runs: Vec<Levelled>,
}

/// What the threads of a store share.
pub(crate) struct Shared {
    disk: Disk,
    options: TreeOptions,
    view: RwLock<View>,
    /// Whoever waits for a change of the view, for the end or for a failure waits here.
    turn: Mutex<()>,
    changed: Condvar,
    is_closing: AtomicBool,
    /// Why the store stopped taking messages.
    failure: OnceLock<Arc<str>>,
    background: background::Counters,
    files: Mutex<Files>,
    /// Messages that damaged logs no longer had when the store was opened.
    missing: u64,
}

impl Shared {
    /// Lets those who wait look again.
    fn announce(&self) {
        let _turn = self.turn.lock();
        self.changed.notify_all();
    }

    /// Waits until `ready` gives something; nothing at the end or after a failure.
    fn wait_for<T>(&self, mut ready: impl FnMut(&View) -> Option<T>) -> Option<T> {
        let mut turn = self.turn.lock();
        loop {
            if self.failure.get().is_some() {
                return None;
            }
            if let Some(found) = ready(&self.view.read()) {
                return Some(found);
            }
            if self.is_closing.load(Ordering::Acquire) {
                return None;
            }
            self.changed.wait(&mut turn);
        }
    }

    /// Stops the store.
    fn fail(&self, doing: &str, error: &io::Error) -> Arc<str> {
        let reason: Arc<str> = format!("{doing}: {error}").into();
        tracing::error!(%reason, "the store stops taking messages");
        let _ = self.failure.set(reason.clone());
        self.announce();
        reason
    }
}

/// Messages in one directory, durable. Dropping it commits what waits and unlocks the directory.
///
/// ```
/// use tidemark_store::messages::{Message, Messages, Query, Tree, TreeOptions};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
/// let store = Tree::open(dir, TreeOptions::default())?;
/// store.add(Message { user: 1, time_ms: 7, kind: *b"ABC", payload: "0000000001…".into() }).await?; // on disk now
/// let all = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 10 };
/// assert_eq!(store.of_user(all).await?.messages[0].payload, "0000000001…");
/// # Ok::<(), tidemark_store::StoreError>(())
/// # }).unwrap();
/// ```
pub struct Tree {
    // The order is that of dropping: first nobody writes any more, then nobody works in the background.
    intake: Intake,
    background: Background,
    shared: Arc<Shared>,
    counting: Arc<Counting>,
    _lock: Lock,
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
        let failed = |error: io::Error| describe(dir, &error);
        let options = TreeOptions { table_bytes: options.table_bytes.min(TABLE_BYTES_MAX), ..options };
        let begun = Instant::now();
        make_dir(dir).map_err(failed)?;
        let lock = Lock::take(dir)?;
        let disk = Disk::new(dir, watch);
        let Found { mut view, mut manifest, next_log, next_run, unsynced, rests, missing } =
            Found::read(&disk, options.durability).map_err(failed)?;
        tracing::info!(
            dir = %dir.display(), durability = %options.durability, runs = view.runs.len(),
            logs = view.tables.len(), took_ms = begun.elapsed().as_millis() as u64, "messages opened"
        );
        // what the manifest is about to say must not be more than there is after a power cut
        let rewritten = unsynced.iter().try_for_each(|(id, bytes)| disk.rewrite(&log::name(*id), *bytes));
        rewritten.map_err(failed)?;
        let log = log::Log::create(&disk, manifest.store, next_log).map_err(failed)?;
        if manifest.logs.is_empty() && manifest.runs.is_empty() {
            // a marker is there before the first manifest is, so that one that is missing was taken away
            MarkerFile::begin(&disk, Marker::new(manifest.store, 0)).map_err(failed)?;
        }
        manifest.logs.push(LogLine { id: log.id(), end: None });
        manifest.write(&disk).map_err(failed)?;
        let marker = MarkerFile::begin(&disk, Marker::new(manifest.store, log.id())).map_err(failed)?;
        rests.iter().for_each(|name| disk.remove(name));
        view.tables.push(Arc::new(Logged::new(log.id(), options.table_bytes)));
        let shared = Arc::new(Shared {
            disk,
            options,
            view: RwLock::new(view),
            turn: Mutex::new(()),
            changed: Condvar::new(),
            is_closing: AtomicBool::new(false),
            failure: OnceLock::new(),
            background: background::Counters::default(),
            files: Mutex::new(Files { manifest, next_run }),
            missing,
        });
        let background = Background::start(&shared).map_err(failed)?;
        let intake = Intake::start(shared.clone(), log, marker).map_err(failed)?;
        Ok(Arc::new(Tree { intake, background, shared, counting: Arc::default(), _lock: lock }))
    }
}

impl Logged {
    fn new(log_id: u64, bytes: usize) -> Self {
        Logged { log_id, table: RwLock::new(Table::with_room(bytes)) }
    }
}

fn describe(dir: &Path, error: &io::Error) -> StoreError {
    let (dir, reason) = (dir.to_owned(), error.to_string().into());
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::Unreadable { dir, reason },
        io::ErrorKind::Unsupported => StoreError::Format { dir, reason },
        _ => StoreError::Open { dir, reason },
    }
}

/// The entries of a table, copied out of it a few at a time.
struct TableEntries {
    logged: Arc<Logged>,
    begin: Bound<Key>,
    /// None: to the last one.
    end: Option<Key>,
    some: std::vec::IntoIter<(Key, Bytes)>,
}

impl Iterator for TableEntries {
    type Item = io::Result<(Key, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.some.next() {
            return Some(Ok(entry));
        }
        let some = self.logged.table.read().some(self.begin, self.end, TABLE_CHUNK);
        self.begin = Bound::Excluded(some.last()?.0);
        self.some = some.into_iter();
        self.some.next().map(Ok)
    }
}

/// The entries from `begin` to before `end`, or to the last one.
fn between(view: View, begin: Bound<Key>, end: Option<Key>) -> Merge<'static, Bytes> {
    let mut sources: Vec<Source<'static, Bytes>> = Vec::new();
    for Levelled { run, .. } in &view.runs {
        let before_end = move |entry: &io::Result<(Key, Bytes)>| {
            entry.as_ref().map_or(true, |entry| end.is_none_or(|end| entry.0 < end))
        };
        sources.push(Box::new(run.from(begin).take_while(before_end)));
    }
    for logged in view.tables {
        sources.push(Box::new(TableEntries { logged, begin, end, some: Vec::new().into_iter() }));
    }
    Merge::new(sources)
}

fn read_page(shared: &Shared, query: &Query) -> io::Result<Page> {
    let Some((begin, _)) = query.range() else { return Ok(Page::default()) };
    let end: Key = (query.user, Place { time_ms: query.to_ms, kind: [0; 3] });
    let entries = between(shared.view.read().clone(), begin, Some(end));
    let mut page = Page::default();
    let mut bytes = 0;
    for entry in entries {
        let ((user, place), payload) = entry?;
        if page.messages.len() >= query.limit.max(1) || bytes >= PAGE_BYTES_MAX {
            page.next = page.messages.last().map(Message::place);
            break;
        }
        bytes += payload.len();
        page.messages.push(Message { user, time_ms: place.time_ms, kind: place.kind, payload });
    }
    Ok(page)
}

/// Runs `work`, which reads files, where it holds up nobody.
fn aside<T: Send + 'static>(
    shared: Arc<Shared>,
    work: impl FnOnce(&Shared) -> io::Result<T> + Send + 'static,
) -> Answer<'static, T> {
    Answer::boxed(async move {
        let done = tokio::task::spawn_blocking(move || {
            work(&shared).map_err(|error| describe(shared.disk.dir(), &error))
        });
        done.await.unwrap_or(Err(StoreError::Closed))
    })
}

impl Messages for Tree {
    fn add(&self, message: Message) -> Answer<'_, ()> {
        match check(&message) {
            Ok(()) => self.intake.submit(&message),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn count(&self) -> Answer<'_, u64> {
        let (counting, shared) = (self.counting.clone(), self.shared.clone());
        Answer::boxed(async move {
            let work = move || {
                let view = shared.view.read().clone();
                count::distinct(&view).map_err(|error| describe(shared.disk.dir(), &error))
            };
            counting.count(work).await
        })
    }

    fn of_user(&self, query: Query) -> Answer<'_, Page> {
        aside(self.shared.clone(), move |shared| read_page(shared, &query))
    }

    fn metrics(&self) -> MessagesMetrics {
        let mut metrics = self.intake.metrics();
        let view = self.shared.view.read().clone();
        let table_bytes: usize = view.tables.iter().map(|logged| logged.table.read().bytes()).sum();
        let own = |name, help, is_counter, value| OwnMetric { name, help, is_counter, value };
        metrics.own = vec![
            own("tables", "Tables of messages in memory", false, view.tables.len() as u64),
            own("table_bytes", "Bytes of those tables, roughly", false, table_bytes as u64),
            own("runs", "Ordered files of messages", false, view.runs.len() as u64),
        ];
        let help = "Messages that damaged logs no longer had at the start, at least";
        metrics.own.push(own("missing", help, false, self.shared.missing));
        let (stalls, stall_us) = self.intake.stalls();
        let help = "Times that the committer waited for room in memory";
        metrics.own.push(own("stalls", help, true, stalls));
        metrics.own.push(own("stall_us", "Microseconds that it waited", true, stall_us));
        metrics.own.extend(self.background.metrics());
        metrics
    }
}
