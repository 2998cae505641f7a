//! The file `acknowledged`: where the log that is being written ended when a group in it was last acknowledged.
//!
//! It is written (in place, 48 bytes of one sector) after a group is durable and before its writers hear so, but it is
//! synced only when a log is begun. So after the death of the process it is exact, and after a power cut it is a lower
//! bound. Either way the start knows what must be there: a newest log that was cut between two groups, or damaged in
//! the last one, does not look like one that ends there.

use std::io;

use super::disk::{Disk, DiskFile};
use super::log::End;
use super::sector::{self, Found};

pub(crate) const NAME: &str = "acknowledged";
const TITLE: &[u8; 8] = b"TmAck 3\n";
const BYTES: usize = sector::bytes_of(4);

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    /// The store's number.
    pub(crate) store: u64,
    /// The log that is being written; 0 before there is one.
    pub(crate) log: u64,
    /// Where it ended when a group of it was last acknowledged.
    pub(crate) end: End,
}

impl Marker {
    /// That of a log in which nothing is acknowledged yet.
    pub(crate) fn new(store: u64, log: u64) -> Self {
        Marker { store, log, end: End::default() }
    }

    fn bytes(self) -> Vec<u8> {
        sector::encode(TITLE, &[self.store, self.log, self.end.bytes, self.end.entries])
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let [store, log, bytes, entries] = sector::decode(TITLE, bytes)?;
        Some(Marker { store, log, end: End { bytes, entries } })
    }

    pub(crate) fn read(disk: &Disk) -> io::Result<Found<Marker>> {
        let file = match disk.open(NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            file => file?,
        };
        if file.len()? != BYTES as u64 {
            return Ok(Found::Damaged);
        }
        let mut bytes = [0; BYTES];
        file.read_at(&mut bytes, 0)?;
        Ok(Marker::parse(&bytes).map_or(Found::Damaged, Found::Whole))
    }
}

/// The file, open to be written again and again.
pub(crate) struct MarkerFile(DiskFile);

impl MarkerFile {
    /// Puts a new file in place of the one that may be there; it is durable when this returns.
    pub(crate) fn begin(disk: &Disk, marker: Marker) -> io::Result<Self> {
        disk.replace(NAME, &marker.bytes()).map(MarkerFile)
    }

    /// Hands the marker to the operating system.
    pub(crate) fn write(&self, marker: Marker) -> io::Result<()> {
        self.0.overwrite(&marker.bytes())
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
        let disk = Disk::new(dir.path(), None);
        assert_eq!(Marker::read(&disk).unwrap(), Found::Absent);
        let file = MarkerFile::begin(&disk, Marker::new(1, 0)).unwrap();
        assert_eq!(Marker::read(&disk).unwrap(), Found::Whole(Marker::new(1, 0)));
        let marker = Marker { end: End { bytes: 1234, entries: 5 }, ..Marker::new(1, 7) };
        file.write(marker).unwrap();
        assert_eq!(Marker::read(&disk).unwrap(), Found::Whole(marker));
        std::fs::write(dir.path().join(NAME), &marker.bytes()[1..]).unwrap();
        assert_eq!(Marker::read(&disk).unwrap(), Found::Damaged);
    }
}
