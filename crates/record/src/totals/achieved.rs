//! How much of what was due in the window was achieved: the one definition, for all and for each label.

mod trend;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{LabelTotals, Totals, Window};
use crate::interval::{Outcome, Series, ThreadInterval};
use crate::summary::ratio;
use trend::{Change, Steadiness};

/// The fastest tenth of the answers is believed not to have waited in the system.
const UNQUEUED_SHARE: f64 = 0.1;
/// What comes so soon after the window is in time however fast the system is: a single stall is no backlog. Seconds.
const STALL_S: f64 = 0.05;
/// So many standard deviations of the difference of two Poisson numbers are chance.
const CHANCE: f64 = 2.8;
/// Beyond so many the rise may still be chance: an objective that it would miss is not decided.
const MAYBE: f64 = 1.5;
/// The same of Student's t over the intervals' rises.
const MAYBE_T: f64 = 2.5;
/// Student's t of a rise beyond [`MAYBE`] is at least this.
const LEAST_T: f64 = 1.0;
/// A steady rise goes on: the second half rises by at least this share of what the first did. What only fills rises less and less.
const GOES_ON: f64 = 0.5;
/// The load changes where its halves' requests differ by more standard deviations.
const CHANGES: f64 = 4.0;
/// A window of no more intervals shows no trend.
const FEW_INTERVALS: usize = 4;
/// If such a window leaves more than this share of what was due for later, and more and more, nothing is decided.
const MUCH_BEHIND: f64 = 0.2;

/// What of the requests that were due in the measured window was achieved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Achieved {
    /// Good answers as a share of what was due, 0 to 1; a backlog that grew is none of it.
    pub share: f64,
    /// The same where what grew was no backlog: for as long as the load is younger than its answers take, more and more are
    /// under way though none waits. Above `share` only where the window is that short.
    pub at_most: f64,
    /// The same if what may be chance was a backlog that grew. Below `share` only where the window is too short to tell, or the
    /// load changes in it.
    pub at_least: f64,
    /// Whether the load changes within the window.
    pub load_changes: bool,
    /// The part of what was due by which the backlog grew, 0 to 1.
    pub grown: f64,
    /// How long the fastest answers took, seconds: a window that is not longer says little.
    pub fastest_s: f64,
    /// How long after the load's begin as many requests are under way as from then on, where none waits, seconds: when the
    /// last label was asked first, and as long as its fastest answers took.
    pub steady_s: f64,
}

/// A load and its backlog.
struct Flow<'a> {
    of: &'a LabelTotals,
    offered: u64,
    fastest_s: f64,
    /// Those of each label.
    labels: Vec<LabelFlow>,
    /// Requests that are in service at any time, without those that wait: none of a backlog.
    in_service: f64,
    /// Standard deviations that count as chance. `None`: [`CHANCE`], and the trend is tested as well.
    chance: Option<f64>,
}

/// By how many requests a backlog grew over the window.
#[derive(Default)]
struct Growth {
    grown: f64,
    /// As many of these may only have been under way, because the load was younger than its fastest answers.
    filled: f64,
    /// So many it may have grown, where it was too few to tell them from chance.
    maybe: f64,
}

/// What is known of a label from before the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelStart {
    /// When a request of it was first seen, microseconds since the run began: later steps of a session are asked later.
    pub(super) seen_us: Option<u64>,
    /// How long the fastest tenth of a thread's good answers in an interval took, microseconds: a backlog that grows is small then.
    fastest_us: Option<u64>,
}

impl LabelStart {
    /// A request was under way then.
    pub(super) fn seen(at_us: u64) -> LabelStart {
        LabelStart { seen_us: Some(at_us), fastest_us: None }
    }

    /// Of each label of which a thread tells in an interval.
    pub(crate) fn of_labels(interval: &ThreadInterval) -> Vec<(u16, LabelStart)> {
        let first = |series: &Series| {
            let took_us = series.response_time_us.min();
            let is_before = !interval.in_window && !series.outcome.is_error();
            let fastest_us = is_before.then_some(&series.service_time_us).filter(|times| !times.is_empty());
            LabelStart {
                // histograms tell times a little too short
                seen_us: Some(interval.end_us.saturating_sub(took_us + took_us / 100)),
                fastest_us: fastest_us.map(|times| times.value_at_quantile(UNQUEUED_SHARE)),
            }
        };
        interval.series.iter().map(|series| (series.label, first(series))).collect()
    }

