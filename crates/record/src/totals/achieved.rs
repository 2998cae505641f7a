//! How much of what was due in the window was achieved: the one definition, for all and for each label.

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
    /// Standard deviations that are chance.
    chance: f64,
}

impl Totals {
    /// Good answers as a share of what was due in the measured window: answers to requests of before it are none of them.
    /// What was under way at its end, or waited, and had a good answer later counts, too, but for a backlog that grew: by how
    /// much more it was than at the window's middle, as if it had grown so over the whole window. A difference that chance
    /// makes (2.8 standard deviations of that of two Poisson numbers) is no growth. What the driver had not begun by then
    /// does not count.
    pub fn achieved(&self) -> Achieved {
        let fastest_s = self.all_service_time_us.value_at_quantile(UNQUEUED_SHARE) as f64 / 1e6;
        let flow = Flow { of: &self.all, offered: self.offered, fastest_s, chance: CHANCE };
        self.achieved_of(&flow, |at_us| self.backlog.get(&at_us).copied().unwrap_or(0))
    }

    /// The same of one label, by its index; nothing of one that there is not. What was dropped before it had a label is in none.
    /// `chance`: how many standard deviations are chance.
    pub fn achieved_by_label(&self, label: u16, chance: f64) -> Achieved {
        let Some(of) = self.by_label.get(usize::from(label)) else { return Achieved::default() };
        let fastest_s = of.service_time_us.value_at_quantile(UNQUEUED_SHARE) as f64 / 1e6;
        let flow = Flow { of, offered: of.due(), fastest_s, chance };
        self.achieved_of(&flow, |at_us| self.label_backlog.get(&(at_us, label)).copied().unwrap_or(0))
    }

    /// How many requests of a label were due and without an end, at the end of each interval of the window.
    pub fn backlog_of(&self, label: u16) -> Vec<u64> {
        let Some(window) = self.window else { return Vec::new() };
        let ends = self.backlog.range(window.start_us + 1..=window.end_us);
        ends.map(|(at_us, _)| self.label_backlog.get(&(*at_us, label)).copied().unwrap_or(0)).collect()
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
            let under_way = per_s * flow.fastest_s.max(STALL_S);
            return ((late - under_way.round().max(1.0)).max(0.0), 0.0);
        };
        let before = backlog(at_us) as f64;
        // both numbers vary
        let chance = flow.chance * (before + end as f64).max(1.0).sqrt();
        let length = |from_us: u64| (window.end_us - from_us) as f64;
        let over_the_window = length(window.start_us) / length(at_us);
        let rise = end as f64 - before;
        let grown = if rise > chance { rise * over_the_window } else { 0.0 };
        let begin_us = self.load_begin_us.unwrap_or(window.start_us).min(window.start_us);
        let young_s = |at_us: u64| ((at_us - begin_us) as f64 / 1e6).min(flow.fastest_s);
        let filled = per_s * (young_s(window.end_us) - young_s(at_us)) * over_the_window;
        (grown, filled)
    }
}
