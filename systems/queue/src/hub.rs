//! What the ends of one queue share: a ring for each sender, and the gate at which receivers wait.

use std::collections::VecDeque;

use crossbeam_utils::CachePadded;

use crate::fence::Fence;
use crate::gate::Gate;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::ring::Ring;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::wait::Look;

/// Why a sender gave up, for whoever receives.
pub(crate) type Failure = std::sync::Arc<dyn std::error::Error + Send + Sync>;

pub(crate) struct Hub<T> {
    pub(crate) options: Options,
    pub(crate) fence: Fence,
    pub(crate) receivers: Gate,
    /// Changes whenever `rings` does.
    version: CachePadded<AtomicUsize>,
    rings: Mutex<Vec<Arc<Ring<T>>>>,
    senders: AtomicUsize,
    receiver_handles: AtomicUsize,
    keys: AtomicUsize,
    receiver_waits: AtomicU64,
    /// What rings did that are gone.
    gone: Mutex<Metrics>,
    /// Taken by a receiver that went before it had used them.
    returned: Mutex<VecDeque<T>>,
    returned_count: AtomicUsize,
    failure: Mutex<Option<Failure>>,
}

impl<T> Hub<T> {
    pub(crate) fn new(options: Options) -> Hub<T> {
        Hub {
            options,
            fence: Fence::new(),
            receivers: Gate::new(),
            version: CachePadded::new(AtomicUsize::new(0)),
            rings: Mutex::new(Vec::new()),
            senders: AtomicUsize::new(0),
            receiver_handles: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            receiver_waits: AtomicU64::new(0),
            gone: Mutex::new(Metrics::default()),
            returned: Mutex::new(VecDeque::new()),
            returned_count: AtomicUsize::new(0),
            failure: Mutex::new(None),
        }
    }

    /// A ring for one more sender; one that has ended already if the queue is closed.
    pub(crate) fn add_sender(&self) -> Arc<Ring<T>> {
        let ring = Arc::new(Ring::new(self.options.capacity));
        self.senders.fetch_add(1, Ordering::AcqRel);
        let mut rings = lock(&self.rings);
        if self.receivers.is_closed() {
            ring.end_at(0);
        }
        rings.push(ring.clone());
        self.version.fetch_add(1, Ordering::Release);
        ring
    }

    /// A sender has gone; its ring has ended before.
    pub(crate) fn remove_sender(&self) {
        self.senders.fetch_sub(1, Ordering::AcqRel);
        crate::sync::fence(Ordering::SeqCst);
        self.receivers.wake_all();
    }

