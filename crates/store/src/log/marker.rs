//! The file `acknowledged`: the number of the last group that was acknowledged, and which log is being written.
//!
//! It is written (in place, 40 bytes of one sector) after a group is durable and before its writers hear so, but it
//! is synced only when a log is begun and at the end. So after the death of the process it is exact, and after a
//! power cut it is a lower bound. Either way the start knows of groups that must be there: a log that was cut short,
//! lost, or damaged in its last group does not look like one that ends there.

use std::io;

use crate::files::{Files, Writing};
use crate::sector::{self, Found};

pub(crate) const NAME: &str = "acknowledged";
const TITLE: &[u8; 8] = b"TmAck 1\n";
const BYTES: usize = sector::bytes_of(3);

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    /// The store's random number, which all its files carry.
    pub(crate) key: u64,
    /// The number of the last group that was acknowledged.
    pub(crate) acknowledged: u64,
    /// The first number of the log that is being written; 0 before there is one.
    pub(crate) log: u64,
}

impl Marker {
    fn bytes(self) -> Vec<u8> {
        sector::encode(TITLE, &[self.key, self.acknowledged, self.log])
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let [key, acknowledged, log] = sector::decode(TITLE, bytes)?;
        Some(Marker { key, acknowledged, log })
    }

    pub(crate) fn read(files: &Files) -> io::Result<Found<Marker>> {
        Ok(match files.read(NAME, BYTES + 1)? {
            None => Found::Absent,
            Some(bytes) => Marker::parse(&bytes).map_or(Found::Damaged, Found::Whole),
        })
    }
}

/// The file, open to be written again and again.
pub(crate) struct MarkerFile(Writing);

impl MarkerFile {
    /// Puts a new file in place of the one that may be there; it is durable when this returns.
    pub(crate) fn begin(files: &Files, marker: Marker) -> io::Result<Self> {
        let mut file = files.create(&format!("{NAME}.new"))?;
        file.write(&marker.bytes())?;
        file.sync()?;
        file.publish(NAME)?;
        Ok(MarkerFile(file))
    }

    /// Hands the marker to the operating system.
    pub(crate) fn write(&self, marker: Marker) -> io::Result<()> {
        self.0.write_at_start(&marker.bytes())
    }

    /// Returns when it is on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path(), None);
        assert_eq!(Marker::read(&files).unwrap(), Found::Absent);
        let file = MarkerFile::begin(&files, Marker { key: 1, acknowledged: 0, log: 0 }).unwrap();
        let marker = Marker { key: 1, acknowledged: 77, log: 12 };
        file.write(marker).unwrap();
        assert_eq!(Marker::read(&files).unwrap(), Found::Whole(marker));
    }
}
