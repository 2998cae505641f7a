//! A run: rows in order in one file that is written once and never changed.
//!
//! The file is blocks of rows, each behind its checksum; then the index, which is kept in memory while the run is
//! open (a few dozen bytes for each block of 32 KiB): first key, place, earliest and latest time of every block; then
//! the index's own place, size and checksum, which the manifest has too. Checksums are those of [`Seal`]. Blocks are
//! checked when they are read.

use std::io;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::entry::{self, Key};
use crate::engine::bytes::{Malformed, Reader};
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::log::number_of;
use crate::engine::manifest::RunLine;
use crate::engine::seal::Seal;

/// A block is closed when it has this many bytes; its last entry may go beyond.
const BLOCK_BYTES: usize = 32 * 1024;
/// Written bytes between two syncs of a run that is being made: little by little, so that the log's own syncs never
/// wait for a heap of dirty pages.
const SYNC_EVERY_BYTES: u64 = 8 * 1024 * 1024;
const SUM_BYTES: usize = 8;
/// Of a block in the index, beside its key.
const BLOCK_ENTRY_BYTES: u64 = 8 + 4 + 8 + 8;
const TAIL_BYTES: usize = 8 + 8 + 8 + 8 + 8;
const MAGIC: [u8; 8] = *b"TmRun-03";

/// The name of a run.
pub(crate) fn name(id: u64) -> String {
    format!("run-{id:010}")
}

/// The number of a run with this name.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    number_of(name.strip_prefix("run-")?)
}

/// Where the index and what stands behind it up to its checksum are, in the bytes of a right run.
#[cfg(test)]
pub(crate) fn index_of(bytes: &[u8]) -> std::ops::Range<usize> {
    let tail = bytes.len() - TAIL_BYTES;
    let index_at = u64::from_be_bytes(std::array::from_fn(|i| bytes[tail + i]));
    index_at as usize..bytes.len() - 2 * 8
}

/// What the index knows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block<K> {
    first: K,
    offset: u64,
    bytes: u32,
    times: (u64, u64),
}

/// A run, open for reading.
pub(crate) struct Run<K> {
    id: u64,
    seal: Seal,
    file: DiskFile,
    blocks: Vec<Block<K>>,
    entries: u64,
    /// The checksum of its index.
    sum: u64,
}

/// Writes a run, entry by entry in order.
pub(crate) struct RunWriter<K> {
    disk: Disk,
    id: u64,
    seal: Seal,
    file: DiskFile,
    block: Vec<u8>,
    first: Option<K>,
    last: Option<K>,
    times: (u64, u64),
    blocks: Vec<Block<K>>,
    offset: u64,
    synced: u64,
    entries: u64,
}

impl<K: Key> RunWriter<K> {
    pub(crate) fn create(disk: &Disk, store: u64, id: u64) -> io::Result<Self> {
        Ok(RunWriter {
            disk: disk.clone(),
            id,
            seal: Seal::of_run(store, id),
            file: disk.create(&name(id))?,
            block: vec![0; SUM_BYTES],
            first: None,
            last: None,
            times: (u64::MAX, 0),
            blocks: Vec::new(),
            offset: 0,
            synced: 0,
            entries: 0,
        })
    }

