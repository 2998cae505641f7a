//! Which files count: the snapshot, the runs of each table, from the oldest, and the logs that are not in those yet,
//! each with what it takes to tell it from another, a cut off or a missing one. Without it nobody could tell a run that
//! is whole from one whose making was cut off, nor a log that is needed from one that came back after a power cut. It is
//! there before the first entry is.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

use super::disk::Disk;
use super::log::End;
use super::seal;

pub(crate) const NAME: &str = "manifest";
const TITLE: &str = "tidemark store ";
const FORMAT: &str = "3";
/// How a manifest began before there was one format for all tables.
const TITLE_BEFORE: &str = "tidemark messages ";
/// A longer file is not a manifest.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A run as the manifest names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunLine {
    pub(crate) id: u64,
    /// The number of the table whose rows it has.
    pub(crate) table: u8,
    /// How many merges it has been through.
    pub(crate) level: u32,
    /// The checksum of its index.
    pub(crate) sum: u64,
}

/// A log as the manifest names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) id: u64,
    /// Where it ends. Only the newest log may have none: it is being written, or was when the process died.
    pub(crate) end: Option<End>,
}

/// A snapshot as the manifest names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotLine {
    /// The last log that it covers, which is its number.
    pub(crate) id: u64,
    /// Where it ends.
    pub(crate) end: End,
    /// The log that was being written when it was finished,
    pub(crate) seen_log: u64,
    /// and how far: entries up to there may be in it, so they must be in the log.
    pub(crate) seen: End,
}

/// The manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The store's number, which its files' checksums depend on.
    pub(crate) store: u64,
    /// Number and name of each table.
    pub(crate) tables: Vec<(u8, String)>,
    pub(crate) snapshot: Option<SnapshotLine>,
    /// Entries of logs up to this one are in runs, where their tables have runs.
    pub(crate) flushed: u64,
    /// From the oldest.
    pub(crate) logs: Vec<LogLine>,
    /// From the oldest, of all tables.
    pub(crate) runs: Vec<RunLine>,
}

impl Manifest {
    /// That of a store that is being made.
    pub(crate) fn new() -> Self {
        Self::of_store(seal::new_store())
    }

    fn of_store(store: u64) -> Self {
        Manifest { store, tables: Vec::new(), snapshot: None, flushed: 0, logs: Vec::new(), runs: Vec::new() }
    }

