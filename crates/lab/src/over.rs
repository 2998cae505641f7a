//! The end of what goes on beside a load: threads that wait are told of it, and waited for.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::started::held;

/// Says when all is to be over, to whoever waits.
#[derive(Debug, Default)]
pub struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    /// Waits until a moment; false if it is over before.
    pub fn wait_until(&self, moment: Instant) -> bool {
        let mut is_over = held(&self.is_over);
        while !*is_over {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            is_over = self.changed.wait_timeout(is_over, left).map_or_else(|e| e.into_inner().0, |x| x.0);
        }
        false
    }

    /// Whether it is.
    pub fn is_over(&self) -> bool {
        *held(&self.is_over)
    }

    /// From now on it is.
    pub fn end(&self) {
        *held(&self.is_over) = true;
        self.changed.notify_all();
    }
}

/// Threads that go on until all is over. They are waited for when this is dropped.
#[derive(Debug, Default)]
pub struct Threads {
    /// What tells them.
    pub over: Arc<Over>,
    /// Those that were started.
    pub all: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Ends them. One that panicked panics here.
    pub fn end(&mut self) {
        self.over.end();
        for thread in self.all.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.over.end();
        for thread in self.all.drain(..) {
            // one that panicked has nothing to be put right
            let _ = thread.join();
        }
    }
}
