//! What goes on beside the writing: full tables become runs, runs become larger runs. One thread for each, so that a
//! long merge never keeps a table in memory.

use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use bytes::Bytes;

use super::manifest::Manifest;
use super::merge::{Merge, Source};
use super::run::{self, Run, RunWriter};
use super::{Logged, Shared, View, log};
use crate::messages::OwnMetric;
use crate::scheduling::take_no_core_from_others;

/// So many neighbouring runs of a level become one of the next.
const MERGED_RUNS: usize = 8;

/// A run and how many merges it has been through.
#[derive(Clone)]
pub(crate) struct Levelled {
    pub(crate) run: Arc<Run>,
    pub(crate) level: u32,
}

#[derive(Default)]
pub(crate) struct Counters {
    flushes: AtomicU64,
    merges: AtomicU64,
    merged_messages: AtomicU64,
}

/// What the threads change in turns. Whatever is in the manifest is durable itself, so it may be written at any time.
pub(crate) struct Files {
    pub(crate) manifest: Manifest,
    pub(crate) next_run: u64,
}

/// The two threads. Dropping it ends them; a merge that is going on is given up.
pub(crate) struct Background {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let mut background = Background { shared: shared.clone(), threads: Vec::new() };
        for (name, work) in [("messages-flush", flush_for_ever as Work), ("messages-merge", merge_for_ever)] {
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

    pub(crate) fn metrics(&self) -> Vec<OwnMetric> {
        let counters = &self.shared.background;
        let own = |name, help, counter: &AtomicU64| {
            let value = counter.load(Ordering::Relaxed);
            OwnMetric { name, help, is_counter: true, value }
        };
        vec![
            own("flushes", "Tables written as runs", &counters.flushes),
            own("merges", "Times that runs were made one", &counters.merges),
            own("merged_messages", "Messages written again by that", &counters.merged_messages),
        ]
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

type Work = fn(&Shared) -> io::Result<()>;

fn begin_run(shared: &Shared) -> io::Result<RunWriter> {
    let mut files = shared.files.lock();
    files.next_run += 1;
    let (store, id) = (files.manifest.store, files.next_run - 1);
    drop(files);
    RunWriter::create(&shared.disk, store, id)
}

/// Writes full tables as runs until the end.
fn flush_for_ever(shared: &Shared) -> io::Result<()> {
    let is_full = |view: &View| (view.tables.len() > 1).then(|| view.tables[0].clone());
    while !shared.is_closing.load(Ordering::Acquire)
        && let Some(full) = shared.wait_for(is_full)
    {
        flush(shared, &full)?;
    }
    Ok(())
}

fn flush(shared: &Shared, full: &Arc<Logged>) -> io::Result<()> {
    let mut writer = begin_run(shared)?;
    for (key, payload) in full.table.read().iter() {
        writer.push(key, payload)?;
    }
    let run = writer.finish()?;
    let mut files = shared.files.lock();
    files.manifest.logs.retain(|log| log.id != full.log_id);
    files.manifest.runs.push(run.line(0));
    files.manifest.write(&shared.disk)?;
    {
        let mut view = shared.view.write();
        view.tables.remove(0);
        view.runs.push(Levelled { run, level: 0 });
    }
    drop(files);
    shared.disk.remove(&log::name(full.log_id));
    shared.background.flushes.fetch_add(1, Ordering::Relaxed);
    shared.announce();
    Ok(())
}

/// Makes many runs one until the end.
fn merge_for_ever(shared: &Shared) -> io::Result<()> {
    while let Some(old) = shared.wait_for(|view| mergeable(&view.runs)) {
        if !merge(shared, &old)? {
            break;
        }
    }
    Ok(())
}

/// The oldest neighbours of one level that are enough for a merge, the smallest level first.
fn mergeable(runs: &[Levelled]) -> Option<Vec<Levelled>> {
    let enough = runs.chunk_by(|a, b| a.level == b.level).filter(|chunk| chunk.len() >= MERGED_RUNS);
    enough.min_by_key(|chunk| chunk[0].level).map(|chunk| chunk[..MERGED_RUNS].to_vec())
}

/// Merges neighbours; false if it was given up because the store is being closed.
fn merge(shared: &Shared, old: &[Levelled]) -> io::Result<bool> {
    let mut writer = begin_run(shared)?;
    let whole = |levelled: &Levelled| Box::new(levelled.run.from(Bound::Unbounded)) as Source<'_, Bytes>;
    let sources = old.iter().map(whole);
    for (number, entry) in Merge::new(sources.collect()).enumerate() {
        let (key, payload) = entry?;
        writer.push(&key, &payload)?;
        if number % 4096 == 0 && shared.is_closing.load(Ordering::Relaxed) {
            return Ok(false); // the file that was begun is removed at the next start
        }
    }
    let run = writer.finish()?;
    shared.background.merged_messages.fetch_add(run.len(), Ordering::Relaxed);
    let merged = Levelled { run, level: old[0].level + 1 };
    let is_old = |id: u64| old.iter().any(|levelled| levelled.run.id() == id);
    let mut files = shared.files.lock();
    let at = files.manifest.runs.iter().position(|line| is_old(line.id)).unwrap_or(0);
    files.manifest.runs.retain(|line| !is_old(line.id));
    files.manifest.runs.insert(at, merged.run.line(merged.level));
    files.manifest.write(&shared.disk)?;
    {
        let mut view = shared.view.write();
        view.runs.retain(|levelled| !is_old(levelled.run.id()));
        view.runs.insert(at, merged);
    }
    drop(files);
    // Who reads them now has them open.
    old.iter().for_each(|levelled| shared.disk.remove(&run::name(levelled.run.id())));
    shared.background.merges.fetch_add(1, Ordering::Relaxed);
    shared.announce();
    Ok(true)
}
