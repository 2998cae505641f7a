//! The durable log of the state in memory, and what becomes of it: everything in one directory.
//!
//! ```text
//! group ─▶ log-N: one frame, one sync ─▶ acknowledged: its number ─▶ index ─▶ the writers hear of it
//!          log as large as the last snapshot ─▶ log-M begins; all that is in the index ─▶ snapshot-(M-1)
//! start ◀─ the youngest snapshot, then the logs behind it
//! ```
//!
//! The index has everything in memory, so the log is only read at a start, and nothing has to be ordered or merged: a
//! snapshot is the index written down, by a thread of its own, while groups go on into the next log. Since a log may
//! grow as large as the snapshot before it, all of it is written about twice.
//!
//! **Nothing acknowledged is lost in silence.** Every byte is under a checksum, groups are numbered without gaps
//! through all files, and a marker says how far they were acknowledged. What is missing then is told with file and
//! place, and the store does not start (see `recover`). The one thing that nobody can tell from a torn tail is damage
//! to the very last group where a power cut, too, took the marker's last number.
//!
//! **A failed sync is final.** Afterwards the operating system may show bytes that are not on disk and call the next
//! sync a success. So nothing is acknowledged any more, and the next start writes again what it read but did not find
//! acknowledged.

#[cfg(test)]
mod damage;
#[cfg(all(test, unix))]
mod faults;
mod frame;
mod marker;
mod recover;
mod snapshot;
#[cfg(test)]
mod story;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use self::frame::{FileHead, Kind};
use self::marker::{Marker, MarkerFile};
use self::recover::OpenError;
use self::snapshot::Snapshot;
use crate::change::Change;
use crate::commit::Log;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::files::{Files, Lock, Witness, Writing, make_dir};
use crate::index::Index;
use crate::metrics::Recovered;

/// A frame takes no further change when it has this many bytes.
const FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Below this no snapshot is worth its while.
pub(crate) const LOG_BYTES: u64 = 64 * 1024 * 1024;

fn log_name(first: u64) -> String {
    format!("log-{first:020}")
}

fn log_number(name: &str) -> Option<u64> {
    name.strip_prefix("log-")?.parse().ok().filter(|number| log_name(*number) == name)
}

fn snapshot_name(through: u64) -> String {
    format!("snapshot-{through:020}")
}

fn snapshot_number(name: &str) -> Option<u64> {
    name.strip_prefix("snapshot-")?.parse().ok().filter(|number| snapshot_name(*number) == name)
}

/// The log in a directory.
pub(crate) struct StateLog {
    files: Files,
    durability: Durability,
    index: Arc<Index>,
    /// Logs of fewer bytes together are not followed by a snapshot.
    log_bytes_min: u64,
    key: u64,
    marker: MarkerFile,
    log: Writing,
    head: FileHead,
    /// The number of the last group that was written.
    written: u64,
    /// The number of the last group that was persisted.
    persisted: Arc<AtomicU64>,
    /// Bytes that a start would read beside the snapshot.
    log_bytes: u64,
    snapshot_bytes: u64,
    snapshotting: Option<JoinHandle<io::Result<Option<u64>>>>,
    is_stopping: Arc<AtomicBool>,
    /// The next frame.
    frame: Vec<u8>,
    _lock: Lock,
}

impl StateLog {
    /// Opens the directory, making it if need be, locks it, and fills the index with all that is there.
    pub(crate) fn open(
        dir: &Path,
        durability: Durability,
        index: &Arc<Index>,
        log_bytes_min: u64,
        witness: Option<Arc<dyn Witness>>,
    ) -> Result<(Self, Recovered), StoreError> {
        let begun = Instant::now();
        let failed = |error: OpenError| describe(dir, error);
        make_dir(dir).map_err(|error| failed(error.into()))?;
        let lock = Lock::take(dir)?;
        let files = Files::new(dir, witness);
        let found = recover::recover(&files, durability, |change| {
            index.apply(change);
        })
        .map_err(failed)?;
        let recovered = Recovered {
            sessions: index.session_count(),
            customers: index.customer_count(),
            bookings: index.booking_count(),
            is_damaged: found.is_damaged,
            lost_groups: found.lost_groups,
            took: begun.elapsed(),
        };
        let log = Self::go_on(files, durability, index.clone(), log_bytes_min, found, lock);
        Ok((log.map_err(|error| failed(error.into()))?, recovered))
    }

    /// Begins a log behind what was found. Each step leaves a directory that reads as before.
    fn go_on(
        files: Files,
        durability: Durability,
        index: Arc<Index>,
        log_bytes_min: u64,
        found: recover::Recovered,
        lock: Lock,
    ) -> io::Result<Self> {
        for name in &found.superfluous {
            files.remove(name)?;
        }
        files.sync_names()?;
        let key = match found.key {
            Some(key) => key,
            None => {
                let key = RandomState::new().hash_one(0);
                // Before the first log, which is nothing without it.
                MarkerFile::begin(&files, Marker { key, acknowledged: 0, log: 0 })?;
                key
            }
        };
        let head = FileHead { kind: Kind::Log, number: found.certain + 1, key };
        let (log, bytes) = begin_log(&files, head, &found.uncertain)?;
        let written = found.certain + found.uncertain.len() as u64;
        let marker = MarkerFile::begin(&files, Marker { key, acknowledged: written, log: head.number })?;
        Ok(StateLog {
            files,
            durability,
            index,
            log_bytes_min,
            key,
            marker,
            log,
            head,
            written,
            persisted: Arc::new(AtomicU64::new(written)),
            log_bytes: found.log_bytes + bytes,
            snapshot_bytes: found.snapshot_bytes,
            snapshotting: None,
            is_stopping: Arc::default(),
            frame: Vec::new(),
            _lock: lock,
        })
    }

