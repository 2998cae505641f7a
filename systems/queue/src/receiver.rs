//! The receiving end, where there is one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use crate::batch::Batch;
use crate::end::End;
use crate::errors::{RecvError, RecvTimeoutError, TryRecvError};
use crate::hub::{Failure, Hub, Rounds};
use crate::metrics::Metrics;
use crate::slice::Slice;
use crate::sync::Arc;

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
        Receiver { end: End::new(hub, key, Slice::new(rounds)) }
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
        #[cfg(feature = "remote")]
        {
            self.end.source.settle();
            self.end.hub.note_left();
        }
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
