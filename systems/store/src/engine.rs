//! The embedded engine: tables of one system in one directory, no server.
//!
//! ```text
//! write ─▶ bounded queue ─▶ committer: one frame to the log, one sync ─▶ tables ─▶ wake the writers
//!                           log or tables full: the next log ─▶ snapshot, runs; then the old log goes
//! start ◀─ manifest: snapshot and runs, then the logs behind them
//! ```
//!
//! A write is entries of any tables, and all of it is kept or nothing: it lies within one frame. What a table is, see
//! [`table`]: [`rows`] in memory, or [`ordered`] ones that may be larger. The engine knows no system: it is handed
//! [`Tables`], and each entry begins with the number of its table.
//!
//! **Durable.** A group costs one write and one sync. It becomes visible only after it is as durable as was promised,
//! so nobody reads what a crash could take back; then it is acknowledged, so every writer reads its own writes.
//!
//! **Damage.** Checksums say whose bytes they are and where; the manifest names every file that counts, and where each
//! log ends, or a marker that is written before each acknowledgement does. So what is changed, cut off, exchanged or
//! missing is told with its file: at the start, for a block of a run when it is read. Only what a process that dies can
//! leave, a torn tail of the newest log behind all that was acknowledged, is cut off. A store that was opened as
//! `buffered`, which a power cut may damage, goes on with what is whole and counts what is missing.
//!
//! **Bounds.** The queue by writes and bytes. Memory of ordered tables by their size: when runs are not written as fast
//! as tables fill, the committer waits (counted as a stall) and the queue fills. Logs beside tables in memory are no
//! larger than the last snapshot, or 64 MiB.
//!
//! **Fail-stop.** When a file fails, nobody knows what reached the disk, and trying again would not tell: after a failed
//! sync the kernel may drop the dirty pages and report success the next time. So the group is not acknowledged, and every
//! further write is refused until the store is opened afresh, which writes again what it read of the last log. Reads go on.

#[cfg(test)]
mod any_bytes;
mod background;
pub(crate) mod bytes;
mod commit;
pub(crate) mod disk;
#[cfg(test)]
mod faults;
pub(crate) mod lock;
mod log;
mod manifest;
mod marker;
pub(crate) mod ordered;
#[cfg(all(test, unix))]
mod power_loss;
mod recover;
pub(crate) mod rows;
mod seal;
mod sector;
mod snapshot;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod waiters;

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use self::background::{Background, BackgroundCounters};
use self::commit::Writers;
use self::disk::{Disk, DiskFile, Watch};
use self::lock::{Lock, make_dir};
use self::log::{End, Log};
use self::manifest::{LogLine, Manifest};
use self::marker::{Marker, MarkerFile};
use self::recover::Found;
use self::table::Tables;
use crate::answer::Answer;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::metrics::StoreMetrics;

/// Below this no snapshot is worth its while.
pub(crate) const LOG_BYTES: u64 = if cfg!(fuzzing) { 4096 } else { 64 * 1024 * 1024 };

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// `Buffered` or `Synced`.
    pub(crate) durability: Durability,
    /// At most so many writes are taken and not answered.
    pub(crate) waiting_max: usize,
    /// Whether one more is refused as [`StoreError::Busy`], or waits for room.
    pub(crate) is_refusing: bool,
    /// The next log begins when ordered tables have so many bytes in memory.
    pub(crate) table_bytes: usize,
    /// Logs of fewer bytes together are not followed by a snapshot of the tables in memory.
    pub(crate) log_bytes_min: u64,
}

/// A log that takes no more, and is being flushed or waits to be.
#[derive(Debug, Clone, Copy)]
struct ClosedLog {
    log: u64,
    /// Whether a snapshot of the tables in memory follows it, so that nobody needs it any more.
    has_snapshot: bool,
}

/// What only one of the threads changes at a time. Whatever is in the manifest is durable itself, so it may be written at any time.
pub(crate) struct Files {
    pub(crate) manifest: Manifest,
    next_run: u64,
}

