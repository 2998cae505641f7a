//! What a receiver has taken of one sender's messages, as another thread than the sender's sees it.

use std::time::Instant;

use crate::hub::Hub;
use crate::ring::Ring;
use crate::sync::Arc;
use crate::wait::{Wait, Waiter};

/// Its ring has one who waits at it: the thread of this, as its sender never waits for room.
const KEY: usize = 0;

pub(crate) struct Taken<T> {
    hub: Arc<Hub<T>>,
    ring: Arc<Ring<T>>,
}

impl<T> Taken<T> {
    pub(crate) fn new(hub: Arc<Hub<T>>, ring: Arc<Ring<T>>) -> Taken<T> {
        Taken { hub, ring }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.ring.capacity()
    }

    /// Messages that the receiver took out. What is dropped with it is not among them.
    pub(crate) fn count(&self) -> u64 {
        self.ring.taken_out()
    }

    /// Whether the queue was closed by its receiving side, or that is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.hub.is_closed()
    }

    /// Whether none will be taken any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ring.is_finished()
    }

    /// Waits until `look` sees something, which the receiver or [`wake`](Taken::wake) may bring about, or the deadline passes.
    pub(crate) fn wait<R>(&self, deadline: Instant, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        let mut waiter = Waiter::new(Wait::Park);
        waiter.wait(&self.ring.space, KEY, self.hub.fence, Some(deadline), |_| look())
    }

    /// Has the one who waits look again.
    #[cfg(feature = "websocket")]
    pub(crate) fn wake(&self) {
        self.ring.space.after_change(self.hub.fence);
    }
}

impl<T> Clone for Taken<T> {
    fn clone(&self) -> Taken<T> {
        Taken::new(self.hub.clone(), self.ring.clone())
    }
}
