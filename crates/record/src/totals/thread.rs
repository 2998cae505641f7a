//! What a driver thread came to.

use serde::{Deserialize, Serialize};

use crate::Counter;
use crate::interval::{CoreWaits, Outcome, ThreadInterval};
use crate::ledger::Part;
use crate::summary::{AgentFigures, LATE_US, ratio};

/// What is told of one thread in an interval, and not in the sum of several.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadShare {
    /// Which driver thread.
    pub thread: u16,
    /// What it came to in the interval.
    pub totals: ThreadTotals,
    /// Requests due within the measured window that it was the first to tell of.
    pub measured_offered: u64,
    /// Those of them that ended or were dropped.
    pub measured_ended: u64,
    /// Whether a good answer came to it.
    pub had_good: bool,
    /// As in [`ThreadInterval`].
    pub quiet: Vec<(u64, u64)>,
    /// As in [`ThreadInterval`].
    pub last_good_us: u64,
    /// What it entered in the ledger, where that does not go with the interval.
    #[serde(skip)]
    pub ledger: Part,
}

impl ThreadShare {
    /// The thread's, of its own interval; without the ledger, which stays there.
    pub(crate) fn of(interval: &ThreadInterval) -> ThreadShare {
        let measured = interval.series.iter().filter(|series| series.measured);
        let ended = measured.map(|series| series.response_time_us.len()).sum::<u64>();
        ThreadShare {
            thread: interval.thread,
            totals: ThreadTotals::of(interval),
            measured_offered: interval.measured_offered,
            measured_ended: ended + interval.measured_dropped,
            had_good: interval.series.iter().any(|series| series.outcome == Outcome::Ok),
            quiet: interval.quiet.clone(),
            last_good_us: interval.last_good_us,
            ledger: Part::default(),
        }
    }
}

/// What a driver thread came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Requests that ended.
    pub ended: u64,
    /// Requests that were sent, how many of them later than [`LATE_US`], and by how much at most, microseconds.
    pub sent: u64,
    #[allow(missing_docs)]
    pub late: u64,
    #[allow(missing_docs)]
    pub lag_max_us: u64,
}

/// An agent that sends such a share late, and so many times the share of each other agent, is the odd one out.
const ODD_LATE_SHARE: f64 = 0.01;
const ODD_TIMES: f64 = 3.0;
/// So is one whose threads want so much of a core, and so much more than those of others.
const ODD_WANTED_SHARE: f64 = 0.5;
const ODD_WANTED_MORE: f64 = 0.25;

/// Tells what each agent's threads came to, and which agent is the odd one out.
pub fn tell_agents(agents: &mut [AgentFigures], threads: &[ThreadTotals]) {
    agents.iter_mut().for_each(|agent| agent.tell(threads));
    for at in 0..agents.len() {
        let most_of_others = |of: fn(&AgentFigures) -> f64| {
            let others = agents.iter().enumerate().filter(|(other, _)| *other != at);
            others.map(|(_, agent)| of(agent)).reduce(f64::max)
        };
        let of = &agents[at];
        let percent = |share: f64| share * 100.0;
        agents[at].odd = match (most_of_others(|of| of.late_share), most_of_others(|of| of.wanted_share)) {
            (Some(others), _) if of.late_share >= ODD_LATE_SHARE.max(ODD_TIMES * others) => Some(format!(
                "it sent {:.1}% of its requests late, the others {:.1}% at most",
                percent(of.late_share),
                percent(others)
            )),
            (_, Some(others)) if of.wanted_share >= ODD_WANTED_SHARE.max(others + ODD_WANTED_MORE) => {
                Some(format!(
                    "its busiest thread needed a core for {:.0}% of the time, the others' for {:.0}% at most",
                    percent(of.wanted_share),
                    percent(others)
                ))
            }
            _ => None,
        };
    }
}

impl AgentFigures {
    /// Tells what the agent's threads came to, out of those of all agents.
    fn tell(&mut self, threads: &[ThreadTotals]) {
        let taken = self.taken.iter().map(|of| (of.first_thread, of.threads));
        let own: Vec<&ThreadTotals> = std::iter::once((self.first_thread, self.threads))
            .chain(taken)
            .flat_map(|(first, count)| threads.iter().skip(first as usize).take(count as usize))
            .collect();
        let most = |of: fn(&ThreadTotals) -> f64| own.iter().map(|thread| of(thread)).fold(0.0, f64::max);
        self.busiest_thread_share = most(ThreadTotals::cpu_share);
        self.wanted_share = most(ThreadTotals::wanted_share);
        self.absent_s = most(|thread| thread.absent_us as f64 / 1e6);
        let sum = |of: fn(&ThreadTotals) -> u64| own.iter().map(|thread| of(thread)).sum::<u64>() as f64;
        let length_s = most(|thread| thread.length_us as f64 / 1e6);
        self.requests_per_s = ratio(sum(|thread| thread.ended), length_s);
        self.cpu_share = ratio(sum(|thread| thread.cpu_us) / 1e6, length_s);
        self.late_share = ratio(sum(|thread| thread.late), sum(|thread| thread.sent));
        self.lag_max_us = own.iter().map(|thread| thread.lag_max_us).max().unwrap_or(0);
    }
}