    /// Adds the next entry; its key must be greater than all before.
    pub(crate) fn push(&mut self, key: &K, payload: &[u8]) -> io::Result<()> {
        debug_assert!(self.last.is_none_or(|last| last < *key), "{:?} before {key:?}", self.last);
        self.first.get_or_insert(*key);
        self.last = Some(*key);
        let time = key.locality();
        self.times = (self.times.0.min(time), self.times.1.max(time));
        entry::write(key, payload, &mut self.block);
        self.entries += 1;
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    fn close_block(&mut self) -> io::Result<()> {
        let Some(first) = self.first.take() else { return Ok(()) };
        let sum = self.seal.sum(self.offset, [&self.block[SUM_BYTES..], &[]]);
        self.block[..SUM_BYTES].copy_from_slice(&sum.to_be_bytes());
        self.file.write([&self.block, &[]])?;
        let bytes = self.block.len() as u32;
        self.blocks.push(Block { first, offset: self.offset, bytes, times: self.times });
        self.offset += u64::from(bytes);
        self.block.truncate(SUM_BYTES);
        self.times = (u64::MAX, 0);
        if self.offset - self.synced >= SYNC_EVERY_BYTES {
            self.synced = self.offset;
            self.file.sync()?;
        }
        Ok(())
    }

    /// Ends the run; content and name are durable when this returns.
    pub(crate) fn finish(mut self) -> io::Result<Arc<Run<K>>> {
        self.close_block()?;
        let mut end = Vec::new();
        for block in &self.blocks {
            block.first.write(&mut end);
            end.extend_from_slice(&block.offset.to_be_bytes());
            end.extend_from_slice(&block.bytes.to_be_bytes());
            end.extend_from_slice(&block.times.0.to_be_bytes());
            end.extend_from_slice(&block.times.1.to_be_bytes());
        }
        end.extend_from_slice(&self.offset.to_be_bytes());
        end.extend_from_slice(&(self.blocks.len() as u64).to_be_bytes());
        end.extend_from_slice(&self.entries.to_be_bytes());
        let sum = self.seal.sum(self.offset, [&end, &[]]);
        end.extend_from_slice(&sum.to_be_bytes());
        end.extend_from_slice(&MAGIC);
        self.file.write([&end, &[]])?;
        self.file.sync()?;
        self.disk.sync_names()?;
        let RunWriter { id, seal, file, blocks, entries, .. } = self;
        Ok(Arc::new(Run { id, seal, file, blocks, entries, sum }))
    }
}

fn damaged(id: u64, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", name(id)))
}

impl<K: Key> Run<K> {
    /// Opens a run and reads its index.
    pub(crate) fn open(disk: &Disk, store: u64, line: &RunLine) -> io::Result<Arc<Self>> {
        let (id, seal) = (line.id, Seal::of_run(store, line.id));
        let file = disk.open(&name(id))?;
        let length = file.len()?;
        let mut tail = [0; TAIL_BYTES];
        let Some(tail_at) = length.checked_sub(TAIL_BYTES as u64) else {
            return Err(damaged(id, "it is too short"));
        };
        file.read_at(&mut tail, tail_at)?;
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| tail[at + i]));
        let (index_at, blocks, entries, sum) = (number(0), number(8), number(16), number(24));
        if tail[32..] != MAGIC || index_at > tail_at || blocks > (tail_at - index_at) / BLOCK_ENTRY_BYTES {
            return Err(damaged(id, "its end is not that of a run"));
        }
        let mut end = vec![0; (length - index_at) as usize - 16];
        file.read_at(&mut end, index_at)?;
        if !seal.holds(index_at, [&end, &[]], sum) {
            return Err(damaged(id, &format!("its index at byte {index_at} does not match its checksum")));
        }
        if sum != line.sum && !cfg!(fuzzing) {
            return Err(damaged(id, "it is another one than the manifest names"));
        }
        let mut index = Reader(&end[..(tail_at - index_at) as usize]);
        let blocks: Result<Vec<Block<K>>, _> = (0..blocks).map(|_| read_block(&mut index)).collect();
        let blocks = blocks.ok().filter(|_| index.0.is_empty());
        let blocks = blocks.filter(|blocks| fill(blocks, index_at, entries));
        let blocks = blocks.ok_or_else(|| damaged(id, "its index cannot be read"))?;
        Ok(Arc::new(Run { id, seal, file, blocks, entries, sum }))
    }

    /// What the manifest says of it.
    pub(crate) fn line(&self, table: u8, level: u32) -> RunLine {
        RunLine { id: self.id, table, level, sum: self.sum }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn len(&self) -> u64 {
        self.entries
    }

    /// Earliest and latest time in it.
    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        let times = self.blocks.iter().map(|block| block.times);
        times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// The first key of every block, in order.
    pub(crate) fn first_keys(&self) -> impl Iterator<Item = K> {
        self.blocks.iter().map(|block| block.first)
    }

    /// The entries from `begin` on.
    pub(crate) fn from(self: &Arc<Self>, begin: Bound<K>) -> RunEntries<K> {
        let first = match begin {
            Bound::Included(key) | Bound::Excluded(key) => {
                self.blocks.partition_point(|block| block.first <= key).saturating_sub(1)
            }
            Bound::Unbounded => 0,
        };
        RunEntries { run: self.clone(), block: first, times: None, bytes: Bytes::new(), at: 0, begin }
    }

    /// The value of the row with this key.
    pub(crate) fn get(self: &Arc<Self>, key: &K) -> io::Result<Option<Bytes>> {
        let Some(block) = self.blocks.partition_point(|block| block.first <= *key).checked_sub(1) else {
            return Ok(None);
        };
        let (earliest, latest) = self.blocks[block].times;
        if !(earliest..=latest).contains(&key.locality()) {
            return Ok(None);
        }
        match self.from(Bound::Included(*key)).next() {
            Some(Ok((found, value))) if found == *key => Ok(Some(value)),
            Some(Err(error)) => Err(error),
            _ => Ok(None),
        }
    }

    /// The entries of the blocks that hold a time of one of these windows, in order, and with them others.
    pub(crate) fn around(self: &Arc<Self>, windows: Arc<[(u64, u64)]>) -> RunEntries<K> {
        RunEntries { times: Some(windows), ..self.from(Bound::Unbounded) }
    }

    fn read(&self, block: &Block<K>) -> io::Result<Bytes> {
        let mut bytes = vec![0; block.bytes as usize];
        self.file.read_at(&mut bytes, block.offset)?;
        let sum = u64::from_be_bytes(std::array::from_fn(|i| bytes[i]));
        if !self.seal.holds(block.offset, [&bytes[SUM_BYTES..], &[]], sum) {
            let reason = format!("the block at byte {} does not match its checksum", block.offset);
            return Err(damaged(self.id, &reason));
        }
        Ok(Bytes::from(bytes))
    }
}

