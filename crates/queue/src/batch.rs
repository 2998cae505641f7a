//! Messages that lie ready, where they lie.

use std::iter::FusedIterator;

use crate::receiver::Slice;
use crate::ring::Ring;

/// Messages of one sender that lie ready, taken out one by one. They stay in the queue's memory, and their slots are free
/// for the sender when the batch is dropped; what was not taken out by then stays in the queue.
pub struct Batch<'a, T> {
    slice: &'a mut Slice<T>,
    next: u64,
    limit: u64,
    // the receiver holds the ring for as long as it lends itself to us
    ring: *const Ring<T>,
}

// SAFETY: the pointer is to what the receiver, which may be sent along, owns a share of.
#[allow(unsafe_code)]
unsafe impl<T: Send> Send for Batch<'_, T> {}
// SAFETY: shared, it gives out `&T` only.
#[allow(unsafe_code)]
unsafe impl<T: Send + Sync> Sync for Batch<'_, T> {}

impl<'a, T> Batch<'a, T> {
    /// The first `most` messages of the receiver's slice.
    #[inline]
    pub(crate) fn new(slice: &'a mut Slice<T>, most: u64) -> Batch<'a, T> {
        let (next, limit) = slice.lend();
        let limit = limit.min(next.saturating_add(most));
        let ring: *const Ring<T> = slice.ring();
        Batch { slice, next, limit, ring }
    }

    #[inline(always)]
    fn ring(&self) -> &Ring<T> {
        // SAFETY: the receiver holds the ring, and it is lent to us.
        #[allow(unsafe_code)]
        unsafe {
            &*self.ring
        }
    }

    #[inline(always)]
    fn read(&self, position: u64) -> T {
        debug_assert!(position < self.limit);
        // SAFETY: the slots from `next` to `limit` hold messages that are the receiver's, and each is read once, since
        // `next` goes on past it.
        #[allow(unsafe_code)]
        unsafe {
            self.ring().slots().read(position)
        }
    }

    /// The messages that are left, where they lie.
    #[cfg(not(loom))]
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the slots from `next` to `limit` hold messages that are the receiver's, and lie in one piece.
        #[allow(unsafe_code)]
        unsafe {
            self.ring().slots().slice(self.next, self.limit - self.next)
        }
    }

    /// Drops what is left.
    #[inline]
    pub fn clear(&mut self) {
        if std::mem::needs_drop::<T>() {
            self.for_each(drop);
        }
        self.next = self.limit;
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.next == self.limit {
            return None;
        }
        let message = self.read(self.next);
        self.next += 1;
        Some(message)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.limit - self.next) as usize;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}
impl<T> FusedIterator for Batch<'_, T> {}

impl<T> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.slice.give_back(self.next);
    }
}

impl<T> std::fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("left", &self.len()).finish_non_exhaustive()
    }
}
