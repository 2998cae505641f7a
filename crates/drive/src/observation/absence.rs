//! How long a driving thread was not there at all: neither on a CPU, nor waiting for one, nor asleep of its own will.
//!
//! A process that is stopped, a machine that is suspended or whose hypervisor keeps its cores waits for nothing in the
//! kernel's account, and the users of a closed load, who have no schedule, are never late. Yet such a thread sees it: it
//! never sleeps for longer than [`LOOK_NS`] before it looks at the clock again, so that what lies between two looks
//! beyond that, and beyond what it worked and waited meanwhile, is time that somebody took.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::clock::{MILLISECOND_NS, SECOND_NS};

/// A thread looks so often, and sleeps no longer: twenty wake-ups a second cost nothing that can be measured.
pub(crate) const LOOK_NS: u64 = 50 * MILLISECOND_NS;
/// What is missing between two looks counts from here on. It is beyond every timer's granularity and a page that comes
/// from a disk, and far below what changes the rate of a window of seconds.
const COUNTED_NS: u64 = 50 * MILLISECOND_NS;
/// Two clocks that are read one after the other tell nothing if more than this went by in between.
const TOGETHER_NS: u64 = MILLISECOND_NS;

/// What is so at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    /// When, by the run's clock.
    pub at_ns: u64,
    /// CPU time of the thread so far.
    pub cpu_ns: u64,
    /// How long it waited for a core so far; stays 0 where the system does not say, and such waits are absence then.
    pub waited_ns: u64,
    /// How long the machine was suspended, where that is known: the run's clock stood still then.
    pub suspended_ns: Option<u64>,
}

/// The account of one thread.
#[derive(Debug)]
pub(crate) struct Absence {
    last: Look,
    /// What belongs to no interval yet.
    carried_ns: u64,
}

impl Absence {
    /// Counted from now on.
    pub fn since(now: Look) -> Self {
        Absence { last: now, carried_ns: 0 }
    }

    /// When the next look is due.
    pub fn next_ns(&self) -> u64 {
        self.last.at_ns + LOOK_NS
    }

    /// Takes a look.
    pub fn look(&mut self, now: Look) {
        let last = std::mem::replace(&mut self.last, now);
        self.last.suspended_ns = now.suspended_ns.or(last.suspended_ns);
        let suspended_ns =
            now.suspended_ns.zip(last.suspended_ns).map_or(0, |(now, last)| now.saturating_sub(last));
        let explained_ns =
            now.cpu_ns.saturating_sub(last.cpu_ns) + now.waited_ns.saturating_sub(last.waited_ns) + LOOK_NS;
        let absent_ns = (now.at_ns.saturating_sub(last.at_ns) + suspended_ns).saturating_sub(explained_ns);
        if absent_ns > COUNTED_NS {
            self.carried_ns += absent_ns;
        }
    }

    /// What belongs to an interval that ended `late_ns` ago, microseconds. An absence lies right before the look that
    /// found it, so that as much of it as there was time since the end belongs to the intervals after it.
    pub fn take(&mut self, late_ns: u64) -> u64 {
        let absent_us = self.carried_ns.saturating_sub(late_ns) / 1_000;
        self.carried_ns -= absent_us * 1_000;
        absent_us
    }
}

/// How long the machine has been suspended since it began; none where that cannot be told.
#[cfg(target_os = "linux")]
pub(crate) fn suspended_ns() -> Option<u64> {
    let before_ns = nanoseconds(clock_gettime(ClockId::Monotonic));
    let with_suspension_ns = nanoseconds(clock_gettime(ClockId::Boottime));
    let after_ns = nanoseconds(clock_gettime(ClockId::Monotonic));
    (after_ns - before_ns <= TOGETHER_NS).then(|| with_suspension_ns.saturating_sub(before_ns))
}

/// How long the machine has been suspended since it began; none where that cannot be told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn suspended_ns() -> Option<u64> {
    None
}

/// CPU time of this thread so far.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND_NS;

    fn at(ms: u64) -> Look {
        Look { at_ns: ms * MS, ..Look::default() }
    }

    /// What a look finds after nothing was absent until `last`, milliseconds.
    fn found(last: Look, now: Look) -> u64 {
        let mut absence = Absence::since(last);
        absence.look(now);
        absence.take(0) / 1_000
    }

    #[test]
    fn what_is_beyond_a_sleep_is_absence_and_a_late_timer_is_none() {
        assert_eq!(found(at(1_000), at(1_050)), 0);
        assert_eq!(found(at(1_000), at(1_100)), 0, "late by no more than what counts");
        assert_eq!(found(at(1_000), at(1_101)), 51);
        assert_eq!(found(at(1_000), at(5_250)), 4_200);
    }

    #[test]
    fn who_works_or_waits_for_a_core_is_there() {
        let now = Look { cpu_ns: 400 * MS, waited_ns: 550 * MS, ..at(2_000) };
        assert_eq!(found(at(1_000), now), 0);
        let before = Look { cpu_ns: 300 * MS, waited_ns: 550 * MS, ..at(1_000) };
        assert_eq!(found(before, now), 850);
        let ahead = Look { cpu_ns: 1_003 * MS, ..at(1_000) };
        assert_eq!(found(at(0), ahead), 0, "the kernel's account may run ahead of the clock");
    }

    #[test]
    fn a_machine_that_was_suspended_was_absent_though_the_clock_stood_still() {
        let suspended = |ms, suspended_ms: u64| Look { suspended_ns: Some(suspended_ms * MS), ..at(ms) };
        assert_eq!(found(suspended(1_000, 7_000), suspended(1_050, 7_000)), 0);
        assert_eq!(found(suspended(1_000, 7_000), suspended(1_050, 67_000)), 60_000);
        // what was before the first that could be told is nobody's
        assert_eq!(found(at(1_000), suspended(1_050, 7_000)), 0);
        let mut absence = Absence::since(suspended(1_000, 7_000));
        absence.look(at(1_040));
        absence.look(suspended(1_080, 8_000));
        assert_eq!(absence.take(0), 990_000, "a look that could not tell loses nothing");
    }

    #[test]
    fn an_absence_over_the_ends_of_intervals_is_shared_out_and_nothing_is_lost() {
        let mut absence = Absence::since(at(700));
        absence.look(at(3_450));
        let shares = [2_450, 1_450, 450, 0].map(|late_ms| absence.take(late_ms * MS));
        assert_eq!(shares, [250_000, 1_000_000, 1_000_000, 450_000]);
        assert_eq!(absence.take(0), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn suspension_is_told_and_does_not_grow_by_itself() {
        let told: Vec<u64> = (0..1_000).filter_map(|_| suspended_ns()).collect();
        let spread_ns = told.iter().max().zip(told.iter().min()).map(|(most, least)| most - least);
        assert!(spread_ns.is_some_and(|ns| ns <= 2 * TOGETHER_NS), "{spread_ns:?}");
    }
}
