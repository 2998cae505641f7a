//! What is told of a run while it goes on.

use std::cell::RefCell;
use std::time::Duration;

use tidemark_record::{Live, Sample};

/// What happens right now, for whoever watches.
#[derive(Debug, Clone)]
pub enum Progress {
    /// The system is being started, or looked for.
    Starting {
        /// Its name or URL.
        system: String,
    },
    /// Something else is done first: a store is fetched or started.
    Store {
        /// What, for a person: `starting Cassandra 5.0.9`.
        text: String,
    },
    /// The disk's sync latency is being measured.
    Probing,
    /// The scenario's `prepare` runs.
    Preparing,
    /// `prepare` is done by many users.
    Loading {
        /// How often it has been done.
        done: u64,
        /// How often it is to be.
        of: u64,
    },
    /// A phase of the load begins.
    Phase {
        /// Its name.
        name: String,
        /// What it offers: `100 users`.
        level: String,
        /// How long it takes.
        duration: Duration,
    },
    /// Every process was looked at.
    Look {
        /// What was seen of each.
        samples: Vec<Sample>,
    },
    /// Something was broken on purpose, or put right.
    Fault {
        /// What: `kill system, restart after 2s`.
        text: String,
    },
    /// A second of the load is over.
    Second {
        /// Name of the phase.
        phase: String,
        /// Time until the last phase ends.
        left: Duration,
        /// What the load looks like.
        live: Box<Live>,
    },
    /// The load is cut short because an objective can no longer be met; requests under way are waited for.
    CutShort {
        /// Which, and why.
        reason: String,
    },
    /// The load is over; what the system holds is read back and compared with the ledger.
    Verifying {
        /// Contents read.
        read: u64,
        /// Writes that the system acknowledged: about so many there will be.
        of: u64,
    },
    /// The load is over or given up; requests under way are waited for, then everything stops.
    Stopping {
        /// Whether the user asked for it.
        interrupted: bool,
    },
}

/// Whoever watches, for all who have something to tell.
pub(crate) struct Watcher<'a>(RefCell<&'a mut dyn FnMut(Progress)>);

impl<'a> Watcher<'a> {
    /// Tells this one.
    pub(crate) fn new(watcher: &'a mut dyn FnMut(Progress)) -> Watcher<'a> {
        Watcher(RefCell::new(watcher))
    }

    /// Tells what happens.
    pub(crate) fn tell(&self, progress: Progress) {
        // borrowed only by a watcher that is itself told something: then that is not told
        if let Ok(mut watcher) = self.0.try_borrow_mut() {
            watcher(progress);
        }
    }
}
