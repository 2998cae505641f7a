//! Who is to be looked at again: the library rings, the back end looks.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Numbers of who is to be looked at again.
pub(super) type Rung = Arc<Mutex<Vec<u32>>>;

/// What the library rings when a stream, or a connection, can go on.
struct Bell {
    number: u32,
    rung: Rung,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The lock is one thread's own: it is never waited for.
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if rung.last() != Some(&self.number) {
            rung.push(self.number);
        }
    }
}

/// A bell for each number.
pub(super) fn bells(count: usize, rung: &Rung) -> Vec<Waker> {
    (0..count as u32).map(|number| Arc::new(Bell { number, rung: rung.clone() }).into()).collect()
}

/// Takes the numbers that rang.
pub(super) fn take(rung: &Rung, into: &mut impl Extend<u32>) {
    into.extend(rung.lock().unwrap_or_else(PoisonError::into_inner).drain(..));
}
