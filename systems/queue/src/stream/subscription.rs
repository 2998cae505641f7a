//! What a subscriber has in its hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::hub::Hub;

/// As much as there is: it is not counted down.
const UNBOUNDED: u64 = u64::MAX;

/// Wakes whoever runs the distribution.
pub(crate) trait Bell: Send + Sync {
    fn ring(&self);
}

impl<T: Send> Bell for Hub<T> {
    fn ring(&self) {
        self.receivers.after_change(self.fence);
    }
}

/// How a subscriber asks for messages, and for no more of them; from any thread, also from within a signal.
#[derive(Clone)]
pub struct Subscription {
    state: Arc<State>,
    bell: Arc<dyn Bell>,
}

/// What subscriber and distribution know of each other.
#[derive(Default)]
pub(crate) struct State {
    demand: AtomicU64,
    /// By the subscriber, or since it has had its last signal.
    cancelled: AtomicBool,
    requested_none: AtomicBool,
}

impl Subscription {
    pub(crate) fn new(state: Arc<State>, bell: Arc<dyn Bell>) -> Subscription {
        Subscription { state, bell }
    }

    /// Asks for so many more. Demand adds up; at `u64::MAX` it has no bound any more. Asking for 0 is a mistake, which ends
    /// the subscription with [`StreamError::RequestedNone`](crate::stream::StreamError::RequestedNone). Once it is
    /// cancelled or ended, asking does nothing.
    pub fn request(&self, messages: u64) {
        if self.is_cancelled() {
            return;
        }
        if messages == 0 {
            self.state.requested_none.store(true, Ordering::Release);
        } else {
            let add = |demand: u64| Some(demand.saturating_add(messages));
            // cannot fail: `add` always gives a new value
            let _ = self.state.demand.fetch_update(Ordering::AcqRel, Ordering::Relaxed, add);
        }
        self.bell.ring();
    }

    /// Asks for no more, for good. A signal that is under way may still come. What was not signalled stays with the stream.
    pub fn cancel(&self) {
        self.state.cancel();
        self.bell.ring();
    }

    /// Whether it was cancelled, or has had its last signal.
    pub fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("demand", &self.state.demand())
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

impl State {
    /// Messages that may be signalled.
    #[inline]
    pub(crate) fn demand(&self) -> u64 {
        self.demand.load(Ordering::Acquire)
    }

    /// So many were signalled.
    #[inline]
    pub(crate) fn spend(&self, messages: u64) {
        debug_assert!(messages <= self.demand());
        let spend = |demand: u64| (demand != UNBOUNDED).then(|| demand - messages);
        // without bound it stays without bound
        let _ = self.demand.fetch_update(Ordering::AcqRel, Ordering::Relaxed, spend);
    }

    #[inline(always)]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    pub(crate) fn requested_none(&self) -> bool {
        self.requested_none.load(Ordering::Acquire)
    }
}
