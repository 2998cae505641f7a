//! A snapshot: all that is in the tables in memory, written down, so that the logs before it are not needed any more.
//!
//! It is written while the store goes on. What it holds of groups behind the logs that it covers does no harm: they are
//! in the log behind it, and carrying an entry out twice gives what carrying it out once gives, as long as all that
//! follows is carried out, too. That this is there is checked: the manifest says how far entries may be in it.

use std::io;
use std::sync::atomic::Ordering;

use super::EngineState;
use super::log::Log;
use super::manifest::SnapshotLine;
use super::seal::Seal;
use super::table::{Entries, PARTS};
use crate::durability::Durability;

/// Written as one frame; a single entry may be larger.
const FRAME_BYTES: usize = 256 * 1024;
/// Synced in one go: with more, a group of the log would wait for all of it.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;

/// The name of the snapshot that covers the logs up to this one.
pub(crate) fn name(id: u64) -> String {
    format!("snapshot-{id:010}")
}

/// The number of a snapshot with this name.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    super::log::number_of(name.strip_prefix("snapshot-")?)
}

/// Writes a snapshot that covers the logs up to this one; nothing if the store is being closed.
pub(crate) fn write(shared: &EngineState, id: u64) -> io::Result<Option<SnapshotLine>> {
    let store = shared.files.lock().manifest.store;
    let beside = format!("{}.new", name(id));
    let mut out = Log::begin(&shared.disk, &beside, Seal::of_snapshot(store, id))?;
    let (mut entries, mut synced) = (Entries::default(), 0);
    let tables = &shared.tables.memory;
    for (table, part) in tables.iter().flat_map(|table| (0..PARTS).map(move |part| (table, part))) {
        table.write_part(part, &mut entries);
        if entries.bytes.len() < FRAME_BYTES {
            continue;
        }
        if shared.is_closing.load(Ordering::Relaxed) {
            shared.disk.remove(&beside);
            return Ok(None);
        }
        for (count, frame) in entries.pieces(FRAME_BYTES) {
            out.append(count, frame)?;
            if out.end().bytes - synced >= SYNC_BYTES {
                synced = out.end().bytes;
                out.sync()?;
            }
        }
        entries.clear();
    }
    entries.pieces(FRAME_BYTES).try_for_each(|(count, frame)| out.append(count, frame))?;
    let (seen_log, seen, log) = {
        let persisted = shared.persisted.lock();
        (persisted.log, persisted.end, persisted.file.clone())
    };
    if shared.options.durability != Durability::Synced {
        // what was seen becomes as durable as the snapshot that has seen it
        log.sync()?;
    }
    let end = out.publish(&shared.disk, &name(id))?;
    Ok(Some(SnapshotLine { id, end, seen_log, seen }))
}
