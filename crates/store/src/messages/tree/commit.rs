//! Group commit of messages: senders write their message into one shared buffer and wait; a thread of its own takes
//! the buffer as it is, appends it to the log as one group, syncs once, puts it into the table and wakes them. While
//! it syncs, the next group gathers. It takes no core from those who gather it: where all are busy, groups are larger.
//!
//! **Fail-stop.** When the log fails, nobody knows what reached the disk. The group is not acknowledged, and every
//! further message is refused until the store is opened afresh. Reads go on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::lane::{Lane, Lanes, Waiter};
use super::log::{GROUP_BYTES_MAX, Log};
use super::manifest::LogLine;
use super::marker::{Marker, MarkerFile};
use super::{FULL_TABLES_MAX, Logged, Shared, entry, lane};
use crate::answer::Answer;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::messages::{Message, MessagesMetrics};
use crate::metrics::Counters;
use crate::scheduling::take_no_core_from_others;

/// Messages that were taken together.
#[derive(Default)]
struct Group {
    entries: Vec<u8>,
    messages: usize,
    /// Who waits, by the way that leads to them. There are as many ways as threads that send.
    waiters: Vec<(Option<Arc<Lane>>, Vec<Waiter>)>,
}

impl Group {
    fn add(&mut self, message: &Message, lane: Option<&Arc<Lane>>, waiter: Waiter) {
        entry::write_message(message, &mut self.entries);
        self.messages += 1;
        let is_same = |(other, _): &&mut (Option<Arc<Lane>>, Vec<Waiter>)| {
            other.as_ref().map(Arc::as_ptr) == lane.map(Arc::as_ptr)
        };
        match self.waiters.iter_mut().find(is_same) {
            Some((_, waiters)) => waiters.push(waiter),
            None => self.waiters.push((lane.cloned(), vec![waiter])),
        }
    }

    /// Empty, with its room for the next.
    fn clear(&mut self) {
        self.entries.clear();
        self.messages = 0;
        self.waiters.retain(|(lane, _)| lane.as_ref().is_none_or(|lane| Arc::strong_count(lane) > LANE_HELD));
    }
}

/// Those who hold a lane that nobody uses any more: the two groups that take turns.
const LANE_HELD: usize = 2;

/// What waits for the committer.
#[derive(Default)]
struct Queue {
    next: Group,
    /// Messages that are being committed.
    committing: usize,
    is_idle: bool,
    is_closing: bool,
}

struct Gate {
    queue: Mutex<Queue>,
    wake: Condvar,
    lanes: Lanes,
    counters: Counters,
    refused: AtomicU64,
    failed: AtomicU64,
    stalls: AtomicU64,
    stall_sum_us: AtomicU64,
}

/// The senders' end. Dropping it commits what waits and closes the log.
pub(crate) struct Intake {
    gate: Arc<Gate>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Intake {
    /// Starts the committer with a fresh log, whose table is the last one of the view.
    pub(crate) fn start(shared: Arc<Shared>, log: Log, marker: MarkerFile) -> io::Result<Self> {
        let gate = Arc::new(Gate {
            queue: Mutex::default(),
            wake: Condvar::new(),
            lanes: Lanes::new(),
            counters: Counters::default(),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            stall_sum_us: AtomicU64::new(0),
        });
        let store = shared.files.lock().manifest.store;
        let active = shared.view.read().tables.last().cloned();
        let active = active.ok_or_else(|| io::Error::other("there is no table"))?;
        let committer = Committer { gate: gate.clone(), shared: shared.clone(), store, log, marker, active };
        let thread = std::thread::Builder::new().name("messages-commit".into()).spawn(|| committer.run())?;
        Ok(Intake { gate, shared, thread: Some(thread) })
    }

    /// Takes a message that has been checked.
    pub(crate) fn submit(&self, message: &Message) -> Answer<'static, ()> {
        let refuse = |what| {
            self.gate.refused.fetch_add(1, Ordering::Relaxed);
            Answer::ready(Err(StoreError::Busy { what }))
        };
        if let Some(reason) = self.shared.failure.get() {
            return Answer::ready(Err(StoreError::Stopped { reason: reason.clone() }));
        }
        let (done, receiver) = oneshot::channel();
        let taken = self.gate.lanes.with_own(|lane| {
            let mut queue = self.gate.queue.lock();
            if queue.next.messages + queue.committing >= self.shared.options.waiting_max {
                return Err("as many messages wait as are allowed to");
            }
            if queue.next.entries.len() >= GROUP_BYTES_MAX {
                return Err("as many bytes wait as are allowed to");
            }
            queue.next.add(message, lane, done);
            Ok(std::mem::take(&mut queue.is_idle))
        });
        match taken {
            Err(what) => return refuse(what),
            Ok(is_idle) if is_idle => drop(self.gate.wake.notify_one()),
            Ok(_) => {}
        }
        Answer::committing(receiver, |_| ())
    }

    pub(crate) fn metrics(&self) -> MessagesMetrics {
        let counted = self.gate.counters.snapshot();
        let queue = self.gate.queue.lock();
        let waiting = queue.next.messages + queue.committing;
        drop(queue);
        MessagesMetrics {
            written: counted.writes,
            failed: self.gate.failed.load(Ordering::Relaxed),
            refused: self.gate.refused.load(Ordering::Relaxed),
            waiting: waiting as u64,
            waiting_max: self.shared.options.waiting_max as u64,
            groups: counted.commits,
            group_messages_max: counted.group_writes_max,
            sync_buckets: counted.sync_buckets,
            sync_sum_us: counted.sync_sum_us,
            sync_us_max: counted.sync_us_max,
            stopped: self.shared.failure.get().is_some(),
            own: Vec::new(),
        }
    }