    /// Reads the manifest of the directory, if there is one.
    pub(crate) fn read(disk: &Disk) -> io::Result<Option<Self>> {
        let file = match disk.open(NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.len()?;
        let mut bytes = vec![0; length.min(BYTES_MAX) as usize];
        file.read_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes);
        if text.starts_with(TITLE_BEFORE) {
            return Err(of_format_before());
        }
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("{NAME}: it is damaged"));
        Self::parse(&text).filter(|_| length <= BYTES_MAX).map(Some).ok_or_else(damaged)
    }

    /// Puts this manifest in place of the one that is there; it is durable when this returns.
    pub(crate) fn write(&self, disk: &Disk) -> io::Result<()> {
        disk.replace(NAME, self.text().as_bytes()).map(drop)
    }

    /// Notes where the newest log ends.
    pub(crate) fn end_log(&mut self, id: u64, end: End) {
        self.logs.iter_mut().filter(|log| log.id == id).for_each(|log| log.end = Some(end));
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE}{FORMAT}\nstore {:016x}\n", self.store);
        for (number, name) in &self.tables {
            text += &format!("table {number} {name}\n");
        }
        if let Some(SnapshotLine { id, end, seen_log, seen }) = self.snapshot {
            text += &format!("snapshot {id} ends {} entries {}", end.bytes, end.entries);
            text += &format!(" seen {seen_log} ends {} entries {}\n", seen.bytes, seen.entries);
        }
        text += &format!("spilled {}\n", self.flushed);
        for run in &self.runs {
            let RunLine { id, table, level, sum } = run;
            text += &format!("run {id} table {table} level {level} checksum {sum:016x}\n");
        }
        for log in &self.logs {
            text += &match log.end {
                Some(end) => format!("log {} ends {} entries {}\n", log.id, end.bytes, end.entries),
                None => format!("log {}\n", log.id),
            };
        }
        let sum = xxh3_64(text.as_bytes());
        text + &format!("checksum {sum:016x}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let at = text.rfind("checksum ")?;
        let (content, sum) = text.split_at(at);
        let right = format!("checksum {:016x}\n", xxh3_64(content.as_bytes()));
        if sum != right && !cfg!(fuzzing) {
            return None;
        }
        let mut lines = content.lines();
        if lines.next()?.strip_prefix(TITLE)? != FORMAT {
            return None;
        }
        let store = hex(lines.next()?.strip_prefix("store ")?)?;
        let mut manifest = Manifest::of_store(store);
        let end = |bytes: &str, entries: &str| {
            Some(End { bytes: bytes.parse().ok()?, entries: entries.parse().ok()? })
        };
        for line in lines {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["table", number, name] => manifest.tables.push((number.parse().ok()?, name.to_owned())),
                ["snapshot", id, "ends", a, "entries", b, "seen", log, "ends", c, "entries", d]
                    if manifest.snapshot.is_none() =>
                {
                    let (id, seen_log) = (id.parse().ok()?, log.parse().ok()?);
                    let line = SnapshotLine { id, end: end(a, b)?, seen_log, seen: end(c, d)? };
                    manifest.snapshot = Some(line);
                }
                ["spilled", log] => manifest.flushed = log.parse().ok()?,
                ["run", id, "table", table, "level", level, "checksum", sum] => {
                    let (id, table, level) = (id.parse().ok()?, table.parse().ok()?, level.parse().ok()?);
                    manifest.runs.push(RunLine { id, table, level, sum: hex(sum)? });
                }
                ["log", id, "ends", bytes, "entries", entries] => {
                    let end = Some(end(bytes, entries)?);
                    manifest.logs.push(LogLine { id: id.parse().ok()?, end });
                }
                ["log", id] => manifest.logs.push(LogLine { id: id.parse().ok()?, end: None }),
                _ => return None,
            }
        }
        manifest.is_sound().then_some(manifest)
    }

    /// Whether it can have been written by a store.
    fn is_sound(&self) -> bool {
        let mut runs: Vec<u64> = self.runs.iter().map(|run| run.id).collect();
        runs.sort_unstable();
        let ended = self.logs.split_last().map_or(&[][..], |(_, before)| before);
        !self.logs.is_empty()
            && self.logs.is_sorted_by(|a, b| a.id < b.id)
            && ended.iter().all(|log| log.end.is_some())
            && runs.is_sorted_by(|a, b| a < b)
            && runs.last().is_none_or(|id| *id < u64::MAX)
            && self.logs.last().is_none_or(|log| log.id < u64::MAX)
    }
}

/// What is said of a directory that an older version made.
pub(crate) fn of_format_before() -> io::Error {
    let reason = format!("an earlier version wrote it, and this version reads format {FORMAT} only");
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_a_changed_byte_is_seen() {
        let run = |id, level, sum| RunLine { id, table: 4, level, sum };
        let runs = vec![run(3, 2, 7), run(9, 0, u64::MAX)];
        let end = Some(End { bytes: 1234, entries: 12 });
        let logs = vec![LogLine { id: 4, end }, LogLine { id: 6, end }, LogLine { id: 7, end: None }];
        let (tables, seen) = (vec![(4, "messages".to_owned())], End { bytes: 5, entries: 1 });
        let snapshot = Some(SnapshotLine { id: 3, end: seen, seen_log: 7, seen });
        let manifest = Manifest { store: 0xabcdef, tables, snapshot, flushed: 3, logs, runs };
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Some(manifest));
        for at in 0..text.len() {
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let wrong = String::from_utf8(bytes).unwrap();
                assert_eq!(Manifest::parse(&wrong), None, "byte {at}");
            }
            assert_eq!(Manifest::parse(&text[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn what_no_store_writes_is_none() {
        let end = Some(End::default());
        let log = |id, end| LogLine { id, end };
        let run = |id| RunLine { id, table: 1, level: 0, sum: 0 };
        for (logs, runs) in [
            (vec![], vec![run(1)]),
            (vec![log(1, None), log(2, None)], vec![]),
            (vec![log(2, end), log(1, end)], vec![]),
            (vec![log(1, end)], vec![run(1), run(2), run(1)]),
        ] {
            let manifest = Manifest { logs, runs, ..Manifest::of_store(1) };
            assert_eq!(Manifest::parse(&manifest.text()), None, "{manifest:?}");
        }
    }
}
