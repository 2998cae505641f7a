//! The figures of a run, kept while it runs: everything that a verdict and a summary are made from.

mod achieved;
mod bodies;
mod label;
mod own;
mod phase;
mod summarize;
mod thread;

use std::collections::BTreeMap;

use crate::figures::FigureTotals;
use crate::histogram::{Merged, merge, new_merged};
use crate::interval::{ErrorExample, LostTime, Outcome, ThreadInterval};
use crate::ledger::Part;
use crate::sample::Sample;
use crate::summary::{Process, ratio};
use crate::{Counters, OwnMetric, Ratio};

pub use achieved::{Achieved, LabelStart};
pub use bodies::Bodies;
pub use label::{DROPPED, LabelTotals};
pub use own::OwnTotals;
pub use phase::PhaseTotals;
pub use summarize::{summarize, tell_achieved_due};
pub use thread::{ThreadShare, ThreadTotals, tell_agents};

/// First failures that are kept of each kind.
pub const EXAMPLES_PER_KIND: usize = 5;
/// The name under which the whole machine is sampled; it is no process.
pub const MACHINE: &str = "machine";
/// The name under which the system under test is, all its processes together.
pub const SYSTEM: &str = "system";
/// The name under which the driver is.
pub const DRIVER: &str = "driver";

/// The measured window, microseconds since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Begin.
    pub start_us: u64,
    /// End.
    pub end_us: u64,
}

impl Window {
    /// Its length in seconds.
    pub fn length_s(&self) -> f64 {
        (self.end_us - self.start_us) as f64 / 1e6
    }
}

/// What the summary needs of a [`Sample`].
#[derive(Debug, Clone, Copy)]
struct Look {
    /// The time that it is about, microseconds since the run began.
    begin_us: u64,
    at_us: u64,
    cpu_share: f64,
    steal_share: f64,
    core_wait_share: f64,
    rss_bytes: u64,
}

/// Everything that a run came to, of the whole run and of its measured window.
#[derive(Debug, Clone)]
pub struct Totals {
    /// The measured window as far as it was reached; none if the run ended before it.
    pub window: Option<Window>,
    /// All labels together.
    pub all: LabelTotals,
    /// By label, in the scenario's order.
    pub by_label: Vec<LabelTotals>,
    /// By group of steps, in the scenario's order. None of them is among the requests.
    pub by_group: Vec<LabelTotals>,
    /// By phase of the load, in their order.
    pub phases: Vec<PhaseTotals>,
    /// What the scenario measured itself within the window, in its order.
    pub own: Vec<OwnTotals>,
    /// Ratios that the scenario asks for, without their values.
    ratios: Vec<Ratio>,
    /// Requests that were due within the window, whenever the driver turned to them: measured outcomes and measured
    /// drops, and what an abort left without an end.
    pub offered: u64,
    /// Requests given up that were due outside of the window: in the warm-up, say.
    pub unmeasured_dropped: u64,
    /// Requests that were due before the measured window and failed when it had begun, or later: how long after they were
    /// due that was known, by kind. Where all users wait so, nothing is due in the window.
    pub unanswered_us: BTreeMap<Outcome, Merged>,
    /// What was under way or waited at each interval's end, all threads together, by the end's microseconds.
    backlog: BTreeMap<u64, u64>,
    /// What was due in each interval, by its end as well.
    due: BTreeMap<u64, u64>,
    /// What was under way or waited, of each label that had any.
    label_backlog: BTreeMap<(u64, u16), u64>,
    /// Sessions that began over the whole load, by kind, those of the warm-up included; kinds behind the last are 0.
    pub sessions_begun: Vec<u64>,
    /// Those of them that began in the measured window, of all kinds.
    pub sessions_in_window: u64,
    /// By label: how large good answers were.
    bodies: Vec<Bodies>,
    /// When the load began, microseconds since the run began.
    load_begin_us: Option<u64>,
    /// By label.
    first: Vec<LabelStart>,
    /// Time of the window that users lost.
    pub lost_time: LostTime,
    /// What driving threads counted, over the whole run.
    pub counters: Counters,
    /// By label: good answers to requests that were open for the whole window, and how long the fastest took, microseconds.
    outlasting: BTreeMap<u16, (u64, u64)>,
    /// Service times of all good answers, warm-up included.
    all_service_time_us: Merged,
    /// How late requests left that were due within the window.
    pub lag_us: Merged,
    /// How late answers to such were read, of all or a sample; empty where the system does not tell.
    pub read_lag_us: Merged,
    /// Each driver thread within the window.
    pub threads: Vec<ThreadTotals>,
    /// The first failures of each kind, in order of time, warm-up included.
    pub error_examples: Vec<ErrorExample>,
    /// Answers to measured requests by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Writes entered in the ledger, of the whole run; none where it keeps none.
    pub entered: Option<Entered>,
    labels: Vec<String>,
    /// Texts by name that stand beside the labels.
    tags: Vec<BTreeMap<String, String>>,
    groups: Vec<String>,
    /// Names of the targets that requests went to, where there are several, and the labels of each.
    targets: Vec<(String, Vec<usize>)>,
    looks: Vec<(String, Vec<Look>)>,
    /// What stores said of themselves.
    pub(crate) figures: FigureTotals,
}

