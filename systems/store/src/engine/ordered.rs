//! Tables of rows in order that may be larger than memory: from the log into a table in memory, from there into sorted
//! files, the runs.
//!
//! ```text
//! entry ─▶ table in memory, of the newest log
//!          full: a new log and a new table; the old table ─▶ run
//!          eight runs of a size ─▶ one larger run
//! read ─▶ tables and runs, merged; the youngest of several rows with the same key counts
//! ```
//!
//! It is a log-structured merge tree reduced to rows that are written once, in bulk, with keys that are small, and read
//! in order afterwards; they are replaced, never removed. Nothing is looked up when a row comes. Each merge joins eight
//! runs, so thirty million messages have been written three times (log, run, merged run) and lie in about a dozen runs.
//!
//! **Counting.** A row that replaces another must not be counted twice, and looking each one up when it comes would cost
//! more than storing it. Two rows with the same key have the same time, and what was written at different times mostly
//! has different times too: so the count is the sum of all sources, less what is found twice in those blocks whose times
//! meet those of another source. Exact always, and quick unless old times keep coming.

pub(crate) mod count;
pub(crate) mod entry;
mod memtable;
mod merge;
pub(crate) mod run;

use std::io;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

pub(crate) use self::entry::Key;
use self::memtable::MemTable;
use self::merge::{Merge, Source};
use self::run::{Run, RunWriter};
use super::EngineState;
use super::bytes::{Malformed, Reader};
use super::disk::Disk;
use super::manifest::RunLine;
use super::table::{OrderedTable, Table};

/// Rows that are copied out of a table in memory in one go.
const TABLE_CHUNK: usize = 1024;
/// So many neighbouring runs of a level become one of the next.
const MERGED_RUNS: usize = 8;
/// So far the time of merges may be ahead of what the newest row tells, microseconds.
const AHEAD_US: u64 = 24 * 3600 * 1_000_000;

/// A row of a table in order.
pub(crate) trait OrderedRow: Sized + 'static {
    /// The table's number in the log.
    const TABLE: u8;
    /// The table's name.
    const NAME: &'static str;
    /// What orders the rows. Of two with the same key the later one stays.
    type Key: Key;

    fn key(&self) -> Self::Key;

    /// The rest, at most [`VALUE_BYTES_MAX`](entry::VALUE_BYTES_MAX) bytes.
    fn value(&self) -> &[u8];

    /// The row that key and value make.
    fn of(key: Self::Key, value: Bytes) -> Self;
    /// Whether files that are written anew keep it; `now_us` is in microseconds since 1970, as
    /// [`locality`](Key::locality) is where rows are not kept for ever.
    fn is_kept(_key: &Self::Key, _now_us: u64) -> bool {
        true
    }
}

/// The rows of a log in memory.
pub(crate) struct Logged<K> {
    log: u64,
    pub(crate) table: RwLock<MemTable<K>>,
}

/// A run and how many merges it has been through.
pub(crate) struct Levelled<K> {
    pub(crate) run: Arc<Run<K>>,
    level: u32,
}

impl<K> Clone for Levelled<K> {
    fn clone(&self) -> Self {
        Levelled { run: self.run.clone(), level: self.level }
    }
}

/// Where the rows are at a moment.
pub(crate) struct View<K> {
    /// From the oldest; the last one is the one that is being filled.
    pub(crate) tables: Vec<Arc<Logged<K>>>,
    /// From the oldest, all older than the tables.
    pub(crate) runs: Vec<Levelled<K>>,
}

impl<K> Clone for View<K> {
    fn clone(&self) -> Self {
        View { tables: self.tables.clone(), runs: self.runs.clone() }
    }
}

/// A table of rows in order.
pub(crate) struct Ordered<R: OrderedRow> {
    view: RwLock<View<R::Key>>,
    /// Written, and not in the manifest yet.
    flushed: Mutex<Option<Arc<Run<R::Key>>>>,
    opened: OnceLock<Opened>,
}

/// When a table was opened: by its newest row, or by the clock where there was none.
struct Opened {
    at_us: u64,
    at: Instant,
}

impl Opened {
    /// The time at which it is decided what goes for good: a clock that is wrong for a while destroys nothing.
    fn now_us(&self, clock_us: u64) -> u64 {
        let since_us = self.at.elapsed().as_micros() as u64;
        clock_us.min(self.at_us.saturating_add(since_us).saturating_add(AHEAD_US))
    }
}

fn clock_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64)
}

impl<R: OrderedRow> Default for Ordered<R> {
    fn default() -> Self {
        let view = View { tables: Vec::new(), runs: Vec::new() };
        Ordered { view: RwLock::new(view), flushed: Mutex::new(None), opened: OnceLock::new() }
    }
}