    /// Adds what else is known.
    pub(crate) fn add(&mut self, other: LabelStart) {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        self.seen_us = least(self.seen_us, other.seen_us);
        self.fastest_us = least(self.fastest_us, other.fastest_us);
    }
}

/// Requests of a label that come one after the other, and never wait.
struct LabelFlow {
    per_s: f64,
    /// Since when they come, microseconds since the run began.
    begin_us: u64,
    /// How long the fastest answers took.
    fastest_s: f64,
}

impl LabelFlow {
    /// How many of them are under way at a time.
    fn under_way(&self, at_us: u64) -> f64 {
        let age_s = at_us.saturating_sub(self.begin_us) as f64 / 1e6;
        self.per_s * age_s.min(self.fastest_s)
    }
}

impl Totals {
    /// Good answers as a share of what was due in the measured window: answers to requests of before it are none of them.
    /// What was under way at its end, or waited, and had a good answer later counts, too, but for a backlog that grew: by how
    /// much more it was than at the window's middle, as if it had grown so over the whole window. A difference that chance
    /// makes (2.8 standard deviations of that of two Poisson numbers) is no growth, unless it rises steadily (Student's t of the
    /// intervals' rises). Nor is what is in service: it does not wait. Where the load changes, so does what is under way.
    /// What the driver had not begun by then does not count.
    pub fn achieved(&self) -> Achieved {
        let fastest_s = self.all_service_time_us.value_at_quantile(UNQUEUED_SHARE) as f64 / 1e6;
        let in_service = match self.by_label.is_empty() {
            true => self.in_service(&self.all),
            false => self.by_label.iter().map(|of| self.in_service(of)).sum(),
        };
        let labels = match self.by_label.is_empty() {
            true => self.label_flow(&self.all, LabelStart::default(), fastest_s).into_iter().collect(),
            false => self.label_flows(0..self.by_label.len(), fastest_s),
        };
        let flow = Flow { of: &self.all, offered: self.offered, fastest_s, labels, in_service, chance: None };
        self.achieved_of(&flow, |at_us| self.backlog.get(&at_us).copied().unwrap_or(0))
    }

    /// The same of these labels together, by their indices. What was dropped before it had a label is in none.
    /// `chance`: how many standard deviations count as chance. `None` is judged as the whole run is, by the trend as well.
    pub fn achieved_by_labels(&self, labels: &BTreeSet<usize>, chance: Option<f64>) -> Achieved {
        let of = self.of_labels(labels.iter().copied());
        let fastest_s = of.service_time_us.value_at_quantile(UNQUEUED_SHARE) as f64 / 1e6;
        let in_service =
            labels.iter().filter_map(|label| self.by_label.get(*label)).map(|of| self.in_service(of)).sum();
        let flows = self.label_flows(labels.iter().copied(), fastest_s);
        let flow = Flow { of: &of, offered: of.due(), fastest_s, labels: flows, in_service, chance };
        self.achieved_of(&flow, |at_us| self.open_at(at_us, labels))
    }

    /// `fastest_s`: that of all, for those without a good answer.
    fn label_flows(&self, labels: impl Iterator<Item = usize>, fastest_s: f64) -> Vec<LabelFlow> {
        let flow = |label: usize| {
            let first = self.first.get(label).copied().unwrap_or_default();
            self.label_flow(self.by_label.get(label)?, first, fastest_s)
        };
        labels.filter_map(flow).collect()
    }

