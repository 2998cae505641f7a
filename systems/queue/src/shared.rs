//! The receiving end, where there are several.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use crate::end::{End, Source};
use crate::errors::{RecvError, RecvTimeoutError, TryRecvError};
use crate::hub::{Failure, Hub, Rounds};
use crate::metrics::Metrics;
use crate::sync::{Arc, Ordering, fence};
use crate::wait::Look;

/// One of several receiving ends of a queue: each message goes to one of them. It takes a batch
/// ([`Options::batch`](crate::Options::batch)) at a time out of the queue and holds it; dropped, it gives back what it
/// holds for the others to take.
///
/// A clone is one more end. Dropping the last drops what is in the queue, and is an error for senders.
pub struct SharedReceiver<T> {
    end: End<Claims<T>>,
}

impl<T> SharedReceiver<T> {
    pub(crate) fn new(hub: Arc<Hub<T>>) -> SharedReceiver<T> {
        let batch = hub.options.batch_within();
        let held = VecDeque::with_capacity(batch as usize);
        let key = hub.add_receiver();
        SharedReceiver {
            end: End::new(hub.clone(), key, Claims { rounds: Rounds::new(hub), key, batch, held }),
        }
    }

    /// Receives, waiting for a message.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        match self.end.source.held.pop_front() {
            Some(message) => Ok(message),
            None => self.recv_batch()?.next().ok_or(RecvError),
        }
    }

    /// Receives, waiting for a message for so long at most.
    ///
    /// # Errors
    /// If none came in time, or everything was received and nothing more will come.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        if self.end.source.held.is_empty() {
            self.end.wait_timeout(timeout)?;
        }
        self.end.source.held.pop_front().ok_or(RecvTimeoutError::Closed)
    }

    /// Receives if there is a message.
    ///
    /// # Errors
    /// If there is none at the moment, or everything was received and nothing more will come.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.end.poll()?;
        self.end.source.held.pop_front().ok_or(TryRecvError::Closed)
    }

    /// Receives, waiting without blocking the thread. Nothing is lost where the future is dropped.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    pub async fn recv_async(&mut self) -> Result<T, RecvError> {
        let mut waiting = Waiting { receiver: self, registered: false };
        std::future::poll_fn(|context| {
            let polled = waiting.receiver.poll_recv(context);
            waiting.registered = polled.is_pending();
            polled
        })
        .await
    }

    /// Receives if there is a message; otherwise the task is woken when there is. Who polls and then loses interest drops
    /// the receiver, or polls it again: a wake-up of this one is none for another.
    #[inline]
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        if self.end.source.held.is_empty() {
            ready!(self.end.poll_ready(context))?;
        }
        Poll::Ready(self.end.source.held.pop_front().ok_or(RecvError))
    }

    /// Receives a batch, waiting for at least one message.
    ///
    /// # Errors
    /// If everything was received and nothing more will come.
    #[inline]
    pub fn recv_batch(&mut self) -> Result<Held<'_, T>, RecvError> {
        if self.end.source.held.is_empty() && !self.end.wait(None) {
            return Err(RecvError);
        }
        Ok(Held { held: &mut self.end.source.held })
    }

    /// Receives a batch.
    ///
    /// # Errors
    /// If there is nothing at the moment, or everything was received and nothing more will come.
    #[inline]
    pub fn try_recv_batch(&mut self) -> Result<Held<'_, T>, TryRecvError> {
        self.end.poll()?;
        Ok(Held { held: &mut self.end.source.held })
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
}

/// Goes away with its future: another receiver is woken in its place.
struct Waiting<'a, T> {
    receiver: &'a mut SharedReceiver<T>,
    registered: bool,
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        if self.registered {
            self.receiver.end.wait_no_more();
        }
    }
}

impl<T> Clone for SharedReceiver<T> {
    /// One more receiving end.
    fn clone(&self) -> SharedReceiver<T> {
        SharedReceiver::new(self.end.hub.clone())
    }
}

impl<T> Drop for SharedReceiver<T> {
    fn drop(&mut self) {
        self.end.wait_no_more();
        if !self.end.source.held.is_empty() {
            self.end.hub.give_back(self.end.source.held.drain(..));
        }
        if self.end.hub.remove_receiver() {
            self.end.hub.close();
            // what they hold (an answer's way back, say) is free as soon as nobody can take it any more
            while self.try_recv().is_ok() {}
        }
    }
}

impl<T> Stream for SharedReceiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context).map(Result::ok)
    }
}

impl<T> Unpin for SharedReceiver<T> {}

impl<T> std::fmt::Debug for SharedReceiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedReceiver").field("metrics", &self.metrics()).finish_non_exhaustive()
    }
}

/// The batch that a [`SharedReceiver`] holds, taken out one by one; what is left stays with the receiver.
#[derive(Debug)]
pub struct Held<'a, T> {
    held: &'a mut VecDeque<T>,
}

impl<T> Iterator for Held<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.held.pop_front()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.held.len(), Some(self.held.len()))
    }
}

impl<T> ExactSizeIterator for Held<'_, T> {}
impl<T> FusedIterator for Held<'_, T> {}

/// Claims a ring for as long as it takes to take a batch out.
struct Claims<T> {
    rounds: Rounds<T>,
    /// Under which this end waits.
    key: usize,
    batch: u64,
    held: VecDeque<T>,
}

impl<T> Claims<T> {
    /// Takes a batch out of the next ring that has something. True if it had a ring for itself, with or without success.
    fn take(&mut self, look: Look) -> bool {
        let (batch, held, fence) = (self.batch, &mut self.held, self.rounds.hub.fence);
        let mut claimed = false;
        self.rounds.find(look, |_, ring| {
            if !ring.claim() {
                return None;
            }
            claimed = true;
            let next = ring.taken();
            let count = ring.visible(look).saturating_sub(next).min(batch);
            for position in next..next + count {
                // SAFETY: under the claim the messages up to what is visible are ours.
                #[allow(unsafe_code)]
                held.push_back(unsafe { ring.slots().read(position) });
            }
            if look == Look::Written {
                ring.note_taken_early(count);
            }
            ring.set_taken(next + count);
            ring.unclaim();
            ring.space.after_change(fence);
            (count > 0).then_some(())
        });
        claimed
    }

    /// While we had a ring, another may have found it taken and gone to sleep before what is left, or before the end.
    fn wake_others(&mut self) {
        self.rounds.hub.fence.light();
        if !self.rounds.hub.receivers.is_raised() {
            return;
        }
        // stands between giving the ring back and looking into it, as the one in `Ring::claim` stands between looking
        // into it and asking for it: either we see what the other saw, or the other gets the ring
        fence(Ordering::SeqCst);
        if self.rounds.hub.is_ending() || self.rounds.any(Look::Written) {
            self.rounds.hub.receivers.wake_another(self.key);
        }
    }
}

impl<T> Source for Claims<T> {
    type Message = T;

    fn open(&mut self, look: Look) -> bool {
        if !self.held.is_empty() {
            return true;
        }
        if let Some(message) = self.rounds.hub.take_back() {
            self.held.push_back(message);
            return true;
        }
        while self.take(look) {
            self.wake_others();
            if !self.held.is_empty() {
                return true;
            }
        }
        false
    }

    fn any(&mut self, look: Look) -> bool {
        self.rounds.any(look)
    }

    fn is_over(&mut self) -> bool {
        self.held.is_empty() && self.rounds.is_over()
    }
}
