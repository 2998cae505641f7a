//! Group commit: writers put their entries into one shared buffer and wait; a thread of its own takes the buffer as it
//! is, appends it to the log as one group, syncs once, carries the entries out and wakes the writers. While it syncs, the
//! next group gathers: under load the groups grow by themselves, and a lone writer waits for nobody. Where nothing
//! is synced, the thread takes no core from those who gather the next group: where all are busy, groups are larger.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::log::{End, GROUP_BYTES_MAX, Log, WRITE_BYTES_MAX};
use super::manifest::LogLine;
use super::marker::{Marker, MarkerFile};
use super::waiters::{self, ThreadWaiters, Threads, Waiter};
use super::{ClosedLog, EngineState, Persisted};
use crate::answer::Answer;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::metrics::{CommitCounters, StoreMetrics};
use crate::scheduling::take_no_core_from_others;

/// Closed logs that are being flushed or wait to be; with another, the committer waits.
const CLOSED_LOGS_MAX: usize = 2;

/// Writes that were taken together.
#[derive(Default)]
struct Group {
    entries: Vec<u8>,
    /// How many entries there are.
    count: u32,
    /// How many there were at the end of each write.
    ends: Vec<u32>,
    /// Who waits, by thread.
    waiters: Vec<(Option<Arc<ThreadWaiters>>, Vec<Waiter>)>,
}

impl Group {
    /// Takes a write; what is wrong with it if it is not taken.
    fn add(&mut self, write: &impl Fn(&mut Vec<u8>) -> u32) -> Result<(), Refusal> {
        let before = self.entries.len();
        let count = write(&mut self.entries);
        let bytes = self.entries.len() - before;
        if bytes > WRITE_BYTES_MAX {
            self.entries.truncate(before);
            return Err(Refusal::TooLarge(bytes));
        }
        self.count += count;
        self.ends.push(self.count);
        Ok(())
    }

    /// Notes who waits for the write that was added last.
    fn wait(&mut self, thread: Option<&Arc<ThreadWaiters>>, done: waiters::Done) {
        let waiter = Waiter { done, outcome: self.ends.len() as u64 - 1 };
        let is_same = |(other, _): &&mut (Option<Arc<ThreadWaiters>>, Vec<Waiter>)| {
            other.as_ref().map(Arc::as_ptr) == thread.map(Arc::as_ptr)
        };
        match self.waiters.iter_mut().find(is_same) {
            Some((_, waiters)) => waiters.push(waiter),
            None => self.waiters.push((thread.cloned(), vec![waiter])),
        }
    }

    /// Tells the writers what came of their entries.
    fn deliver(&mut self, outcomes: &[u64]) {
        for (thread, waiters) in &mut self.waiters {
            for waiter in waiters.iter_mut() {
                let write = waiter.outcome as usize;
                let begin = write.checked_sub(1).map_or(0, |before| self.ends[before]);
                waiter.outcome = outcomes[begin as usize..self.ends[write] as usize].iter().sum();
            }
            waiters::deliver(thread.as_deref(), waiters);
        }
    }

    /// Empty, with its room for the next.
    fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
        self.count = 0;
        self.waiters.retain(|(thread, _)| {
            thread.as_ref().is_none_or(|thread| Arc::strong_count(thread) > IDLE_HOLDERS)
        });
    }
}

/// Who holds the waiters of a thread that writes no more: the two groups that are filled by turns.
const IDLE_HOLDERS: usize = 2;

/// What waits for the committer.
#[derive(Default)]
struct Queue {
    next: Group,
    /// Writes that are being committed.
    committing: usize,
    is_idle: bool,
    is_closing: bool,
}

impl Queue {
    fn held(&self) -> usize {
        self.next.ends.len() + self.committing
    }
}