/// How far the entries are that may be in the tables.
struct Persisted {
    log: u64,
    end: End,
    file: Arc<DiskFile>,
}

/// What the threads of a store share.
pub(crate) struct EngineState {
    pub(crate) disk: Disk,
    options: Options,
    tables: Tables,
    /// Whoever waits for a change, for the end or for a failure waits here.
    wakeup: Mutex<()>,
    changed: Condvar,
    pub(crate) is_closing: AtomicBool,
    /// Why the store stopped taking writes.
    failure: OnceLock<Arc<str>>,
    pub(crate) counters: BackgroundCounters,
    pub(crate) files: Mutex<Files>,
    /// From the oldest.
    closed_logs: Mutex<VecDeque<ClosedLog>>,
    persisted: Mutex<Persisted>,
    snapshot_bytes: AtomicU64,
}

impl EngineState {
    /// Lets those who wait look again.
    fn announce(&self) {
        let _wakeup = self.wakeup.lock();
        self.changed.notify_all();
    }

    /// Waits until `ready` gives something; nothing at the end or after a failure.
    fn wait_for<T>(&self, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        let mut wakeup = self.wakeup.lock();
        loop {
            if self.failure.get().is_some() {
                return None;
            }
            if let Some(found) = ready() {
                return Some(found);
            }
            if self.is_closing.load(Ordering::Acquire) {
                return None;
            }
            self.changed.wait(&mut wakeup);
        }
    }

    /// Stops the store.
    fn fail(&self, doing: &str, error: &io::Error) -> Arc<str> {
        let reason: Arc<str> = format!("{doing}: {error}").into();
        tracing::error!(%reason, "the store stops taking writes");
        let _ = self.failure.set(reason.clone());
        self.announce();
        reason
    }

    /// The store's number, and that of a run that is to be made.
    pub(crate) fn next_run(&self) -> (u64, u64) {
        let mut files = self.files.lock();
        files.next_run += 1;
        (files.manifest.store, files.next_run - 1)
    }
}

/// What opening a directory brought beside its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Opened {
    /// Entries that damaged logs no longer had, at least.
    pub(crate) missing: u64,
    /// Whether something was damaged or missing.
    pub(crate) is_damaged: bool,
    pub(crate) took: Duration,
}

/// The tables of a system in one directory, durable. Dropping it commits what waits and unlocks the directory.
pub(crate) struct Engine {
    // The order is that of dropping: first nobody writes any more, then nobody works in the background.
    writers: Writers,
    _background: Background,
    shared: Arc<EngineState>,
    pub(crate) opened: Opened,
    _lock: Lock,
}

impl Engine {
    /// Opens the store in `dir`, making it if need be, and reads its tables, which are empty.
    pub(crate) fn open(
        dir: &Path,
        options: Options,
        tables: Tables,
        watch: Option<Arc<dyn Watch>>,
    ) -> Result<Self, StoreError> {
        let failed = |error: io::Error| describe(dir, &error);
        let begun = Instant::now();
        make_dir(dir).map_err(failed)?;
        let lock = Lock::take(dir)?;
        let disk = Disk::new(dir, watch);
        let found = Found::read(&disk, &tables, options.durability).map_err(failed)?;
        let took = begun.elapsed();
        let opened = Opened { missing: found.missing, is_damaged: found.is_damaged, took };
        tracing::info!(
            dir = %dir.display(), durability = %options.durability, runs = found.manifest.runs.len(),
            logs = found.manifest.logs.len(), took_ms = took.as_millis() as u64, "store opened"
        );
        Self::go_on(disk, options, tables, found, opened, lock).map_err(failed)
    }

