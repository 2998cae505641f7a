//! How those who wait learn that their group is durable, without a system call for each.
//!
//! Waking a task from a foreign thread costs a write to the event loop's own descriptor; from within the loop it costs
//! a place in a queue. So each thread of an asynchronous runtime that writes has its waiters here: the committer puts
//! all of a group's waiting writers there and wakes one task, which wakes them. What is written from outside
//! any runtime is answered directly.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, oneshot};

use crate::error::StoreError;

/// Whoever waits hears through this.
pub(crate) type Done = oneshot::Sender<Result<u64, StoreError>>;
/// The other end of it.
pub(crate) type Told = oneshot::Receiver<Result<u64, StoreError>>;

/// Somebody who waits for a group.
pub(crate) struct Waiter {
    pub(crate) done: Done,
    /// What came of the write; before that is known, its place in the group.
    pub(crate) outcome: u64,
}

/// Those of one thread who wait.
pub(crate) struct ThreadWaiters {
    state: Mutex<State>,
    wake: Notify,
}

struct State {
    done: Vec<Waiter>,
    /// Whether the task that wakes them is there.
    is_open: bool,
}

/// The threads that write to one store.
pub(crate) struct Threads {
    store: u64,
    all: Mutex<Vec<Weak<ThreadWaiters>>>,
}

thread_local! {
    /// The waiters of this thread where it wrote last, with their store and runtime.
    static LAST: RefCell<Option<(u64, Id, Arc<ThreadWaiters>)>> = const { RefCell::new(None) };
}

fn acknowledge(waiters: &mut Vec<Waiter>) {
    // A writer that has gone away does not want its answer.
    waiters.drain(..).for_each(|waiter| drop(waiter.done.send(Ok(waiter.outcome))));
}

impl Threads {
    pub(crate) fn new() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        Threads { store: STORES.fetch_add(1, Ordering::Relaxed), all: Mutex::default() }
    }

    /// Calls `with` with the waiters of this thread; with none outside of a runtime.
    pub(crate) fn with_own<T>(&self, with: impl FnOnce(Option<&Arc<ThreadWaiters>>) -> T) -> T {
        let Ok(runtime) = Handle::try_current() else { return with(None) };
        LAST.with_borrow_mut(|last| {
            let is_right =
                |(store, id, _): &(u64, Id, Arc<ThreadWaiters>)| *store == self.store && *id == runtime.id();
            if !last.as_ref().is_some_and(is_right) {
                *last = Some((self.store, runtime.id(), self.open(&runtime)));
            }
            with(last.as_ref().map(|(_, _, thread)| thread))
        })
    }

    fn open(&self, runtime: &Handle) -> Arc<ThreadWaiters> {
        let state = State { done: Vec::new(), is_open: true };
        let thread = Arc::new(ThreadWaiters { state: Mutex::new(state), wake: Notify::new() });
        runtime.spawn(relay(thread.clone()));
        let mut all = self.all.lock();
        all.retain(|thread| thread.strong_count() > 0);
        all.push(Arc::downgrade(&thread));
        thread
    }

    /// Ends the tasks, once nobody waits any more.
    pub(crate) fn close(&self) {
        for thread in self.all.lock().drain(..).filter_map(|thread| thread.upgrade()) {
            thread.state.lock().is_open = false;
            thread.wake.notify_one();
        }
    }
}

/// Lets these know that their group is durable; the vector is empty afterwards.
pub(crate) fn deliver(thread: Option<&ThreadWaiters>, waiters: &mut Vec<Waiter>) {
    match thread {
        _ if waiters.is_empty() => {}
        Some(thread) => thread.deliver(waiters),
        None => acknowledge(waiters),
    }
}

impl ThreadWaiters {
    fn deliver(&self, waiters: &mut Vec<Waiter>) {
        let mut state = self.state.lock();
        if !state.is_open {
            drop(state);
            return acknowledge(waiters);
        }
        if state.done.is_empty() {
            std::mem::swap(&mut state.done, waiters);
        } else {
            state.done.append(waiters);
        }
        drop(state);
        self.wake.notify_one();
    }
}

/// Wakes those of a thread, from within their runtime.
async fn relay(thread: Arc<ThreadWaiters>) {
    let open = Open(thread);
    let mut done = Vec::new();
    loop {
        open.0.wake.notified().await;
        let is_open = {
            let mut state = open.0.state.lock();
            std::mem::swap(&mut state.done, &mut done);
            state.is_open
        };
        acknowledge(&mut done);
        if !is_open {
            return;
        }
    }
}

/// Sees to it that nobody is forgotten when the task ends with its runtime.
struct Open(Arc<ThreadWaiters>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut done = {
            let mut state = self.0.state.lock();
            state.is_open = false;
            std::mem::take(&mut state.done)
        };
        acknowledge(&mut done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    fn new_waiter() -> (Waiter, Told) {
        let (done, told) = oneshot::channel();
        (Waiter { done, outcome: 7 }, told)
    }

    #[test]
    fn writers_are_told_by_their_own_runtime_and_directly_once_that_is_gone() {
        let threads = Threads::new();
        let (first, here) = (runtime(), runtime());
        let thread = first.block_on(async { threads.with_own(|thread| thread.cloned()) }).unwrap();
        let same = first.block_on(async { threads.with_own(|thread| thread.cloned()) }).unwrap();
        assert!(Arc::ptr_eq(&thread, &same));
        let (waiter, mut told) = new_waiter();
        thread.deliver(&mut vec![waiter]);
        assert!(told.try_recv().is_err(), "the task has not run yet");
        assert_eq!(first.block_on(told).unwrap().unwrap(), 7);
        // What is on its way when the runtime ends is not forgotten, nor what comes after.
        let (waiter, on_its_way) = new_waiter();
        thread.deliver(&mut vec![waiter]);
        drop(first);
        let (waiter, after) = new_waiter();
        thread.deliver(&mut vec![waiter]);
        assert!(here.block_on(on_its_way).is_ok() && here.block_on(after).is_ok());
    }

    #[test]
    fn outside_of_a_runtime_there_is_no_lane_and_the_end_ends_the_tasks() {
        let threads = Threads::new();
        assert!(threads.with_own(|thread| thread.is_none()));
        let runtime = runtime();
        let thread = runtime.block_on(async { threads.with_own(|thread| thread.cloned()) }).unwrap();
        threads.close();
        runtime.block_on(async {
            while runtime.metrics().num_alive_tasks() > 0 {
                tokio::task::yield_now().await;
            }
        });
        assert!(!thread.state.lock().is_open);
    }
}
