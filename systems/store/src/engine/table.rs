//! What the engine asks of a table. A system's tables are numbered; an entry of the log is the number of its table and
//! what that table makes of the rest.
//!
//! There are two kinds: [`Rows`](super::rows::Rows) in memory, which a snapshot writes down now and then, and
//! [`Ordered`](super::ordered::Ordered), whose rows go from the log into sorted files.

use std::io;
use std::sync::Arc;

use super::EngineState;
use super::bytes::{Malformed, Reader};
use super::disk::Disk;
use super::manifest::RunLine;

/// Parts of a table in memory that a snapshot copies one at a time.
pub(crate) const PARTS: usize = 1024;

/// Any table.
pub(crate) trait Table: Send + Sync {
    /// Its number, which its entries begin with. Never changed, and never given to another table.
    fn number(&self) -> u8;

    /// Its name, which the manifest has.
    fn name(&self) -> &'static str;

    /// Carries out the entry that stands behind the number. Tells how many rows it put or removed. Entries that were
    /// carried out before, and then again in the same order, change nothing.
    fn apply_one(&self, entry: &mut Reader<'_>) -> Result<u64, Malformed>;

    /// Carries out the entries of this table that the bytes begin with; an outcome for each.
    fn apply(&self, entries: &mut Reader<'_>, outcomes: &mut Vec<u64>) -> Result<(), Malformed> {
        while self.is_next(entries) {
            outcomes.push(self.apply_one(entries)?);
        }
        Ok(())
    }

    /// Whether the bytes begin with this table's number, which is taken away then.
    fn is_next(&self, entries: &mut Reader<'_>) -> bool {
        let Some((first, rest)) = entries.0.split_first() else { return false };
        let is_next = *first == self.number();
        if is_next {
            entries.0 = rest;
        }
        is_next
    }
}

/// Entries one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Entries {
    /// The entry whose bytes were appended last ends here.
    pub(crate) fn end_entry(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Cuts them between entries into pieces of so many bytes at most, where each entry has no more: how many a piece has,
    /// and its bytes.
    pub(crate) fn pieces(&self, bytes_max: usize) -> impl Iterator<Item = (u32, &[u8])> {
        let (mut begin, mut rest) = (0, self.ends.as_slice());
        std::iter::from_fn(move || {
            let fitting = rest.partition_point(|end| end - begin <= bytes_max).max(1);
            let end = *rest.get(fitting - 1)?;
            let piece = &self.bytes[begin..end];
            (begin, rest) = (end, &rest[fitting..]);
            Some((fitting as u32, piece))
        })
    }
}

/// A table in memory.
pub(crate) trait InMemory: Table {
    /// Writes down what is in one of [`PARTS`], as entries that make it again.
    fn write_part(&self, part: usize, out: &mut Entries);
}

/// A table whose rows go into sorted files.
pub(crate) trait OrderedTable: Table {
    /// Passes over entries that are in a sorted file already.
    fn skip(&self, entries: &mut Reader<'_>, outcomes: &mut Vec<u64>) -> Result<(), Malformed>;

    /// Bytes of the entries of the newest log.
    fn active_bytes(&self) -> usize;

    /// From now on entries are those of this log.
    fn begin_log(&self, log: u64, room: usize);

    /// All that was there before is there.
    fn opened(&self);

    /// Writes the entries of a log, the oldest that is in memory, as a sorted file, if there are any.
    fn flush(&self, shared: &EngineState, log: u64) -> io::Result<Option<RunLine>>;

    /// The manifest has that file: it takes the place of the entries in memory.
    fn flushed(&self, log: u64);

    /// Opens a sorted file that the manifest names.
    fn open_run(&self, disk: &Disk, store: u64, line: &RunLine) -> io::Result<()>;

    fn is_mergeable(&self) -> bool;

    /// Makes several sorted files one; false if it was given up because the store is being closed.
    fn merge(&self, shared: &EngineState) -> io::Result<bool>;
}

/// The tables of a system.
#[derive(Default, Clone)]
pub(crate) struct Tables {
    pub(crate) memory: Vec<Arc<dyn InMemory>>,
    pub(crate) ordered: Vec<Arc<dyn OrderedTable>>,
}

impl Tables {
    /// With a table in memory.
    pub(crate) fn memory(mut self, table: &Arc<impl InMemory + 'static>) -> Self {
        self.memory.push(table.clone());
        self
    }

    /// With a table in order.
    pub(crate) fn ordered(mut self, table: &Arc<impl OrderedTable + 'static>) -> Self {
        self.ordered.push(table.clone());
        self
    }

    /// Number and name of each.
    pub(crate) fn names(&self) -> Vec<(u8, &'static str)> {
        let memory = self.memory.iter().map(|table| (table.number(), table.name()));
        memory.chain(self.ordered.iter().map(|table| (table.number(), table.name()))).collect()
    }

    pub(crate) fn ordered_table(&self, number: u8) -> Option<&dyn OrderedTable> {
        self.ordered.iter().find(|table| table.number() == number).map(|table| &**table)
    }

    /// Carries entries out, in order; an outcome for each.
    pub(crate) fn apply(&self, entries: &[u8], outcomes: &mut Vec<u64>) -> Result<(), Malformed> {
        self.replay(entries, false, outcomes)
    }

    /// The same for entries of a log; with `skip_flushed` only for tables in memory, as runs have the others.
    pub(crate) fn replay(
        &self,
        entries: &[u8],
        skip_flushed: bool,
        outcomes: &mut Vec<u64>,
    ) -> Result<(), Malformed> {
        let mut entries = Reader(entries);
        while let Some(&number) = entries.0.first() {
            if let Some(table) = self.memory.iter().find(|table| table.number() == number) {
                table.apply(&mut entries, outcomes)?;
            } else {
                let table = self.ordered_table(number).ok_or("an entry is of a table that is not known")?;
                match skip_flushed {
                    true => table.skip(&mut entries, outcomes)?,
                    false => table.apply(&mut entries, outcomes)?,
                }
            }
        }
        Ok(())
    }
}
