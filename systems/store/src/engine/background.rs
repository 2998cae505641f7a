//! What goes on beside the writing: logs become runs and snapshots, runs become larger runs. One thread for each, so that
//! a long merge never keeps a table in memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::manifest::Manifest;
use super::table::Tables;
use super::{ClosedLog, EngineState, log, snapshot};
use crate::scheduling::take_no_core_from_others;

#[derive(Default)]
pub(crate) struct BackgroundCounters {
    pub(crate) flushes: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) merged_rows: AtomicU64,
    pub(crate) stalls: AtomicU64,
    pub(crate) stall_sum_us: AtomicU64,
}

/// The two threads. Dropping it ends them; a merge or a snapshot that is going on is given up.
pub(crate) struct Background {
    shared: Arc<EngineState>,
    threads: Vec<JoinHandle<()>>,
}

type Work = fn(&EngineState) -> io::Result<()>;

impl Background {
    pub(crate) fn start(shared: &Arc<EngineState>) -> io::Result<Self> {
        let mut background = Background { shared: shared.clone(), threads: Vec::new() };
        for (name, work) in [("store-flush", flush_for_ever as Work), ("store-merge", merge_for_ever)] {
            let shared = shared.clone();
            let run = move || {
                take_no_core_from_others();
                if let Err(error) = work(&shared) {
                    shared.fail(name, &error);
                }
            };
            background.threads.push(std::thread::Builder::new().name(name.into()).spawn(run)?);
        }
        Ok(background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.announce();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread of the store panicked");
            }
        }
    }
}

/// Flushes closed logs until the end.
fn flush_for_ever(shared: &EngineState) -> io::Result<()> {
    while !shared.is_closing.load(Ordering::Acquire)
        && let Some(closed) = shared.wait_for(|| shared.closed_logs.lock().front().copied())
    {
        flush(shared, closed)?;
    }
    Ok(())
}

fn flush(shared: &EngineState, ClosedLog { log, has_snapshot }: ClosedLog) -> io::Result<()> {
    let tables = &shared.tables;
    let mut runs = Vec::new();
    for table in &tables.ordered {
        runs.extend(table.flush(shared, log)?);
    }
    let snapshot = if has_snapshot { snapshot::write(shared, log)? } else { None };
    if let Some(snapshot) = &snapshot {
        shared.snapshot_bytes.store(snapshot.end.bytes, Ordering::Relaxed);
    }
    let mut files = shared.files.lock();
    let manifest = &mut files.manifest;
    shared.counters.flushes.fetch_add(runs.len() as u64, Ordering::Relaxed);
    manifest.runs.extend(runs);
    manifest.flushed = log;
    let older = snapshot.and_then(|snapshot| manifest.snapshot.replace(snapshot));
    let covered = covered(manifest, tables);
    let mut superfluous: Vec<String> = older.iter().map(|older| snapshot::name(older.id)).collect();
    manifest.logs.retain(|line| {
        if line.id <= covered {
            superfluous.push(log::name(line.id));
        }
        line.id > covered
    });
    manifest.write(&shared.disk)?;
    tables.ordered.iter().for_each(|table| table.flushed(log));
    drop(files);
    superfluous.iter().for_each(|name| shared.disk.remove(name));
    shared.closed_logs.lock().pop_front();
    shared.announce();
    Ok(())
}

/// Logs up to this one are not needed any more.
fn covered(manifest: &Manifest, tables: &Tables) -> u64 {
    let flushed = if tables.ordered.is_empty() { u64::MAX } else { manifest.flushed };
    let in_snapshot = manifest.snapshot.map_or(0, |snapshot| snapshot.id);
    if tables.memory.is_empty() { flushed } else { flushed.min(in_snapshot) }
}

/// Makes many runs one until the end.
fn merge_for_ever(shared: &EngineState) -> io::Result<()> {
    let mergeable = || shared.tables.ordered.iter().find(|table| table.is_mergeable());
    while let Some(table) = shared.wait_for(mergeable) {
        if !table.merge(shared)? {
            break;
        }
        shared.announce();
    }
    Ok(())
}
