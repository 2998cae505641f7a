//! Each figure that an objective can be about, twice: as measured, and with the driver's own share taken out.

use std::time::Duration;

use tidemark_record::summary::Driver;
use tidemark_record::{Achieved, Distribution, HISTOGRAM_HIGH_US, LabelTotals, Outcome, Totals};
use tidemark_scenario::plan::{About, Metric, Objective, Within};

use crate::few;

/// Fewer failures of a group, all of it, may be chance.
const FAILURES_OF_A_GROUP: u64 = 10;
/// A request that had no answer for so many times as long as the driver can have held it up is not its doing.
const EXPLAINS: f64 = 2.0;

/// A figure twice, in its metric's unit. A time that is not reached is infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Both {
    /// As it was measured.
    pub measured: f64,
    /// At its best: what it would be if everything that the driver may have spoiled had gone well.
    pub without_driver: f64,
}

/// How many requests had an answer.
fn answered(of: &LabelTotals) -> u64 {
    let answered = Outcome::ALL.iter().filter(|outcome| outcome.is_answered());
    answered.map(|outcome| of.measured[*outcome as usize]).sum()
}

/// What figures are taken from.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    pub(super) totals: &'a Totals,
    /// The name of the phase that they are of, where they are not of the whole run.
    phase: Option<&'a str>,
    /// Whether the driver was held up so much that it may have spoiled what it did not count.
    pub(super) limited: bool,
    /// Whether users wait for answers, so that whatever holds the driver up slows them all.
    is_closed: bool,
    /// How long it can have held up one request at most, 0 where it had room; infinite where nobody knows.
    hold_up_us: f64,
    /// The share of the time that its threads had no core.
    waited_share: f64,
    /// The share of what was due that failed as somebody allows: none of it is short of what is to be achieved.
    pub(super) forgiven: f64,
    /// Whether fewer connections are allowed than the load takes, so that what was not sent for want of one says nothing.
    pub(super) lacks_connections: bool,
    /// Requests that were due at agents of a fleet which were gone.
    pub(super) never_sent: u64,
    /// How long answers may have lain unread beyond what is taken out of each response time; infinite where nobody knows.
    unread_us: f64,
}

impl<'a> Measured<'a> {
    /// Of what was counted, by a driver that fared so; `is_closed`: whether users wait for answers; `is_starved`: whether
    /// whatever waited may have waited for the driver.
    pub fn new(totals: &'a Totals, driver: &Driver, is_closed: bool, is_starved: bool) -> Self {
        let limited = !driver.limits.is_empty();
        // of fewer than a hundred it is the longest
        let read_lag_us = driver.read_lag_us.as_ref().and_then(|read| read.p99.or(read.max));
        let answers = answered(&totals.all);
        let unread_us = match read_lag_us {
            _ if !limited => 0.0,
            _ if is_starved => f64::INFINITY,
            None => f64::INFINITY,
            // of a sample most answers are not known by themselves; of all it is in no response time any more
            Some(us) if is_closed && totals.read_lag_us.len() < answers => us as f64,
            Some(_) => 0.0,
        };
        let longest_us = |times: Option<u64>| times.map_or(f64::INFINITY, |us| us as f64);
        let hold_up_us = match limited {
            false => 0.0,
            true if is_starved => f64::INFINITY,
            true => {
                let read = driver.read_lag_us.as_ref().and_then(|read| read.max);
                // where nothing came nothing can have lain unread
                let read_us = if totals.all.response_time_us.is_empty() { 0.0 } else { longest_us(read) };
                longest_us(driver.lag_us.max) + read_us + driver.absent_s * 1e6
            }
        };
        let waited_share = driver.waited_share.unwrap_or(0.0);
        Measured {
            totals,
            phase: None,
            limited,
            is_closed,
            hold_up_us,
            waited_share,
            forgiven: 0.0,
            lacks_connections: false,
            never_sent: 0,
            unread_us,
        }
    }

    /// The same of the phase of this name.
    pub fn of_phase(self, phase: &'a str) -> Self {
        Measured { phase: Some(phase), ..self }
    }

    /// The same where fewer connections may have been allowed than the load takes.
    pub fn lacking_connections(self, lacks_connections: bool) -> Self {
        Measured { lacks_connections, ..self }
    }

    /// The same where so many requests were never sent, or nobody knows what became of them.
    pub fn lacking(self, never_sent: u64) -> Self {
        Measured { never_sent, ..self }
    }

    /// The same where so many of the requests that were due may fail.
    pub fn forgiving(mut self, allowed: f64) -> Self {
        let (offered, failed) = (self.totals.offered as f64, self.totals.all.failed());
        // where answers may be anything, they are still to be asked for
        let failed = match allowed >= offered {
            true => failed.saturating_sub(self.totals.all.dropped) as f64,
            false => (failed as f64).min(allowed),
        };
        self.forgiven = failed / offered.max(1.0);
        self
    }