/// Writes that were entered in the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entered {
    /// By thread.
    sent: BTreeMap<u16, u64>,
    /// Those of them that were acknowledged.
    pub acknowledged: u64,
}

impl Entered {
    /// How many were sent.
    pub fn sent(&self) -> u64 {
        self.sent.values().sum()
    }

    /// Adds what a thread handed over.
    pub(crate) fn add(&mut self, part: &Part) {
        self.sent.insert(part.thread(), part.sent());
        self.acknowledged += part.acknowledged();
    }
}

impl Totals {
    /// Nothing yet.
    pub fn new(labels: &[String]) -> Totals {
        Totals {
            window: None,
            all: LabelTotals::default(),
            by_label: labels.iter().map(|_| LabelTotals::default()).collect(),
            by_group: Vec::new(),
            phases: Vec::new(),
            own: Vec::new(),
            ratios: Vec::new(),
            offered: 0,
            unmeasured_dropped: 0,
            unanswered_us: BTreeMap::new(),
            backlog: BTreeMap::new(),
            due: BTreeMap::new(),
            label_backlog: BTreeMap::new(),
            sessions_begun: Vec::new(),
            sessions_in_window: 0,
            bodies: labels.iter().map(|_| Bodies::default()).collect(),
            load_begin_us: None,
            first: vec![LabelStart::default(); labels.len()],
            lost_time: LostTime::default(),
            counters: Counters::default(),
            outlasting: BTreeMap::new(),
            all_service_time_us: new_merged(),
            lag_us: new_merged(),
            read_lag_us: new_merged(),
            threads: Vec::new(),
            error_examples: Vec::new(),
            statuses: Default::default(),
            entered: None,
            labels: labels.to_owned(),
            tags: Vec::new(),
            groups: Vec::new(),
            targets: Vec::new(),
            looks: Vec::new(),
            figures: FigureTotals::default(),
        }
    }

    /// These stand beside the labels.
    pub(crate) fn set_tags(&mut self, tags: &[BTreeMap<String, String>]) {
        self.tags = tags.to_owned();
    }

    /// Steps are in these groups, too.
    pub fn set_groups(&mut self, groups: &[String]) {
        self.by_group = groups.iter().map(|_| LabelTotals::default()).collect();
        self.groups = groups.to_owned();
    }

    /// The scenario measures this itself.
    pub fn set_own_metrics(&mut self, metrics: &[OwnMetric]) {
        self.own = metrics.iter().cloned().map(OwnTotals::new).collect();
    }

    /// The scenario asks for these.
    pub(crate) fn set_ratios(&mut self, ratios: &[Ratio]) {
        self.ratios = ratios.to_owned();
    }

    /// What a counter of the scenario's own came to within the window, or how many good answers of a label came in it: both by
    /// when they were there, so that they fit together.
    fn counted(&self, name: &str) -> f64 {
        let own = self.own.iter().find(|own| own.metric.name == name).map(|own| own.values.sum);
        let label = || self.labels.iter().position(|label| label == name);
        own.or_else(|| Some(self.by_label[label()?].good_in_window as f64)).unwrap_or(0.0)
    }

    /// Requests go to these targets: a label's to the one of this index. Figures are kept apart where there are several.
    pub(crate) fn set_targets(&mut self, names: &[String], of_labels: &[usize]) {
        let labels = |target: usize| (0..of_labels.len()).filter(move |label| of_labels[*label] == target);
        let each = names.iter().enumerate().map(|(target, name)| (name.clone(), labels(target).collect()));
        self.targets = if names.len() > 1 { each.collect() } else { Vec::new() };
    }

    /// Labels whose good answers became larger or smaller over the window, with their mean size at first and at last, bytes.
    pub fn changed_bodies(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let labels = self.labels.iter().zip(&self.bodies);
        labels
            .filter_map(|(label, bodies)| bodies.change().map(|(first, last)| (label.as_str(), first, last)))
    }

    /// Names of the targets, and the labels of each, where there are several.
    pub fn targets(&self) -> &[(String, Vec<usize>)] {
        &self.targets
    }

