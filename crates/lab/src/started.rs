//! What the lab started, seen by whoever breaks it on purpose: the one seam between faults and systems or stores.
//!
//! Who implements it holds the process, its address and its data. The thread that carries the run out and the one
//! that breaks things share it by a [`Handle`]; the former only ever [tries](try_held) for it, so that a slow restart
//! never keeps it from its intervals.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::LabError;
use crate::process::{Patience, Process};

/// Something that the lab started: a system, a node of a store.
pub trait Started: Send {
    /// What a scenario's faults call it: `system`, `cassandra`, `cassandra.2`.
    fn name(&self) -> &str;

    /// Whether the lab started it, and starts it again; else it is only [watched](crate::watch).
    fn is_ours(&self) -> bool {
        true
    }

    /// Its process, up or down.
    fn process(&self) -> &Process;

    /// The same, to be broken.
    fn process_mut(&mut self) -> &mut Process;

    /// The id of its process; none while it is down.
    fn process_id(&self) -> Option<u32> {
        self.process().id()
    }

    /// How it ended, if it did so by itself: neither [killed](Started::kill) nor [stopped](Started::stop).
    fn ended(&mut self) -> Option<String> {
        self.process_mut().ended()
    }

    /// Kills it and all its children (SIGKILL); returns how it ended.
    fn kill(&mut self) -> String {
        self.process_mut().kill()
    }

    /// Asks it to end and waits; kills it where that takes too long or there is no patience. Returns how it ended.
    fn stop(&mut self, patience: Patience<'_>) -> String {
        self.process_mut().stop(patience)
    }

    /// Starts it again, at the same address and with the same data, and waits until it is ready; where it is up
    /// already, since somebody had no patience before, it only waits.
    ///
    /// # Errors
    /// Where it cannot be started or is not ready in time; [`LabError::Interrupted`] where there is no patience left.
    fn restart(&mut self, patience: Patience<'_>) -> Result<(), LabError>;

    /// Stops it and its children where they stand (SIGSTOP). Should this process die, they do not stay so.
    ///
    /// # Errors
    /// Where the operating system refuses.
    fn freeze(&mut self) -> io::Result<()> {
        self.process_mut().freeze()
    }

    /// Lets it go on.
    fn thaw(&mut self) {
        self.process_mut().thaw();
    }

    /// The folder of its data, where it has one.
    fn data_dir(&self) -> Option<&Path>;

    /// The end of its log, for an error to quote.
    fn log_tail(&self) -> String {
        self.process().log_tail()
    }
}

/// Something started, shared.
pub type Handle = Arc<Mutex<dyn Started>>;

/// Takes it, however long another has it.
pub fn held<T: ?Sized>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // one that panicked has left a process behind that can still be stopped
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes it unless another has it.
pub fn try_held<T: ?Sized>(shared: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match shared.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
