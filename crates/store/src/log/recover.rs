//! Reading a directory back. Each group has a number, without gaps from the first: so it can be told whether all are
//! there that must be, whatever happened to the files.
//!
//! A snapshot has the groups up to its number, the logs have the others. A log ends where the next one begins; what
//! stands in it behind that was never acknowledged, or is in the next one, too. The last log ends where no whole
//! frame follows. That is a torn tail, and is left out, unless groups behind it are known to have been acknowledged:
//! the marker says so (see `marker`), or the snapshot does, or there is a frame further on (for `synced`, no frame is
//! written before the one before it is on disk). Then this is damage, and the store is not opened.

use std::io;

use super::frame::{Frames, Kind, Next};
use super::marker::{self, Marker};
use super::{log_name, log_number, snapshot, snapshot_number};
use crate::change::{self, Change};
use crate::durability::Durability;
use crate::files::Files;
use crate::record::Interned;
use crate::sector::Found;

/// Why a directory cannot be opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    Io(io::Error),
    /// What is wrong, with file and place.
    Damaged(String),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::Io(error)
    }
}

/// Damage in a file.
pub(crate) fn damaged(name: &str, offset: u64, what: &str) -> OpenError {
    OpenError::Damaged(format!("{name} is damaged at byte {offset}: {what}"))
}

/// What a directory holds.
pub(crate) struct Recovered {
    /// The store's random number; none if the directory is empty.
    pub(crate) key: Option<u64>,
    pub(crate) snapshot_bytes: u64,
    /// The snapshot and the logs that were read hold all groups up to this one, for certain and on disk.
    pub(crate) certain: u64,
    /// The groups behind it. Nobody knows whether they are on disk (a sync may have failed) or only seem to be, so
    /// they are to be written again.
    pub(crate) uncertain: Vec<Vec<u8>>,
    /// Bytes of logs that are read at a start.
    pub(crate) log_bytes: u64,
    /// Files that do not count any more.
    pub(crate) superfluous: Vec<String>,
    /// Something that was acknowledged may be missing; only with `buffered`.
    pub(crate) is_damaged: bool,
    /// Groups that were acknowledged and could not be read, as far as that is known.
    pub(crate) lost_groups: u64,
}

/// Reads the directory, hands over all that it holds, and tells where to go on.
pub(crate) fn recover(
    files: &Files,
    durability: Durability,
    take: impl FnMut(Change),
) -> Result<Recovered, OpenError> {
    let names = Names::list(files)?;
    let mut reading = Reading {
        files,
        durability,
        key: None,
        acknowledged: 0,
        certain_to: 0,
        last: 0,
        uncertain: Vec::new(),
        log_bytes: 0,
        is_complete: true,
        lost_groups: 0,
    };
    reading.marker(&names)?;
    let mut taking = Taking { take, segments: Interned::default() };
    let snapshot_bytes = reading.snapshot(&names, &mut taking)?;
    let superfluous = reading.logs(&names, &mut taking)?;
    let certain = reading.last - reading.uncertain.len() as u64;
    Ok(Recovered {
        key: reading.key,
        snapshot_bytes,
        certain,
        uncertain: reading.uncertain,
        log_bytes: reading.log_bytes,
        superfluous,
        is_damaged: !reading.is_complete,
        lost_groups: reading.lost_groups,
    })
}

/// The files of a store, from the oldest.
struct Names {
    logs: Vec<u64>,
    snapshots: Vec<u64>,
    /// Files whose making was cut off.
    unfinished: Vec<String>,
}

impl Names {
    fn list(files: &Files) -> Result<Self, OpenError> {
        let mut names = Names { logs: Vec::new(), snapshots: Vec::new(), unfinished: Vec::new() };
        for name in files.names()? {
            if name == "keyspaces" || name.ends_with(".jnl") {
                return Err(OpenError::Damaged(
                    "an earlier version wrote it, in another form; that version reads it".into(),
                ));
            }
            if name.ends_with(".new") {
                names.unfinished.push(name);
            } else if let Some(number) = log_number(&name) {
                names.logs.push(number);
            } else if let Some(number) = snapshot_number(&name) {
                names.snapshots.push(number);
            }
        }
        names.logs.sort_unstable();
        names.snapshots.sort_unstable();
        Ok(names)
    }
}

/// Hands entries over as changes.
struct Taking<F> {
    take: F,
    segments: Interned,
}

impl<F: FnMut(Change)> Taking<F> {
    fn entries(&mut self, entries: &[u8]) -> Result<(), &'static str> {
        change::read(entries, &mut self.segments, &mut self.take)
    }
}

struct Reading<'a> {
    files: &'a Files,
    durability: Durability,
    key: Option<u64>,
    /// Groups up to this one must be there.
    acknowledged: u64,
    /// Groups up to this one are on disk if they are there.
    certain_to: u64,
    /// The last group that was read.
    last: u64,
    uncertain: Vec<Vec<u8>>,
    log_bytes: u64,
    /// Nothing has been missing so far.
    is_complete: bool,
    lost_groups: u64,
}

