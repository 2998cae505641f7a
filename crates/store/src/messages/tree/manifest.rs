//! Which files count: the runs, from the oldest, and which logs have been written as runs. Without it nobody could
//! tell a run that is whole from one whose making was cut off, nor a log that is needed from one that came back after
//! a power cut.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

use super::disk::Disk;

const NAME: &str = "manifest";
const TITLE: &str = "tidemark messages 1";

/// A run as the manifest names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunLine {
    pub(crate) id: u64,
    /// How many merges it has been through.
    pub(crate) level: u32,
}

/// The manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Manifest {
    /// Logs with numbers up to this one are in runs.
    pub(crate) logs_done: u64,
    /// From the oldest.
    pub(crate) runs: Vec<RunLine>,
}

impl Manifest {
    /// Reads the manifest of the directory; an empty one if there is none.
    pub(crate) fn read(disk: &Disk) -> io::Result<Self> {
        match std::fs::read_to_string(disk.path(NAME)) {
            Ok(text) => Self::parse(&text)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the manifest is damaged")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Puts this manifest in place of the one that is there; it is durable when this returns.
    pub(crate) fn write(&self, disk: &Disk) -> io::Result<()> {
        disk.replace(NAME, self.text().as_bytes())
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE}\nlogs done {}\n", self.logs_done);
        for run in &self.runs {
            text += &format!("run {} level {}\n", run.id, run.level);
        }
        let sum = xxh3_64(text.as_bytes());
        text + &format!("checksum {sum:016x}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let at = text.rfind("checksum ")?;
        let (content, sum) = text.split_at(at);
        let sum = u64::from_str_radix(sum.strip_prefix("checksum ")?.strip_suffix('\n')?, 16).ok()?;
        let mut lines = content.lines();
        if sum != xxh3_64(content.as_bytes()) || lines.next()? != TITLE {
            return None;
        }
        let logs_done = lines.next()?.strip_prefix("logs done ")?.parse().ok()?;
        let run = |line: &str| {
            let (id, level) = line.strip_prefix("run ")?.split_once(" level ")?;
            Some(RunLine { id: id.parse().ok()?, level: level.parse().ok()? })
        };
        Some(Manifest { logs_done, runs: lines.map(run).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_a_changed_byte_is_seen() {
        let runs = vec![RunLine { id: 3, level: 2 }, RunLine { id: 9, level: 0 }];
        let manifest = Manifest { logs_done: 12, runs };
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Some(manifest));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let wrong = String::from_utf8(bytes).unwrap();
            assert_eq!(Manifest::parse(&wrong), None, "byte {at}");
            assert_eq!(Manifest::parse(&text[..at]), None, "cut at {at}");
        }
    }
}
