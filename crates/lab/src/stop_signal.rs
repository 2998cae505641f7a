//! Stops threads that work beside a load, and waits for them.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::started::held;

/// Is set once, and wakes whoever waits.
#[derive(Debug, Default)]
pub struct StopSignal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    /// Waits until a moment; false if it is set before.
    pub fn wait_until(&self, moment: Instant) -> bool {
        let mut is_set = held(&self.is_set);
        while !*is_set {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            is_set = self.changed.wait_timeout(is_set, left).map_or_else(|e| e.into_inner().0, |x| x.0);
        }
        false
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        *held(&self.is_set)
    }

    /// Sets it for good.
    pub fn set(&self) {
        *held(&self.is_set) = true;
        self.changed.notify_all();
    }
}

/// Threads that go on until they are told to stop. They are waited for when this is dropped.
#[derive(Debug, Default)]
pub struct Threads {
    /// What tells them.
    pub stop: Arc<StopSignal>,
    /// Those that were started.
    pub all: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Ends them. One that panicked panics here.
    pub fn end(&mut self) {
        self.stop.set();
        for thread in self.all.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.set();
        for thread in self.all.drain(..) {
            // one that panicked has nothing to be put right
            let _ = thread.join();
        }
    }
}