impl<R: OrderedRow> Ordered<R> {
    /// The entry that puts a row.
    pub(crate) fn put(row: &R, out: &mut Vec<u8>) {
        out.push(R::TABLE);
        entry::write(&row.key(), row.value(), out);
    }

    /// Where the rows are now.
    pub(crate) fn view(&self) -> View<R::Key> {
        self.view.read().clone()
    }

    /// Whether all rows are in memory.
    pub(crate) fn has_no_runs(&self) -> bool {
        self.view.read().runs.is_empty()
    }

    fn active(&self) -> Option<Arc<Logged<R::Key>>> {
        self.view.read().tables.last().cloned()
    }
}

impl<K: Key> View<K> {
    /// The rows from `begin` to before `end`, or to the last one, as they are when they are come to.
    pub(crate) fn rows<R: OrderedRow<Key = K>>(
        self,
        begin: Bound<K>,
        end: Option<K>,
    ) -> impl Iterator<Item = io::Result<R>> {
        let mut sources: Vec<Source<'static, K, Bytes>> = Vec::new();
        for Levelled { run, .. } in &self.runs {
            let before_end = move |entry: &io::Result<(K, Bytes)>| {
                entry.as_ref().map_or(true, |entry| end.is_none_or(|end| entry.0 < end))
            };
            sources.push(Box::new(run.from(begin).take_while(before_end)));
        }
        for logged in self.tables {
            sources.push(Box::new(TableRows { logged, begin, end, some: Vec::new().into_iter() }));
        }
        Merge::new(sources).map(|entry| entry.map(|(key, value)| R::of(key, value)))
    }

