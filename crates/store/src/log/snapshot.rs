//! A snapshot: all that is in the index, written down, so that the logs before it are not needed any more.
//!
//! It is written while the store goes on. What it holds of groups behind the one that it covers does no harm: they
//! are in the log behind it, and applying a change twice gives what applying it once gives, as long as all that
//! follows is applied, too. That this is there is checked: the last frame says up to which group changes may be in it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::frame::{self, FileHead, Frames, Kind, Next};
use super::recover::{OpenError, damaged};
use super::{log_number, snapshot_name, snapshot_number};
use crate::files::{Files, Writing};
use crate::index::{Index, SHARDS};

/// Written as one frame, about.
const FRAME_BYTES: usize = 256 * 1024;
/// Synced in one go: with more, a group of the log would wait for all of it.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;
/// The number of the last frame; the others count from 1.
const LAST: u64 = u64::MAX;

/// What it takes to write one.
pub(crate) struct Snapshot {
    pub(crate) files: Files,
    pub(crate) key: u64,
    /// The last group that it covers; the log behind begins with the next.
    pub(crate) through: u64,
    pub(crate) index: Arc<Index>,
    /// The last group that may be in the index.
    pub(crate) persisted: Arc<AtomicU64>,
    /// The log behind it.
    pub(crate) log: Writing,
    pub(crate) is_stopping: Arc<AtomicBool>,
}

impl Snapshot {
    /// Writes it and removes what it makes superfluous; tells its size, nothing if it was stopped.
    pub(crate) fn write(self) -> io::Result<Option<u64>> {
        let name = snapshot_name(self.through);
        let mut out = self.files.create(&format!("{name}.new"))?;
        let head = FileHead { kind: Kind::Snapshot, number: self.through, key: self.key };
        out.write(&head.bytes())?;
        let (mut bytes, mut unsynced, mut frames) = (frame::FILE_HEAD_BYTES as u64, 0, 0);
        let mut buffer = Vec::new();
        frame::begin(&mut buffer);
        for shard in 0..SHARDS {
            self.index.write_shard(shard, &mut buffer);
            if buffer.len() < FRAME_BYTES && shard < SHARDS - 1 {
                continue;
            }
            if self.is_stopping.load(Ordering::Relaxed) {
                self.files.remove(out.name())?;
                return Ok(None);
            }
            frames += 1;
            frame::seal(&mut buffer, head.seed(), frames);
            out.write(&buffer)?;
            bytes += buffer.len() as u64;
            unsynced += buffer.len() as u64;
            if unsynced >= SYNC_BYTES {
                out.sync()?;
                unsynced = 0;
            }
            frame::begin(&mut buffer);
        }
        let seen = self.persisted.load(Ordering::Acquire);
        buffer.extend_from_slice(&u64::to_le_bytes(frames));
        buffer.extend_from_slice(&seen.to_le_bytes());
        frame::seal(&mut buffer, head.seed(), LAST);
        out.write(&buffer)?;
        out.sync()?;
        // Without `synced`, this is when what was seen becomes as durable as the snapshot that has seen it.
        self.log.sync()?;
        out.publish(&name)?;
        self.remove_older()?;
        Ok(Some(bytes + buffer.len() as u64))
    }

    fn remove_older(&self) -> io::Result<()> {
        for name in self.files.names()? {
            let is_older = snapshot_number(&name).is_some_and(|number| number < self.through)
                || log_number(&name).is_some_and(|number| number <= self.through);
            if is_older {
                self.files.remove(&name)?;
            }
        }
        Ok(())
    }
}

/// What a snapshot says about itself.
pub(crate) struct Read {
    pub(crate) key: u64,
    pub(crate) bytes: u64,
    /// Changes of groups up to this one may be in it.
    pub(crate) seen: u64,
}

/// Reads the snapshot with this number, entries by entries.
pub(crate) fn read(
    files: &Files,
    number: u64,
    key: Option<u64>,
    take: &mut dyn FnMut(&[u8]) -> Result<(), &'static str>,
) -> Result<Read, OpenError> {
    let name = snapshot_name(number);
    let mut snapshot = Frames::open(files, &name, Kind::Snapshot, number, key)?;
    for expected in 1.. {
        let at = snapshot.offset;
        match snapshot.next()? {
            Next::Frame { number, content } if number == expected => {
                take(content).map_err(|malformed| damaged(&name, at, malformed))?;
            }
            Next::Frame { number: LAST, content } => {
                let Ok(&[frames, seen]) = <&[[u8; 8]; 2]>::try_from(content.as_chunks().0) else { break };
                if u64::from_le_bytes(frames) != expected - 1 {
                    break;
                }
                let key = snapshot.head.key;
                return Ok(Read { key, bytes: snapshot.offset, seen: u64::from_le_bytes(seen) });
            }
            _ => break,
        }
    }
    Err(damaged(&name, snapshot.offset, "what follows was changed, or is not there any more"))
}
