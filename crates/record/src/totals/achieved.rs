//! How much of what was due in the window was achieved: the one definition, for all and for each label.

use std::collections::BTreeSet;

use super::{LabelTotals, Totals, Window};
use crate::interval::Outcome;
use crate::summary::ratio;

/// The fastest tenth of the answers is believed not to have waited in the system.
const UNQUEUED_SHARE: f64 = 0.1;
/// What comes so soon after the window is in time however fast the system is: a single stall is no backlog. Seconds.
const STALL_S: f64 = 0.05;
/// So many standard deviations of the difference of two Poisson numbers are chance.
const CHANCE: f64 = 2.8;

/// What of the requests that were due in the measured window was achieved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Achieved {
    /// Good answers as a share of what was due, 0 to 1; a backlog that grew is none of it.
    pub share: f64,
    /// The same where what grew was no backlog: for as long as the load is younger than its answers take, more and more are
    /// under way though none waits. Above `share` only where the window is that short.
    pub at_most: f64,
    /// The part of what was due by which the backlog grew, 0 to 1.
    pub grown: f64,
    /// How long the fastest answers took, seconds: a window that is not longer says little.
    pub fastest_s: f64,
}

/// A load and its backlog.
struct Flow<'a> {
    of: &'a LabelTotals,
    offered: u64,
    fastest_s: f64,
    /// Requests that are in service at any time, without those that wait: none of a backlog.
    in_service: f64,
    /// Standard deviations that are chance.
    chance: f64,
}

impl Totals {
    /// Good answers as a share of what was due in the measured window: answers to requests of before it are none of them.
    /// What was under way at its end, or waited, and had a good answer later counts, too, but for a backlog that grew: by how
    /// much more it was than at the window's middle, as if it had grown so over the whole window. A difference that chance
    /// makes (2.8 standard deviations of that of two Poisson numbers) is no growth, nor is what is in service: it does not wait.
    /// What the driver had not begun by then does not count.
    pub fn achieved(&self) -> Achieved {
        let fastest_s = self.all_service_time_us.value_at_quantile(UNQUEUED_SHARE) as f64 / 1e6;
        let in_service = match self.by_label.is_empty() {
            true => self.in_service(&self.all),
            false => self.by_label.iter().map(|of| self.in_service(of)).sum(),
        };
        let flow = Flow { of: &self.all, offered: self.offered, fastest_s, in_service, chance: CHANCE };
        self.achieved_of(&flow, |at_us| self.backlog.get(&at_us).copied().unwrap_or(0))
    }

    /// The same of these labels together, by their indices. What was dropped before it had a label is in none.
    /// `chance`: how many standard deviations are chance; by default as many as of the whole run.
    pub fn achieved_by_labels(&self, labels: &BTreeSet<usize>, chance: Option<f64>) -> Achieved {
        let of = self.of_labels(labels.iter().copied());
        let fastest_s = of.service_time_us.value_at_quantile(UNQUEUED_SHARE) as f64 / 1e6;
        let in_service =
            labels.iter().filter_map(|label| self.by_label.get(*label)).map(|of| self.in_service(of)).sum();
        let chance = chance.unwrap_or(CHANCE);
        let flow = Flow { of: &of, offered: of.due(), fastest_s, in_service, chance };
        self.achieved_of(&flow, |at_us| self.open_at(at_us, labels))
    }

    /// How many requests of these labels were due and without an end, at the end of each interval of the window.
    pub fn backlog_of(&self, labels: &BTreeSet<usize>) -> Vec<u64> {
        let Some(window) = self.window else { return Vec::new() };
        let ends = self.backlog.range(window.start_us + 1..=window.end_us);
        ends.map(|(at_us, _)| self.open_at(*at_us, labels)).collect()
    }

    fn open_at(&self, at_us: u64, labels: &BTreeSet<usize>) -> u64 {
        let open = |label: &usize| self.label_backlog.get(&(at_us, u16::try_from(*label).ok()?));
        labels.iter().filter_map(open).sum()
    }

    /// How many requests of a label are in service at any time, by Little's law: as many as were answered each second, for as
    /// long as the fastest took, which did not wait.
    fn in_service(&self, of: &LabelTotals) -> f64 {
        let length_s = self.window.map_or(0.0, |window| window.length_s());
        let fastest_us = if of.service_time_us.is_empty() { 0 } else { of.service_time_us.min() };
        ratio(of.good_in_window as f64, length_s) * fastest_us as f64 / 1e6
    }

    /// [`achieved`](Totals::achieved) as a share alone.
    pub fn achieved_share(&self) -> f64 {
        self.achieved().share
    }

    fn achieved_of(&self, flow: &Flow<'_>, backlog: impl Fn(u64) -> u64) -> Achieved {
        let Some(window) = self.window else { return Achieved::default() };
        let end = self.backlog.range(..=window.end_us).next_back().map_or(0, |(at_us, _)| backlog(*at_us));
        let late = flow.of.good_after_window.min(end) as f64;
        let (grown, filled) = self.grown(flow, window, end, late, backlog);
        let good = (flow.of.measured[Outcome::Ok as usize] - flow.of.good_after_window) as f64;
        let offered = flow.offered as f64;
        let share = |grown: f64| ratio(good + (late - grown).max(0.0), offered).min(1.0);
        Achieved {
            share: share(grown),
            at_most: share((grown - filled).max(0.0)),
            grown: ratio(grown.min(late), offered),
            fastest_s: flow.fastest_s,
        }
    }