    /// What came of the requests of these labels together.
    pub fn of_labels(&self, labels: impl IntoIterator<Item = usize>) -> LabelTotals {
        let mut of = LabelTotals::default();
        labels.into_iter().filter_map(|label| self.by_label.get(label)).for_each(|label| of.add_label(label));
        of
    }

    /// The target that a label's requests went to; empty where there is only one.
    fn target_of(&self, label: usize) -> &str {
        let of_label = self.targets.iter().find(|(_, labels)| labels.contains(&label));
        of_label.map_or("", |(name, _)| name)
    }

    /// The figures of one label, or of all of them.
    pub fn of(&self, label: Option<u16>) -> &LabelTotals {
        label.and_then(|label| self.by_label.get(usize::from(label))).unwrap_or(&self.all)
    }

    /// When the labels were first asked, and how fast they answered before the window.
    fn add_first(&mut self, interval: &ThreadInterval) {
        let load_begin_us = self.load_begin_us.map_or(interval.start_us, |us| us.min(interval.start_us));
        self.load_begin_us = Some(load_begin_us);
        let end_us = interval.end_us;
        let open = interval.open_by_label.iter().map(|(label, _)| (*label, LabelStart::seen(end_us)));
        for (label, mut first) in interval.label_starts().iter().copied().chain(open) {
            // within an interval nobody knows when: what is asked in the first is asked from the begin on
            let first_end_us = load_begin_us + end_us.saturating_sub(interval.start_us);
            first.seen_us = first.seen_us.map(|us| if us <= first_end_us { load_begin_us } else { us });
            if let Some(known) = self.first.get_mut(usize::from(label)) {
                known.add(first);
            }
        }
    }

    /// Adds what one thread did, or several together.
    ///
    /// # Panics
    /// Where it has a label, a group, or a metric, that is none of those given at the begin.
    pub fn add_interval(&mut self, interval: &ThreadInterval) {
        for series in &interval.series {
            self.all.add(series, series.measured, interval.in_window);
            if !series.outcome.is_error() {
                merge(&mut self.all_service_time_us, &series.service_time_us);
                self.add_outlasting(interval, series);
            }
            self.by_label[usize::from(series.label)].add(series, series.measured, interval.in_window);
            if interval.in_window && series.measured {
                self.bodies[usize::from(series.label)].add(interval.end_us, series.bodies, series.body_bytes);
            }
        }
        for series in &interval.groups {
            self.by_group[usize::from(series.label)].add(series, series.measured, interval.in_window);
        }
        self.phases.iter_mut().for_each(|phase| phase.add(interval));
        for series in interval.parts.iter().filter(|series| series.measured) {
            self.all.parts.add(series);
            self.by_label[usize::from(series.label)].parts.add(series);
        }
        for series in interval.own.iter().filter(|_| interval.in_window) {
            self.own[usize::from(series.metric)].values.add(series);
        }
        self.add_unanswered(interval);
        *self.backlog.entry(interval.end_us).or_default() += interval.in_flight + interval.waiting;
        *self.due.entry(interval.end_us).or_default() += interval.offered;
        for (label, count) in &interval.open_by_label {
            *self.label_backlog.entry((interval.end_us, *label)).or_default() += count;
        }
        for (kind, count) in &interval.sessions_begun {
            let kind = usize::from(*kind);
            if self.sessions_begun.len() <= kind {
                self.sessions_begun.resize(kind + 1, 0);
            }
            self.sessions_begun[kind] += count;
            self.sessions_in_window += if interval.in_window { *count } else { 0 };
        }
        self.add_first(interval);
        self.lost_time.add(&interval.lost_time);
        self.counters += &interval.counters;
        for (label, count) in &interval.unconnected {
            self.all.unconnected += count;
            if let Some(of) = label.and_then(|label| self.by_label.get_mut(usize::from(label))) {
                of.unconnected += count;
            }
        }
        self.add_examples(&interval.examples);
        for (status, count) in &interval.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.offered += interval.measured_offered;
        self.add_dropped(interval.measured_dropped);
        self.unmeasured_dropped += interval.dropped.saturating_sub(interval.measured_dropped);
        merge(&mut self.lag_us, &interval.lag_us);
        merge(&mut self.read_lag_us, &interval.read_lag_us);
        if interval.in_window {
            self.add_to_window(interval);
        } else {
            interval
                .shares()
                .iter()
                .for_each(|share| self.add_thread(share.thread, &share.totals.lag_alone()));
        }
    }

