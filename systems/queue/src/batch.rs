//! Messages that lie ready, where they lie.

use std::iter::FusedIterator;

use crate::slice::Slice;
use crate::slots::{Cell, take_out};

/// Messages of one sender that lie ready, taken out one by one. They stay in the queue's memory, and their slots are free
/// for the sender when the batch is dropped; what was not taken out by then stays in the queue.
pub struct Batch<'a, T> {
    slice: &'a mut Slice<T>,
    /// Position of the first message, and its slot; the others are in one piece with it. The receiver holds the ring for
    /// as long as it lends itself to us.
    start: u64,
    first: *const Cell<T>,
    /// Messages that were taken out, and that there were.
    taken: usize,
    count: usize,
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
        let (start, limit) = slice.lend();
        let count = (limit - start).min(most) as usize;
        let first = slice.ring().slots().cell(start);
        Batch { slice, start, first, taken: 0, count }
    }

    /// The messages that are left, where they lie.
    #[cfg(not(loom))]
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: these slots hold messages that are the receiver's, and lie in one piece.
        #[allow(unsafe_code)]
        unsafe {
            self.slice.ring().slots().slice(self.start + self.taken as u64, self.len() as u64)
        }
    }

    /// Drops what is left.
    #[inline]
    pub fn clear(&mut self) {
        self.drop_first(self.len());
    }

    /// Drops the first of what is left, so many at most.
    #[inline]
    pub(crate) fn drop_first(&mut self, messages: usize) {
        if std::mem::needs_drop::<T>() {
            self.take(messages).for_each(drop);
        } else {
            self.taken += messages.min(self.len());
        }
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.taken == self.count {
            return None;
        }
        // SAFETY: the first `count` slots hold messages that are the receiver's, and each is read once, since `taken` goes on
        // past it.
        #[allow(unsafe_code)]
        let message = unsafe { take_out(self.first.add(self.taken)) };
        self.taken += 1;
        Some(message)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.count - self.taken;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}
impl<T> FusedIterator for Batch<'_, T> {}

impl<T> Drop for Batch<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.slice.give_back(self.start + self.taken as u64);
    }
}

impl<T> std::fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("left", &self.len()).finish_non_exhaustive()
    }
}