    /// By how many requests the backlog grew over the window, and how many of these may only have been under way, because the
    /// load was younger than its fastest answers.
    fn grown(
        &self,
        flow: &Flow<'_>,
        window: Window,
        end: u64,
        late: f64,
        backlog: impl Fn(u64) -> u64,
    ) -> (f64, f64) {
        let middle_us = window.start_us + (window.end_us - window.start_us) / 2;
        let per_s = ratio(flow.offered as f64, window.length_s());
        let Some((&at_us, _)) = self.backlog.range(window.start_us..=middle_us).next_back() else {
            // a window of one interval without a warm-up: what is more than a system without a queue has under way
            let under_way = (per_s * flow.fastest_s.max(STALL_S)).round().max(1.0);
            // one with a queue has fewer in service
            let stall = ratio(flow.of.good_in_window as f64, window.length_s()) * STALL_S;
            let is_queue = late - under_way > flow.chance * under_way.sqrt();
            let no_backlog = if is_queue { flow.in_service.max(stall).min(under_way) } else { under_way };
            return ((late - no_backlog).max(0.0), 0.0);
        };
        let before = backlog(at_us) as f64;
        // both numbers vary
        let chance = flow.chance * (before + end as f64).max(1.0).sqrt();
        let length = |from_us: u64| (window.end_us - from_us) as f64;
        let over_the_window = length(window.start_us) / length(at_us);
        let rise = end as f64 - before;
        let all = (rise * over_the_window).min((end as f64 - flow.in_service).max(0.0));
        let grown = if rise > chance { all } else { 0.0 };
        let begin_us = self.load_begin_us.unwrap_or(window.start_us).min(window.start_us);
        let young_s = |at_us: u64| ((at_us - begin_us) as f64 / 1e6).min(flow.fastest_s);
        let filled = per_s * (young_s(window.end_us) - young_s(at_us)) * over_the_window;
        (grown, filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::interval;
    use crate::{Series, new_histogram};

    /// Answers of a label that each took so long in the system, after some waiting.
    fn answers(label: u16, count: u32, service_us: u64) -> Series {
        let mut series = crate::test_run::series(label, Outcome::Ok, true, &[(4 * service_us, count)]);
        series.service_time_us = new_histogram();
        series.service_time_us.record_n(service_us, count);
        series
    }

    /// Five connections carry requests of 0.3 s, and 40/s are due for so many seconds: each has 16.7/s. Those that were
    /// under way or waited at the end are answered later.
    fn overloaded(window_s: u64, answered: &[u32]) -> Totals {
        let mut totals = Totals::new(&["A".into()]);
        let mut open = 0;
        for second in 0..window_s {
            let mut one = interval(0, second, second + 1);
            let count = answered[second as usize];
            (one.in_window, one.offered, one.measured_offered) = (true, 40, 40);
            open += 40 - u64::from(count);
            (one.in_flight, one.waiting) = (5, open - 5);
            one.open_by_label = vec![(0, open)];
            one.series = vec![answers(0, count, 300_000)];
            totals.add_interval(&one);
        }
        let mut drain = interval(0, window_s, window_s + 9);
        drain.series = vec![answers(0, open as u32, 300_000)];
        totals.add_interval(&drain);
        totals
    }

    #[test]
    fn what_is_in_service_when_a_window_ends_is_no_backlog() {
        // three rounds of five each second, and the tenth is nearly done
        let totals = overloaded(3, &[15, 15, 15]);
        let share = totals.achieved_share();
        assert!((0.40..0.43).contains(&share), "{share} of 41.7 %");
        let of_label = totals.achieved_by_labels(&[0].into(), None).share;
        assert!((of_label - share).abs() < 1e-9, "{of_label}");
        // longer windows say the same
        let share = overloaded(9, &[15, 15, 20, 15, 15, 20, 15, 15, 20]).achieved_share();
        assert!((0.41..0.435).contains(&share), "{share} of 41.7 %, and the round that has just begun");
        // one of a single second, too, as far as it can
        let share = overloaded(1, &[15]).achieved_share();
        assert!((0.37..0.5).contains(&share), "{share} of 41.7 %");
    }

    #[test]
    fn labels_that_grow_together_are_one_flow() {
        let mut totals = Totals::new(&["A".into(), "B".into(), "C".into()]);
        for second in 0..10 {
            let mut one = interval(0, second, second + 1);
            (one.in_window, one.measured_offered) = (true, 120);
            one.open_by_label = vec![(0, second), (1, 2 * second)];
            one.in_flight = 3 * second;
            one.series = (0..3).map(|label| answers(label, 40, 1_000)).collect();
            totals.add_interval(&one);
        }
        assert_eq!(totals.backlog_of(&[0, 1].into()), (0..10).map(|second| 3 * second).collect::<Vec<_>>());
        assert_eq!(totals.backlog_of(&[2, 7].into()), [0; 10]);
    }
}
