//! What a driver thread came to.

use crate::Counter;
use crate::interval::{CoreWaits, ThreadInterval};
use crate::summary::ratio;

/// What a driver thread came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTotals {
    /// How long all its intervals were, microseconds.
    pub length_us: u64,
    /// CPU time, microseconds.
    pub cpu_us: u64,
    /// For want of a core: what is known of it.
    pub core_waits: CoreWaits,
    /// How long the intervals were in which nothing is known of it.
    pub untold_us: u64,
    /// How long it was not there at all, microseconds.
    pub absent_us: u64,
    /// How long it did nothing but compute for sessions, microseconds.
    pub computing_us: u64,
}

impl ThreadTotals {
    pub(super) fn add(&mut self, interval: &ThreadInterval) {
        let length_us = interval.end_us - interval.start_us;
        self.length_us += length_us;
        self.cpu_us += interval.cpu_us;
        self.absent_us += interval.absent_us;
        self.computing_us += interval.counters[Counter::ComputingUs];
        match interval.core_waits {
            Some(CoreWaits { waited_us, sleeps }) => {
                self.core_waits.waited_us += waited_us;
                self.core_waits.sleeps += sleeps;
            }
            None => self.untold_us += length_us,
        }
    }

    /// Share of its time that it did nothing but compute for sessions.
    pub(super) fn computing_share(&self) -> f64 {
        ratio(self.computing_us as f64, self.length_us as f64)
    }

    /// Share of its time that it was on a CPU.
    pub(super) fn cpu_share(&self) -> f64 {
        ratio(self.cpu_us as f64, self.length_us as f64)
    }

    /// Share of its time that it was on a CPU or waited for one. The kernel's account may run ahead of the clock by a
    /// little.
    pub(super) fn wanted_share(&self) -> f64 {
        ratio((self.cpu_us + self.core_waits.waited_us) as f64, self.length_us as f64).min(1.0)
    }
}