    /// The value of the row with this key.
    pub(crate) fn get(&self, key: &K) -> io::Result<Option<Bytes>> {
        let in_memory = self.tables.iter().rev().find_map(|logged| logged.table.read().get(key));
        if in_memory.is_some() {
            return Ok(in_memory);
        }
        for Levelled { run, .. } in self.runs.iter().rev() {
            if let Some(value) = run.get(key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The latest [`locality`](Key::locality) of all rows.
    pub(crate) fn latest_time(&self) -> Option<u64> {
        let runs = self.runs.iter().filter_map(|levelled| levelled.run.times());
        let tables = self.tables.iter().filter_map(|logged| logged.table.read().times());
        runs.chain(tables).map(|(_, latest)| latest).max()
    }

    /// Bytes in memory, roughly.
    pub(crate) fn table_bytes(&self) -> usize {
        self.tables.iter().map(|logged| logged.table.read().bytes()).sum()
    }

    /// Keys of about the same distance from each other, in order.
    pub(crate) fn some_keys(&self, step: usize) -> Vec<K> {
        let mut keys: Vec<K> = self.runs.iter().flat_map(|levelled| levelled.run.first_keys()).collect();
        for logged in &self.tables {
            keys.extend(logged.table.read().keys().step_by(step));
        }
        keys.sort_unstable();
        keys
    }
}

/// The rows of a table in memory, copied out of it a few at a time.
struct TableRows<K> {
    logged: Arc<Logged<K>>,
    begin: Bound<K>,
    /// None: to the last one.
    end: Option<K>,
    some: std::vec::IntoIter<(K, Bytes)>,
}

impl<K: Key> Iterator for TableRows<K> {
    type Item = io::Result<(K, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.some.next() {
            return Some(Ok(entry));
        }
        let some = self.logged.table.read().some(self.begin, self.end, TABLE_CHUNK);
        self.begin = Bound::Excluded(some.last()?.0);
        self.some = some.into_iter();
        self.some.next().map(Ok)
    }
}

impl<R: OrderedRow> Table for Ordered<R> {
    fn number(&self) -> u8 {
        R::TABLE
    }

    fn name(&self) -> &'static str {
        R::NAME
    }

    fn apply_one(&self, entry: &mut Reader<'_>) -> Result<u64, Malformed> {
        let active = self.active().ok_or("there is no log")?;
        let (key, value) = entry::take(entry)?;
        active.table.write().put(key, value).ok_or("there is more than a table can have")?;
        Ok(1)
    }

    fn apply(&self, entries: &mut Reader<'_>, outcomes: &mut Vec<u64>) -> Result<(), Malformed> {
        let active = self.active().ok_or("there is no log")?;
        let mut table = active.table.write();
        while self.is_next(entries) {
            let (key, value) = entry::take(entries)?;
            table.put(key, value).ok_or("there is more than a table can have")?;
            outcomes.push(1);
        }
        Ok(())
    }
}

impl<R: OrderedRow> OrderedTable for Ordered<R> {
    fn skip(&self, entries: &mut Reader<'_>, outcomes: &mut Vec<u64>) -> Result<(), Malformed> {
        while self.is_next(entries) {
            entry::take::<R::Key>(entries)?;
            outcomes.push(1);
        }
        Ok(())
    }

    fn active_bytes(&self) -> usize {
        self.active().map_or(0, |active| active.table.read().bytes())
    }

    fn begin_log(&self, log: u64, room: usize) {
        let tables = &mut self.view.write().tables;
        tables.pop_if(|last| last.table.read().len() == 0);
        tables.push(Arc::new(Logged { log, table: RwLock::new(MemTable::with_room(room)) }));
    }

    fn opened(&self) {
        let at_us = self.view().latest_time().unwrap_or_else(clock_us);
        let _ = self.opened.set(Opened { at_us, at: Instant::now() });
    }

    fn flush(&self, shared: &EngineState, log: u64) -> io::Result<Option<RunLine>> {
        let Some(full) = self.view.read().tables.first().filter(|full| full.log == log).cloned() else {
            return Ok(None);
        };
        let (store, id) = shared.next_run();
        let mut writer = RunWriter::create(&shared.disk, store, id)?;
        for (key, value) in full.table.read().iter() {
            writer.push(key, value)?;
        }
        let run = writer.finish()?;
        let line = run.line(R::TABLE, 0);
        *self.flushed.lock() = Some(run);
        Ok(Some(line))
    }

    fn flushed(&self, log: u64) {
        let Some(run) = self.flushed.lock().take() else { return };
        let mut view = self.view.write();
        view.tables.retain(|logged| logged.log != log);
        view.runs.push(Levelled { run, level: 0 });
    }

    fn open_run(&self, disk: &Disk, store: u64, line: &RunLine) -> io::Result<()> {
        let run = Run::open(disk, store, line)?;
        self.view.write().runs.push(Levelled { run, level: line.level });
        Ok(())
    }

    fn is_mergeable(&self) -> bool {
        mergeable(&self.view.read().runs).is_some()
    }

    fn merge(&self, shared: &EngineState) -> io::Result<bool> {
        let Some(old) = mergeable(&self.view.read().runs) else { return Ok(true) };
        let (store, id) = shared.next_run();
        let mut writer = RunWriter::create(&shared.disk, store, id)?;
        let now_us = self.opened.get().map_or_else(clock_us, |opened| opened.now_us(clock_us()));
        let whole =
            |old: &Levelled<R::Key>| Box::new(old.run.from(Bound::Unbounded)) as Source<'_, R::Key, Bytes>;
        for (number, entry) in Merge::new(old.iter().map(whole).collect()).enumerate() {
            let (key, value) = entry?;
            if R::is_kept(&key, now_us) {
                writer.push(&key, &value)?;
            }
            if number % 4096 == 0 && shared.is_closing.load(Ordering::Relaxed) {
                return Ok(false); // the file that was begun is removed at the next start
            }
        }
        let run = writer.finish()?;
        shared.counters.merged_rows.fetch_add(run.len(), Ordering::Relaxed);
        let merged = Levelled { run, level: old[0].level + 1 };
        let is_old = |id: u64| old.iter().any(|old| old.run.id() == id);
        let mut files = shared.files.lock();
        let runs = &mut files.manifest.runs;
        let at = runs.iter().position(|line| is_old(line.id)).unwrap_or(0);
        runs.retain(|line| !is_old(line.id));
        runs.insert(at, merged.run.line(R::TABLE, merged.level));
        files.manifest.write(&shared.disk)?;
        {
            let runs = &mut self.view.write().runs;
            let at = runs.iter().position(|levelled| is_old(levelled.run.id())).unwrap_or(0);
            runs.retain(|levelled| !is_old(levelled.run.id()));
            runs.insert(at, merged);
        }
        drop(files);
        // Who reads them now has them open.
        old.iter().for_each(|old| shared.disk.remove(&run::name(old.run.id())));
        shared.counters.merges.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

/// The oldest neighbours of one level that are enough for a merge, the smallest level first.
fn mergeable<K>(runs: &[Levelled<K>]) -> Option<Vec<Levelled<K>>> {
    let enough = runs.chunk_by(|a, b| a.level == b.level).filter(|chunk| chunk.len() >= MERGED_RUNS);
    enough.min_by_key(|chunk| chunk[0].level).map(|chunk| chunk[..MERGED_RUNS].to_vec())
}
