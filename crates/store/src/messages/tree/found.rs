//! What a directory holds when it is opened. Whatever the manifest names must be there and be what it names; the rest
//! was never finished, or is no longer needed.

use std::io;
use std::sync::Arc;

use super::background::Levelled;
use super::log::{self, End, Replayed};
use super::manifest::{self, LogLine, Manifest};
use super::marker::{self, Marker};
use super::run::{self, Run};
use super::table::Table;
use super::{Logged, View};
use crate::disk::Disk;
use crate::durability::Durability;
use crate::sector;

/// What was found.
pub(crate) struct Found {
    pub(crate) view: View,
    /// With no log that is empty, and all logs at their ends.
    pub(crate) manifest: Manifest,
    pub(crate) next_log: u64,
    pub(crate) next_run: u64,
    /// Logs whose end the manifest on disk does not say, and how long they are; nobody knows how much of that is on disk.
    pub(crate) unsynced: Vec<(u64, u64)>,
    /// Files that nothing refers to.
    pub(crate) rests: Vec<String>,
    /// Messages that damaged logs do not have any more, at least. None with [`Durability::Synced`]: they are an
    /// error then.
    pub(crate) missing: u64,
}

impl Found {
    /// Reads a directory; nothing in it is changed.
    pub(crate) fn read(disk: &Disk, durability: Durability) -> io::Result<Self> {
        let names = disk.names()?;
        let marker = Marker::read(disk)?;
        let (mut manifest, marker) = match Manifest::read(disk)? {
            Some(manifest) => {
                let marker = acknowledged(marker, &manifest, durability)?;
                (manifest, marker)
            }
            None => (without_manifest(disk, &names, marker)?, None),
        };
        let mut view = View::default();
        for line in &manifest.runs {
            let run = needed(&run::name(line.id), Run::open(disk, manifest.store, line))?;
            view.runs.push(Levelled { run, level: line.level });
        }
        let mut missing = 0;
        let mut unsynced = Vec::new();
        for line in &mut manifest.logs {
            let logged = Logged::new(line.id, 0);
            let end =
                marker.filter(|marker| marker.log == line.id).map_or(End::default(), |marker| marker.end);
            let replayed = replay(disk, manifest.store, line, end, &mut logged.table.write())?;
            missing = judge(&replayed, line.id, durability)?.saturating_add(missing);
            if line.end.is_none() {
                unsynced.push((line.id, replayed.end.bytes));
            }
            line.end.get_or_insert(replayed.end);
            if logged.table.read().len() > 0 {
                view.tables.push(Arc::new(logged));
            }
        }
        let newest = manifest.logs.last().map_or(0, |log| log.id);
        manifest.logs.retain(|line| view.tables.iter().any(|logged| logged.log_id == line.id));
        let mut found =
            Found { view, manifest, next_log: newest + 1, next_run: 1, rests: Vec::new(), unsynced, missing };
        for name in names {
            found.note(disk, name, newest)?;
        }
        Ok(found)
    }

    /// Sorts a file that is there into what counts and what does not.
    fn note(&mut self, disk: &Disk, name: String, newest: u64) -> io::Result<()> {
        if let Some(id) = run::id_of(&name) {
            self.next_run = self.next_run.max(id.saturating_add(1));
            // One whose making was cut off, or that was merged into another.
            if !self.manifest.runs.iter().any(|line| line.id == id) {
                self.rests.push(name);
            }
        } else if let Some(id) = log::id_of(&name) {
            self.next_log = self.next_log.max(id.saturating_add(1));
            if id > newest && disk.open(&name)?.len()? > 0 {
                let reason = format!("{name} is newer than all that the {} names", manifest::NAME);
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            if !self.manifest.logs.iter().any(|line| line.id == id) {
                self.rests.push(name);
            }
        }
        Ok(())
    }
}

/// The marker, if it is this store's. With [`Durability::Synced`] a missing or damaged one is an error.
fn acknowledged(
    found: sector::Found<Marker>,
    manifest: &Manifest,
    durability: Durability,
) -> io::Result<Option<Marker>> {
    let newest = manifest.logs.last().map_or(0, |log| log.id);
    let name = marker::NAME;
    let what = match found {
        sector::Found::Whole(marker) if marker.store != manifest.store => "is of another store",
        sector::Found::Whole(marker) if marker.log > newest => "names a log that the manifest does not",
        sector::Found::Whole(marker) => return Ok(Some(marker)),
        sector::Found::Absent => "is missing",
        sector::Found::Damaged => "is damaged",
    };
    if durability == Durability::Synced {
        let reason = format!(
            "the file {name} {what}; it says how much of the newest log was acknowledged. Started once with durability \
             buffered, the store goes on without it"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    tracing::warn!(file = name, "it {what}: if the newest log was cut, that goes unnoticed");
    Ok(None)
}

/// The manifest of a directory that has none: a new one, if there was never a message.
fn without_manifest(disk: &Disk, names: &[String], marker: sector::Found<Marker>) -> io::Result<Manifest> {
    match marker {
        sector::Found::Absent => {}
        // the first start was cut off before there was a log
        sector::Found::Whole(marker) if marker.log == 0 => {}
        _ => {
            let reason = format!("the file {} is missing, and {} is there", manifest::NAME, marker::NAME);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
    }
    for name in names {
        let mut begin = log::MAGIC_OF_FORMAT_1;
        let is_old = match log::id_of(name).map(|_| disk.open(name)).transpose()? {
            Some(log) if log.len()? == 0 => continue,
            Some(log) => log.read_at(&mut begin, 0).is_ok() && begin == log::MAGIC_OF_FORMAT_1,
            None if run::id_of(name).is_some() => false,
            None => continue,
        };
        if is_old {
            return Err(manifest::of_format_1());
        }
        let reason = format!("the file {} is missing, and {name} is there", manifest::NAME);
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(Manifest::new())
}

/// Says of a file that is not there whose it is.
fn needed<T>(name: &str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(io::ErrorKind::InvalidData, format!("the file {name} is missing"))
        }
        _ => error,
    })
}

fn replay(
    disk: &Disk,
    store: u64,
    line: &LogLine,
    acknowledged: End,
    table: &mut Table,
) -> io::Result<Replayed> {
    let name = log::name(line.id);
    let take = |entries: &[u8], count| match table.take(entries) {
        Some(taken) if taken == count as usize => Ok(()),
        _ => {
            let reason = format!("{name}: a whole group does not hold the {count} messages that it should");
            Err(io::Error::new(io::ErrorKind::InvalidData, reason))
        }
    };
    needed(&name, log::replay(disk, store, line.id, line.end, acknowledged, take))
}

/// Tells of what is not whole in a log, and refuses what must not be; how many messages are missing.
fn judge(replayed: &Replayed, id: u64, durability: Durability) -> io::Result<u64> {
    let name = log::name(id);
    if replayed.torn_bytes > 0 {
        let End { bytes: at, .. } = replayed.end;
        let torn_bytes = replayed.torn_bytes;
        tracing::warn!(log = name, at, torn_bytes, "the end of a log was never whole, and is left out");
    }
    let Some(damage) = replayed.damage else { return Ok(0) };
    if durability == Durability::Synced {
        let reason = format!(
            "{name} is damaged at byte {}, where at least {} messages are missing; with durability buffered it is \
             opened without them",
            damage.at, damage.missing
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    tracing::warn!(
        log = name,
        at = damage.at,
        missing = damage.missing,
        "a log is damaged; the messages that are missing there, at least so many, are left out"
    );
    Ok(damage.missing)
}
