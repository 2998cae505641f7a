//! A subscriber on a thread or task of its own.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::stream::{Messages, StreamError, Subscriber, Subscription};
use crate::sync::lock;
use crate::{Options, Receiver, Sender};

/// Messages of a stream, for another thread or task than the distribution's: as a [`Stream`], or by
/// [`recv`](Subscribed::recv). An error is the last item. Dropped, it cancels.
pub struct Subscribed<T> {
    receiver: Receiver<T>,
    shared: Arc<Mutex<Shared>>,
    /// Asked for again when so many have been taken.
    again_at: u64,
    taken: u64,
}

#[derive(Default)]
struct Shared {
    subscription: Option<Subscription>,
    error: Option<StreamError>,
    /// Dropped before it was subscribed.
    cancelled: bool,
}

/// The subscriber that fills a [`Subscribed`].
pub(crate) struct Bridge<T> {
    sender: Option<Sender<T>>,
    shared: Arc<Mutex<Shared>>,
    prefetch: u64,
}

/// The ring has room for this many times what is asked for: slots are free only some time after they were taken out of.
const SPARE: usize = 2;

pub(crate) fn pair<T: Send>(prefetch: usize) -> (Bridge<T>, Subscribed<T>) {
    let prefetch = prefetch.clamp(1, Options::CAPACITY_MAX / SPARE);
    let (sender, receiver) = Options::new().capacity(prefetch * SPARE).queue();
    let shared = Arc::new(Mutex::new(Shared::default()));
    let bridge = Bridge { sender: Some(sender), shared: shared.clone(), prefetch: prefetch as u64 };
    (bridge, Subscribed { receiver, shared, again_at: (prefetch as u64 / 2).max(1), taken: 0 })
}

impl<T> Subscriber<T> for Bridge<T> {
    fn on_subscribe(&mut self, subscription: Subscription) {
        let mut shared = lock(&self.shared);
        if shared.cancelled || shared.subscription.is_some() {
            drop(shared);
            subscription.cancel();
        } else {
            shared.subscription = Some(subscription.clone());
            drop(shared);
            subscription.request(self.prefetch);
        }
    }

    fn on_next(&mut self, message: T) {
        if let Some(sender) = &mut self.sender {
            // there is room for what was asked for; if the other half is gone so is the message, as it says
            let sent = sender.send(message);
            debug_assert!(sent.is_ok() || sender.is_closed());
        }
    }

    fn on_batch(&mut self, messages: &mut Messages<'_, T>) {
        if let Some(sender) = &mut self.sender {
            let sent = sender.send_batch(messages);
            debug_assert!(sent.is_ok() || sender.is_closed());
        }
    }

    fn on_complete(&mut self) {
        self.sender = None;
    }

    fn on_error(&mut self, error: StreamError) {
        lock(&self.shared).error = Some(error);
        self.sender = None;
    }
}

impl<T> Subscribed<T> {
    /// The next message, waiting for it; `None` at the end. An error is the last before that.
    pub fn recv(&mut self) -> Option<Result<T, StreamError>> {
        match self.receiver.recv() {
            Ok(message) => Some(Ok(self.took(message))),
            Err(_) => self.ended(),
        }
    }

    fn took(&mut self, message: T) -> T {
        self.taken += 1;
        if self.taken == self.again_at {
            let subscription = lock(&self.shared).subscription.clone();
            if let Some(subscription) = subscription {
                subscription.request(self.taken);
            }
            self.taken = 0;
        }
        message
    }

    fn ended(&mut self) -> Option<Result<T, StreamError>> {
        lock(&self.shared).error.take().map(Err)
    }
}

impl<T> Stream for Subscribed<T> {
    type Item = Result<T, StreamError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T, StreamError>>> {
        let subscribed = self.get_mut();
        subscribed.receiver.poll_recv(context).map(|received| match received {
            Ok(message) => Some(Ok(subscribed.took(message))),
            Err(_) => subscribed.ended(),
        })
    }
}

impl<T> Unpin for Subscribed<T> {}

impl<T> Drop for Subscribed<T> {
    fn drop(&mut self) {
        let subscription = {
            let mut shared = lock(&self.shared);
            shared.cancelled = true;
            shared.subscription.take()
        };
        if let Some(subscription) = subscription {
            subscription.cancel();
        }
    }
}

impl<T> std::fmt::Debug for Subscribed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscribed")
            .field("queued", &self.receiver.metrics().queued())
            .finish_non_exhaustive()
    }
}
