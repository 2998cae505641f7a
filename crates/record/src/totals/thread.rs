//! What a driver thread came to.

use crate::Counter;
use crate::interval::{CoreWaits, ThreadInterval};
use crate::summary::{AgentFigures, ratio};

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

impl AgentFigures {
    /// Tells what the agent's threads came to, out of those of all agents.
    pub fn tell(&mut self, threads: &[ThreadTotals]) {
        let own = self.first_thread as usize..(self.first_thread + self.threads) as usize;
        let own = threads.get(own.start..own.end.min(threads.len())).unwrap_or_default();
        let most = |of: fn(&ThreadTotals) -> f64| own.iter().map(of).fold(0.0, f64::max);
        self.busiest_thread_share = most(ThreadTotals::cpu_share);
        self.wanted_share = most(ThreadTotals::wanted_share);
        self.absent_s = most(|thread| thread.absent_us as f64 / 1e6);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_of_by_its_own_threads() {
        let thread = |cpu_us, waited_us| ThreadTotals {
            length_us: 1_000_000,
            cpu_us,
            core_waits: CoreWaits { waited_us, sleeps: 1 },
            absent_us: waited_us,
            ..ThreadTotals::default()
        };
        let threads = [thread(900_000, 0), thread(100_000, 50_000), thread(200_000, 0)];
        let told = |first_thread, threads_of| {
            let mut agent = AgentFigures { first_thread, threads: threads_of, ..AgentFigures::default() };
            agent.tell(&threads);
            (agent.busiest_thread_share, agent.wanted_share, agent.absent_s)
        };
        assert_eq!(told(0, 1), (0.9, 0.9, 0.0));
        assert_eq!(told(1, 2), (0.2, 0.2, 0.05));
        assert_eq!(told(7, 2), (0.0, 0.0, 0.0), "it never told anything");
    }
}
