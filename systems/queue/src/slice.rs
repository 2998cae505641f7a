//! What is taken of a ring at once, where it lies.

use crate::end::Source;
use crate::hub::Rounds;
use crate::ring::Ring;
use crate::sync::Arc;
use crate::wait::Look;

/// A slice that is taken at once is at most this part of a ring, so that the sender can go on meanwhile.
const SLICES_A_RING: u64 = 4;

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
    /// None yet, of the rings that these rounds come to.
    pub(crate) fn new(rounds: Rounds<T>) -> Slice<T> {
        Slice { rounds, ring: None, next: 0, limit: 0, lent: false }
    }

    /// Whether there are messages in it.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.next != self.limit
    }

    /// Whether there are messages in the slice.
    #[cfg(not(loom))]
    pub(crate) fn has_more(&self) -> bool {
        self.is_open()
    }

    /// Takes the next message of the slice, which is open.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> T {
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

    /// Frees what was taken out of, also in the middle of a slice.
    #[cfg(feature = "remote")]
    pub(crate) fn settle(&self) {
        if self.ring.is_some() {
            self.free();
        }
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
