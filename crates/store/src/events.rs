//! Where the events that a system tells of itself go: a line of text each.
//!
//! An event is worth less than what it tells of: it may be lost, and is counted then.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The topic of a log of messages where nobody names one.
pub const TOPIC: &str = "feed";
/// What a line begins with that says how many events are missing.
pub const MISSING: &str = "#dropped ";
/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 64 * 1024;

/// Takes events.
pub trait EventLog: Send {
    /// Takes one: a line of text without its end. False where it is lost at once.
    fn append(&mut self, event: &[u8]) -> bool;

    /// Tells whoever reads the events that so many more are missing, with a line `#dropped COUNT`.
    fn missing(&mut self, count: u64);

    /// Hands on what was taken, and does not wait for what comes of it.
    fn flush(&mut self);

    /// How many events were taken and then lost.
    fn lost(&self) -> u64;
}

/// Events in a file. Each flush is a write to the operating system: what the process has flushed outlives it.
#[derive(Debug)]
pub struct EventFile {
    file: File,
    gathered: Vec<u8>,
    /// Events that were gathered.
    events: u64,
    /// Missing ones of which what was gathered tells.
    told: u64,
    lost: u64,
}

impl EventFile {
    /// Appends to a file, which is made where it is not there. A line that an earlier process has torn stays alone.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut gathered = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 8);
        if file.metadata()?.len() > 0 {
            gathered.push(b'\n');
        }
        Ok(EventFile { file, gathered, events: 0, told: 0, lost: 0 })
    }
}

impl EventLog for EventFile {
    fn append(&mut self, event: &[u8]) -> bool {
        self.gathered.extend_from_slice(event);
        self.gathered.push(b'\n');
        self.events += 1;
        if self.gathered.len() >= WRITE_BYTES {
            self.flush();
        }
        true
    }

    fn missing(&mut self, count: u64) {
        self.gathered.extend_from_slice(format!("{MISSING}{count}\n").as_bytes());
        self.told += count;
    }

    fn flush(&mut self) {
        let written = self.file.write_all(&self.gathered);
        self.gathered.clear();
        let (events, told) = (std::mem::take(&mut self.events), std::mem::take(&mut self.told));
        if let Err(error) = written {
            if self.lost == 0 {
                tracing::error!(%error, "events cannot be written; those are lost and counted");
            }
            self.lost += events;
            // what was torn stays alone, and whoever reads the file learns of it once it can be written again
            self.gathered.push(b'\n');
            self.missing(told + events);
        }
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_flushed_is_there_and_what_an_earlier_process_tore_stays_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        let mut log = EventFile::open(&path).unwrap();
        assert!(log.append(b"one") && log.append(b"two"));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        log.missing(7);
        log.flush();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n#dropped 7\n");
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"to").unwrap();
        let mut log = EventFile::open(&path).unwrap();
        log.append(b"three");
        log.flush();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n#dropped 7\nto\nthree\n");
        assert_eq!(log.lost(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_written_is_counted() {
        let mut log = EventFile::open(Path::new("/dev/full")).unwrap();
        for _ in 0..2 {
            log.append(b"one");
            log.append(b"two");
            log.flush();
        }
        assert_eq!(log.lost(), 4);
        assert_eq!(log.gathered, b"\n#dropped 4\n");
    }
}