    fn add_thread(&mut self, thread: u16, totals: &ThreadTotals) {
        let thread = usize::from(thread);
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, ThreadTotals::default());
        }
        self.threads[thread].add(totals);
    }

    /// The interval lies within what these are the totals of.
    fn add_to_window(&mut self, interval: &ThreadInterval) {
        let Window { start_us, end_us } =
            self.window.unwrap_or(Window { start_us: interval.start_us, end_us: interval.end_us });
        self.window =
            Some(Window { start_us: start_us.min(interval.start_us), end_us: end_us.max(interval.end_us) });
        interval.shares().iter().for_each(|share| self.add_thread(share.thread, &share.totals));
    }

    /// What was due at the window's begin, or before it, and ended after it was open for all of it.
    fn add_outlasting(&mut self, interval: &ThreadInterval, series: &crate::Series) {
        let Some(window) = self.window.filter(|of| !interval.in_window && of.end_us <= interval.start_us)
        else {
            return;
        };
        let times_us = &series.response_time_us;
        let window_us = window.end_us - window.start_us;
        let count = match series.measured {
            true => times_us.count_between(window_us, times_us.max().max(window_us)),
            false => times_us.len(),
        };
        if count > 0 {
            let (known, fastest_us) = self.outlasting.entry(series.label).or_insert((0, u64::MAX));
            *known += count;
            *fastest_us = (*fastest_us).min(times_us.min().max(window_us));
        }
    }

    /// Good answers of a label to requests that were open for the whole window.
    pub fn outlasting_of(&self, label: u16) -> u64 {
        self.outlasting.get(&label).map_or(0, |(count, _)| *count)
    }

    /// Good answers to requests that were open for the whole window, of labels that had none within it, and how long the
    /// fastest of them took, seconds: the window says nothing of these.
    pub fn outlasting(&self) -> (u64, f64) {
        let without =
            |label: &u16| self.by_label.get(usize::from(*label)).is_some_and(|of| of.good_in_window == 0);
        let of_labels = self.outlasting.iter().filter(|(label, _)| without(label));
        let sum = of_labels.fold((0, u64::MAX), |sum, (_, of)| (sum.0 + of.0, sum.1.min(of.1)));
        (sum.0, sum.1 as f64 / 1e6)
    }

    fn add_unanswered(&mut self, interval: &ThreadInterval) {
        let has_begun =
            interval.in_window || self.window.is_some_and(|window| window.start_us <= interval.start_us);
        // what a scenario lacks is not the system's doing
        let unanswered = |series: &&crate::Series| {
            !series.measured && !matches!(series.outcome, Outcome::Ok | Outcome::Variable)
        };
        for series in interval.series.iter().filter(unanswered).filter(|_| has_begun) {
            let known_after_us = self.unanswered_us.entry(series.outcome).or_insert_with(new_merged);
            merge(known_after_us, &series.response_time_us);
        }
    }

    /// Given up; where there is but one label, it was to be one of its requests.
    fn add_dropped(&mut self, measured: u64) {
        self.all.dropped += measured;
        if let [only] = &mut self.by_label[..] {
            only.dropped += measured;
        }
    }

    fn add_examples(&mut self, examples: &[ErrorExample]) {
        if examples.is_empty() {
            return;
        }
        self.error_examples.extend_from_slice(examples);
        keep_first(&mut self.error_examples);
    }

    /// Adds a look at a process.
    pub(crate) fn add_sample(&mut self, sample: &Sample) {
        let known = self.looks.iter_mut().find(|(name, _)| *name == sample.process);
        let before_us = known.as_ref().and_then(|(_, looks)| Some(looks.last()?.at_us));
        let look = Look {
            begin_us: sample.begin_us(before_us),
            at_us: sample.at_us,
            cpu_share: sample.cpu_share,
            steal_share: sample.steal_share,
            core_wait_share: sample.core_wait_share,
            rss_bytes: sample.rss_bytes,
        };
        match known {
            Some((_, looks)) => looks.push(look),
            None => self.looks.push((sample.process.clone(), vec![look])),
        }
    }

    /// The largest share of a driving thread's time in the window in which it did nothing but compute for sessions, 0 to 1.
    pub fn computing_share(&self) -> f64 {
        self.threads.iter().map(ThreadTotals::computing_share).fold(0.0, f64::max)
    }

    /// CPU and memory of each process over the measured window, and what was answered for its CPU.
    pub fn processes(&self) -> Vec<Process> {
        let Some(window) = self.window else { return Vec::new() };
        let mut processes = self.processes_within(window);
        for process in processes.iter_mut().filter(|process| process.name != DRIVER && process.cpu_s > 0.0) {
            process.good_per_cpu_s = Some(self.all.good_in_window as f64 / process.cpu_s);
        }
        processes
    }

    /// CPU and memory of each process over some time; nothing of what was answered. A look counts with the part of its time that
    /// lies within.
    pub fn processes_within(&self, time: Window) -> Vec<Process> {
        let processes = self.looks.iter().filter(|(name, _)| name != MACHINE);
        let process = |(name, looks): &(String, Vec<Look>)| {
            let (mut cpu_s, mut waited_s, mut seen_s, mut rss_bytes_max) = (0.0, 0.0, 0.0, 0);
            for (look, within_s) in within(looks, time) {
                cpu_s += look.cpu_share * within_s;
                waited_s += look.core_wait_share * within_s;
                seen_s += within_s;
                rss_bytes_max = rss_bytes_max.max(look.rss_bytes);
            }
            let cpu_share = ratio(cpu_s, seen_s);
            let core_wait_share = (waited_s > 0.0).then(|| ratio(waited_s, seen_s));
            let name = name.clone();
            let seen_s = Some(seen_s);
            Process { name, cpu_s, seen_s, cpu_share, core_wait_share, rss_bytes_max, good_per_cpu_s: None }
        };
        processes.map(process).collect()
    }

    /// Mean cores' worth of time that the hypervisor took away during the measured window.
    pub fn steal_share(&self) -> f64 {
        let machine = self.looks.iter().find(|(name, _)| name == MACHINE);
        let (Some(window), Some((_, looks))) = (self.window, machine) else { return 0.0 };
        let sums = within(looks, window)
            .fold((0.0, 0.0), |(stolen, seen), (look, s)| (stolen + look.steal_share * s, seen + s));
        ratio(sums.0, sums.1)
    }
}