    /// Begins a log behind what was found. Each step leaves a directory that reads as before.
    fn go_on(
        disk: Disk,
        options: Options,
        tables: Tables,
        mut found: Found,
        opened: Opened,
        lock: Lock,
    ) -> io::Result<Self> {
        found.write_again(&disk)?;
        let Found { mut manifest, next_log, next_run, rests, uncovered_bytes, .. } = found;
        let has_memory = !tables.memory.is_empty();
        let is_full = |line: &LogLine| !tables.ordered.is_empty() && line.id > manifest.flushed;
        let closed_logs = manifest.logs.iter().filter(|line| is_full(line));
        let closed_logs = closed_logs.map(|line| ClosedLog { log: line.id, has_snapshot: false }).collect();
        let log = Log::create(&disk, manifest.store, next_log)?;
        if manifest.logs.is_empty() && manifest.runs.is_empty() && manifest.snapshot.is_none() {
            // a marker is there before the first manifest is, so that one that is missing was taken away
            MarkerFile::begin(&disk, Marker::new(manifest.store, 0))?;
        }
        manifest.tables = tables.names().into_iter().map(|(number, name)| (number, name.into())).collect();
        manifest.logs.push(LogLine { id: next_log, end: None });
        manifest.write(&disk)?;
        let marker = MarkerFile::begin(&disk, Marker::new(manifest.store, next_log))?;
        rests.iter().for_each(|name| disk.remove(name));
        tables.ordered.iter().for_each(|table| table.begin_log(next_log, options.table_bytes));
        tables.ordered.iter().for_each(|table| table.opened());
        let persisted = Persisted { log: next_log, end: End::default(), file: Arc::new(log.twin()?) };
        let snapshot_bytes = manifest.snapshot.map_or(0, |snapshot| snapshot.end.bytes);
        let shared = Arc::new(EngineState {
            disk,
            options,
            tables,
            wakeup: Mutex::new(()),
            changed: Condvar::new(),
            is_closing: AtomicBool::new(false),
            failure: OnceLock::new(),
            counters: BackgroundCounters::default(),
            files: Mutex::new(Files { manifest, next_run }),
            closed_logs: Mutex::new(closed_logs),
            persisted: Mutex::new(persisted),
            snapshot_bytes: AtomicU64::new(snapshot_bytes),
        });
        let background = Background::start(&shared)?;
        let uncovered = if has_memory { uncovered_bytes } else { 0 };
        let writers = Writers::start(shared.clone(), (next_log, log), marker, uncovered)?;
        Ok(Engine { writers, _background: background, shared, opened, _lock: lock })
    }

    /// Takes a write: `write` writes its entries and tells how many there are. The answer comes when they are durable
    /// and can be read; `finish` makes it out of how many rows they put or removed.
    pub(crate) fn submit<'a, T: Send + 'static>(
        &'a self,
        write: impl Fn(&mut Vec<u8>) -> u32 + Send + 'a,
        finish: fn(u64) -> T,
    ) -> Answer<'a, T> {
        self.writers.submit(write, finish)
    }

    /// Takes a write that nobody waits for, and that may be left out when there is no room.
    pub(crate) fn submit_if_room(&self, write: impl Fn(&mut Vec<u8>) -> u32) {
        self.writers.submit_if_room(write);
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        self.shared.disk.dir()
    }

    /// The store's counters, now.
    pub(crate) fn metrics(&self) -> StoreMetrics {
        self.writers.metrics()
    }

    /// What is counted of the work in the background.
    pub(crate) fn counters(&self) -> &BackgroundCounters {
        &self.shared.counters
    }
}

/// Says what came of reading or writing a directory.
pub(crate) fn describe(dir: &Path, error: &io::Error) -> StoreError {
    let (dir, reason) = (dir.to_owned(), error.to_string().into());
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::Unreadable { dir, reason },
        io::ErrorKind::Unsupported => StoreError::Format { dir, reason },
        _ => StoreError::Open { dir, reason },
    }
}

/// Reads a directory into tables that are empty, without changing anything in it; it is locked for writers until the
/// lock is dropped.
pub(crate) fn read(dir: &Path, tables: &Tables, durability: Durability) -> Result<Lock, StoreError> {
    let lock = Lock::share(dir)?;
    Found::read(&Disk::new(dir, None), tables, durability).map_err(|error| describe(dir, &error))?;
    Ok(lock)
}