    /// A key under which one more receiver waits.
    pub(crate) fn add_receiver(&self) -> usize {
        self.receiver_handles.fetch_add(1, Ordering::AcqRel);
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// True if it was the last.
    pub(crate) fn remove_receiver(&self) -> bool {
        self.receiver_handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The one receiver goes away.
    #[cfg(feature = "remote")]
    pub(crate) fn note_left(&self) {
        lock(&self.rings).iter().for_each(|ring| ring.note_left());
    }

    /// No message is accepted from now on. What was accepted can still be received.
    ///
    /// With several receivers a ring ends only under the claim: another might just be taking what this one cuts off.
    pub(crate) fn close(&self) {
        self.receivers.close();
        self.fence.heavy();
        for ring in lock(&self.rings).iter() {
            while !ring.claim() {
                crate::sync::thread::yield_now();
            }
            ring.end_here();
            ring.unclaim();
            ring.space.wake_all();
        }
        self.receivers.wake_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.receivers.is_closed()
    }

    /// Nothing more will be accepted: what is in the rings is all.
    pub(crate) fn is_ending(&self) -> bool {
        self.senders.load(Ordering::Acquire) == 0 || self.is_closed()
    }

    /// Takes finished rings out.
    fn sweep(&self) {
        let mut gone = lock(&self.gone);
        let mut rings = lock(&self.rings);
        let before = rings.len();
        rings.retain(|ring| {
            let finished = ring.is_finished();
            if finished {
                gone.add(ring);
            }
            !finished
        });
        if rings.len() != before {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    pub(crate) fn note_receiver_wait(&self) {
        self.receiver_waits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let gone = lock(&self.gone);
        let mut sum = *gone;
        for ring in lock(&self.rings).iter() {
            sum.add(ring);
        }
        drop(gone);
        sum.receiver_waits = self.receiver_waits.load(Ordering::Relaxed);
        sum.received = sum.received.saturating_sub(self.returned_count.load(Ordering::Relaxed) as u64);
        sum
    }

    /// Gives back what was taken and not used.
    pub(crate) fn give_back(&self, messages: impl Iterator<Item = T>) {
        let mut returned = lock(&self.returned);
        returned.extend(messages);
        self.returned_count.store(returned.len(), Ordering::SeqCst);
        drop(returned);
        self.receivers.wake_one();
    }

    /// The oldest that was given back.
    pub(crate) fn take_back(&self) -> Option<T> {
        if self.returned_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut returned = lock(&self.returned);
        let message = returned.pop_front();
        self.returned_count.store(returned.len(), Ordering::SeqCst);
        message
    }

    pub(crate) fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }
}

/// A receiver's way around the rings: each in turn, so that no sender starves.
pub(crate) struct Rounds<T> {
    pub(crate) hub: Arc<Hub<T>>,
    rings: Vec<Arc<Ring<T>>>,
    version: usize,
    next: usize,
    sweep: bool,
}

impl<T> Rounds<T> {
    pub(crate) fn new(hub: Arc<Hub<T>>) -> Rounds<T> {
        Rounds { hub, rings: Vec::new(), version: usize::MAX, next: 0, sweep: false }
    }

    pub(crate) fn ring(&self, index: usize) -> &Arc<Ring<T>> {
        &self.rings[index]
    }

    /// Whether there is something in any ring.
    pub(crate) fn any(&mut self, look: Look) -> bool {
        self.refresh();
        self.rings.iter().any(|ring| ring.visible(look) > ring.taken())
    }

    /// Learns of senders that came, and forgets those that went.
    #[inline]
    fn refresh(&mut self) {
        if self.sweep {
            self.sweep = false;
            self.hub.sweep();
        }
        if self.hub.version.load(Ordering::Acquire) != self.version {
            self.reread();
        }
    }

    #[cold]
    fn reread(&mut self) {
        let rings = lock(&self.hub.rings);
        self.version = self.hub.version.load(Ordering::Acquire);
        self.rings.clone_from(&rings);
        drop(rings);
        if self.next >= self.rings.len() {
            self.next = 0;
        }
    }

    /// The next ring with something in it (for `take` to decide, which may pass), and what `take` made of it.
    #[inline]
    pub(crate) fn find<R>(
        &mut self,
        look: Look,
        mut take: impl FnMut(usize, &Ring<T>) -> Option<R>,
    ) -> Option<R> {
        self.refresh();
        let mut index = self.next;
        for _ in 0..self.rings.len() {
            let ring = &*self.rings[index];
            let following = if index + 1 == self.rings.len() { 0 } else { index + 1 };
            let taken = ring.taken();
            if ring.visible(look) > taken {
                if let Some(found) = take(index, ring) {
                    self.next = following;
                    return Some(found);
                }
            } else if ring.is_finished() {
                self.sweep = true;
            }
            index = following;
        }
        None
    }

    /// Nothing is left and nothing more will come.
    pub(crate) fn is_over(&mut self) -> bool {
        if !self.hub.is_ending() {
            return false;
        }
        self.sweep = true;
        self.refresh();
        self.rings.iter().all(|ring| ring.is_finished())
            && self.hub.returned_count.load(Ordering::Acquire) == 0
    }
}