    fn label_flow(&self, of: &LabelTotals, first: LabelStart, fastest_s: f64) -> Option<LabelFlow> {
        let window = self.window?;
        let begin_us = first.seen_us.or(self.load_begin_us).unwrap_or(window.start_us);
        let asked_us = window.end_us.saturating_sub(begin_us.max(window.start_us));
        let in_window_us =
            (!of.service_time_us.is_empty()).then(|| of.service_time_us.value_at_quantile(UNQUEUED_SHARE));
        let own_fastest_us = first.fastest_us.into_iter().chain(in_window_us).min();
        Some(LabelFlow {
            per_s: ratio(of.due() as f64, asked_us as f64 / 1e6),
            begin_us,
            fastest_s: own_fastest_us.map_or(fastest_s, |us| us as f64 / 1e6),
        })
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
        let Growth { grown, filled, maybe } = self.growth(flow, window, end, late, backlog);
        let good = (flow.of.measured[Outcome::Ok as usize] - flow.of.good_after_window) as f64;
        let offered = flow.offered as f64;
        let load_begin_us = self.load_begin_us.unwrap_or(window.start_us);
        let steady_s = |of: &LabelFlow| of.begin_us.saturating_sub(load_begin_us) as f64 / 1e6 + of.fastest_s;
        let share = |grown: f64| ratio(good + (late - grown).max(0.0), offered).min(1.0);
        Achieved {
            share: share(grown),
            at_most: share((grown - filled).max(0.0)),
            at_least: share(grown + maybe),
            load_changes: self.middle(window).is_some_and(|at_us| self.change(window, at_us).is_some()),
            grown: ratio(grown.min(late), offered),
            fastest_s: flow.fastest_s,
            steady_s: flow.labels.iter().map(steady_s).reduce(f64::max).unwrap_or(flow.fastest_s),
        }
    }

    /// How much the backlog grew.
    fn growth(
        &self,
        flow: &Flow<'_>,
        window: Window,
        end: u64,
        late: f64,
        backlog: impl Fn(u64) -> u64,
    ) -> Growth {
        let deviations = flow.chance.unwrap_or(CHANCE);
        let Some(at_us) = self.middle(window) else {
            return growth_of_one_interval(flow, window, late, deviations);
        };
        // where more is due, more is under way
        let change = self.change(window, at_us);
        let counted = backlog(at_us) as f64;
        // of a load that falls, answers to what was due before may still be under way
        let before = counted * change.map_or(1.0, |change| change.times.max(1.0));
        let rise = end as f64 - before;
        let length = |from_us: u64| (window.end_us - from_us) as f64;
        let over_the_window = length(window.start_us) / length(at_us);
        let all = (rise * over_the_window).min((end as f64 - flow.in_service).max(0.0));
        let under_way = |at_us: u64| flow.labels.iter().map(|of| of.under_way(at_us)).sum::<f64>();
        let filled = (under_way(window.end_us) - under_way(at_us)) * over_the_window;
        // all numbers vary
        let variance = change.map_or(before, |change| change.variance(counted)) + end as f64;
        let by_chance = |deviations: f64| deviations * variance.max(1.0).sqrt();
        if rise > by_chance(deviations) {
            return Growth { grown: all, filled, maybe: 0.0 };
        }
        if flow.chance.is_some() {
            return Growth::default();
        }
        let maybe = (all - filled.max(0.0)).max(0.0);
        if change.is_some() {
            return Growth { maybe: if rise > by_chance(MAYBE) { maybe } else { 0.0 }, ..Growth::default() };
        }
        let counts = self.counts(window, backlog);
        let first = counts.first().copied().unwrap_or_default();
        let steadiness = Steadiness::of(&counts);
        if steadiness.is_beyond_chance() && rise >= GOES_ON * (before - first) {
            return Growth { grown: all, filled, maybe: 0.0 };
        }
        let is_maybe = match counts.len() > FEW_INTERVALS {
            true => {
                let rises = before > first && rise > by_chance(MAYBE);
                steadiness.t > MAYBE_T || (rises && steadiness.t > LEAST_T)
            }
            false => rise > 0.0 && late > MUCH_BEHIND * flow.offered as f64,
        };
        Growth { maybe: if is_maybe { maybe } else { 0.0 }, ..Growth::default() }
    }

    /// What waited at the end of each interval of the window.
    fn counts(&self, window: Window, backlog: impl Fn(u64) -> u64) -> Vec<f64> {
        let mut ends_us: Vec<u64> =
            self.backlog.range(window.start_us..=window.end_us).map(|(at_us, _)| *at_us).collect();
        // the interval that ends the window may be short
        if let [.., second_us, before_us, end_us] = ends_us[..]
            && 2 * (end_us - before_us) < before_us - second_us
        {
            ends_us.pop();
        }
        ends_us.into_iter().map(|at_us| backlog(at_us) as f64).collect()
    }