impl Reading<'_> {
    /// Something that was acknowledged cannot be read. With `buffered`, which a power cut may do this to, the store
    /// is opened with what stands before it, and says so.
    fn missing(&mut self, what: String) -> Result<(), OpenError> {
        if self.durability == Durability::Synced {
            let way_out =
                "opened once with durability buffered, it goes on with what stands before the damage";
            return Err(OpenError::Damaged(format!("{what} ({way_out})")));
        }
        tracing::warn!(dir = %self.files.dir().display(), "{what}; going on with what stands before it");
        self.is_complete = false;
        Ok(())
    }

    fn marker(&mut self, names: &Names) -> Result<(), OpenError> {
        match Marker::read(self.files)? {
            Found::Whole(Marker { key, acknowledged, log }) => {
                self.key = Some(key);
                self.acknowledged = acknowledged;
                self.certain_to = acknowledged;
                if log > 0 && !names.logs.contains(&log) {
                    self.missing(format!("{} is missing", log_name(log)))?;
                }
                Ok(())
            }
            Found::Absent if names.logs.is_empty() && names.snapshots.is_empty() => Ok(()),
            Found::Absent => self.missing(format!(
                "the file {} is missing, without which nobody can tell whether all that was acknowledged is there",
                marker::NAME
            )),
            Found::Damaged => self.missing(format!(
                "{} is damaged at byte 0, and nobody can tell whether all that was acknowledged is there",
                marker::NAME
            )),
        }
    }

    /// Reads the youngest snapshot, which must be whole; tells its size.
    fn snapshot(&mut self, names: &Names, taking: &mut Taking<impl FnMut(Change)>) -> Result<u64, OpenError> {
        let Some(&number) = names.snapshots.last() else { return Ok(0) };
        let read = snapshot::read(self.files, number, self.key, &mut |entries| taking.entries(entries))?;
        self.key = Some(read.key);
        self.last = number;
        self.acknowledged = self.acknowledged.max(read.seen);
        self.certain_to = self.certain_to.max(number);
        Ok(read.bytes)
    }

    /// Reads the logs behind the snapshot; tells which files do not count any more.
    fn logs(
        &mut self,
        names: &Names,
        taking: &mut Taking<impl FnMut(Change)>,
    ) -> Result<Vec<String>, OpenError> {
        let mut superfluous = names.unfinished.clone();
        let older = names.snapshots.iter().rev().skip(1);
        superfluous.extend(older.map(|number| super::snapshot_name(*number)));
        let mut later: Option<u64> = None;
        let mut is_over = false;
        for (place, &first) in names.logs.iter().enumerate() {
            let next = names.logs.get(place + 1).copied();
            if is_over || next.is_some_and(|next| next <= self.last + 1) {
                superfluous.push(log_name(first));
                continue;
            }
            if first > self.last + 1 {
                let (from, to) = (self.last + 1, first - 1);
                let (snapshot, log) = (super::snapshot_name(to), log_name(from));
                self.missing(format!(
                    "groups {from} to {to} are missing: neither {snapshot} nor {log} is there"
                ))?;
                superfluous.push(log_name(first));
                is_over = true;
                continue;
            }
            later = self.log(first, next, taking)?;
            is_over = later.is_some(); // told already, and only with `buffered`
        }
        let must_be = self.acknowledged.max(later.unwrap_or(0));
        if self.last < must_be {
            self.lost_groups = must_be - self.last;
            if self.is_complete {
                let (from, to) = (self.last + 1, must_be);
                self.missing(format!("groups {from} to {to} were acknowledged and are not there"))?;
            }
            tracing::warn!(groups = self.lost_groups, "acknowledged groups of writes are lost");
        }
        Ok(superfluous)
    }

    /// Reads a log, which ends where the next one begins; tells the last group that is known to have been behind the
    /// last one that could be read, if there is one.
    fn log(
        &mut self,
        first: u64,
        next: Option<u64>,
        taking: &mut Taking<impl FnMut(Change)>,
    ) -> Result<Option<u64>, OpenError> {
        let name = log_name(first);
        let mut log = match Frames::open(self.files, &name, Kind::Log, first, self.key) {
            Err(OpenError::Damaged(what)) => {
                self.missing(what)?;
                return Ok(Some(next.map_or(self.last, |next| next - 1)));
            }
            log => log?,
        };
        self.key = Some(log.head.key);
        let end = next.map_or(u64::MAX, |next| next - 1);
        let mut expected = first;
        while expected <= end {
            let at = log.offset;
            match log.next()? {
                Next::Frame { number, content } if number == expected => {
                    if number > self.last {
                        taking.entries(content).map_err(|malformed| damaged(&name, at, malformed))?;
                        self.last = number;
                        if number > self.certain_to {
                            self.uncertain.push(content.to_vec());
                        }
                    }
                    expected += 1;
                }
                _ => {
                    return self.broken(&name, &mut log, next);
                }
            }
        }
        self.log_bytes += log.offset;
        Ok(None)
    }

    /// No whole frame follows. Tells the last group that is known to have been here.
    fn broken(&mut self, name: &str, log: &mut Frames, next: Option<u64>) -> Result<Option<u64>, OpenError> {
        let (at, left, last) = (log.offset, log.left(), self.last.max(log.head.number - 1));
        self.log_bytes += at;
        let known = match next {
            Some(next) => Some(next - 1),
            None => {
                // The broken one has a head, perhaps. Of one behind it, only those before are known to have been whole.
                let later = log.later(last + 1)?.map(|number| number - 1);
                later.max(Some(self.acknowledged).filter(|known| *known > last))
            }
        };
        match known {
            Some(known) => self.missing(format!(
                "{name} is damaged or cut off at byte {at}: groups {} to {known} were acknowledged and cannot be read",
                last + 1
            ))?,
            None if left > 0 => {
                tracing::warn!(file = name, at, bytes = left, "the end of a log was never whole, and is left out");
            }
            None => {}
        }
        Ok(known)
    }
}
