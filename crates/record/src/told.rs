//! What a system tells of its operations, as lines of text, made into `operations.parquet`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::time::SystemTime;

use crate::error::{RecordError, io_error};
use crate::files::{OPERATIONS, OPERATIONS_TOLD};
use crate::operations::{Operation, OperationsWriter};

/// What the line begins with that says how many operations are missing.
const MISSING: &str = "#dropped ";
/// What the line begins with that says that a process begins, and where it tells of its operations.
const BEGAN: &str = "#began ";
/// Where that is this file.
const IN_FILE: &str = "file";
/// The line that says that a process has told all.
const ENDED: &str = "#ended";
/// Longest line that is one, bytes.
const LINE_BYTES_MAX: u64 = 1024;

/// How much of what a system did is in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Operations that are there.
    pub operations: u64,
    /// Operations that the system says are missing.
    pub missing: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Operations that were over before the run's clock was zero, and are left out.
    pub before: u64,
    /// Processes of the system that did not say that they have told all: what they held is missing.
    pub killed: u64,
    /// Processes that told their operations elsewhere, where nobody has read them.
    pub elsewhere: u64,
}

impl Told {
    /// What a reader of the operations must know.
    pub fn notes(&self) -> Vec<String> {
        let missing = (self.missing > 0).then(|| {
            format!(
                "{} of the system's own operations are missing in {OPERATIONS}: more were done than could be \
                 logged, or what they are logged in did not take them in time",
                self.missing
            )
        });
        let unreadable = (self.unreadable > 0).then(|| {
            format!(
                "{} of the lines in which the system told of its operations could not be read, as where it was killed \
                 while it wrote: they are missing in {OPERATIONS}",
                self.unreadable
            )
        });
        let killed = (self.killed > 0).then(|| {
            format!(
                "the system's own operations just before it was killed or failed are missing in {OPERATIONS}, and not \
                 counted ({} times): what it had not yet written, usually a tenth of a second",
                self.killed
            )
        });
        let before = (self.before > 0).then(|| {
            format!(
                "{} of the system's own operations are not in {OPERATIONS}: they were over before the run's clock began",
                self.before
            )
        });
        let elsewhere = (self.elsewhere > 0).then(|| {
            format!(
                "the system's own operations are missing in {OPERATIONS}: it told them to Apache Kafka, which nobody has \
                 read, as the run did not come to its end"
            )
        });
        [missing, unreadable, killed, before, elsewhere].into_iter().flatten().collect()
    }
}

/// The notes of a run that say what is missing in its operations.
///
/// ```
/// let told = tidemark_record::Told { missing: 3, ..Default::default() };
/// let notes = [vec!["another".to_string()], told.notes()].concat();
/// assert_eq!(tidemark_record::notes_on_operations(&notes).count(), 1);
/// ```
pub fn notes_on_operations(notes: &[String]) -> impl Iterator<Item = &str> {
    notes.iter().map(String::as_str).filter(|note| note.contains(OPERATIONS))
}

/// Writes what a system tells, line by line, as a run's operations: `AT,ENTITY,OPERATION,DURATION,STATUS`, where `AT` is
/// microseconds since 1970 and `DURATION` microseconds. A line `#dropped COUNT` says how many are missing, `#began PLACE` that a
/// process begins, with its operations in the `file` or elsewhere, and `#ended` that it has told all.
pub struct ToldOperations {
    writer: OperationsWriter,
    zero_us: u64,
    told: Told,
    /// Processes that have begun and not ended.
    open: u64,
}

impl ToldOperations {
    /// Creates the file in a run directory whose clock was zero at that time.
    ///
    /// # Errors
    /// It cannot be written, or is there.
    pub fn create(run_dir: &Path, zero: SystemTime) -> Result<Self, RecordError> {
        let since_1970 = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let zero_us = u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX);
        Ok(ToldOperations {
            writer: OperationsWriter::create(run_dir)?,
            zero_us,
            told: Told::default(),
            open: 0,
        })
    }

    /// Takes a line, without its end. What was over before the run began and what is no operation is left out and counted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn line(&mut self, line: &[u8]) -> Result<(), RecordError> {
        let Ok(text) = std::str::from_utf8(line) else {
            self.told.unreadable += 1;
            return Ok(());
        };
        if text.is_empty() {
            return Ok(());
        }
        if let Some(count) = text.strip_prefix(MISSING).and_then(|count| count.parse::<u64>().ok()) {
            self.told.missing = self.told.missing.saturating_add(count);
            return Ok(());
        }
        if let Some(place) = text.strip_prefix(BEGAN) {
            self.open += 1;
            self.told.elsewhere += u64::from(place != IN_FILE);
            return Ok(());
        }
        if text == ENDED {
            self.open = self.open.saturating_sub(1);
            return Ok(());
        }
        let Some(operation) = operation(text) else {
            self.told.unreadable += 1;
            return Ok(());
        };
        let Some(at_us) = operation.at_us.checked_sub(self.zero_us) else {
            self.told.before += 1;
            return Ok(());
        };
        self.told.operations += 1;
        self.writer.push(&Operation { at_us, ..operation })
    }

    /// Takes the lines of the file in the run directory that the system is started with; whether there is one.
    ///
    /// # Errors
    /// It cannot be read, or the operations cannot be written.
    pub fn file(&mut self, run_dir: &Path) -> Result<bool, RecordError> {
        let path = run_dir.join(OPERATIONS_TOLD);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(io_error("read", &path))?,
        };
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        loop {
            line.clear();
            let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if read.map_err(io_error("read", &path))? == 0 {
                return Ok(true);
            }
            self.line(line.strip_suffix(b"\n").unwrap_or(&line))?;
        }
    }

    /// Ends the file, and says how much is in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Result<Told, RecordError> {
        self.writer.finish()?;
        Ok(Told { killed: self.open, ..self.told })
    }
}

