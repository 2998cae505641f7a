//! `operations.parquet`: what the system itself says that it did, an operation a row.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::RecordError;
use crate::files::{ABOUT_OPERATIONS, OPERATIONS, OPERATIONS_FIELDS};
use crate::table::{Cell, Groups, TableWriter};

/// An operation that the system carried out: a request, or one access of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation<'a> {
    /// When it was over, microseconds since the run began.
    pub at_us: u64,
    /// What it was about: `Outbound`.
    pub entity: &'a str,
    /// What was done: `store`.
    pub operation: &'a str,
    /// How long that took, microseconds.
    pub duration_us: u64,
    /// What came of it, as the status of an answer: 200, 503.
    pub status: u16,
}

/// Writes a run's operations.
pub struct OperationsWriter {
    table: TableWriter,
}

impl OperationsWriter {
    /// Creates the file in a run directory.
    ///
    /// # Errors
    /// It cannot be written, or is there.
    pub fn create(run_dir: &Path) -> Result<Self, RecordError> {
        let path = run_dir.join(OPERATIONS);
        Ok(OperationsWriter { table: TableWriter::create(&path, &OPERATIONS_FIELDS, ABOUT_OPERATIONS)? })
    }

    /// Appends one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn push(&mut self, operation: &Operation<'_>) -> Result<(), RecordError> {
        let Operation { at_us, entity, operation, duration_us, status } = *operation;
        self.table.push([
            Cell::Int(at_us),
            Cell::Text(entity),
            Cell::Text(operation),
            Cell::Int(duration_us),
            Cell::Int(status.into()),
        ])
    }

    /// Ends the file, which cannot be read before.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.table.finish()
    }
}

/// Entities and operations by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kinds {
    /// What there is of entities.
    pub entities: Vec<String>,
    /// What there is of operations.
    pub operations: Vec<String>,
}

/// Reads a run's operations, of which there may be many millions, piece by piece. One is for one thread: places in the
/// file are the open file's.
pub struct OperationsReader {
    groups: Groups,
}

impl OperationsReader {
    /// Opens a run directory's file; nothing where it has none.
    ///
    /// # Errors
    /// It is damaged.
    pub fn open(run_dir: &Path) -> Result<Option<Self>, RecordError> {
        let path = run_dir.join(OPERATIONS);
        // a link to nowhere is there, and cannot be read
        if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        Ok(Some(OperationsReader { groups: Groups::open(&path, &OPERATIONS_FIELDS)? }))
    }

    /// When the last of them was over, microseconds since the run began.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn last_us(&self) -> Result<Option<u64>, RecordError> {
        let times = Groups::open(self.groups.path(), &OPERATIONS_FIELDS[..1])?;
        let mut last = None;
        for piece in 0..times.count() {
            last = last.max(times.read(piece)?.ints("at_us")?.into_iter().max());
        }
        Ok(last)
    }

    /// In how many pieces it is.
    pub fn pieces(&self) -> usize {
        self.groups.count()
    }

    /// Hands over each operation of the file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn visit(&self, mut each: impl FnMut(Operation<'_>)) -> Result<(), RecordError> {
        for piece in 0..self.pieces() {
            let (mut kinds, mut rows) = (Kinds::default(), Vec::new());
            self.each(piece, &mut kinds, |at_us, duration_us, entity, operation, status| {
                rows.push((at_us, duration_us, entity, operation, status));
            })?;
            for (at_us, duration_us, entity, operation, status) in rows {
                let (entity, operation) = (&kinds.entities[entity], &kinds.operations[operation]);
                each(Operation { at_us, entity, operation, duration_us, status });
            }
        }
        Ok(())
    }

    /// Hands over each operation of a piece: when it was over and how long it took (microseconds), the numbers of its
    /// entity and its operation in `kinds`, and its status.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each(
        &self,
        piece: usize,
        kinds: &mut Kinds,
        mut each: impl FnMut(u64, u64, usize, usize, u16),
    ) -> Result<(), RecordError> {
        let table = self.groups.read(piece)?;
        let entities = table.codes("entity", &mut kinds.entities)?;
        let operations = table.codes("operation", &mut kinds.operations)?;
        let (at_us, duration_us) = (table.ints("at_us")?, table.ints("duration_us")?);
        let status = table.ints("status")?;
        for row in 0..table.rows() {
            let status = u16::try_from(status[row]).unwrap_or(u16::MAX);
            each(at_us[row], duration_us[row], entities[row], operations[row], status);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(OperationsReader::open(dir.path()).unwrap().is_none());
        let mut writer = OperationsWriter::create(dir.path()).unwrap();
        let of = |n: u64| Operation {
            at_us: n * 7,
            entity: ["Outbound", "Inbound"][n as usize % 2],
            operation: ["store", "load", "post"][n as usize % 3],
            duration_us: n,
            status: if n.is_multiple_of(10) { 503 } else { 200 },
        };
        for n in 0..20_000 {
            writer.push(&of(n)).unwrap();
        }
        writer.finish().unwrap();
        let reader = OperationsReader::open(dir.path()).unwrap().unwrap();
        assert!(reader.pieces() > 1);
        let mut n = 0;
        reader
            .visit(|operation| {
                assert_eq!(operation, of(n));
                n += 1;
            })
            .unwrap();
        assert_eq!(n, 20_000);
    }
}
