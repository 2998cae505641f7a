//! What every receiving end does alike: wait, poll, learn that it is over.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::errors::{RecvError, RecvTimeoutError, TryRecvError};
use crate::hub::Hub;
use crate::sync::Arc;
use crate::wait::{Look, Waiter};

/// How often a lingering receiver looks whether the batch is full by now.
const LINGER_LOOKS: u32 = 8;

/// Where an end gets messages from.
pub(crate) trait Source {
    /// What it receives.
    type Message;
    /// Has messages at hand, if there are any to be had.
    fn open(&mut self, look: Look) -> bool;
    /// Whether `open` would find any, of which it takes none.
    fn any(&mut self, look: Look) -> bool;
    /// Whether nothing is left and nothing more will come.
    fn is_over(&mut self) -> bool;
}

/// A receiving end on a source.
pub(crate) struct End<S: Source> {
    pub(crate) hub: Arc<Hub<S::Message>>,
    pub(crate) source: S,
    key: usize,
    waiter: Waiter,
}

impl<S: Source> End<S> {
    pub(crate) fn new(hub: Arc<Hub<S::Message>>, key: usize, source: S) -> End<S> {
        End { key, waiter: Waiter::new(hub.options.wait), hub, source }
    }

    /// Waits until the source is open. False if nothing more will come, or the deadline passed.
    #[inline(never)]
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> bool {
        if self.source.open(Look::Published) {
            return true;
        }
        let linger = self.hub.options.linger;
        let opened = self.wait_until(deadline, |hub, source, look| {
            if look == Look::Written && !linger.is_zero() && source.any(look) {
                let_it_grow(hub, source, linger);
            }
            if source.open(look) {
                Some(true)
            } else {
                (look == Look::Written && source.is_over()).then_some(false)
            }
        });
        opened == Some(true)
    }

    /// Waits until there is something to be seen at the source, or the deadline passes.
    pub(crate) fn wait_until<R>(
        &mut self,
        deadline: Option<Instant>,
        mut see: impl FnMut(&Hub<S::Message>, &mut S, Look) -> Option<R>,
    ) -> Option<R> {
        let (hub, source) = (&*self.hub, &mut self.source);
        hub.note_receiver_wait();
        self.waiter.wait(&hub.receivers, self.key, hub.fence, deadline, |look| see(hub, source, look))
    }

    /// As [`wait`](End::wait), at most so long.
    pub(crate) fn wait_timeout(&mut self, timeout: Duration) -> Result<(), RecvTimeoutError> {
        // a time beyond what the clock can say is no limit
        if self.wait(Instant::now().checked_add(timeout)) {
            Ok(())
        } else if self.source.is_over() {
            Err(RecvTimeoutError::Closed)
        } else {
            Err(RecvTimeoutError::Timeout)
        }
    }

    /// Opens the source, if that can be done at once.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<(), TryRecvError> {
        if self.source.open(Look::Published) || self.source.open(Look::Written) {
            Ok(())
        } else if self.source.is_over() {
            Err(TryRecvError::Closed)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// As [`poll`](End::poll), and otherwise has the task woken.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RecvError>> {
        self.poll_until(context, |end| match end.poll() {
            Err(TryRecvError::Empty) => None,
            known => Some(known.map_err(|_| RecvError)),
        })
    }

    /// Ready where there is something to be seen; otherwise the task is woken when there may be.
    pub(crate) fn poll_until<R>(
        &mut self,
        context: &mut Context<'_>,
        mut see: impl FnMut(&mut End<S>) -> Option<R>,
    ) -> Poll<R> {
        if let Some(seen) = see(self) {
            return Poll::Ready(seen);
        }
        self.hub.receivers.register(self.key, context.waker());
        self.hub.fence.heavy();
        if let Some(seen) = see(self) {
            self.wait_no_more();
            return Poll::Ready(seen);
        }
        self.hub.note_receiver_wait();
        Poll::Pending
    }

    /// Whoever waited and goes on without, or goes away, is woken no more; if it was just woken, another is instead.
    pub(crate) fn wait_no_more(&self) {
        if !self.hub.receivers.remove(self.key) {
            self.hub.receivers.wake_one();
        }
    }
}

/// Lets an unfinished batch grow, until it is finished or the time is over.
fn let_it_grow<S: Source>(hub: &Hub<S::Message>, source: &mut S, linger: Duration) {
    for _ in 0..LINGER_LOOKS {
        if source.any(Look::Published) || hub.is_ending() {
            return;
        }
        std::thread::sleep(linger / LINGER_LOOKS);
    }
}
