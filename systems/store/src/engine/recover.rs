//! What a directory holds when it is opened. Whatever the manifest names must be there and be what it names; the rest
//! was never finished, or is no longer needed.

use std::io;

use super::disk::Disk;
use super::log::{self, End, Log, Replayed};
use super::manifest::{self, LogLine, Manifest};
use super::marker::{self, Marker};
use super::ordered::run;
use super::seal::Seal;
use super::sector;
use super::snapshot;
use super::table::Tables;
use crate::durability::Durability;

/// A log that is to be written again.
struct Again {
    /// As the manifest on disk names it.
    line: LogLine,
    acknowledged: End,
}

/// What was found.
pub(crate) struct Found {
    /// With no log that is empty, and all logs at their ends.
    pub(crate) manifest: Manifest,
    pub(crate) next_log: u64,
    pub(crate) next_run: u64,
    /// Logs whose end the manifest does not say, as nobody knows how much of them is on disk, and damaged ones.
    again: Vec<Again>,
    /// Files that nothing refers to.
    pub(crate) rests: Vec<String>,
    /// Entries that damaged logs do not have any more, at least. None with [`Durability::Synced`]: they are an
    /// error then.
    pub(crate) missing: u64,
    /// Whether something that was acknowledged may be missing.
    pub(crate) is_damaged: bool,
    /// Bytes of logs that no snapshot covers.
    pub(crate) uncovered_bytes: u64,
}

impl Found {
    /// Reads a directory into the tables; nothing in it is changed.
    pub(crate) fn read(disk: &Disk, tables: &Tables, durability: Durability) -> io::Result<Self> {
        let names = disk.names()?;
        if names.iter().any(|name| is_of_format_before(name)) {
            return Err(manifest::of_format_before());
        }
        let marker = Marker::read(disk)?;
        let (manifest, marker) = match Manifest::read(disk)? {
            Some(manifest) => {
                check_tables(&manifest, tables)?;
                let marker = acknowledged(marker, &manifest, durability)?;
                (manifest, marker)
            }
            None => (without_manifest(disk, &names, marker)?, None),
        };
        let is_damaged = marker.is_none() && !manifest.logs.is_empty();
        let mut found = Found {
            manifest,
            next_log: 1,
            next_run: 1,
            again: Vec::new(),
            rests: Vec::new(),
            missing: 0,
            is_damaged,
            uncovered_bytes: 0,
        };
        found.runs_and_snapshot(disk, tables)?;
        found.logs(disk, tables, marker, durability)?;
        found.files(disk, names)?;
        Ok(found)
    }

    fn runs_and_snapshot(&self, disk: &Disk, tables: &Tables) -> io::Result<()> {
        let Manifest { store, runs, snapshot, .. } = &self.manifest;
        for line in runs {
            let name = run::name(line.id);
            let table = tables.ordered_table(line.table).ok_or_else(|| {
                invalid(format!("{} names {name}, of a table that is not known", manifest::NAME))
            })?;
            needed(&name, table.open_run(disk, *store, line))?;
        }
        let Some(line) = snapshot else { return Ok(()) };
        let name = snapshot::name(line.id);
        let seal = Seal::of_snapshot(*store, line.id);
        let take = |entries: &[u8], count| apply(&name, tables, false, entries, count);
        let file = needed(&name, disk.open(&name))?;
        let replayed = log::replay(file, seal, Some(line.end), End::default(), take)?;
        let damaged = |damage: log::Damage| invalid(format!("{name} is damaged at byte {}", damage.at));
        replayed.damage.map_or(Ok(()), |damage| Err(damaged(damage)))
    }

    fn logs(
        &mut self,
        disk: &Disk,
        tables: &Tables,
        marker: Option<Marker>,
        durability: Durability,
    ) -> io::Result<()> {
        let Manifest { store, flushed, snapshot, .. } = self.manifest;
        self.next_log = self.manifest.logs.last().map_or(0, |log| log.id) + 1;
        let mut kept = Vec::new();
        for line in &self.manifest.logs {
            let (line, name) = (*line, log::name(line.id));
            let marked =
                marker.filter(|marker| marker.log == line.id).map_or(End::default(), |marker| marker.end);
            let seen =
                snapshot.filter(|snapshot| snapshot.seen_log == line.id).map_or(End::default(), |s| s.seen);
            let acknowledged = if seen.entries > marked.entries { seen } else { marked };
            let skip_flushed = line.id <= flushed;
            if !skip_flushed {
                tables.ordered.iter().for_each(|table| table.begin_log(line.id, 0));
            }
            let take = |entries: &[u8], count| apply(&name, tables, skip_flushed, entries, count);
            let file = needed(&name, disk.open(&name))?;
            let replayed = log::replay(file, Seal::of_log(store, line.id), line.end, acknowledged, take)?;
            self.missing = judge(&replayed, &name, durability)?.saturating_add(self.missing);
            self.is_damaged |= replayed.damage.is_some();
            if replayed.end.entries == 0 {
                continue;
            }
            if line.end.is_none() || replayed.damage.is_some() {
                self.again.push(Again { line, acknowledged });
            }
            if snapshot.is_none_or(|snapshot| line.id > snapshot.id) {
                self.uncovered_bytes += replayed.end.bytes;
            }
            kept.push(LogLine { id: line.id, end: line.end.or(Some(replayed.end)) });
        }
        self.manifest.logs = kept;
        Ok(())
    }