/// Why a write is not taken.
enum Refusal {
    NoRoom(&'static str),
    TooLarge(usize),
    Stopped(Arc<str>),
}

struct Gate {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// There is room again.
    room: Notify,
    threads: Threads,
    counters: CommitCounters,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// The writers' end. Dropping it commits what waits and closes the log.
pub(crate) struct Writers {
    gate: Arc<Gate>,
    shared: Arc<EngineState>,
    thread: Option<JoinHandle<()>>,
}

impl Writers {
    /// Starts the committer with a fresh log; `uncovered` are bytes of logs before it that no snapshot covers.
    pub(crate) fn start(
        shared: Arc<EngineState>,
        (log_id, log): (u64, Log),
        marker: MarkerFile,
        uncovered: u64,
    ) -> io::Result<Self> {
        let gate = Arc::new(Gate {
            queue: Mutex::default(),
            wake: Condvar::new(),
            room: Notify::new(),
            threads: Threads::new(),
            counters: CommitCounters::default(),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let store = shared.files.lock().manifest.store;
        let (own_gate, own_shared) = (gate.clone(), shared.clone());
        let committer =
            Committer { gate: own_gate, shared: own_shared, store, log_id, log, marker, uncovered };
        let thread = std::thread::Builder::new().name("store-commit".into()).spawn(|| committer.run())?;
        Ok(Writers { gate, shared, thread: Some(thread) })
    }

    /// See [`Engine::submit`](super::Engine::submit).
    pub(crate) fn submit<'a, T: Send + 'static>(
        &'a self,
        write: impl Fn(&mut Vec<u8>) -> u32 + Send + 'a,
        finish: fn(u64) -> T,
    ) -> Answer<'a, T> {
        match self.put(&write) {
            Ok(receiver) => Answer::committing(receiver, finish),
            Err(Refusal::NoRoom(what)) if self.shared.options.is_refusing => {
                self.gate.refused.fetch_add(1, Ordering::Relaxed);
                Answer::ready(Err(StoreError::Busy { what }))
            }
            Err(Refusal::NoRoom(_)) => {
                self.gate.counters.waited();
                Answer::boxed(async move {
                    loop {
                        let mut room = std::pin::pin!(self.gate.room.notified());
                        room.as_mut().enable();
                        match self.put(&write) {
                            Ok(receiver) => return Answer::committing(receiver, finish).await,
                            Err(Refusal::NoRoom(_)) => room.await,
                            Err(other) => return Err(refused(other)),
                        }
                    }
                })
            }
            Err(other) => Answer::ready(Err(refused(other))),
        }
    }

    /// Takes a write if there is room, and gives what its answer comes through.
    fn put(&self, write: &impl Fn(&mut Vec<u8>) -> u32) -> Result<waiters::Told, Refusal> {
        let (done, receiver) = oneshot::channel();
        self.gate.threads.with_own(|thread| {
            self.add(write, |group| group.wait(thread, done))?;
            Ok(receiver)
        })
    }

    /// See [`Engine::submit_if_room`](super::Engine::submit_if_room).
    pub(crate) fn submit_if_room(&self, write: impl Fn(&mut Vec<u8>) -> u32) {
        let _ = self.add(&write, |_| ());
    }

    fn add(
        &self,
        write: &impl Fn(&mut Vec<u8>) -> u32,
        then: impl FnOnce(&mut Group),
    ) -> Result<(), Refusal> {
        if let Some(reason) = self.shared.failure.get() {
            return Err(Refusal::Stopped(reason.clone()));
        }
        let mut queue = self.gate.queue.lock();
        if queue.held() >= self.shared.options.waiting_max {
            return Err(Refusal::NoRoom("as many writes wait as are allowed to"));
        }
        if queue.next.entries.len() >= GROUP_BYTES_MAX {
            return Err(Refusal::NoRoom("as many bytes wait as are allowed to"));
        }
        queue.next.add(write)?;
        then(&mut queue.next);
        let is_idle = std::mem::take(&mut queue.is_idle);
        drop(queue);
        if is_idle {
            self.gate.wake.notify_one();
        }
        Ok(())
    }

    pub(crate) fn metrics(&self) -> StoreMetrics {
        StoreMetrics {
            failed: self.gate.failed.load(Ordering::Relaxed),
            refused: self.gate.refused.load(Ordering::Relaxed),
            queue_depth: self.gate.queue.lock().held() as u64,
            queue_depth_max: self.shared.options.waiting_max as u64,
            stopped: self.shared.failure.get().is_some(),
            ..self.gate.counters.snapshot()
        }
    }
}

fn refused(refusal: Refusal) -> StoreError {
    match refusal {
        Refusal::NoRoom(what) => StoreError::Busy { what },
        Refusal::Stopped(reason) => StoreError::Stopped { reason },
        Refusal::TooLarge(bytes) => {
            StoreError::invalid("the write", format!("it has {bytes} bytes, more than {WRITE_BYTES_MAX}"))
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.gate.queue.lock().is_closing = true;
        self.gate.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's committer panicked");
        }
        self.gate.threads.close();
    }
}

struct Committer {
    gate: Arc<Gate>,
    shared: Arc<EngineState>,
    /// The store's number.
    store: u64,
    log_id: u64,
    log: Log,
    marker: MarkerFile,
    /// Bytes of logs before this one that no snapshot covers.
    uncovered: u64,
}

/// Stops the store when the committer panics, so that writers learn why.
struct StopOnPanic(Arc<EngineState>, Arc<Gate>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.failure.set("the committer panicked; see the log".into());
            self.1.queue.lock().next.waiters.clear(); // they hear that the store is closed
            self.1.room.notify_waiters();
            self.0.announce();
        }
    }
}

impl Committer {
    fn run(mut self) {
        if self.shared.options.durability != Durability::Synced {
            // While a sync goes on the next group gathers by itself, and who waits for it waits for a core besides.
            take_no_core_from_others();
        }
        let _stop_on_panic = StopOnPanic(self.shared.clone(), self.gate.clone());
        let (mut group, mut outcomes) = (Group::default(), Vec::new());
        while self.next_group(&mut group) {
            let begun = Instant::now();
            match self.commit(&group, &mut outcomes) {
                Ok(sync) => {
                    self.gate.counters.committed(group.ends.len(), sync);
                    // first, as who hears that his write is kept may send the next, and finds room for it
                    self.free();
                    group.deliver(&outcomes);
                    self.gate.counters.worked(begun.elapsed().saturating_sub(sync));
                }
                Err(error) => {
                    self.refuse(&mut group, &error);
                    self.free();
                }
            }
            group.clear();
            outcomes.clear();
            if let Err(error) = self.rotate_log_if_due() {
                self.shared.fail("beginning a log", &error);
            }
        }
        if self.shared.failure.get().is_none()
            && let Err(error) = self.end_log()
        {
            self.shared.fail("closing the log", &error);
        }
    }