fn read_block<K: Key>(index: &mut Reader<'_>) -> Result<Block<K>, Malformed> {
    let first = K::read(index)?;
    let offset = u64::from_be_bytes(index.array()?);
    let bytes = u32::from_be_bytes(index.array()?);
    if (bytes as usize) < SUM_BYTES {
        return Err("a block is too short");
    }
    let times = (u64::from_be_bytes(index.array()?), u64::from_be_bytes(index.array()?));
    Ok(Block { first, offset, bytes, times })
}

/// Whether the blocks fill the file up to the index, and may have so many entries.
fn fill<K>(blocks: &[Block<K>], index_at: u64, entries: u64) -> bool {
    let mut end = 0;
    let is_next = |block: &Block<K>| {
        let is_next = block.offset == end;
        end += u64::from(block.bytes);
        is_next
    };
    blocks.iter().all(is_next) && end == index_at && entries <= index_at / entry::ROW_BYTES_MIN
}

/// Whether two spans of time have a moment in common.
pub(crate) fn meets(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

/// Reads a run in order, a block at a time.
pub(crate) struct RunEntries<K> {
    run: Arc<Run<K>>,
    /// The next block to read.
    block: usize,
    /// Only blocks with these times.
    times: Option<Arc<[(u64, u64)]>>,
    bytes: Bytes,
    at: usize,
    begin: Bound<K>,
}

impl<K: Key> RunEntries<K> {
    fn next_block(&mut self) -> Option<io::Result<()>> {
        let wanted = |block: &Block<K>| {
            self.times.as_ref().is_none_or(|windows| windows.iter().any(|window| meets(*window, block.times)))
        };
        let block = loop {
            let block = self.run.blocks.get(self.block)?;
            self.block += 1;
            if wanted(block) {
                break block;
            }
        };
        Some(self.run.read(block).map(|bytes| {
            self.bytes = bytes;
            self.at = SUM_BYTES;
        }))
    }
}

impl<K: Key> Iterator for RunEntries<K> {
    type Item = io::Result<(K, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.at >= self.bytes.len() {
                match self.next_block()? {
                    Ok(()) => {}
                    Err(error) => return Some(Err(error)),
                }
            }
            let Some((key, range)) = entry::read::<K>(&self.bytes, self.at) else {
                self.at = self.bytes.len();
                return Some(Err(damaged(self.run.id, "a block holds half an entry")));
            };
            self.at = range.end;
            let is_before = match self.begin {
                Bound::Included(begin) => key < begin,
                Bound::Excluded(begin) => key <= begin,
                Bound::Unbounded => false,
            };
            if !is_before {
                return Some(Ok((key, self.bytes.slice(range))));
            }
        }
    }
}
