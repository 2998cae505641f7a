//! Messages on their way to a subscriber.

use std::cell::Cell;

use crate::batch::Batch;
use crate::stream::subscription::State;

/// Messages that a subscriber asked for, as an iterator. It ends early where the subscriber cancels; what was not taken
/// then stays with the stream.
pub struct Messages<'a, T> {
    from: From<'a, T>,
    state: &'a State,
    /// How many it began with.
    offered: usize,
    /// The subscriber returned, as it should.
    returned: bool,
}

enum From<'a, T> {
    /// Out of the queue.
    Queue(Batch<'a, T>),
    /// Copies of what others get, too.
    Copies { left: std::slice::Iter<'a, T>, copy: fn(&T) -> T, most: &'a Cell<u64> },
}

impl<'a, T> Messages<'a, T> {
    /// Out of the queue. What is not taken stays there.
    pub(crate) fn of(batch: Batch<'a, T>, state: &'a State) -> Messages<'a, T> {
        Messages { offered: batch.len(), from: From::Queue(batch), state, returned: false }
    }

    /// Copies. What the subscriber that takes most of them takes is noted.
    pub(crate) fn copies(messages: &'a [T], state: &'a State, most: &'a Cell<u64>) -> Messages<'a, T>
    where
        T: Clone,
    {
        let from = From::Copies { left: messages.iter(), copy: T::clone, most };
        Messages { offered: messages.len(), from, state, returned: false }
    }

    /// The messages that are left, where they lie, for a subscriber that works on many at a time; a cancel does not shorten
    /// it. They stay with the stream until they are taken, or dropped by [`clear`](Messages::clear).
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        match &self.from {
            From::Queue(batch) => batch.as_slice(),
            From::Copies { left, .. } => left.as_slice(),
        }
    }

    /// Takes what is left, and drops it.
    #[inline]
    pub fn clear(&mut self) {
        match &mut self.from {
            From::Queue(batch) => batch.clear(),
            From::Copies { left, .. } => *left = [].iter(),
        }
    }

    fn left(&self) -> usize {
        match &self.from {
            From::Queue(batch) => batch.len(),
            From::Copies { left, .. } => left.len(),
        }
    }

    /// The subscriber has returned.
    pub(crate) fn returned(mut self) {
        self.returned = true;
    }
}

impl<T> Iterator for Messages<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.state.is_cancelled() {
            return None;
        }
        match &mut self.from {
            From::Queue(batch) => batch.next(),
            From::Copies { left, copy, .. } => left.next().map(*copy),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // a cancel makes it fewer
        (0, Some(self.left()))
    }
}

/// What was taken counts against the demand, and a panic of the subscriber is the end of its subscription (rule 2.13).
impl<T> Drop for Messages<'_, T> {
    fn drop(&mut self) {
        let signalled = (self.offered - self.left()) as u64;
        self.state.spend(signalled);
        if !self.returned {
            self.state.cancel();
        }
        if let From::Copies { most, .. } = &self.from {
            most.set(most.get().max(signalled));
        }
    }
}

impl<T> std::fmt::Debug for Messages<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("at_most", &self.size_hint().1).finish_non_exhaustive()
    }
}