    /// The end of the last interval of the window's first half; none if no interval ends in it.
    fn middle(&self, window: Window) -> Option<u64> {
        let middle_us = window.start_us + (window.end_us - window.start_us) / 2;
        self.backlog.range(window.start_us..=middle_us).next_back().map(|(at_us, _)| *at_us)
    }

    /// How the load changes from the interval before `at_us`, the window's middle, to its last; none where it stays the same, but for
    /// chance.
    fn change(&self, window: Window, at_us: u64) -> Option<Change> {
        if at_us <= window.start_us {
            return None;
        }
        let due = |from_us: u64, to_us: u64| -> f64 {
            self.due.range(from_us + 1..=to_us).map(|(_, count)| *count as f64).sum()
        };
        let (first, second) = (due(window.start_us, at_us), due(at_us, window.end_us));
        let length = |from_us: u64, to_us: u64| (to_us - from_us) as f64;
        // of as long a time
        let first = first * ratio(length(at_us, window.end_us), length(window.start_us, at_us));
        // those that end a phase or the window may be short
        let ends_us: Vec<u64> = self.due.range(..=window.end_us).map(|(to_us, _)| *to_us).collect();
        let interval_us = ends_us.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(at_us);
        let last = |to_us: u64| due(to_us.saturating_sub(interval_us), to_us);
        let is_one = (second - first).abs() > CHANGES * (first + second).sqrt();
        let (from, to) = (last(at_us).max(1.0), last(window.end_us));
        is_one.then(|| Change { times: to / from, from, to })
    }
}