    /// What was being committed is not held any more.
    fn free(&self) {
        self.gate.queue.lock().committing = 0;
        self.gate.room.notify_waiters();
    }

    /// Makes the log durable and its end known, so that nothing can be taken from it unseen.
    fn end_log(&self) -> io::Result<()> {
        self.log.sync()?;
        let mut files = self.shared.files.lock();
        files.manifest.end_log(self.log_id, self.log.end());
        files.manifest.write(&self.shared.disk)
    }

    /// Takes what waits in exchange for an empty group; false at the end.
    fn next_group(&self, group: &mut Group) -> bool {
        let mut queue = self.gate.queue.lock();
        while queue.next.ends.is_empty() {
            if queue.is_closing {
                return false;
            }
            queue.is_idle = true;
            self.gate.wake.wait(&mut queue);
        }
        queue.is_idle = false;
        std::mem::swap(&mut queue.next, group);
        queue.committing = group.ends.len();
        drop(queue);
        self.gate.room.notify_waiters(); // for bytes
        true
    }

    /// Makes a group durable, then readable; tells how long making it durable took.
    fn commit(&mut self, group: &Group, outcomes: &mut Vec<u64>) -> Result<Duration, StoreError> {
        if let Some(reason) = self.shared.failure.get() {
            return Err(StoreError::Stopped { reason: reason.clone() });
        }
        let begun = Instant::now();
        self.persist(group)
            .map_err(|error| StoreError::Write { reason: self.shared.fail("writing the log", &error) })?;
        let took = begun.elapsed();
        self.shared.persisted.lock().end = self.log.end();
        self.shared.tables.apply(&group.entries, outcomes).map_err(|what| StoreError::Write {
            reason: self.shared.fail("carrying a write out", &io::Error::other(what)),
        })?;
        Ok(took)
    }