impl ThreadTotals {
    fn of(interval: &ThreadInterval) -> ThreadTotals {
        let length_us = interval.end_us - interval.start_us;
        let mut of = ThreadTotals {
            length_us,
            cpu_us: interval.cpu_us,
            core_waits: interval.core_waits.unwrap_or_default(),
            untold_us: if interval.core_waits.is_none() { length_us } else { 0 },
            absent_us: interval.absent_us,
            computing_us: interval.counters[Counter::ComputingUs],
            ended: interval.series.iter().map(|series| series.response_time_us.len()).sum(),
            ..ThreadTotals::default()
        };
        for (value_us, count) in interval.lag_us.recorded() {
            of.sent += u64::from(count);
            of.late += if value_us >= LATE_US { count.into() } else { 0 };
            of.lag_max_us = of.lag_max_us.max(value_us);
        }
        of
    }

    /// Of an interval outside the window: how late requests left that were due within it.
    pub(super) fn lag_alone(&self) -> ThreadTotals {
        let ThreadTotals { sent, late, lag_max_us, .. } = *self;
        ThreadTotals { sent, late, lag_max_us, ..ThreadTotals::default() }
    }

    pub(super) fn add(&mut self, more: &ThreadTotals) {
        self.length_us += more.length_us;
        self.cpu_us += more.cpu_us;
        self.core_waits.waited_us += more.core_waits.waited_us;
        self.core_waits.sleeps += more.core_waits.sleeps;
        self.untold_us += more.untold_us;
        self.absent_us += more.absent_us;
        self.computing_us += more.computing_us;
        self.ended += more.ended;
        self.sent += more.sent;
        self.late += more.late;
        self.lag_max_us = self.lag_max_us.max(more.lag_max_us);
    }

    /// How long it waited for a core, microseconds; none where it does not tell.
    pub fn waited_us(&self) -> Option<u64> {
        (self.untold_us == 0).then_some(self.core_waits.waited_us)
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
    use crate::summary::TakenThreads;

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
        let taken = vec![TakenThreads { first_thread: 2, threads: 1, from_s: 0.5 }];
        let mut agent = AgentFigures { first_thread: 0, threads: 1, taken, ..AgentFigures::default() };
        agent.tell(&threads);
        assert_eq!((agent.cpu_share, agent.busiest_thread_share), (1.1, 0.9));
    }

    #[test]
    fn the_odd_one_out_is_late_or_busy_where_the_others_are_not() {
        let thread = |ended, late, cpu_us| ThreadTotals {
            length_us: 2_000_000,
            cpu_us,
            ended,
            sent: ended,
            late,
            lag_max_us: late * 100,
            ..ThreadTotals::default()
        };
        let odd = |threads: &[ThreadTotals]| {
            let agent = |first_thread| AgentFigures { first_thread, threads: 1, ..AgentFigures::default() };
            let mut agents: Vec<AgentFigures> = (0..threads.len() as u64).map(agent).collect();
            tell_agents(&mut agents, threads);
            agents
        };
        let agents = odd(&[thread(1_000, 1, 200_000), thread(1_000, 120, 200_000), thread(500, 0, 0)]);
        assert_eq!((agents[0].requests_per_s, agents[2].requests_per_s), (500.0, 250.0));
        assert_eq!((agents[0].cpu_share, agents[1].late_share, agents[1].lag_max_us), (0.1, 0.12, 12_000));
        assert_eq!(
            agents[1].odd.as_deref(),
            Some("it sent 12.0% of its requests late, the others 0.1% at most")
        );
        assert!(agents[0].odd.is_none() && agents[2].odd.is_none());
        let busy = odd(&[thread(10, 0, 1_800_000), thread(10, 0, 200_000)]);
        assert!(busy[0].odd.as_ref().is_some_and(|odd| odd.contains("90% of the time, the others' for 10%")));
        assert!(odd(&[thread(10, 9, 1_900_000)])[0].odd.is_none(), "it has no others");
        assert!(odd(&[thread(10, 9, 0), thread(10, 8, 0)]).iter().all(|agent| agent.odd.is_none()));
    }
}