/// Of a window of one interval without a warm-up: what is more than a system without a queue has under way.
fn growth_of_one_interval(flow: &Flow<'_>, window: Window, late: f64, deviations: f64) -> Growth {
    let under_way = flow.labels.iter().map(|of| of.per_s * of.fastest_s.max(STALL_S)).sum::<f64>();
    let under_way = under_way.round().max(1.0);
    // one with a queue has fewer in service
    let stall = ratio(flow.of.good_in_window as f64, window.length_s()) * STALL_S;
    let is_queue = late - under_way > deviations * under_way.sqrt();
    let no_backlog = if is_queue { flow.in_service.max(stall).min(under_way) } else { under_way };
    let grown = (late - no_backlog).max(0.0);
    // one step after the other, a session may take longer than that
    let session_s: f64 = flow.labels.iter().map(|of| of.fastest_s).sum();
    let filled = if session_s > window.length_s() { grown } else { 0.0 };
    Growth { grown, filled, maybe: 0.0 }
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

    fn unqueued((label, count, us): (u16, u32, u64), is_due_in_window: bool) -> Series {
        let mut series = crate::test_run::series(label, Outcome::Ok, is_due_in_window, &[(us, count)]);
        series.service_time_us = series.response_time_us.clone();
        series
    }

    /// Sessions of two steps, eight each second, that take 2 s and 3 s and never wait.
    #[test]
    fn a_session_that_takes_most_of_the_window_is_no_backlog() {
        let two_steps = |window_s: u64, warm_up_s: u64| {
            let mut totals = Totals::new(&["One".into(), "Two".into()]);
            for second in 0..warm_up_s + window_s + 6 {
                let mut one = interval(0, second, second + 1);
                one.in_window = (warm_up_s..warm_up_s + window_s).contains(&second);
                let end_s = (second + 1) as f64;
                let goes_on = second < warm_up_s + window_s;
                let asked =
                    |offset_s: f64| 8.0 * (end_s - offset_s).clamp(0.0, (warm_up_s + window_s) as f64);
                let open = |offset_s: f64, takes_s: f64| (asked(offset_s) - asked(offset_s + takes_s)) as u64;
                let in_window =
                    |due_us: u64| (warm_up_s..warm_up_s + window_s).contains(&(due_us / 1_000_000));
                let ended = |offset_s: f64| (asked(offset_s) - asked(offset_s + 1.0)).max(0.0) as u32;
                if goes_on {
                    one.open_by_label = vec![(0, open(0.0, 2.0)), (1, open(2.0, 3.0))];
                    one.open_by_label.retain(|(_, open)| *open > 0);
                    one.in_flight = open(0.0, 5.0);
                    let due = [ended(0.0), ended(2.0)];
                    if one.in_window {
                        one.measured_offered = u64::from(due[0] + due[1]);
                    }
                }
                let series = [(0, ended(2.0), 2_000_000), (1, ended(5.0), 3_000_000)];
                one.series = series
                    .into_iter()
                    .filter(|of| of.1 > 0)
                    .map(|of| unqueued(of, in_window(second * 1_000_000 - of.2)))
                    .collect();
                totals.add_interval(&one);
            }
            totals
        };
        for (window_s, warm_up_s) in [(5, 0), (8, 1)] {
            let totals = two_steps(window_s, warm_up_s);
            let two = totals.achieved_by_labels(&[1].into(), Some(0.0));
            assert!(two.grown - (two.at_most - two.share) < 0.01, "{window_s} s: {two:?}");
            assert!((4.9..=6.5).contains(&two.steady_s), "{window_s} s: {two:?}");
            let all = totals.achieved();
            assert!(all.share > 0.99 || all.at_most > 0.99, "{window_s} s: {all:?}");
        }
        let late = two_steps(10, 10).achieved_by_labels(&[1].into(), Some(0.0));
        assert!(late.share > 0.99 && late.at_most <= late.share, "{late:?}");
    }

    /// Two labels of 400 each second, of which a system with a queue answers half: how fast it is the warm-up shows.
    #[test]
    fn a_backlog_in_a_short_window_behind_a_warm_up_is_one() {
        let mut totals = Totals::new(&["One".into(), "Two".into()]);
        for second in 0..8 {
            let mut one = interval(0, second, second + 1);
            one.in_window = second == 3;
            let open = 200 * (second + 1).min(8 - second);
            one.open_by_label = vec![(0, open), (1, open)];
            one.in_flight = 2 * open;
            if one.in_window {
                one.measured_offered = 800;
            }
            let took_us = 50_000 + second * 500_000;
            one.series = [0, 1].map(|label| unqueued((label, 200, took_us), (6..8).contains(&second))).into();
            totals.add_interval(&one);
        }
        for of in [totals.achieved(), totals.achieved_by_labels(&[1].into(), Some(0.0))] {
            assert!(of.steady_s < 0.1 && of.at_most < 0.6, "{of:?}");
        }
    }

    /// A system that answers one request after the other, each in 150 ms, and is offered so many each second, evenly.
    fn one_by_one(per_s: u64, warm_up_s: u64, window_s: u64) -> Totals {
        let mut totals = Totals::new(&["A".into()]);
        let answered_by = |end_s: u64| (end_s * 1_000 / 150).min(per_s * end_s);
        let load_s = warm_up_s + window_s;
        let due = |at_s: u64| per_s * at_s.min(load_s);
        for second in 0..load_s {
            let mut one = interval(0, second, second + 1);
            one.in_window = second >= warm_up_s;
            one.in_flight = due(second + 1) - answered_by(second + 1);
            if one.in_window {
                (one.offered, one.measured_offered) = (per_s, per_s);
            }
            let of_before = due(warm_up_s);
            let (from, to) = (answered_by(second), answered_by(second + 1));
            let measured = to.max(of_before) - from.max(of_before);
            one.series = [(measured, true), (to - from - measured, false)]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, measured)| unqueued((0, count as u32, 150_000 * (second + 1)), measured))
                .collect();
            totals.add_interval(&one);
        }
        let mut drain = interval(0, load_s, load_s + 60);
        let rest = due(load_s) - answered_by(load_s).max(due(warm_up_s));
        drain.series = vec![unqueued((0, rest as u32, 3_000_000), true)];
        totals.add_interval(&drain);
        totals
    }

    #[test]
    fn a_backlog_that_grows_evenly_is_no_chance() {
        // 6.67/s is what it can do
        for (per_s, warm_up_s, window_s) in [(10, 2, 8), (10, 0, 8), (15, 1, 6), (15, 1, 5), (9, 2, 12)] {
            let of = one_by_one(per_s, warm_up_s, window_s).achieved();
            let right = 1e3 / 150.0 / per_s as f64;
            assert!(
                (of.share - right).abs() < 0.05,
                "{per_s}/s for {warm_up_s} + {window_s} s: {of:?} of {right}"
            );
        }
        // too short to tell, and said to be
        for (per_s, warm_up_s, window_s) in [(10, 0, 3), (15, 0, 2), (10, 1, 3), (8, 1, 6)] {
            let of = one_by_one(per_s, warm_up_s, window_s).achieved();
            assert!(
                of.share < 0.99 || of.at_least < 0.99,
                "{per_s}/s for {warm_up_s} + {window_s} s: {of:?}"
            );
        }
        for (per_s, warm_up_s, window_s) in [(6, 2, 8), (6, 0, 3), (5, 0, 2), (3, 2, 30)] {
            let of = one_by_one(per_s, warm_up_s, window_s).achieved();
            assert!(of.at_least > 0.99, "{per_s}/s for {warm_up_s} + {window_s} s: {of:?}");
        }
    }

    /// As a load rises from 10/s to 210/s, as a share of it is under way as answers take, and a backlog is more.
    #[test]
    fn what_is_under_way_grows_with_the_load() {
        let ramp = |open: fn(u64) -> u64| {
            let mut totals = Totals::new(&["A".into()]);
            for second in 0..10 {
                let due = 20 + 20 * second;
                let mut one = interval(0, second, second + 1);
                (one.in_window, one.offered, one.measured_offered) = (true, due, due);
                one.in_flight = open(due);
                let ended = due + if second > 0 { open(due - 20) } else { 0 } - open(due);
                one.series = vec![unqueued((0, ended as u32, 500_000), true)];
                totals.add_interval(&one);
            }
            // the window ends a little later
            let mut rest = interval(0, 10, 10);
            rest.end_us += 10_000;
            (rest.in_window, rest.in_flight) = (true, open(200));
            totals.add_interval(&rest);
            let mut drain = interval(0, 11, 20);
            drain.series = vec![unqueued((0, open(200) as u32, 500_000), true)];
            totals.add_interval(&drain);
            totals.achieved()
        };
        let healthy = ramp(|due| due / 2);
        assert!(healthy.at_least > 0.999, "{healthy:?}");
        // it answers a hundred each second
        let overloaded = ramp(|due| 10 + due.saturating_sub(100) * due.saturating_sub(80) / 40);
        assert!((0.65..0.8).contains(&overloaded.share), "{overloaded:?}");
    }

    /// So many were due in each second, and so many were under way at its end.
    fn changing(seconds: &[(u64, u64)]) -> Achieved {
        let mut totals = Totals::new(&["A".into()]);
        let mut before = 0;
        for (second, (due, open)) in (0..).zip(seconds) {
            let mut one = interval(0, second, second + 1);
            (one.in_window, one.offered, one.measured_offered, one.in_flight) = (true, *due, *due, *open);
            // a phase begins a moment later
            if second == 3 {
                let mut rest = interval(0, 4, 4);
                rest.end_us += 10_000;
                (rest.in_window, rest.in_flight) = (true, *open);
                totals.add_interval(&rest);
            }
            let ended = (before + due).saturating_sub(*open) as u32;
            one.series = vec![unqueued((0, ended, 50_000), true)];
            before = *open;
            totals.add_interval(&one);
        }
        let length_s = seconds.len() as u64;
        let mut drain = interval(0, length_s, length_s + 9);
        drain.series = vec![unqueued((0, before as u32, 50_000), true)];
        totals.add_interval(&drain);
        totals.achieved()
    }

    #[test]
    fn a_load_that_changes_in_small_numbers_decides_nothing_by_chance() {
        // answers take a second on average, and the load goes from 3/s to 16/s
        for (open, end) in [(2, 15), (1, 20), (5, 14), (0, 16)] {
            let of = changing(&[(3, 2), (3, 3), (4, 3), (2, open), (17, 9), (15, 13), (16, 15), (15, end)]);
            assert!(of.share > 0.999 && of.load_changes, "{open} to {end}: {of:?}");
            // of none under way nobody knows how many are where more is due
            assert!(open == 0 || of.at_least > 0.9, "{open} to {end}: {of:?}");
        }
        // answers take four seconds, and the load falls from 50/s to 2/s
        let of = changing(&[(50, 44), (50, 80), (50, 105), (50, 126), (2, 100), (2, 78), (2, 60), (2, 47)]);
        assert!(of.at_least > 0.999 && of.load_changes, "{of:?}");
        // from 2/s to 30/s, of which it answers 19
        let of = changing(&[(4, 0), (9, 0), (14, 1), (18, 2), (23, 6), (28, 15)]);
        assert!(of.at_least < 0.95, "{of:?}");
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