    /// Sorts the files that are there into what counts and what does not.
    fn files(&mut self, disk: &Disk, names: Vec<String>) -> io::Result<()> {
        let newest = self.next_log - 1;
        for name in names {
            if let Some(id) = run::id_of(&name) {
                self.next_run = self.next_run.max(id.saturating_add(1));
                // One whose making was cut off, or that was merged into another.
                if !self.manifest.runs.iter().any(|line| line.id == id) {
                    self.rests.push(name);
                }
            } else if let Some(id) = log::id_of(&name) {
                self.next_log = self.next_log.max(id.saturating_add(1));
                if id > newest && disk.open(&name)?.len()? > 0 {
                    return Err(invalid(format!(
                        "{name} is newer than all that the {} names",
                        manifest::NAME
                    )));
                }
                if !self.manifest.logs.iter().any(|line| line.id == id) {
                    self.rests.push(name);
                }
            } else if let Some(id) = snapshot::id_of(name.trim_end_matches(".new"))
                && (name.ends_with(".new") || self.manifest.snapshot.is_none_or(|snapshot| snapshot.id != id))
            {
                self.rests.push(name);
            }
        }
        Ok(())
    }

    /// Writes logs again, with what is whole of them, before the manifest says that it is there: after a sync that failed,
    /// the operating system may show what the disk never got, and the next sync succeeds.
    pub(crate) fn write_again(&mut self, disk: &Disk) -> io::Result<()> {
        let store = self.manifest.store;
        for Again { line, acknowledged } in self.again.drain(..) {
            let (name, seal) = (log::name(line.id), Seal::of_log(store, line.id));
            let mut log = Log::begin(disk, &format!("{name}.new"), seal)?;
            let again = |entries: &[u8], count| log.append(count, entries);
            log::replay(disk.open(&name)?, seal, line.end, acknowledged, again)?;
            let end = log.publish(disk, &name)?;
            self.manifest.end_log(line.id, end);
        }
        Ok(())
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Carries out the entries of a group.
fn apply(name: &str, tables: &Tables, skip_flushed: bool, entries: &[u8], count: u32) -> io::Result<()> {
    let mut outcomes = Vec::new();
    let applied = tables.replay(entries, skip_flushed, &mut outcomes);
    let wrong = |what: &str| invalid(format!("{name}: a whole group does not hold what it should: {what}"));
    applied.map_err(wrong)?;
    if outcomes.len() == count as usize { Ok(()) } else { Err(wrong("it has another number of entries")) }
}

/// A table of messages that user, time and kind alone told apart. No version has had both it and messages with ids.
const MESSAGES_BEFORE: (u8, &str) = (4, "messages");

/// Refuses a directory of another system, or of an earlier version.
fn check_tables(manifest: &Manifest, tables: &Tables) -> io::Result<()> {
    if manifest.tables.iter().any(|(number, name)| (*number, name.as_str()) == MESSAGES_BEFORE) {
        let reason = "an earlier version wrote it, which kept one message for each user, time and type; this version does \
                      not read it. It stays as it is: name another directory, or open it with that version";
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let names = tables.names();
    let is_known = |(number, name): &&(u8, String)| names.contains(&(*number, name.as_str()));
    match manifest.tables.iter().find(|table| !is_known(table)) {
        None => Ok(()),
        Some((_, name)) => {
            let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
            let reason = format!("it has a table {name:?}, and this system has {}", names.join(", "));
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        }
    }
}

/// Whether only an earlier version made files of such names.
fn is_of_format_before(name: &str) -> bool {
    let is_long = |prefix| {
        let digits = name.strip_prefix(prefix);
        digits.is_some_and(|digits| digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name == "keyspaces" || name.ends_with(".jnl") || is_long("log-") || is_long("snapshot-")
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
        return Err(invalid(reason));
    }
    tracing::warn!(file = name, "it {what}: if the newest log was cut, that goes unnoticed");
    Ok(None)
}

/// The manifest of a directory that has none: a new one, if there was never an entry.
fn without_manifest(disk: &Disk, names: &[String], marker: sector::Found<Marker>) -> io::Result<Manifest> {
    match marker {
        sector::Found::Absent => {}
        // the first start was cut off before there was a log
        sector::Found::Whole(marker) if marker.log == 0 => {}
        _ => {
            let reason = format!("the file {} is missing, and {} is there", manifest::NAME, marker::NAME);
            return Err(invalid(reason));
        }
    }
    for name in names {
        match log::id_of(name) {
            Some(_) if disk.open(name)?.len()? == 0 => continue,
            None if run::id_of(name).is_none() && snapshot::id_of(name).is_none() => continue,
            _ => {}
        }
        let reason = format!("the file {} is missing, and {name} is there", manifest::NAME);
        return Err(invalid(reason));
    }
    Ok(Manifest::new())
}

/// Says of a file that is not there whose it is.
fn needed<T>(name: &str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => invalid(format!("the file {name} is missing")),
        _ => error,
    })
}

/// Tells of what is not whole in a log, and refuses what must not be; how many entries are missing.
fn judge(replayed: &Replayed, name: &str, durability: Durability) -> io::Result<u64> {
    if replayed.torn_bytes > 0 {
        let End { bytes: at, .. } = replayed.end;
        let torn_bytes = replayed.torn_bytes;
        tracing::warn!(log = name, at, torn_bytes, "the end of a log was never whole, and is left out");
    }
    let Some(damage) = replayed.damage else { return Ok(0) };
    if durability == Durability::Synced {
        let reason = format!(
            "{name} is damaged at byte {}, where at least {} entries are missing; with durability buffered it is \
             opened without them",
            damage.at, damage.missing
        );
        return Err(invalid(reason));
    }
    tracing::warn!(
        log = name,
        at = damage.at,
        missing = damage.missing,
        "a log is damaged; the entries that are missing there, at least so many, are left out"
    );
    Ok(damage.missing)
}
