//! The sending end.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_sink::Sink;

use crate::errors::{BatchError, SendError, TrySendError};
use crate::fence::Fence;
use crate::hub::{Failure, Hub};
use crate::metrics::Metrics;
use crate::ring::{Ring, count};
use crate::sync::Arc;
use crate::wait::Waiter;

/// Its ring has one sender, hence one who waits for room.
const KEY: usize = 0;

/// The sending end. Each clone has a ring (and so room for messages) of its own; messages of one sender stay in order.
///
/// Messages collect into batches ([`Options::batch`](crate::Options::batch)), which a busy receiver takes whole. An idle
/// one takes what there is, so that no message waits for others to fill its batch, also where this end sends no more.
/// Dropping a sender hands over what it sent.
pub struct Sender<T> {
    hub: Arc<Hub<T>>,
    ring: Arc<Ring<T>>,
    fence: Fence,
    batch: u64,
    /// Where the next message goes.
    written: u64,
    /// Where the batch is full.
    publish_at: u64,
    /// Up to where there is room, as far as we know.
    full_at: u64,
    /// Sends no more: its ring has ended.
    ended: bool,
    waiter: Waiter,
}

impl<T> Sender<T> {
    pub(crate) fn new(hub: Arc<Hub<T>>) -> Sender<T> {
        let ring = hub.add_sender();
        let batch = hub.options.batch_within();
        Sender {
            fence: hub.fence,
            batch,
            written: 0,
            publish_at: batch,
            full_at: ring.capacity(),
            ended: false,
            waiter: Waiter::new(hub.options.wait),
            ring,
            hub,
        }
    }

    /// Sends, waiting for room.
    ///
    /// # Errors
    /// If the receiving side is gone or closed; the message comes back.
    #[inline]
    pub fn send(&mut self, message: T) -> Result<(), SendError<T>> {
        if self.written == self.full_at && !self.wait_for_room() {
            return Err(SendError(message));
        }
        self.put(message)
    }

    /// Sends if there is room.
    ///
    /// # Errors
    /// If there is none, or if the receiving side is gone or closed; the message comes back.
    #[inline]
    pub fn try_send(&mut self, message: T) -> Result<(), TrySendError<T>> {
        if self.written == self.full_at && !self.find_room() {
            if self.is_closed() {
                return Err(TrySendError::Closed(message));
            }
            self.hand_over();
            count(&self.ring.counts().refused, 1);
            return Err(TrySendError::Full(message));
        }
        self.put(message).map_err(|SendError(message)| TrySendError::Closed(message))
    }

    /// Sends, waiting for room without blocking the thread.
    ///
    /// # Errors
    /// If the receiving side is gone or closed; the message comes back.
    pub async fn send_async(&mut self, message: T) -> Result<(), SendError<T>> {
        if std::future::poll_fn(|context| self.poll_room(context)).await {
            self.put(message)
        } else {
            Err(SendError(message))
        }
    }

