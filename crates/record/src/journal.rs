//! What a run has recorded so far, in a form that needs no end: a run that is killed is built again from it.
//!
//! `unfinished.journal` holds, one after the other, what was handed to the writer, each in a [frame](crate::frame). It is
//! written as soon as it is handed over, so that the
//! kernel has it whatever becomes of the process; it is gone when the run is finished. While a run goes on its writer
//! holds a lock on the file, by which a reader tells a run that goes on from one that was killed.

use std::borrow::Cow;
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{RecordError, io_error};
use crate::{Sample, StoreLook, ThreadInterval, frame};

/// Most bytes that are written; a run that is killed later lacks what came after.
const BYTES_MAX: u64 = 4 << 30;

/// What was handed over.
#[expect(clippy::large_enum_variant, reason = "nearly all are intervals")]
#[derive(Serialize, Deserialize)]
pub(crate) enum Entry<'a> {
    Interval(Cow<'a, ThreadInterval>),
    Sample(Cow<'a, Sample>),
    Store(Cow<'a, StoreLook>),
}

/// Appends to the journal.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    written: u64,
    record: Vec<u8>,
}

impl Journal {
    /// Creates it, and takes the lock.
    pub(crate) fn create(path: &Path) -> Result<Journal, RecordError> {
        let file = File::create_new(path).map_err(io_error("create", path))?;
        // where files cannot be locked, a run that goes on cannot be told from one that was killed; nothing else
        let _ = file.try_lock();
        Ok(Journal { path: path.to_owned(), file, written: 0, record: Vec::new() })
    }

    pub(crate) fn interval(&mut self, interval: &ThreadInterval) -> Result<(), RecordError> {
        self.append(&Entry::Interval(Cow::Borrowed(interval)))
    }

    pub(crate) fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.append(&Entry::Sample(Cow::Borrowed(sample)))
    }

    pub(crate) fn store(&mut self, look: &StoreLook) -> Result<(), RecordError> {
        self.append(&Entry::Store(Cow::Borrowed(look)))
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<(), RecordError> {
        self.record.clear();
        frame::append(entry, &mut self.record).map_err(io_error("write", &self.path))?;
        self.written += self.record.len() as u64;
        if self.written > BYTES_MAX {
            return Ok(());
        }
        self.file.write_all(&self.record).map_err(io_error("write", &self.path))
    }
}

/// Opens the journal of a run that does not go on any more; none while it does.
pub(crate) fn open(path: &Path) -> Result<Option<File>, RecordError> {
    let file = File::open(path).map_err(io_error("read", path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // an error: files cannot be locked here
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Whether somebody writes it right now.
pub(crate) fn is_written(path: &Path) -> bool {
    // shared: another reader is none who writes
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// That the journal is one of this version: its first record can be read, or is cut off.
///
/// # Errors
/// Where another version wrote it, or it is damaged there.
pub(crate) fn check(mut file: &File, path: &Path) -> Result<(), RecordError> {
    let first = frame::read::<Entry<'static>>(&mut BufReader::new(file));
    file.rewind().map_err(io_error("read", path))?;
    match first {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(RecordError::Damaged {
            path: path.to_owned(),
            reason: format!(
                "written by another version of tidemark, or damaged ({error}); it stays as it is"
            ),
        }),
        _ => Ok(()),
    }
}

/// Reads what was written, up to the first record that is not whole; the file stands at its begin. Returns how many bytes
/// were not read, as they are damaged or cut off.
pub(crate) fn entries(
    file: &File,
    mut take: impl FnMut(Entry<'_>) -> Result<(), RecordError>,
) -> Result<u64, RecordError> {
    let mut unread = file.metadata().map_or(0, |of| of.len());
    let mut reader = BufReader::new(file);
    while let Ok(Some(bytes)) = frame::bytes(&mut reader) {
        let Ok(entry) = frame::decoded(&bytes) else { break };
        take(entry)?;
        unread = unread.saturating_sub(frame::HEAD_BYTES + bytes.len() as u64);
    }
    Ok(unread)
}

/// The next record; none where it is not whole.
pub(crate) fn next(reader: &mut impl Read) -> Option<Entry<'static>> {
    frame::read(reader).ok().flatten()
}