/// Keeps the first examples of each kind, in order of time.
pub(crate) fn keep_first(examples: &mut Vec<ErrorExample>) {
    examples.sort_by_key(|example| example.at_us);
    let mut kept = [0; Outcome::ALL.len()];
    examples.retain(|example| {
        kept[example.outcome as usize] += 1;
        kept[example.outcome as usize] <= EXAMPLES_PER_KIND
    });
}

/// The looks that have a part within the window, each with the seconds of that part.
fn within(looks: &[Look], window: Window) -> impl Iterator<Item = (&Look, f64)> {
    let part = move |look: &Look| {
        look.at_us.min(window.end_us).saturating_sub(look.begin_us.max(window.start_us)) as f64 / 1e6
    };
    looks.iter().map(move |look| (look, part(look))).filter(|(_, s)| *s > 0.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::interval::CoreWaits;
    use crate::summary::{Driver, Summary};
    use crate::test_run::{interval, series};

    fn sample(at_s: f64, process: &str, cpu_share: f64, rss_bytes: u64) -> Sample {
        Sample {
            at_us: (at_s * 1e6) as u64,
            process: process.into(),
            cpu_share,
            rss_bytes,
            steal_share: cpu_share / 10.0,
            ..Sample::default()
        }
    }

    #[test]
    fn figures_of_a_target_are_those_of_its_labels_together() {
        let mut totals = Totals::new(&["a".into(), "b".into(), "c".into()]);
        let mut one = interval(0, 0, 2);
        one.in_window = true;
        one.series = vec![
            series(0, Outcome::Ok, true, &[(1_000, 30)]),
            series(1, Outcome::Ok, true, &[(2_000, 8)]),
            series(2, Outcome::Ok, true, &[(3_000, 10)]),
            series(2, Outcome::Connect, true, &[(10, 2)]),
        ];
        totals.add_interval(&one);
        assert!(summarize(&totals, Path::new("x")).targets.is_empty(), "of one target nothing is told apart");
        totals.set_targets(&["system".into()], &[0, 0, 0]);
        assert!(summarize(&totals, Path::new("x")).targets.is_empty());
        totals.set_targets(&["system".into(), "cache".into()], &[0, 1, 1]);
        let summary = summarize(&totals, Path::new("x"));
        let told = |index: usize| {
            let of = &summary.targets[index];
            (of.target.as_str(), of.requests, of.share, of.achieved_per_s, of.errors.get("connect").copied())
        };
        assert_eq!(told(0), ("system", 30, 0.6, 15.0, None));
        assert_eq!(told(1), ("cache", 20, 0.4, 9.0, Some(2)));
        assert_eq!(summary.targets[1].response_time_us.p50, summary.steps[2].response_time_us.p50);
        assert_eq!(summary.targets[1].response_time_us.p99, None, "two of twenty failed");
        let of_steps: Vec<&str> = summary.steps.iter().map(|step| step.target.as_str()).collect();
        assert_eq!(of_steps, ["system", "cache", "cache"]);
    }

    #[test]
    fn groups_have_figures_of_their_own_and_are_in_no_other() {
        let mut totals = Totals::new(&["a".into()]);
        totals.set_groups(&["both".into(), "never".into()]);
        let mut one = interval(0, 0, 2);
        one.in_window = true;
        one.series = vec![series(0, Outcome::Ok, true, &[(1_000, 40)])];
        one.groups = vec![
            series(0, Outcome::Ok, true, &[(2_000, 18)]),
            series(0, Outcome::Ok, false, &[(9_000, 1)]),
            series(0, Outcome::Status, true, &[(2_000, 2)]),
        ];
        totals.add_interval(&one);
        let summary = summarize(&totals, Path::new("x"));
        assert_eq!((summary.requests, summary.failed, summary.achieved_per_s), (40, 0, 20.0));
        assert_eq!(summary.response_time_us.max, Some(1_000));
        let both = &summary.groups[0];
        assert_eq!((both.group.as_str(), both.count, both.achieved_per_s), ("both", 20, 9.5));
        assert_eq!(both.errors, [("status".to_owned(), 2)].into());
        assert_eq!((both.response_time_us.p90, both.response_time_us.p99), (Some(2_000), None));
        assert_eq!(summary.groups[1].count, 0);
    }

    #[test]
    fn achieved_counts_what_ended_in_the_window_and_requests_what_was_due_in_it() {
        let mut totals = Totals::new(&["a".into(), "b".into()]);
        // Warm-up: nothing of it counts.
        let mut warm = interval(0, 0, 1);
        warm.series = vec![series(0, Outcome::Ok, false, &[(500, 100)])];
        totals.add_interval(&warm);
        // First measured second: 10 stragglers of the warm-up end in it, 30 own ones, 2 of them failed.
        let mut first = interval(0, 1, 2);
        first.in_window = true;
        (first.offered, first.measured_offered) = (40, 40);
        first.cpu_us = 300_000;
        first.series = vec![
            series(0, Outcome::Ok, false, &[(9_000, 10)]),
            series(0, Outcome::Ok, true, &[(1_000, 28)]),
            series(1, Outcome::Timeout, true, &[(5_000_000, 2)]),
        ];
        totals.add_interval(&first);
        let mut second = interval(1, 2, 3);
        second.in_window = true;
        (second.offered, second.measured_offered) = (60, 60);
        (second.dropped, second.measured_dropped) = (4, 4);
        second.cpu_us = 900_000;
        second.statuses = vec![(200, 48), (304, 2)];
        second.series = vec![series(1, Outcome::Ok, true, &[(2_000, 50)])];
        totals.add_interval(&second);
        // Drain: due in the window, ended after it.
        let mut drain = interval(0, 3, 4);
        drain.cpu_us = 777_000;
        drain.statuses = vec![(200, 5)];
        drain.series = vec![series(0, Outcome::Ok, true, &[(800_000, 5)])];
        totals.add_interval(&drain);

        let summary = summarize(&totals, Path::new("runs/x"));
        assert_eq!(summary.measured_s, 2.0);
        assert_eq!(summary.offered_per_s, 50.0);
        assert_eq!(summary.achieved_per_s, (10 + 28 + 50) as f64 / 2.0, "good answers");
        assert_eq!(summary.requests, 28 + 2 + 50 + 5);
        assert_eq!(summary.errors.get("timeout"), Some(&2));
        assert_eq!(summary.errors.len(), 1);
        assert_eq!(summary.dropped, 4);
        assert_eq!(summary.statuses, [("200".to_owned(), 53), ("304".to_owned(), 2)].into());
        // 6 of 89 had no good answer: whoever asks for the longest is told that there is none
        let all = &summary.response_time_us;
        assert_eq!((all.p50, all.p99, all.max, all.mean), (Some(2_000), None, None, None));
        assert!((800_000..1_000_000).contains(&summary.good.response_time_us.max.unwrap()));
        assert_eq!((summary.good.requests, summary.failed, summary.due()), (83, 6, 89));
        let kinds: Vec<(&str, u64)> =
            summary.failures.iter().map(|of| (of.kind.as_str(), of.count)).collect();
        assert_eq!(kinds, [("dropped", 4), ("timeout", 2)]);
        assert!(summary.failures[1].known_after_us.p50 >= Some(5_000_000));
        assert_eq!(summary.failures[0].known_after_us.p50, None);
        assert_eq!(summary.steps[0].requests, 33);
        assert_eq!(summary.steps[0].achieved_per_s, 19.0);
        assert!((summary.steps[1].share - 52.0 / 85.0).abs() < 1e-9);
        assert_eq!(summary.driver.threads, 2);
        assert!((summary.driver.cpu_s - 1.2).abs() < 1e-9);
        assert!(
            (summary.driver.busiest_thread_share - 0.9).abs() < 1e-9,
            "of the time that the thread tells of"
        );
        assert_eq!(summary.driver.waited_share, None, "nobody told");
        assert_eq!(summary.run_dir, "runs/x");
    }

    fn driver_of(waits: [(u64, u64, Option<CoreWaits>); 2]) -> Driver {
        let mut totals = Totals::new(&[]);
        for (thread, (length_s, cpu_us, core_waits)) in (0..).zip(waits) {
            let mut one = interval(thread, 1, 1 + length_s);
            (one.in_window, one.cpu_us, one.core_waits) = (true, cpu_us, core_waits);
            totals.add_interval(&one);
            let mut outside = interval(thread, 0, 1);
            outside.core_waits = Some(CoreWaits { waited_us: 1_000_000, sleeps: 1 });
            totals.add_interval(&outside);
        }
        summarize(&totals, Path::new("x")).driver
    }

    #[test]
    fn waiting_is_of_all_threads_and_idleness_of_the_one_that_had_least() {
        let waits = |waited_us, sleeps| Some(CoreWaits { waited_us, sleeps });
        let driver =
            driver_of([(2, 1_000_000, waits(400_000, 1_000)), (2, 500_000, waits(1_400_000, 8_000))]);
        assert_eq!((driver.waited_share, driver.wanted_share), (Some(0.45), Some(0.95)));
        assert_eq!(driver.core_wait_us, Some(200.0));
        // never asleep: it waited all of it at once; the account may run ahead of the clock by a little
        let driver = driver_of([(1, 250_000, waits(750_100, 0)), (1, 0, waits(0, 0))]);
        assert_eq!((driver.core_wait_us, driver.wanted_share), (Some(750_100.0), Some(1.0)));
    }

    #[test]
    fn absence_is_that_of_the_thread_that_was_absent_longest_within_the_window() {
        let mut totals = Totals::new(&[]);
        for (thread, absent_us) in [(0, 300_000), (1, 700_000)] {
            for second in 0..3 {
                let mut one = interval(thread, second, second + 1);
                (one.in_window, one.absent_us) = (second > 0, absent_us);
                totals.add_interval(&one);
            }
        }
        assert_eq!(summarize(&totals, Path::new("x")).driver.absent_s, 1.4);
    }

    #[test]
    fn one_thread_that_does_not_tell_of_its_waits_leaves_them_unknown() {
        let driver = driver_of([(2, 0, Some(CoreWaits { waited_us: 9, sleeps: 1 })), (2, 0, None)]);
        assert_eq!((driver.waited_share, driver.wanted_share, driver.core_wait_us), (None, None, None));
    }

    #[test]
    fn what_was_due_in_the_window_and_left_after_it_left_late() {
        let mut totals = Totals::new(&[]);
        let mut within = interval(0, 1, 2);
        within.in_window = true;
        within.lag_us.record_n(10, 9);
        within.unmeasured_lag_us.record(70_000);
        let mut after = interval(0, 2, 3);
        after.lag_us.record_n(500_000, 3);
        after.unmeasured_lag_us.record_n(900_000, 5);
        totals.add_interval(&within);
        totals.add_interval(&after);
        let driver = summarize(&totals, Path::new("x")).driver;
        assert_eq!((totals.lag_us.len(), driver.late), (12, 3));
        assert!((499_000..=501_000).contains(&driver.lag_us.max.unwrap()), "{:?}", driver.lag_us);
    }

    #[test]
    fn what_was_due_before_the_window_and_failed_when_it_had_begun_is_known() {
        let mut totals = Totals::new(&["a".into()]);
        let ended = |start_s, in_window, outcome, measured| {
            let mut one = interval(0, start_s, start_s + 1);
            one.in_window = in_window;
            one.series = vec![series(0, outcome, measured, &[(4_000_000, 2)])];
            one
        };
        totals.add_interval(&ended(0, false, Outcome::Timeout, false));
        assert!(totals.unanswered_us.is_empty(), "the window has not begun");
        totals.add_interval(&ended(1, true, Outcome::Ok, false));
        totals.add_interval(&ended(1, true, Outcome::Variable, false));
        totals.add_interval(&ended(1, true, Outcome::Timeout, true));
        assert!(totals.unanswered_us.is_empty());
        totals.add_interval(&ended(1, true, Outcome::Timeout, false));
        totals.add_interval(&ended(2, false, Outcome::Connect, false));
        totals.add_interval(&ended(2, false, Outcome::Unfinished, false));
        let counts = totals.unanswered_us.values().map(|times| (times.len(), times.max() / 4_000_000));
        assert_eq!(counts.collect::<Vec<_>>(), [(2, 1), (2, 1), (2, 1)]);
    }

    #[test]
    fn what_is_given_up_counts_by_when_it_was_due() {
        let mut totals = Totals::new(&[]);
        let mut warm = interval(0, 0, 1);
        (warm.offered, warm.dropped) = (20, 7);
        let mut within = interval(0, 1, 2);
        // two of the warm-up were given up late
        (within.in_window, within.offered, within.measured_offered) = (true, 30, 28);
        (within.dropped, within.measured_dropped) = (5, 3);
        let mut drain = interval(0, 2, 3);
        (drain.offered, drain.measured_offered, drain.dropped, drain.measured_dropped) = (4, 4, 4, 4);
        [warm, within, drain].iter().for_each(|one| totals.add_interval(one));
        assert_eq!(totals.offered, 32);
        assert_eq!((totals.all.dropped, totals.unmeasured_dropped), (7, 9));
    }

    #[test]
    fn a_run_without_a_window_has_zeros_not_nans() {
        let mut totals = Totals::new(&["a".into()]);
        totals.add_interval(&interval(0, 0, 1));
        totals.add_sample(&sample(1.0, "system", 1.0, 1));
        let summary = summarize(&totals, Path::new("x"));
        assert_eq!((summary.achieved_per_s, summary.measured_s), (0.0, 0.0));
        // JSON has no NaN: one would be written as null and not be read again.
        let text = serde_json::to_string(&summary).unwrap();
        assert!(serde_json::from_str::<Summary>(&text).is_ok(), "{text}");
    }

    #[test]
    fn looks_count_with_their_part_of_the_window() {
        let mut totals = Totals::new(&[]);
        let mut measured = interval(0, 2, 4);
        measured.in_window = true;
        totals.add_interval(&measured);
        for (at_s, cpu) in [(1.0, 9.0), (2.5, 1.0), (3.5, 2.0), (4.5, 4.0), (5.5, 9.0)] {
            totals.add_sample(&sample(at_s, "system", cpu, (cpu * 100.0) as u64));
            totals.add_sample(&sample(at_s, MACHINE, cpu, 0));
        }
        let processes = totals.processes();
        assert_eq!(processes.len(), 1, "the machine is no process");
        // 0.5 s at 1, 1 s at 2, 0.5 s at 4.
        assert!((processes[0].cpu_s - 4.5).abs() < 1e-9, "{processes:?}");
        assert!((processes[0].cpu_share - 2.25).abs() < 1e-9);
        assert_eq!((processes[0].rss_bytes_max, processes[0].seen_s), (400, Some(2.0)));
        // 0.5 s at 1, 0.5 s at 2
        let part = totals.processes_within(Window { start_us: 2_000_000, end_us: 3_000_000 });
        assert!((part[0].cpu_s - 1.5).abs() < 1e-9 && part[0].good_per_cpu_s.is_none(), "{part:?}");
        assert!((totals.steal_share() - 0.225).abs() < 1e-9);
        // one that was seen first when the window was nearly over
        totals.add_sample(&sample(4.5, "late", 1.0, 1));
        let late = totals.processes().pop().unwrap();
        assert_eq!((late.name.as_str(), late.cpu_s, late.seen_s), ("late", 0.5, Some(0.5)));
        // nobody looked for a while: a look says how much it is about
        totals.add_sample(&sample(2.5, "resumed", 1.0, 1));
        let after = Sample { length_us: 250_000, ..sample(4.0, "resumed", 2.0, 1) };
        totals.add_sample(&after);
        let resumed = totals.processes().pop().unwrap();
        assert_eq!((resumed.cpu_s, resumed.seen_s, resumed.cpu_share), (1.0, Some(0.75), 1.0 / 0.75));
    }

    #[test]
    fn only_the_first_examples_of_each_kind_are_kept() {
        let mut totals = Totals::new(&["a".into()]);
        let example = |at_us, outcome| ErrorExample { at_us, label: 0, outcome, detail: "x".into() };
        let mut late = interval(0, 1, 2);
        late.examples = (100..120).map(|at| example(at, Outcome::Status)).collect();
        totals.add_interval(&late);
        let mut early = interval(1, 0, 1);
        early.examples = vec![example(3, Outcome::Status), example(200, Outcome::Reset)];
        totals.add_interval(&early);
        let kept: Vec<_> = totals.error_examples.iter().map(|e| e.at_us).collect();
        assert_eq!(kept, [3, 100, 101, 102, 103, 200]);
    }
}
