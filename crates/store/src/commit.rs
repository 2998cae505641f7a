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

    /// Readers see everything that was persisted: the moment to tidy up.
    fn published(&mut self) -> Result<(), Arc<str>> {
        Ok(())
    }

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
    /// Starts the thread.
    pub(crate) fn start(
        log: Box<dyn Log>,
        index: Arc<Index>,
        queue_writes_max: usize,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(queue_writes_max);
        let shared = Arc::new(Shared::default());
        let committing = Committing { log, index, waiting, shared: shared.clone() };
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
            match self.make_durable(&group) {
                Ok(sync) => {
                    self.shared.counters.committed(group.len(), sync);
                    self.publish(&mut group);
                    if let Err(reason) = self.log.published() {
                        self.stop(reason);
                    }
                    self.shared.counters.worked(begun.elapsed().saturating_sub(sync));
                }
                Err(reason) => {
                    self.stop(reason.clone());
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

    fn stop(&self, reason: Arc<str>) {
        tracing::error!(%reason, "the store stops taking writes");
        let _ = self.shared.failure.set(reason);
    }

    /// Appends and persists the group; tells how long persisting took.
    fn make_durable(&mut self, group: &[Write]) -> Result<Duration, Arc<str>> {
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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc as std_mpsc;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::sessions::Session;

    /// A log whose persisting waits for the test's word, which is also its outcome.
    struct GatedLog {
        entered: std_mpsc::Sender<usize>,
        gate: std_mpsc::Receiver<Result<(), Arc<str>>>,
        appended: usize,
    }

    impl Log for GatedLog {
        fn append(&mut self, changes: &mut dyn Iterator<Item = &Change>) -> Result<(), Arc<str>> {
            self.appended = changes.count();
            Ok(())
        }

        fn persist(&mut self) -> Result<(), Arc<str>> {
            let _ = self.entered.send(self.appended);
            self.gate.recv().unwrap_or(Ok(()))
        }

        fn close(&mut self) -> Result<(), Arc<str>> {
            Ok(())
        }
    }

    struct Rig {
        committer: Committer,
        index: Arc<Index>,
        /// Receives the size of each group when its persisting begins.
        entered: std_mpsc::Receiver<usize>,
        gate: std_mpsc::Sender<Result<(), Arc<str>>>,
    }

    fn rig(queue_writes_max: usize) -> Rig {
        let (entered_sender, entered) = std_mpsc::channel();
        let (gate, gate_receiver) = std_mpsc::channel();
        let index = Arc::new(Index::new());
        let log = GatedLog { entered: entered_sender, gate: gate_receiver, appended: 0 };
        let committer = Committer::start(Box::new(log), index.clone(), queue_writes_max).unwrap();
        Rig { committer, index, entered, gate }
    }

    fn put(id: u128) -> Change {
        Change::PutSession(Session { id, customer_id: "c".into(), created_ms: 0, expires_ms: 1 })
    }

    fn wait<T>(answer: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
    }

    #[test]
    fn what_gathers_during_a_sync_shares_the_next() {
        let rig = rig(100);
        let first = rig.committer.submit(put(0), |_| ());
        assert_eq!(rig.entered.recv(), Ok(1));
        let rest: Vec<_> = (1..=10).map(|id| rig.committer.submit(put(id), |_| ())).collect();
        rig.gate.send(Ok(())).unwrap();
        wait(first).unwrap();
        assert_eq!(rig.entered.recv(), Ok(10));
        rig.gate.send(Ok(())).unwrap();
        for answer in rest {
            wait(answer).unwrap();
        }
        let metrics = rig.committer.metrics();
        assert_eq!((metrics.commits, metrics.writes, metrics.group_writes_max), (2, 11, 10));
    }

    #[test]
    fn nothing_is_read_or_acknowledged_before_it_is_durable() {
        let rig = rig(100);
        let mut answer = pin!(rig.committer.submit(put(1), |_| ()));
        rig.entered.recv().unwrap();
        assert!(answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(!rig.index.has_session(1));
        rig.gate.send(Ok(())).unwrap();
        wait(answer).unwrap();
        assert!(rig.index.has_session(1));
    }

    #[test]
    fn a_full_queue_makes_writers_wait_and_is_counted() {
        let rig = rig(2);
        let mut answers = vec![rig.committer.submit(put(0), |_| ())];
        rig.entered.recv().unwrap();
        answers.extend((1..=2).map(|id| rig.committer.submit(put(id), |_| ())));
        assert_eq!(rig.committer.metrics().queue_depth, 2);
        let mut late = Box::pin(rig.committer.submit(put(3), |_| ()));
        assert!(matches!(late.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        rig.committer.submit_if_room(put(4));
        let metrics = rig.committer.metrics();
        assert_eq!((metrics.queue_waits, metrics.queue_depth, metrics.queue_depth_max), (1, 2, 2));
        for _ in 0..3 {
            rig.gate.send(Ok(())).unwrap();
        }
        answers.into_iter().for_each(|answer| wait(answer).unwrap());
        wait(late).unwrap();
        assert!(rig.index.has_session(3));
        assert!(!rig.index.has_session(4), "what nobody waits for is left out when there is no room");
    }

    #[test]
    fn a_failed_sync_is_not_acknowledged_and_stops_the_store() {
        let rig = rig(100);
        rig.gate.send(Ok(())).unwrap();
        wait(rig.committer.submit(put(0), |_| ())).unwrap();
        rig.entered.recv().unwrap();

        let failing = rig.committer.submit(put(1), |_| ());
        rig.entered.recv().unwrap();
        let queued_behind = rig.committer.submit(put(2), |_| ());
        rig.gate.send(Err("no space left".into())).unwrap();
        let error = wait(failing).unwrap_err();
        assert!(matches!(&error, StoreError::Write { reason } if &**reason == "no space left"), "{error}");
        assert!(matches!(wait(queued_behind), Err(StoreError::Stopped { .. })));

        // The disk would work again: the store still refuses, since nobody knows what was lost.
        rig.gate.send(Ok(())).unwrap();
        let error = wait(rig.committer.submit(put(3), |_| ())).unwrap_err();
        assert!(matches!(error, StoreError::Stopped { .. }), "{error}");
        assert!(rig.committer.metrics().stopped);
        let readable: Vec<bool> = (0..4).map(|id| rig.index.has_session(id)).collect();
        assert_eq!(readable, [true, false, false, false]);
    }

    #[test]
    fn what_is_queued_at_the_end_is_still_committed() {
        let rig = rig(100);
        let answers: Vec<_> = (0..5u128)
            .map(|id| {
                let (done, receiver) = oneshot::channel();
                rig.committer.queue().try_send(Write { change: put(id), done: Some(done) }).unwrap();
                receiver
            })
            .collect();
        drop(rig.gate); // persisting goes through from now on
        drop(rig.committer);
        for answer in answers {
            assert_eq!(wait(answer).unwrap().unwrap(), 1);
        }
        assert_eq!(rig.index.session_count(), 5);
    }
}
