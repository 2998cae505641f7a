//! Group commit: many writers, one committer, one sync for all that wait.
//!
//! A sync costs the disk the same for one write as for a thousand. So writers put their change into a bounded
//! queue and wait; a thread of its own takes all that is waiting, appends it to the log in one go, makes it durable
//! once, applies it to the index and wakes the writers. While it syncs, the next group gathers: under load the groups
//! grow by themselves, and a lone writer waits for nobody.
//!
//! **Fail-stop.** When the log fails, nobody knows what reached the disk, and trying again would not tell (after a
//! failed sync the kernel may drop the dirty pages and report success the next time). So the group is not
//! acknowledged, and every further write is refused until the store is opened afresh. Reads go on.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::answer::Answer;
use crate::change::Change;
use crate::error::StoreError;
use crate::index::Index;
use crate::metrics::{Counters, StoreMetrics};

/// At most this many writes wait for the committer; more wait for room.
pub(crate) const QUEUE_WRITES_MAX: usize = 16_384;
/// At most this many writes share one sync.
pub(crate) const GROUP_WRITES_MAX: usize = 4_096;

/// Where changes are kept durably. One module for each product.
pub(crate) trait Log: Send {
    /// Takes changes over, in order, all or none. Not durable yet.
    fn append(&mut self, changes: &mut dyn Iterator<Item = &Change>) -> Result<(), Arc<str>>;

    /// Makes everything appended so far as durable as was promised when the log was opened.
    fn persist(&mut self) -> Result<(), Arc<str>>;

    /// Makes everything as durable as it can be, before the log is closed in good order.
    fn close(&mut self) -> Result<(), Arc<str>>;
}

/// A change on its way to the log, and who waits for it, if anybody does.
struct Write {
    change: Change,
    done: Option<oneshot::Sender<Result<u64, StoreError>>>,
}

/// The writers' end of the committer. Dropping it commits what is queued and closes the log.
pub(crate) struct Committer {
    /// `None` only while dropping.
    queue: Option<mpsc::Sender<Write>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// What writers and the committer's thread both see.
#[derive(Default)]
struct Shared {
    counters: Counters,
    /// Why the store stopped taking writes.
    failure: OnceLock<Arc<str>>,
}

impl Committer {
    /// Starts the thread. `next_number` is given to the next booking.
    pub(crate) fn start(
        log: Box<dyn Log>,
        index: Arc<Index>,
        next_number: u64,
        queue_writes_max: usize,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(queue_writes_max);
        let shared = Arc::new(Shared::default());
        let committing = Committing { log, index, next_number, waiting, shared: shared.clone() };
        let thread =
            std::thread::Builder::new().name("store-commit".to_owned()).spawn(move || committing.run())?;
        Ok(Committer { queue: Some(queue), thread: Some(thread), shared })
    }

    fn queue(&self) -> &mpsc::Sender<Write> {
        self.queue.as_ref().expect("the queue is there until drop")
    }

    /// Hands a change over; the answer comes when its group is durable and can be read.
    pub(crate) fn submit<T: Send + 'static>(&self, change: Change, finish: fn(u64) -> T) -> Answer<'_, T> {
        if let Some(reason) = self.shared.failure.get() {
            return Answer::ready(Err(StoreError::Stopped { reason: reason.clone() }));
        }
        let (done, receiver) = oneshot::channel();
        match self.queue().try_send(Write { change, done: Some(done) }) {
            Ok(()) => Answer::committing(receiver, finish),
            Err(TrySendError::Full(write)) => {
                self.shared.counters.waited();
                Answer::boxed(async move {
                    self.queue().send(write).await.map_err(|_| self.gone())?;
                    Answer::committing(receiver, finish).await
                })
            }
            Err(TrySendError::Closed(_)) => Answer::ready(Err(self.gone())),
        }
    }

    /// Hands over a change that nobody waits for, and that may be left out when there is no room.
    pub(crate) fn submit_if_room(&self, change: Change) {
        if self.shared.failure.get().is_none() {
            let _ = self.queue().try_send(Write { change, done: None });
        }
    }

    /// Why the committer's thread is gone.
    fn gone(&self) -> StoreError {
        match self.shared.failure.get() {
            Some(reason) => StoreError::Stopped { reason: reason.clone() },
            None => StoreError::Closed,
        }
    }

    pub(crate) fn metrics(&self) -> StoreMetrics {
        let capacity = self.queue().max_capacity();
        StoreMetrics {
            queue_depth: (capacity - self.queue().capacity()) as u64,
            queue_depth_max: capacity as u64,
            stopped: self.shared.failure.get().is_some(),
            ..self.shared.counters.snapshot()
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's committer panicked");
        }
    }
}

/// The thread's side.
struct Committing {
    log: Box<dyn Log>,
    index: Arc<Index>,
    next_number: u64,
    waiting: mpsc::Receiver<Write>,
    shared: Arc<Shared>,
}

/// Stops the store when the committer's thread panics, so that writers learn why.
struct StopOnPanic(Arc<Shared>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.failure.set("the committer panicked; see the log".into());
        }
    }
}

impl Committing {
    fn run(mut self) {
        let _stop_on_panic = StopOnPanic(self.shared.clone());
        let mut group = Vec::with_capacity(GROUP_WRITES_MAX);
        while self.waiting.blocking_recv_many(&mut group, GROUP_WRITES_MAX) > 0 {
            if let Some(reason) = self.shared.failure.get() {
                refuse(&mut group, &StoreError::Stopped { reason: reason.clone() });
                continue;
            }
            let begun = Instant::now();
            match self.make_durable(&mut group) {
                Ok(sync) => {
                    self.shared.counters.committed(group.len(), sync);
                    self.publish(&mut group);
                    self.shared.counters.worked(begun.elapsed().saturating_sub(sync));
                }
                Err(reason) => {
                    tracing::error!(%reason, "the store stops taking writes");
                    let _ = self.shared.failure.set(reason.clone());
                    refuse(&mut group, &StoreError::Write { reason });
                }
            }
        }
        if self.shared.failure.get().is_none()
            && let Err(reason) = self.log.close()
        {
            tracing::error!(%reason, "closing the store's log failed");
        }
    }

    /// Appends and persists the group; tells how long persisting took.
    fn make_durable(&mut self, group: &mut [Write]) -> Result<Duration, Arc<str>> {
        for write in group.iter_mut() {
            if let Change::AddBookings { bookings, first_number } = &mut write.change {
                *first_number = self.next_number;
                self.next_number += bookings.len() as u64;
            }
        }
        self.log.append(&mut group.iter().map(|write| &write.change))?;
        let begun = Instant::now();
        self.log.persist()?;
        Ok(begun.elapsed())
    }

    /// Lets readers see the group, then wakes its writers.
    fn publish(&self, group: &mut Vec<Write>) {
        for Write { change, done } in group.drain(..) {
            let outcome = self.index.apply(change);
            if let Some(done) = done {
                // A writer that has gone away does not want its answer.
                let _ = done.send(Ok(outcome));
            }
        }
    }
}

fn refuse(group: &mut Vec<Write>, error: &StoreError) {
    for write in group.drain(..) {
        if let Some(done) = write.done {
            let _ = done.send(Err(error.clone()));
        }
    }
}
