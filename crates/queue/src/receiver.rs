//! The receiving end, where there is one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use crate::batch::Batch;
use crate::end::{End, Source};
use crate::errors::{RecvError, RecvTimeoutError, TryRecvError};
use crate::hub::{Failure, Hub, Rounds};
use crate::metrics::Metrics;
use crate::ring::Ring;
use crate::sync::Arc;
use crate::wait::Look;

/// A slice that is taken at once is at most this part of a ring, so that the sender can go on meanwhile.
const SLICES_A_RING: u64 = 4;

/// The receiving end. It goes round the senders, and takes from each what lies ready, without copying it.
///
/// Dropping it drops what is in the queue, and is an error for senders. It is a [`Stream`] too, which ends when everything
/// was received.
pub struct Receiver<T> {
    pub(crate) end: End<Slice<T>>,
}

impl<T> Receiver<T> {
    pub(crate) fn new(hub: Arc<Hub<T>>) -> Receiver<T> {
        let (rounds, key) = (Rounds::new(hub.clone()), hub.add_receiver());
        Receiver { end: End::new(hub, key, Slice { rounds, ring: None, next: 0, limit: 0, lent: false }) }
    }

    /// Receives, waiting for a message.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        self.ready()?;
        Ok(self.end.source.take())
    }

    /// Receives, waiting for a message for so long at most.
    ///
    /// # Errors
    /// If none came in time, or everything was received and nothing more will come.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        if !self.end.source.is_open() {
            self.end.wait_timeout(timeout)?;
        }
        Ok(self.end.source.take())
    }

    /// Receives if there is a message.
    ///
    /// # Errors
    /// If there is none at the moment, or everything was received and nothing more will come.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.end.poll()?;
        Ok(self.end.source.take())
    }

    /// Receives, waiting without blocking the thread. Nothing is lost where the future is dropped.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    pub async fn recv_async(&mut self) -> Result<T, RecvError> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// Receives if there is a message; otherwise the task is woken when there is.
    #[inline]
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        ready!(self.poll_ready(context))?;
        Poll::Ready(Ok(self.end.source.take()))
    }

    /// Ready where a message can be received, or nothing more will come; otherwise the task is woken when that is so.
    #[inline]
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RecvError>> {
        if self.end.source.is_open() {
            return Poll::Ready(Ok(()));
        }
        self.end.poll_ready(context)
    }

    /// Receives what lies ready, waiting for at least one message.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    #[inline]
    pub fn recv_batch(&mut self) -> Result<Batch<'_, T>, RecvError> {
        self.ready()?;
        Ok(Batch::new(&mut self.end.source, u64::MAX))
    }

    /// Receives what lies ready.
    ///
    /// # Errors
    /// If there is nothing at the moment, or everything was received and nothing more will come.
    #[inline]
    pub fn try_recv_batch(&mut self) -> Result<Batch<'_, T>, TryRecvError> {
        self.end.poll()?;
        Ok(Batch::new(&mut self.end.source, u64::MAX))
    }

    /// Receives what lies ready, waiting for at least one message without blocking the thread.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    pub async fn recv_batch_async(&mut self) -> Result<Batch<'_, T>, RecvError> {
        std::future::poll_fn(|context| self.poll_ready(context)).await?;
        Ok(Batch::new(&mut self.end.source, u64::MAX))
    }

    /// Accepts no more messages: senders get an error from now on. What was accepted can still be received.
    pub fn close(&mut self) {
        self.end.hub.close();
    }

    /// Why a sender ended with [`fail`](crate::Sender::fail), if one did.
    pub fn failure(&self) -> Option<Failure> {
        self.end.hub.failure()
    }

    /// What the queue has done so far.
    pub fn metrics(&self) -> Metrics {
        self.end.hub.metrics()
    }

    #[inline]
    fn ready(&mut self) -> Result<(), RecvError> {
        if self.end.source.is_open() || self.end.wait(None) { Ok(()) } else { Err(RecvError) }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.end.wait_no_more();
        self.end.hub.remove_receiver();
        self.end.hub.close();
        // what they hold (an answer's way back, say) is free as soon as nobody can take it any more
        while self.try_recv().is_ok() {}
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context).map(Result::ok)
    }
}

impl<T> Unpin for Receiver<T> {}

impl<T> std::fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("metrics", &self.metrics()).finish_non_exhaustive()
    }
}

/// Takes slices of rings, where they lie.
pub struct Slice<T> {
    rounds: Rounds<T>,
    /// The ring that the slice lies in.
    ring: Option<Arc<Ring<T>>>,
    /// The slice: positions that are ours and not yet taken out of.
    next: u64,
    limit: u64,
    /// A batch has the slice (or was leaked with it).
    lent: bool,
}

impl<T> Slice<T> {
    #[inline(always)]
    fn is_open(&self) -> bool {
        self.next != self.limit
    }

    /// Whether there are messages in the slice.
    #[cfg(not(loom))]
    pub(crate) fn has_more(&self) -> bool {
        self.is_open()
    }

    /// Takes the next message of the slice, which is open.
    #[inline(always)]
    fn take(&mut self) -> T {
        debug_assert!(self.is_open());
        // SAFETY: the slots from `next` to `limit` hold messages that are ours, and `next` goes on past this one.
        #[allow(unsafe_code)]
        let message = unsafe { self.ring().slots().read(self.next) };
        self.next += 1;
        if self.next == self.limit {
            self.free();
        }
        message
    }

    /// The ring of the slice.
    #[inline(always)]
    pub(crate) fn ring(&self) -> &Ring<T> {
        self.ring.as_deref().expect("a slice is opened in a ring")
    }

    /// Frees the slots that were taken out of.
    #[inline]
    fn free(&self) {
        let ring = self.ring();
        ring.set_taken(self.next);
        ring.space.after_change(self.rounds.hub.fence);
    }

    /// Lends the slice to a batch. Until it comes back all of it counts as taken, so that a batch that is leaked leaks its
    /// messages, and nothing worse.
    #[inline]
    pub(crate) fn lend(&mut self) -> (u64, u64) {
        let slice = (self.next, self.limit);
        self.lent = true;
        self.next = self.limit;
        slice
    }

    /// What a batch did not take out of, from `next` on, is ours again.
    #[inline]
    pub(crate) fn give_back(&mut self, next: u64) {
        self.lent = false;
        self.next = next;
        self.free();
    }
}

impl<T> Source for Slice<T> {
    type Message = T;

    #[inline]
    fn open(&mut self, look: Look) -> bool {
        if self.is_open() {
            return true;
        }
        if self.lent {
            let leaked_up_to = self.limit;
            self.give_back(leaked_up_to);
        }
        let found = self.rounds.find(look, |index, ring| {
            let next = ring.taken();
            let most = (ring.capacity() / SLICES_A_RING).max(1);
            let count = ring.slots().contiguous(next, ring.visible(look)).min(most);
            if look == Look::Written {
                ring.note_taken_early(count);
            }
            Some((index, next, next + count))
        });
        let Some((index, next, limit)) = found else { return false };
        let ring = self.rounds.ring(index);
        if !self.ring.as_ref().is_some_and(|known| Arc::ptr_eq(known, ring)) {
            self.ring = Some(ring.clone());
        }
        (self.next, self.limit) = (next, limit);
        true
    }

    fn any(&mut self, look: Look) -> bool {
        self.rounds.any(look)
    }

    fn is_over(&mut self) -> bool {
        !self.is_open() && self.rounds.is_over()
    }
}