    /// Sends all, waiting for room where needed. They are handed over as they are written, a batch
    /// ([`Options::batch`](crate::Options::batch)) at a time, so that the receiver takes the first while the next is written.
    ///
    /// # Errors
    /// If the receiving side is gone or closed; it says how many were accepted before.
    #[inline]
    pub fn send_batch<I: IntoIterator<Item = T>>(&mut self, messages: I) -> Result<(), BatchError> {
        let mut messages = messages.into_iter();
        let mut accepted = 0;
        loop {
            if self.written == self.full_at && !self.find_room() {
                // waits only for a message that there is
                let Some(message) = messages.next() else { return Ok(()) };
                if !self.wait_for_room() || self.put(message).is_err() {
                    return Err(BatchError { accepted });
                }
                accepted += 1;
            }
            let (filled, more) = self.fill(&mut messages);
            let taken = self.handed(filled);
            accepted += taken;
            if taken < filled {
                return Err(BatchError { accepted });
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Sends what there is room for and says how much that was. What there was no room for stays in the iterator.
    ///
    /// # Errors
    /// If the receiving side is gone or closed; it says how many were accepted before.
    pub fn try_send_batch<I: Iterator<Item = T>>(&mut self, messages: &mut I) -> Result<u64, BatchError> {
        let mut accepted = 0;
        while self.written != self.full_at || self.find_room() {
            let (filled, more) = self.fill(messages);
            let taken = self.handed(filled);
            accepted += taken;
            if taken < filled {
                return Err(BatchError { accepted });
            }
            if !more {
                break;
            }
        }
        if self.is_closed() { Err(BatchError { accepted }) } else { Ok(accepted) }
    }

    /// Sends copies of all, as [`send_batch`](Sender::send_batch) does.
    ///
    /// # Errors
    /// If the receiving side is gone or closed; it says how many were accepted before.
    #[cfg(not(loom))]
    #[inline]
    pub fn send_slice(&mut self, messages: &[T]) -> Result<(), BatchError>
    where
        T: Copy,
    {
        let mut rest = messages;
        while !rest.is_empty() {
            if self.written == self.full_at && !self.wait_for_room() {
                return Err(BatchError { accepted: (messages.len() - rest.len()) as u64 });
            }
            let room = self.piece();
            self.fetch_ahead(room);
            let (now, later) = rest.split_at(rest.len().min(room as usize));
            // SAFETY: slots from `written` up to `full_at` are free and ours, and these lie in one piece.
            #[allow(unsafe_code)]
            unsafe {
                self.ring.slots().copy_in(self.written, now);
            }
            self.written += now.len() as u64;
            let taken = self.handed(now.len() as u64);
            if taken < now.len() as u64 {
                return Err(BatchError { accepted: (messages.len() - rest.len()) as u64 + taken });
            }
            rest = later;
        }
        Ok(())
    }

    /// Hands over what has collected, without waiting for the batch to be full. An idle receiver takes it anyway; a busy
    /// one now takes it with the next round.
    pub fn flush(&mut self) {
        self.hand_over();
        self.ring_bell();
    }

    /// Whether the receiving side is gone or closed.
    pub fn is_closed(&self) -> bool {
        self.ended || self.hub.is_closed()
    }

    /// Messages that there is room for in this sender's ring.
    pub fn room(&self) -> usize {
        (self.ring.capacity() - (self.written - self.ring.taken())) as usize
    }

    /// What the queue has done so far.
    pub fn metrics(&self) -> Metrics {
        self.hub.metrics()
    }

    /// Ends this sender with an error, which receivers can ask for once they have received everything
    /// ([`Receiver::failure`](crate::Receiver::failure)) and streams signal. The first error of a queue's senders counts.
    pub fn fail(self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        let error: Box<dyn std::error::Error + Send + Sync> = error.into();
        self.hub.fail(Failure::from(error));
    }

    /// What the receiver takes of this sender's messages, for another thread.
    #[cfg(all(feature = "remote", not(loom)))]
    pub(crate) fn taken(&self) -> crate::taken::Taken<T> {
        crate::taken::Taken::new(self.hub.clone(), self.ring.clone())
    }

    #[inline(always)]
    fn put(&mut self, message: T) -> Result<(), SendError<T>> {
        debug_assert!(self.written < self.full_at, "somebody looked for room before");
        // SAFETY: slots from `written` up to `full_at` are free and ours.
        #[allow(unsafe_code)]
        unsafe {
            self.ring.slots().write(self.written, message);
        }
        self.written += 1;
        self.ring.set_written(self.written);
        if self.written >= self.publish_at {
            self.publish_full();
        }
        self.fence.light();
        if self.hub.receivers.is_raised() {
            return self.answer_one();
        }
        Ok(())
    }

    /// Hands a full batch over.
    #[inline]
    fn publish_full(&mut self) {
        self.publish_at = self.written + self.batch;
        self.ring.set_published(self.written);
        count(&self.ring.counts().batches_full, 1);
        self.fetch_ahead(self.batch);
    }

    /// Has the memory of so many messages fetched that come a batch later, so that it is at hand by then.
    #[inline]
    fn fetch_ahead(&mut self, messages: u64) {
        let from = self.written + self.batch;
        if from + messages > self.full_at {
            self.find_room();
        }
        // not what the receiver has still to read
        if from + messages <= self.full_at {
            self.ring.slots().fetch_for_writing(from, messages);
        }
    }

    /// Messages that can be written next in one go: as many as there is known room for in one piece, and a batch at most.
    #[inline(always)]
    fn piece(&self) -> u64 {
        self.ring.slots().contiguous(self.written, self.full_at).min(self.batch)
    }

    /// Writes what there is, a piece at most; says how many, and whether there may be more.
    #[inline(always)]
    fn fill(&mut self, messages: &mut impl Iterator<Item = T>) -> (u64, bool) {
        let room = self.piece();
        self.fetch_ahead(room);
        // SAFETY: slots from `written` up to `full_at` are free and ours, and these lie in one piece.
        #[allow(unsafe_code)]
        let filled = unsafe { self.ring.slots().fill(self.written, room, messages) };
        self.written += filled;
        (filled, filled == room)
    }

    /// Hands over the `filled` messages before `written`; says how many were accepted.
    #[inline]
    fn handed(&mut self, filled: u64) -> u64 {
        if filled == 0 {
            return 0;
        }
        self.ring.set_written(self.written);
        self.publish_at = self.written + self.batch;
        self.ring.set_published(self.written);
        let counts = self.ring.counts();
        count(if filled >= self.batch { &counts.batches_full } else { &counts.batches_by_hand }, 1);
        self.fence.light();
        if self.hub.receivers.is_raised() { self.answer(filled, |_| ()) } else { filled }
    }

    fn hand_over(&mut self) {
        if self.publish_at != self.written + self.batch {
            self.publish_at = self.written + self.batch;
            self.ring.set_published(self.written);
            count(&self.ring.counts().batches_by_hand, 1);
        }
    }

    fn ring_bell(&self) {
        self.hub.receivers.after_change(self.fence);
    }

    #[cold]
    fn answer_one(&mut self) -> Result<(), SendError<T>> {
        let mut refused = None;
        self.answer(1, |message| refused = Some(message));
        refused.map_or(Ok(()), |message| Err(SendError(message)))
    }

    /// A receiver waits, or the queue is closed. In that case the last `sent` messages may have come too late: they
    /// are taken back. Says how many were accepted.
    #[cold]
    fn answer(&mut self, sent: u64, mut refuse: impl FnMut(T)) -> u64 {
        let mut accepted = sent;
        if self.hub.is_closed() {
            let first = self.written - sent;
            let end = self.ring.end_at(self.written).clamp(first, self.written);
            for position in end..self.written {
                // SAFETY: behind the end nobody reads; these are ours, and we wrote them.
                #[allow(unsafe_code)]
                refuse(unsafe { self.ring.slots().read(position) });
            }
            self.written = end;
            self.publish_at = end + self.batch;
            accepted = end - first;
        }
        self.hub.receivers.wake_one();
        accepted
    }

    /// Hands over what was sent, and sends no more.
    fn end(&mut self) {
        if !self.ended {
            self.hand_over();
            self.ring.end_at(self.written);
            self.full_at = self.written;
            self.ended = true;
            self.hub.remove_sender();
        }
    }

    /// Looks at what has been taken; true if there is room.
    #[inline]
    fn find_room(&mut self) -> bool {
        if self.ended {
            return false;
        }
        self.full_at = self.ring.taken() + self.ring.capacity();
        self.written != self.full_at
    }

    /// False if the queue is closed.
    #[cold]
    fn wait_for_room(&mut self) -> bool {
        if self.ended || self.find_room() {
            return !self.ended;
        }
        self.flush();
        count(&self.ring.counts().waits, 1);
        let (ring, hub, written) = (&self.ring, &self.hub, self.written);
        let room = self.waiter.wait(&ring.space, KEY, self.fence, None, |_| {
            if ring.taken() + ring.capacity() != written {
                Some(true)
            } else {
                hub.is_closed().then_some(false)
            }
        });
        room == Some(true) && self.find_room()
    }

    /// As [`wait_for_room`](Sender::wait_for_room), for tasks.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.ended || self.written != self.full_at || self.find_room() {
            return Poll::Ready(!self.ended);
        }
        self.flush();
        self.ring.space.register(KEY, context.waker());
        self.fence.heavy();
        if self.find_room() || self.hub.is_closed() {
            self.ring.space.remove(KEY);
            return Poll::Ready(self.written != self.full_at);
        }
        count(&self.ring.counts().waits, 1);
        Poll::Pending
    }
}

impl<T> Clone for Sender<T> {
    /// One more sender, with a ring of its own.
    fn clone(&self) -> Sender<T> {
        Sender::new(self.hub.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T> std::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender")
            .field("sent", &self.written)
            .field("room", &self.room())
            .finish_non_exhaustive()
    }
}

/// Ready where there is room. Flushing hands over what was sent; it does not wait until it was received.
impl<T> Sink<T> for Sender<T> {
    type Error = SendError<()>;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        let sender = self.get_mut();
        if sender.is_closed() {
            return Poll::Ready(Err(SendError(())));
        }
        sender.poll_room(context).map(|room| if room { Ok(()) } else { Err(SendError(())) })
    }

    fn start_send(self: Pin<&mut Self>, message: T) -> Result<(), SendError<()>> {
        self.get_mut().try_send(message).map_err(|_| SendError(()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        self.get_mut().flush();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        let sender = self.get_mut();
        sender.end();
        Poll::Ready(Ok(()))
    }
}

impl<T> Unpin for Sender<T> {}