    /// How often, and for how many microseconds, the committer waited for room in memory.
    pub(crate) fn stalls(&self) -> (u64, u64) {
        (self.gate.stalls.load(Ordering::Relaxed), self.gate.stall_sum_us.load(Ordering::Relaxed))
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.gate.queue.lock().is_closing = true;
        self.gate.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the committer of messages panicked");
        }
        self.gate.lanes.close();
    }
}

struct Committer {
    gate: Arc<Gate>,
    shared: Arc<Shared>,
    /// The store's number.
    store: u64,
    log: Log,
    marker: MarkerFile,
    active: Arc<Logged>,
}

/// Stops the store when the committer panics, so that senders learn why.
struct StopOnPanic(Arc<Shared>, Arc<Gate>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.failure.set("the committer panicked; see the log".into());
            self.1.queue.lock().next.waiters.clear(); // they hear that the store is closed
            self.0.announce();
        }
    }
}

impl Committer {
    fn run(mut self) {
        take_no_core_from_others();
        let _stop_on_panic = StopOnPanic(self.shared.clone(), self.gate.clone());
        let mut group = Group::default();
        while self.next_group(&mut group) {
            match self.commit(&group) {
                Ok(sync) => {
                    self.gate.counters.committed(group.messages, sync);
                    // first, as who hears that his message is kept may send the next, and finds room for it
                    self.gate.queue.lock().committing = 0;
                    for (lane, waiters) in &mut group.waiters {
                        lane::deliver(lane.as_deref(), waiters);
                    }
                }
                Err(error) => self.refuse(&mut group, error),
            }
            group.clear();
            if let Err(error) = self.turn_over_if_full() {
                self.shared.fail("beginning a log", &error);
            }
        }
        if self.shared.failure.get().is_none()
            && let Err(error) = self.end_log()
        {
            self.shared.fail("closing the log", &error);
        }
    }

    /// Makes the log durable and its end known, so that nothing can be taken from it unseen.
    fn end_log(&self) -> io::Result<()> {
        self.log.sync()?;
        let mut files = self.shared.files.lock();
        files.manifest.end_log(self.log.id(), self.log.end());
        files.manifest.write(&self.shared.disk)
    }

    /// Takes what waits in exchange for an empty group; false at the end.
    fn next_group(&self, group: &mut Group) -> bool {
        let mut queue = self.gate.queue.lock();
        queue.committing = 0;
        while queue.next.messages == 0 {
            if queue.is_closing {
                return false;
            }
            queue.is_idle = true;
            self.gate.wake.wait(&mut queue);
        }
        queue.is_idle = false;
        std::mem::swap(&mut queue.next, group);
        queue.committing = group.messages;
        true
    }

    /// Makes a group durable and readable; tells how long making it durable took.
    fn commit(&mut self, group: &Group) -> Result<Duration, StoreError> {
        if let Some(reason) = self.shared.failure.get() {
            return Err(StoreError::Stopped { reason: reason.clone() });
        }
        let begun = Instant::now();
        let mut written = self.log.append(group.messages as u32, &group.entries);
        if self.shared.options.durability == Durability::Synced {
            written = written.and_then(|()| self.log.sync());
        }
        let marker = Marker { store: self.store, log: self.log.id(), end: self.log.end() };
        let written = written.and_then(|()| self.marker.write(marker));
        if let Err(error) = written {
            return Err(StoreError::Write { reason: self.shared.fail("writing the log", &error) });
        }
        let took = begun.elapsed();
        let taken = self.active.table.write().take(&group.entries);
        debug_assert_eq!(taken, Some(group.messages));
        Ok(took)
    }

    fn refuse(&self, group: &mut Group, error: StoreError) {
        self.gate.failed.fetch_add(group.messages as u64, Ordering::Relaxed);
        let waiters = group.waiters.iter_mut().flat_map(|(_, waiters)| waiters.drain(..));
        waiters.for_each(|done| drop(done.send(Err(error.clone()))));
    }

    /// Begins a new log with a new table when this one is full, once there is room for another full one.
    fn turn_over_if_full(&mut self) -> io::Result<()> {
        let is_full = self.active.table.read().bytes() >= self.shared.options.table_bytes;
        if !is_full || self.shared.failure.get().is_some() {
            return Ok(());
        }
        let has_room = |view: &super::View| (view.tables.len() <= FULL_TABLES_MAX).then_some(());
        if has_room(&self.shared.view.read()).is_none() {
            self.gate.stalls.fetch_add(1, Ordering::Relaxed);
            let begun = Instant::now();
            let room = self.shared.wait_for(has_room);
            self.gate.stall_sum_us.fetch_add(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
            if room.is_none() {
                return Ok(()); // a failure or the end: what is to come stays in this log
            }
        }
        let mut files = self.shared.files.lock();
        let next = Log::create(&self.shared.disk, files.manifest.store, self.log.id() + 1)?;
        files.manifest.end_log(self.log.id(), self.log.end());
        files.manifest.logs.push(LogLine { id: next.id(), end: None });
        files.manifest.write(&self.shared.disk)?; // the log is named before anything is in it
        self.marker.sync()?;
        drop(files);
        self.log = next;
        self.active = Arc::new(Logged::new(self.log.id(), self.shared.options.table_bytes));
        self.shared.view.write().tables.push(self.active.clone());
        self.shared.announce();
        Ok(())
    }
}