    fn persist(&mut self, group: &Group) -> io::Result<()> {
        self.log.append(group.count, &group.entries)?;
        if self.shared.options.durability == Durability::Synced {
            self.log.sync()?;
        }
        self.marker.write(Marker { store: self.store, log: self.log_id, end: self.log.end() })
    }

    fn refuse(&self, group: &mut Group, error: &StoreError) {
        self.gate.failed.fetch_add(group.ends.len() as u64, Ordering::Relaxed);
        let waiters = group.waiters.iter_mut().flat_map(|(_, waiters)| waiters.drain(..));
        waiters.for_each(|waiter| drop(waiter.done.send(Err(error.clone()))));
    }

    /// Begins the next log when the tables of this one are full, once there is room for another full one, or when a
    /// snapshot is due.
    fn rotate_log_if_due(&mut self) -> io::Result<()> {
        if self.shared.failure.get().is_some() {
            return Ok(());
        }
        let has_snapshot = self.is_snapshot_due();
        let shared = &*self.shared;
        let tables = shared.tables.ordered.iter();
        let table_bytes: usize = tables.map(|table| table.active_bytes()).sum();
        if table_bytes < shared.options.table_bytes.max(1) && !has_snapshot {
            return Ok(());
        }
        let has_room = || (shared.closed_logs.lock().len() < CLOSED_LOGS_MAX).then_some(());
        if has_room().is_none() {
            shared.counters.stalls.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            let room = shared.wait_for(has_room);
            let waited_us = begun.elapsed().as_micros() as u64;
            shared.counters.stall_sum_us.fetch_add(waited_us, Ordering::Relaxed);
            if room.is_none() {
                return Ok(()); // a failure or the end: what is to come stays in this log
            }
        }
        self.rotate_log(has_snapshot)
    }

    /// Whether the logs have grown as large as the last snapshot, and none is being written.
    fn is_snapshot_due(&self) -> bool {
        let shared = &*self.shared;
        let bytes = self.uncovered + self.log.end().bytes;
        !shared.tables.memory.is_empty()
            && bytes >= shared.options.log_bytes_min.max(shared.snapshot_bytes.load(Ordering::Relaxed))
            && !shared.closed_logs.lock().iter().any(|closed| closed.has_snapshot)
    }

    fn rotate_log(&mut self, has_snapshot: bool) -> io::Result<()> {
        let shared = &*self.shared;
        let (before, id) = (self.log_id, self.log_id + 1);
        let mut files = shared.files.lock();
        let next = Log::create(&shared.disk, self.store, id)?;
        files.manifest.end_log(before, self.log.end());
        files.manifest.logs.push(LogLine { id, end: None });
        files.manifest.write(&shared.disk)?; // the log is named before anything is in it
        self.marker.sync()?;
        drop(files);
        let file = Arc::new(next.twin()?);
        *shared.persisted.lock() = Persisted { log: id, end: End::default(), file };
        self.uncovered = if has_snapshot { 0 } else { self.uncovered + self.log.end().bytes };
        (self.log, self.log_id) = (next, id);
        shared.tables.ordered.iter().for_each(|table| table.begin_log(id, shared.options.table_bytes));
        shared.closed_logs.lock().push_back(ClosedLog { log: before, has_snapshot });
        shared.announce();
        Ok(())
    }
}