    /// Hands the frame to the operating system as the next group.
    fn write_frame(&mut self) -> io::Result<()> {
        debug_assert!(self.frame.len() <= frame::CONTENT_BYTES_MAX, "every write is bounded");
        frame::seal(&mut self.frame, self.head.seed(), self.written + 1);
        self.log.write(&self.frame)?;
        self.written += 1;
        self.log_bytes += self.frame.len() as u64;
        Ok(())
    }

    fn marker_now(&self) -> Marker {
        Marker { key: self.key, acknowledged: self.written, log: self.head.number }
    }

    fn append_all(&mut self, changes: &mut dyn Iterator<Item = &Change>) -> io::Result<()> {
        frame::begin(&mut self.frame);
        for change in changes {
            if self.frame.len() >= FRAME_BYTES {
                // No frame may follow one that is not on disk: see `recover`.
                self.write_frame()?;
                self.sync()?;
                frame::begin(&mut self.frame);
            }
            change.write(&mut self.frame);
        }
        self.write_frame()
    }

    fn sync(&self) -> io::Result<()> {
        if self.durability == Durability::Synced { self.log.sync() } else { Ok(()) }
    }

    fn persist_all(&mut self) -> io::Result<()> {
        self.sync()?;
        self.marker.write(self.marker_now())?;
        self.persisted.store(self.written, Ordering::Release);
        self.see_to_snapshot(false)
    }

    /// Looks after the snapshot that is being written, if there is one: it failed, or it is ready.
    fn see_to_snapshot(&mut self, is_awaited: bool) -> io::Result<()> {
        let Some(thread) = self.snapshotting.take_if(|thread| is_awaited || thread.is_finished()) else {
            return Ok(());
        };
        let written = thread.join().unwrap_or_else(|_| Err(io::Error::other("writing a snapshot panicked")));
        if let Some(bytes) = written.map_err(|error| about("writing a snapshot", &error))? {
            self.snapshot_bytes = bytes;
        }
        Ok(())
    }

    /// Begins the next log, and a snapshot of what the logs before it have made of the index.
    fn turn_over(&mut self) -> io::Result<()> {
        self.log.sync()?;
        let head = FileHead { number: self.written + 1, ..self.head };
        let (log, bytes) = begin_log(&self.files, head, &[])?;
        (self.log, self.head, self.log_bytes) = (log, head, bytes);
        self.marker.write(self.marker_now())?;
        self.marker.sync()?;
        let snapshot = Snapshot {
            files: self.files.clone(),
            key: self.key,
            through: self.written,
            index: self.index.clone(),
            persisted: self.persisted.clone(),
            log: self.log.twin()?,
            is_stopping: self.is_stopping.clone(),
        };
        let thread = std::thread::Builder::new().name("store-snapshot".to_owned());
        self.snapshotting = Some(thread.spawn(move || snapshot.write())?);
        Ok(())
    }

    fn close_all(&mut self) -> io::Result<()> {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.see_to_snapshot(true)?;
        self.log.sync()?;
        self.marker.write(self.marker_now())?;
        self.marker.sync()
    }
}

impl Log for StateLog {
    fn append(&mut self, changes: &mut dyn Iterator<Item = &Change>) -> Result<(), Arc<str>> {
        self.append_all(changes).map_err(reason_of)
    }

    fn persist(&mut self) -> Result<(), Arc<str>> {
        self.persist_all().map_err(reason_of)
    }

    fn published(&mut self) -> Result<(), Arc<str>> {
        let is_due = self.log_bytes >= self.log_bytes_min.max(self.snapshot_bytes);
        if is_due && self.snapshotting.is_none() { self.turn_over().map_err(reason_of) } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), Arc<str>> {
        self.close_all().map_err(reason_of)
    }
}

impl Drop for StateLog {
    fn drop(&mut self) {
        // Nobody writes into the directory once it is unlocked.
        self.is_stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.snapshotting.take() {
            let _ = thread.join();
        }
    }
}

/// Begins a log that has these groups; all of it is on disk when this returns. Tells its size.
fn begin_log(files: &Files, head: FileHead, groups: &[Vec<u8>]) -> io::Result<(Writing, u64)> {
    let name = log_name(head.number);
    let mut log = files.create(&format!("{name}.new"))?;
    log.write(&head.bytes())?;
    let mut bytes = frame::FILE_HEAD_BYTES;
    let mut frame = Vec::new();
    for (number, group) in (head.number..).zip(groups) {
        frame::begin(&mut frame);
        frame.extend_from_slice(group);
        frame::seal(&mut frame, head.seed(), number);
        log.write(&frame)?;
        bytes += frame.len();
    }
    log.sync()?;
    log.publish(&name)?;
    Ok((log, bytes as u64))
}

fn about(doing: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{doing}: {error}"))
}

fn reason_of(error: io::Error) -> Arc<str> {
    error.to_string().into()
}

fn describe(dir: &Path, error: OpenError) -> StoreError {
    let dir = dir.to_owned();
    match error {
        OpenError::Io(error) => StoreError::Open { dir, reason: reason_of(error) },
        OpenError::Damaged(what) => StoreError::Unreadable { dir, reason: what.into() },
    }
}
