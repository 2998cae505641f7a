//! The account of what all connections of a server hold together while they wait.
//!
//! A connection that does not wait is the only one of its worker that does not, so what it needs for a moment is
//! bounded by the number of workers. Whenever it is to wait it enters what it keeps meanwhile; with little of that, as
//! nearly all have, it touches nothing that another worker writes. The buffers that hyper has for each connection, 16 KiB
//! for a usual one, are not entered: the number of connections bounds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So much each connection may hold without its being entered: a request and an answer of the usual size.
pub(crate) const FREE_BYTES: usize = 4 << 10;

/// Rounded up, so that it seldom changes.
fn entered(bytes: usize) -> usize {
    if bytes <= FREE_BYTES { 0 } else { bytes.next_multiple_of(FREE_BYTES) }
}

/// What all may hold, and do.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Self {
        Budget { held: AtomicUsize::new(0), most }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// What one connection has entered of the memory that all may hold together; taken back when it is dropped.
#[derive(Debug)]
pub struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Held { budget, bytes: 0 }
    }

    /// Enters that it holds so many bytes now. False if there is no room for them: then nothing changes.
    #[must_use]
    pub fn set(&mut self, bytes: usize) -> bool {
        let bytes = entered(bytes);
        if bytes <= self.bytes {
            self.less(bytes);
            return true;
        }
        let more = bytes - self.bytes;
        let sum = |held: usize| held.checked_add(more).filter(|sum| *sum <= self.budget.most);
        let entered = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok();
        if entered {
            self.bytes = bytes;
        }
        entered
    }

    /// Whether more than half is taken: what is kept only to be used again had better go.
    pub fn is_scarce(&self) -> bool {
        self.budget.held_bytes() > self.budget.most / 2
    }

    fn less(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.less(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_usual_is_free() {
        let budget = Arc::new(Budget::new(0));
        assert!(Held::new(budget.clone()).set(FREE_BYTES));
        assert!(!Held::new(budget).set(FREE_BYTES + 1));
    }

    proptest! {
        /// The account is the sum of what each has, never above the bound, and nothing when all are gone.
        #[test]
        fn it_adds_up(steps in prop::collection::vec((0usize..4, 0usize..100_000), 0..60)) {
            let budget = Arc::new(Budget::new(200_000));
            let mut all: Vec<Held> = (0..4).map(|_| Held::new(budget.clone())).collect();
            let mut entered = [0; 4];
            for (which, bytes) in steps {
                let counted = if bytes <= FREE_BYTES { 0 } else { bytes.next_multiple_of(FREE_BYTES) };
                let others: usize = (0..4).filter(|it| *it != which).map(|it| entered[it]).sum();
                prop_assert_eq!(all[which].set(bytes), counted <= entered[which] || others + counted <= 200_000);
                if counted <= entered[which] || others + counted <= 200_000 {
                    entered[which] = counted;
                }
                prop_assert_eq!(budget.held_bytes(), entered.iter().sum::<usize>());
            }
            all.clear();
            prop_assert_eq!(budget.held_bytes(), 0);
        }
    }
}
