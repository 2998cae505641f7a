//! Where the events that a system tells of itself go: a line of text each.
//!
//! An event is worth less than what it tells of: it may be lost, and is counted then.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The topic of a log of messages where nobody names one.
pub const TOPIC: &str = "feed";
/// What a line begins with that says how many events are missing.
pub const MISSING: &str = "#dropped ";
/// What a line begins with that says that a process begins to tell its events, and where: [`IN_FILE`] or [`IN_KAFKA`].
pub const BEGAN: &str = "#began ";
/// Where events are: in the file itself.
pub const IN_FILE: &str = "file";
/// In a topic of Apache Kafka.
pub const IN_KAFKA: &str = "kafka";
/// The line that says that a process has told all of its events, or of how many it has not.
pub const ENDED: &str = "#ended";
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

    /// Hands on what was taken, as the last thing, and waits for what comes of it. How many events are missing of which the
    /// log does not tell.
    fn end(&mut self) -> u64;

    /// How many events were taken and then lost.
    fn lost(&self) -> u64;
}

/// What a process says in a file beside its events, wherever those are: that it has begun, and that it has ended.
/// Of one that was killed the second is missing, and with it what the process had not handed on.
#[derive(Debug)]
pub struct Account(PathBuf);

impl Account {
    /// Says that a process begins, with its events [`IN_FILE`] or [`IN_KAFKA`]. The file is made where it is not there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(path: &Path, place: &str) -> io::Result<Self> {
        let account = Account(path.to_owned());
        account.say(&format!("{BEGAN}{place}\n"))?;
        Ok(account)
    }

    /// Says that it has ended, and how many events are missing of which nothing else tells.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&self, missing: u64) -> io::Result<()> {
        let missing = if missing > 0 { format!("{MISSING}{missing}\n") } else { String::new() };
        self.say(&format!("{missing}{ENDED}\n"))
    }

    /// Appends lines; one that was torn before stays alone.
    fn say(&self, lines: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        let torn = if file.metadata()?.len() > 0 { "\n" } else { "" };
        file.write_all(format!("{torn}{lines}").as_bytes())
    }
}

/// Events in a file. Each flush is a write to the operating system: what the process has flushed outlives it.
#[derive(Debug)]
pub struct EventFile<W = File> {
    file: W,
    gathered: Vec<u8>,
    lost: u64,
}

impl EventFile {
    /// Appends to a file, which is made where it is not there. A line that an earlier process has torn stays alone.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let is_new = file.metadata()?.len() == 0;
        let mut events = EventFile::to(file);
        events.gathered.extend_from_slice(if is_new { b"" } else { b"\n" });
        Ok(events)
    }
}

impl<W: Write> EventFile<W> {
    fn to(file: W) -> Self {
        EventFile { file, gathered: Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 8), lost: 0 }
    }

    /// Writes what is gathered. What cannot be written is lost and counted, and the count is what is gathered then: how
    /// many events it tells of.
    fn write(&mut self) -> u64 {
        let Err((written, error)) = written(&mut self.file, &self.gathered) else {
            self.gathered.clear();
            return 0;
        };
        if self.lost == 0 {
            tracing::error!(%error, "events cannot be written; those are lost and counted");
        }
        let whole = self.gathered[..written].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (mut events, mut told) = (0, 0);
        for line in self.gathered[whole..].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match missing_in(line) {
                Some(count) => told += count,
                None => events += 1,
            }
        }
        self.lost += events;
        // what was torn stays alone, and whoever reads the file learns of it once it can be written again
        self.gathered.clear();
        self.gathered.push(b'\n');
        if events + told > 0 {
            self.tell(events + told);
        }
        events + told
    }

    fn tell(&mut self, count: u64) {
        self.gathered.extend_from_slice(format!("{MISSING}{count}\n").as_bytes());
    }
}

/// How many events are missing, if a line tells of that.
fn missing_in(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line).ok()?.strip_prefix(MISSING)?.parse().ok()
}

/// Writes all of it, or as much as can be: how many bytes those are, and why.
fn written(to: &mut impl Write, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match to.write(&bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

impl<W: Write + Send> EventLog for EventFile<W> {
    fn append(&mut self, event: &[u8]) -> bool {
        self.gathered.extend_from_slice(event);
        self.gathered.push(b'\n');
        if self.gathered.len() >= WRITE_BYTES {
            self.flush();
        }
        true
    }

    fn missing(&mut self, count: u64) {
        self.tell(count);
    }

    fn flush(&mut self) {
        self.write();
    }

    fn end(&mut self) -> u64 {
        let untold = self.write();
        // the file may take a short line where it did not take many
        if untold > 0 { self.write() } else { 0 }
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
        assert_eq!(log.end(), 4, "nobody is told");
        assert_eq!(log.lost(), 4);
    }

    /// Takes so many bytes more.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.1);
            self.0.extend_from_slice(&bytes[..fits]);
            self.1 -= fits;
            if fits > 0 { Ok(fits) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whole_lines_before_a_tear_are_there_and_the_end_tells_of_the_others() {
        let mut log = EventFile::to(Full(Vec::new(), 10));
        for event in [b"one", b"two", b"six", b"ten"] {
            log.append(event);
        }
        log.missing(3);
        log.flush();
        assert_eq!((log.lost(), &*log.file.0), (2, &b"one\ntwo\nsi"[..]));
        log.append(b"new");
        log.file.1 = 13;
        assert_eq!(log.end(), 1, "it tells of five, and tears the last");
        assert_eq!((log.lost(), &*log.file.0), (3, &b"one\ntwo\nsi\n#dropped 5\nn"[..]));
        log.file.1 = 100;
        assert_eq!(log.end(), 0);
        assert!(log.file.0.ends_with(b"\nn\n#dropped 1\n"));
    }

    #[test]
    fn a_process_says_that_it_begins_and_that_it_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        Account::begin(&path, IN_FILE).unwrap().end(0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"#began file\n\n#ended\n");
        std::fs::write(&path, "to").unwrap();
        Account::begin(&path, IN_KAFKA).unwrap().end(3).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"to\n#began kafka\n\n#dropped 3\n#ended\n");
    }
}
