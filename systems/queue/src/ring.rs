//! A ring from one sender to whoever receives at the moment.
//!
//! Three cursors, each stored by one side only and on a cache line of its own; positions only grow.
//!
//! ```text
//!       taken          published        written         taken + capacity
//!  free   │  handed over   │  unfinished   │   free            │
//! ────────┼────────────────┼───────────────┼───────────────────┼──▶ positions
//!     receiver's       sender's, once   sender's, with
//!                      for each batch   each message
//! ```
//!
//! A busy receiver looks at `published` only, so that the line of `written` stays with the sender's core, where a store
//! to it is free. Only an idle receiver looks at `written`, and takes what it finds.
//!
//! `end` is where the ring ends for good. The sender sets it when it goes; the receiving side when it closes. A message
//! at or behind it was not accepted, and its sender takes it back.

use crossbeam_utils::CachePadded;

use crate::gate::Gate;
use crate::slots::Slots;
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use crate::wait::Look;

/// `end` of a ring that goes on.
const OPEN: u64 = u64::MAX;

pub(crate) struct Ring<T> {
    slots: Slots<T>,
    written: CachePadded<Written>,
    handed: CachePadded<Handed>,
    received: CachePadded<Received>,
    /// Held by the one of several receivers that takes from here.
    claimed: CachePadded<AtomicBool>,
    /// Where the sender waits for free slots.
    pub(crate) space: Gate,
}

/// What the sender stores all the time.
struct Written {
    cursor: AtomicU64,
    counts: SenderCounts,
}

/// What the sender stores now and then.
struct Handed {
    published: AtomicU64,
    end: AtomicU64,
}

/// What the receiver stores.
struct Received {
    taken: AtomicU64,
    taken_early: AtomicU64,
    /// What was taken when the receiver went away: what follows was dropped with it.
    #[cfg(feature = "remote")]
    left_at: AtomicU64,
}

/// Counted by the sender; read by whoever asks for metrics.
#[derive(Default)]
pub(crate) struct SenderCounts {
    pub(crate) batches_full: AtomicU64,
    pub(crate) batches_by_hand: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Adds to a counter that only the calling thread changes.
#[inline]
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl<T> Ring<T> {
    pub(crate) fn new(capacity: usize) -> Ring<T> {
        Ring {
            slots: Slots::new(capacity),
            written: CachePadded::new(Written { cursor: AtomicU64::new(0), counts: SenderCounts::default() }),
            handed: CachePadded::new(Handed { published: AtomicU64::new(0), end: AtomicU64::new(OPEN) }),
            received: CachePadded::new(Received {
                taken: AtomicU64::new(0),
                taken_early: AtomicU64::new(0),
                #[cfg(feature = "remote")]
                left_at: AtomicU64::new(u64::MAX),
            }),
            claimed: CachePadded::new(AtomicBool::new(false)),
            space: Gate::new(),
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.slots.capacity()
    }

    pub(crate) fn slots(&self) -> &Slots<T> {
        &self.slots
    }

    pub(crate) fn counts(&self) -> &SenderCounts {
        &self.written.counts
    }

    // The sender's side.

    /// Everything before `position` has been written and may be taken by an idle receiver.
    #[inline(always)]
    pub(crate) fn set_written(&self, position: u64) {
        self.written.cursor.store(position, Ordering::Release);
    }

    /// Everything before `position` is handed over.
    #[inline(always)]
    pub(crate) fn set_published(&self, position: u64) {
        self.handed.published.store(position, Ordering::Release);
    }

    /// What has been taken, as the sender sees it: the slots before it are free.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.received.taken.load(Ordering::Acquire)
    }

    // The receiving side; with several receivers, only under the claim.

    /// How far one may take.
    #[inline]
    pub(crate) fn visible(&self, look: Look) -> u64 {
        let cursor = match look {
            Look::Published => &self.handed.published,
            Look::Written => &self.written.cursor,
        };
        cursor.load(Ordering::Acquire).min(self.handed.end.load(Ordering::Acquire))
    }

    /// Frees the slots before `position`.
    #[inline]
    pub(crate) fn set_taken(&self, position: u64) {
        self.received.taken.store(position, Ordering::Release);
    }

    /// Notes that `messages` of an unfinished batch were taken.
    pub(crate) fn note_taken_early(&self, messages: u64) {
        count(&self.received.taken_early, messages);
    }

    pub(crate) fn taken_early(&self) -> u64 {
        self.received.taken_early.load(Ordering::Relaxed)
    }

    /// The receiver goes away.
    #[cfg(feature = "remote")]
    pub(crate) fn note_left(&self) {
        self.received.left_at.store(self.taken(), Ordering::Release);
    }

    /// What the receiver has taken out, without what was dropped with it.
    #[cfg(feature = "remote")]
    pub(crate) fn taken_out(&self) -> u64 {
        let taken = self.taken();
        taken.min(self.received.left_at.load(Ordering::Acquire))
    }

    /// True for one receiver at a time.
    pub(crate) fn claim(&self) -> bool {
        // between looking into the ring and asking for it; see `Claims::wake_others`
        fence(Ordering::SeqCst);
        self.claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn unclaim(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    // The end.

    /// Sets the end, if nobody did, and says where it is.
    pub(crate) fn end_at(&self, position: u64) -> u64 {
        match self.handed.end.compare_exchange(OPEN, position, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => position,
            Err(earlier) => earlier,
        }
    }

    /// Ends the ring behind what has been written so far.
    pub(crate) fn end_here(&self) {
        self.end_at(self.written.cursor.load(Ordering::Acquire));
    }

    /// Whether it has ended and everything was taken.
    pub(crate) fn is_finished(&self) -> bool {
        self.handed.end.load(Ordering::Acquire) == self.taken()
    }

    /// Messages that were accepted so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.visible(Look::Written)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        for position in self.taken()..self.visible(Look::Written) {
            // SAFETY: nobody else has the ring any more, and these were written and not taken.
            #[allow(unsafe_code)]
            drop(unsafe { self.slots.read(position) });
        }
    }
}
