//! The log: what is acknowledged and not in a run yet. One file for each table; each group of messages is one frame.
//!
//! A frame is: magic (4 bytes), bytes of its entries (4), number of entries (4), its number within the log (8),
//! checksum of the three numbers, the log's own number and the entries (8), entries. What does not hold all that is
//! the torn tail of a process that died: it was never acknowledged, and is left out. Where a whole frame stands behind
//! a broken one, that is no torn tail but damage, and the store says so instead of leaving out what it promised.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use super::disk::Disk;

const MAGIC: [u8; 4] = *b"TmG1";
const HEAD_BYTES: usize = 4 + 4 + 4 + 8 + 8;

/// The name of a log.
pub(crate) fn name(id: u64) -> String {
    format!("log-{id:010}")
}

/// The number of a log with this name.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    name.strip_prefix("log-")?.parse().ok()
}

fn checksum(log_id: u64, numbers: &[u8], entries: &[u8]) -> u64 {
    let mut hash = Xxh3::with_seed(log_id);
    hash.update(numbers);
    hash.update(entries);
    hash.digest()
}

/// A log that is being written.
pub(crate) struct Log {
    disk: Disk,
    id: u64,
    name: String,
    file: File,
    frames: u64,
}

impl Log {
    /// Begins a log; its name is durable when this returns.
    pub(crate) fn create(disk: &Disk, id: u64) -> io::Result<Self> {
        let name = name(id);
        let file = disk.create(&name)?;
        disk.sync_names()?;
        Ok(Log { disk: disk.clone(), id, name, file, frames: 0 })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Hands a group to the operating system.
    pub(crate) fn append(&mut self, count: u32, entries: &[u8]) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&(entries.len() as u32).to_be_bytes());
        head[8..12].copy_from_slice(&count.to_be_bytes());
        head[12..20].copy_from_slice(&self.frames.to_be_bytes());
        let sum = checksum(self.id, &head[4..20], entries);
        head[20..].copy_from_slice(&sum.to_be_bytes());
        self.frames += 1;
        write_both(&mut self.file, &head, entries)
    }

    /// Returns when all groups are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.sync(&self.name, &self.file)
    }
}

fn write_both(file: &mut File, head: &[u8], entries: &[u8]) -> io::Result<()> {
    let written = loop {
        match file.write_vectored(&[IoSlice::new(head), IoSlice::new(entries)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    if written < head.len() {
        file.write_all(&head[written..])?;
    }
    file.write_all(&entries[written.saturating_sub(head.len())..])
}

/// What reading a log brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Replayed {
    /// Whole groups.
    pub(crate) groups: u64,
    /// Bytes behind them that are no group.
    pub(crate) torn_bytes: u64,
    /// Whether whole groups stand behind a broken one.
    pub(crate) is_damaged: bool,
}

/// Calls `take` with the entries of each whole group, in order.
pub(crate) fn replay(disk: &Disk, id: u64, mut take: impl FnMut(&[u8])) -> io::Result<Replayed> {
    let mut bytes = Vec::new();
    disk.open(&name(id))?.read_to_end(&mut bytes)?;
    let mut replayed = Replayed::default();
    let mut at = 0;
    while let Some((number, entries)) = frame(&bytes[at..], id).filter(|(n, _)| *n == replayed.groups) {
        debug_assert_eq!(number, replayed.groups);
        take(entries);
        at += HEAD_BYTES + entries.len();
        replayed.groups += 1;
    }
    replayed.torn_bytes = (bytes.len() - at) as u64;
    let rest = &bytes[at..];
    let mut starts = (1..rest.len().saturating_sub(HEAD_BYTES - 1)).filter(|&i| rest[i..i + 4] == MAGIC);
    replayed.is_damaged = starts.any(|i| frame(&rest[i..], id).is_some_and(|(n, _)| n > replayed.groups));
    Ok(replayed)
}

/// The frame that the bytes begin with: its number and its entries.
fn frame(bytes: &[u8], log_id: u64) -> Option<(u64, &[u8])> {
    let head = bytes.get(..HEAD_BYTES)?;
    let length = u32::from_be_bytes(head[4..8].try_into().ok()?) as usize;
    let number = u64::from_be_bytes(head[12..20].try_into().ok()?);
    let sum = u64::from_be_bytes(head[20..].try_into().ok()?);
    if head[..4] != MAGIC {
        return None;
    }
    let entries = bytes.get(HEAD_BYTES..HEAD_BYTES.checked_add(length)?)?;
    (checksum(log_id, &head[4..20], entries) == sum).then_some((number, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [&[u8]; 3] = [b"first", b"", b"the third group"];

    fn written() -> (tempfile::TempDir, Disk, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(dir.path(), None);
        let mut log = Log::create(&disk, 5).unwrap();
        GROUPS.iter().for_each(|group| log.append(1, group).unwrap());
        log.sync().unwrap();
        let bytes = std::fs::read(disk.path(&name(5))).unwrap();
        (dir, disk, bytes)
    }

    fn read(disk: &Disk, id: u64) -> (Vec<Vec<u8>>, Replayed) {
        let mut groups = Vec::new();
        let replayed = replay(disk, id, |entries| groups.push(entries.to_vec())).unwrap();
        (groups, replayed)
    }

    #[test]
    fn a_tail_torn_at_any_byte_is_left_out() {
        let (_dir, disk, bytes) = written();
        assert_eq!(read(&disk, 5).0, GROUPS);
        let ends: Vec<usize> = (0..=GROUPS.len())
            .map(|n| GROUPS[..n].iter().map(|group| HEAD_BYTES + group.len()).sum())
            .collect();
        for cut in 0..bytes.len() {
            for zeros in [0, 100] {
                let mut torn = bytes[..cut].to_vec();
                torn.resize(cut + zeros, 0);
                std::fs::write(disk.path(&name(5)), torn).unwrap();
                let (groups, replayed) = read(&disk, 5);
                let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
                assert_eq!(groups, GROUPS[..whole], "cut at {cut}, {zeros} zeros");
                assert_eq!(replayed.torn_bytes, (cut + zeros - ends[whole]) as u64);
                assert!(!replayed.is_damaged);
            }
        }
    }

    #[test]
    fn damage_before_a_whole_group_is_told_from_a_torn_tail() {
        let (_dir, disk, bytes) = written();
        for at in 0..HEAD_BYTES + GROUPS[0].len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            std::fs::write(disk.path(&name(5)), wrong).unwrap();
            let (groups, replayed) = read(&disk, 5);
            assert!(groups.is_empty() && replayed.is_damaged, "byte {at}: {replayed:?}");
        }
    }

    #[test]
    fn the_frames_of_another_log_are_none() {
        let (_dir, disk, bytes) = written();
        std::fs::write(disk.path(&name(6)), bytes).unwrap();
        assert_eq!(read(&disk, 6).1.groups, 0);
    }
}