    /// The share of the window that the driver can have been held up: once for as long as any request was, or often for a
    /// little.
    fn held_up_share(&self) -> f64 {
        let window_us = self.totals.window.map_or(0.0, |window| window.length_s() * 1e6);
        if self.limited { (self.hold_up_us / window_us).max(self.waited_share) } else { 0.0 }
    }

    fn of(&self, objective: &Objective) -> Option<&'a LabelTotals> {
        match objective.about {
            About::Phase(_, Within::All) => Some(&self.totals.all),
            About::Label(label) | About::Phase(_, Within::Label(label)) => {
                self.totals.by_label.get(usize::from(label))
            }
            About::Group(group) | About::Phase(_, Within::Group(group)) => {
                self.totals.by_group.get(usize::from(group))
            }
            About::All => Some(&self.totals.all),
            // is judged by itself
            About::Metric(_) => None,
        }
    }

    /// Of all requests that the objective is about, those without a good answer, 0 to 1.
    pub fn failed_share(&self, objective: &Objective) -> f64 {
        self.of(objective).map_or(0.0, |of| of.failed() as f64 / of.due().max(1) as f64)
    }

    /// What is said of a percentile that so few requests do not have. What is measured is the slowest of them then.
    pub fn too_few(&self, objective: &Objective) -> Option<String> {
        let Metric::Percentile(percent) = objective.metric else { return None };
        let measured_s = self.totals.window.map_or(0.0, |window| window.length_s());
        few::told(percent, self.of(objective)?.due(), measured_s, self.phase, "requests")
    }

    /// What an objective on the share of what is offered comes to. The window may be too short to tell whether what was under way
    /// at its end was a backlog, or grew.
    pub fn achieved(&self, objective: &Objective) -> Option<Achieved> {
        (objective.metric == Metric::AchievedShare).then(|| self.totals.achieved())
    }

    /// The figure that an objective is about; none where there was nothing to measure it on, and for what the ledger decides.
    pub fn figure(&self, objective: &Objective) -> Option<Both> {
        let of = self.of(objective)?;
        let due = of.due();
        if due == 0 && !matches!(objective.metric, Metric::Rate | Metric::Dropped) {
            return None;
        }
        let failed = of.failed();
        let is_group = matches!(objective.about, About::Group(_) | About::Phase(_, Within::Group(_)));
        let best_failed = failed - self.maybe_spoiled(of, is_group);
        // of a group each answer may have lain unread, and nobody knows how many those are
        let unread_us = if is_group && self.unread_us > 0.0 { f64::INFINITY } else { self.unread_us };
        match objective.metric {
            Metric::Percentile(percent) => Some(self.time(of, best_failed, unread_us, |times| {
                times.quantile(percent / 100.0).map(|us| us as f64)
            })),
            Metric::Mean => Some(self.time(of, best_failed, unread_us, |times| times.mean())),
            Metric::ErrorShare => {
                let all = (due + self.failed_steps(objective)) as f64;
                let share = |failed: u64| (failed + self.failed_steps(objective)) as f64 / all;
                Some(Both { measured: share(failed), without_driver: share(best_failed) })
            }
            Metric::Errors => {
                let count = |failed: u64| (failed + self.failed_steps(objective)) as f64;
                Some(Both { measured: count(failed), without_driver: count(best_failed) })
            }
            Metric::Dropped => {
                let maybe = if self.lacks_connections { of.dropped } else { self.maybe_dropped(of) };
                Some(Both { measured: of.dropped as f64, without_driver: (of.dropped - maybe) as f64 })
            }
            Metric::Rate => {
                let window_s = self.totals.window?.length_s();
                let offered_per_s = self.totals.offered as f64 / window_s;
                let measured = of.good_in_window as f64 / window_s;
                // more of what only fails, by no doing of the driver, would have failed too
                let only_fails = due > 0 && best_failed == due;
                (window_s > 0.0).then(|| match only_fails {
                    true => Both { measured, without_driver: measured },
                    false => self.at_least(measured, offered_per_s),
                })
            }
            Metric::AchievedShare => {
                // what the system answered wrongly it cannot have answered well, whatever the driver did
                let most = 1.0 - best_failed as f64 / due as f64;
                (self.totals.offered > 0).then(|| {
                    let Both { measured, without_driver } = self.at_least(self.totals.achieved_share(), 1.0);
                    Both { measured, without_driver: without_driver.min(most).max(measured) }
                })
            }
            Metric::Lost | Metric::LostShare | Metric::Duplicated | Metric::Custom(_) => None,
        }
    }

    /// Steps of sessions that failed and are none of the requests, where an objective is about the whole run.
    pub(super) fn failed_steps(&self, objective: &Objective) -> u64 {
        if objective.about == About::All {
            self.totals.counters[tidemark_record::Counter::FailedSteps]
        } else {
            0
        }
    }

    /// Failures of what was not sent, as fewer connections are allowed than the load takes; of a group at most.
    fn unconnected(&self, of: &LabelTotals, is_group: bool) -> u64 {
        match (self.lacks_connections, is_group) {
            (false, _) => 0,
            (true, false) => of.unconnected,
            (true, true) => self.totals.all.unconnected.min(of.failed()),
        }
    }

    /// Requests that were due before the measured window and failed by their time-out, or, however else, after at least as
    /// long as the window was to be: all of them, and without those that are the driver's own doing. Of no matter where
    /// anything was due or answered.
    pub fn unanswered(&self, window: Duration) -> (u64, u64) {
        let of = &self.totals.all;
        if of.due() > 0 || of.good_in_window > 0 {
            return (0, 0);
        }
        let counts = self.totals.unanswered_us.iter().map(|(outcome, times)| {
            let whole_us = u64::try_from(window.as_micros()).unwrap_or(u64::MAX).min(HISTOGRAM_HIGH_US);
            let from_us = if *outcome == Outcome::Timeout { 0 } else { whole_us };
            let count = times.count_between(from_us, HISTOGRAM_HIGH_US);
            (count, if self.is_explained(times.min().max(from_us)) { 0 } else { count })
        });
        counts.fold((0, 0), |sums, counts| (sums.0 + counts.0, sums.1 + counts.1))
    }

    /// Groups, by index, none of which ended well by no doing of the driver, how many those were, and whether none ended at
    /// all; none where no request did well either.
    pub fn failing_groups(&self) -> impl Iterator<Item = (usize, u64, bool)> + '_ {
        let is_of_all = self.totals.all.failed() == self.totals.all.due();
        let groups = self.totals.by_group.iter().enumerate().filter(move |_| !is_of_all);
        let failing = groups.filter(|(_, of)| {
            of.due() >= FAILURES_OF_A_GROUP && of.failed() - self.maybe_spoiled(of, true) == of.due()
        });
        failing.map(|(group, of)| (group, of.due(), of.measured[Outcome::Unfinished as usize] == of.due()))
    }

    /// Whether the driver can have held a request up so much that it had no answer for so long.
    fn is_explained(&self, known_after_us: u64) -> bool {
        self.limited && EXPLAINS * self.hold_up_us >= known_after_us as f64
    }

    /// Failures that a driver which was held up may have made itself, or that are for want of a connection. A server's own word, or a refused or broken
    /// connection, is none; nor is a request that had no answer for much longer than the driver can have held it up. When that
    /// was known after the begin of a group says nothing of it.
    pub(super) fn maybe_spoiled(&self, of: &LabelTotals, is_group: bool) -> u64 {
        let explained = |outcome: &Outcome| {
            (is_group && self.limited)
                || self.is_explained(of.known_after_us.get(outcome).map_or(0, |times| times.min()))
        };
        let late = [Outcome::Timeout, Outcome::Unfinished].into_iter().filter(explained);
        let spoiled = late.map(|outcome| of.measured[outcome as usize]).sum::<u64>() + self.maybe_dropped(of);
        // what was not sent timed out, too, or was dropped
        spoiled.max(self.unconnected(of, is_group))
    }

    /// Drops that may be the driver's: no more than were due while it can have held them up, or was not there.
    fn maybe_dropped(&self, of: &LabelTotals) -> u64 {
        // infinite where nobody knows; 0 of 0 where it had room
        let held_up = of.due() as f64 * self.held_up_share();
        (held_up + self.never_sent as f64).min(of.dropped as f64) as u64
    }

    fn time(
        &self,
        of: &LabelTotals,
        best_failed: u64,
        unread_us: f64,
        take: impl Fn(Distribution<'_>) -> Option<f64>,
    ) -> Both {
        let reached = |times: Distribution<'_>| take(times).unwrap_or(f64::INFINITY);
        let measured = reached(of.response_times());
        let without_lag = reached(Distribution::new(&of.response_time_less_lag_us, best_failed));
        let best = if without_lag.is_infinite() { without_lag } else { (without_lag - unread_us).max(0.0) };
        // with more connections less would have waited for one
        let best = match self.lacks_connections {
            true => best.min(reached(Distribution::new(&of.service_time_us, best_failed))),
            false => best,
        };
        Both { measured, without_driver: best.min(measured) }
    }

    /// A driver that was held up made less than the system can do. With users that wait for answers nobody knows how much
    /// less; of arrivals it can have missed only those that were due while it was held up.
    fn at_least(&self, measured: f64, of_all: f64) -> Both {
        let without_driver = match self.limited {
            _ if self.lacks_connections => f64::INFINITY,
            true if self.is_closed => f64::INFINITY,
            _ if self.is_closed && self.never_sent > 0 => f64::INFINITY,
            limited => {
                let held_up = if limited { self.held_up_share() } else { 0.0 };
                let never_sent = self.never_sent as f64 / self.totals.offered.max(1) as f64;
                measured + of_all * (held_up + never_sent)
            }
        };
        Both { measured, without_driver }
    }
}