/// The operation that a line is, its time since 1970.
fn operation(line: &str) -> Option<Operation<'_>> {
    let mut fields = line.split(',');
    let mut next = || fields.next().filter(|field| !field.is_empty());
    let (at_us, entity, operation) = (next()?.parse().ok()?, next()?, next()?);
    let (duration_us, status) = (next()?.parse().ok()?, next()?);
    // one that was torn has fewer digits
    let status = status.parse().ok().filter(|status| (100..1000).contains(status))?;
    fields.next().is_none().then_some(Operation { at_us, entity, operation, duration_us, status })
}

/// Makes a run's operations of the file in its directory that the system has told them in, which stays until the run is
/// whole. Nothing where there is none.
///
/// # Errors
/// It cannot be read, or the run's operations cannot be written.
pub fn take_operations(run_dir: &Path, zero: SystemTime) -> Result<Option<Told>, RecordError> {
    if !run_dir.join(OPERATIONS_TOLD).exists() {
        return Ok(None);
    }
    // of an attempt that did not come to its end
    let made = run_dir.join(OPERATIONS);
    match fs::remove_file(&made) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error("remove", &made)(error)),
        _ => {}
    }
    let mut operations = ToldOperations::create(run_dir, zero)?;
    operations.file(run_dir)?;
    operations.finish().map(Some)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::operations::{Kinds, OperationsReader};

    #[test]
    fn what_a_killed_system_told_is_read_but_for_what_it_tore() {
        let dir = tempfile::tempdir().unwrap();
        let zero = SystemTime::UNIX_EPOCH + Duration::from_micros(1_000_000);
        assert_eq!(take_operations(dir.path(), zero).unwrap(), None);
        let long = "x".repeat(3000);
        // one was killed, one has ended, and one was killed again
        let text = format!(
            "#began file\n999999,Outbound,post,5,200\n1000000,Outbound,post,5,200\n1000007,Inbound,store,6,503\n#dropped 3\n#dropped 4\n\
             1000008,Inbound,store,6,5\n\n1000009,Inbound,store,7,200\n1000009,Inbound,store,7,200,\n#dropped\n{long}\n\
             1000010,Inbound,sto\n#began file\n#ended\n#began file\n\n"
        );
        fs::write(dir.path().join(OPERATIONS_TOLD), text).unwrap();
        // an attempt before this one was killed
        fs::write(dir.path().join(OPERATIONS), "PAR").unwrap();
        let told = take_operations(dir.path(), zero).unwrap().unwrap();
        // the long line is read in three pieces
        assert_eq!(
            told,
            Told { operations: 3, missing: 7, unreadable: 7, before: 1, killed: 2, elsewhere: 0 }
        );
        assert_eq!(told.notes().len(), 4);
        assert!(told.notes()[2].contains("(2 times)"));
        assert_eq!(Told { operations: 3, ..Told::default() }.notes(), Vec::<String>::new());
        // it goes when the run is whole: until then it is read again
        assert_eq!(take_operations(dir.path(), zero).unwrap().unwrap(), told);
        let reader = OperationsReader::open(dir.path()).unwrap().unwrap();
        let (mut kinds, mut rows) = (Kinds::default(), Vec::new());
        let mut each = |at, took, entity, operation, status| rows.push((at, took, entity, operation, status));
        reader.each(0, &mut kinds, &mut each).unwrap();
        assert_eq!(rows, [(0, 5, 0, 0, 200), (7, 6, 1, 1, 503), (9, 7, 1, 1, 200)]);
        assert_eq!(kinds.entities, ["Outbound", "Inbound"]);
    }

    #[test]
    fn what_is_told_elsewhere_and_not_read_is_noted() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(OPERATIONS_TOLD), "#began kafka\n\n#dropped 5\n#ended\n").unwrap();
        let told = take_operations(dir.path(), SystemTime::UNIX_EPOCH).unwrap().unwrap();
        assert_eq!(told, Told { missing: 5, elsewhere: 1, ..Told::default() });
        assert!(notes_on_operations(&told.notes()).any(|note| note.contains("Kafka")));
    }
}
