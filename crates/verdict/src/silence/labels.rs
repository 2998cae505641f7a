//! What each label answered, second by second, in bits: of a hundred labels two megabytes a day.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_record::{Outcome, QUIET_US, SECOND_US, ThreadInterval};

use super::Failed;

/// All labels.
#[derive(Debug, Default)]
pub(super) struct Labels {
    by_label: Vec<Label>,
}

#[derive(Debug, Default)]
struct Label {
    /// Seconds in which a good answer came.
    answered: Seconds,
    /// Seconds in which a request failed, or that ended while one was open.
    asked: Seconds,
    /// What failed in a second without a good answer, or in the one behind it.
    failed: BTreeMap<(u64, Outcome), u64>,
    /// Good answers in the window.
    good: u64,
    /// How long the longest of them took, and the longest behind the window, microseconds.
    longest_us: (u64, u64),
    /// Whether the window has begun.
    has_begun: bool,
}

/// A bit for each second of a run.
#[derive(Debug, Default)]
struct Seconds(Vec<u64>);

impl Seconds {
    fn set(&mut self, second: u64) {
        let word = (second / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (second % 64);
    }

    fn has(&self, second: u64) -> bool {
        self.0.get((second / 64) as usize).is_some_and(|word| word >> (second % 64) & 1 == 1)
    }
}

impl Labels {
    /// Adds what a thread handed over.
    pub fn add(&mut self, interval: &ThreadInterval) {
        // an interval lies within a second
        let second = interval.start_us / SECOND_US;
        for series in interval.series.iter().filter(|series| !series.response_time_us.is_empty()) {
            let (count, longest_us) = (series.response_time_us.len(), series.service_time_us.max());
            let of = self.of(series.label);
            of.has_begun |= interval.in_window;
            match series.outcome {
                Outcome::Ok => {
                    of.answered.set(second);
                    if interval.in_window {
                        of.good += count;
                        of.longest_us.0 = of.longest_us.0.max(longest_us);
                    } else if of.has_begun {
                        of.longest_us.1 = of.longest_us.1.max(longest_us);
                    }
                }
                // what was never sent says nothing about the system
                Outcome::Variable => {}
                failed => {
                    of.asked.set(second);
                    // between two seconds with good answers is no silence
                    let is_silent = second == 0 || !of.answered.has(second - 1);
                    if is_silent && (interval.in_window || series.measured) {
                        *of.failed.entry((second, failed)).or_default() += count;
                    }
                }
            }
        }
        for (label, _) in &interval.open_by_label {
            self.of(*label).asked.set(second);
        }
    }

    fn of(&mut self, label: u16) -> &mut Label {
        let label = usize::from(label);
        if self.by_label.len() <= label {
            self.by_label.resize_with(label + 1, Label::default);
        }
        &mut self.by_label[label]
    }

    /// Every label that was asked.
    pub fn all(&self) -> BTreeSet<usize> {
        (0..self.by_label.len()).collect()
    }

    fn each<'a>(&'a self, labels: &'a BTreeSet<usize>) -> impl Iterator<Item = &'a Label> {
        labels.iter().filter_map(|label| self.by_label.get(*label))
    }

    /// Good answers of these labels in the window.
    pub fn good(&self, labels: &BTreeSet<usize>) -> u64 {
        self.each(labels).map(|of| of.good).sum()
    }

    /// Whole seconds, one after the other, in which none of these labels had a good answer, behind one in which one had; the
    /// last has no end where none came again.
    pub fn quiet(&self, labels: &BTreeSet<usize>, begin_us: u64, end_us: u64) -> Vec<(u64, Option<u64>)> {
        let mut quiet = Vec::new();
        let mut last_good = None;
        for second in begin_us / SECOND_US..end_us.div_ceil(SECOND_US) {
            if self.each(labels).any(|of| of.answered.has(second)) {
                if let Some(last) = last_good.filter(|last| *last + 1 < second) {
                    // the answer came in that second, and not at its begin
                    quiet.push(((last + 1) * SECOND_US, Some(second * SECOND_US + 1)));
                }
                last_good = Some(second);
            }
        }
        let at_last = last_good.map(|last| (last + 1) * SECOND_US);
        quiet.extend(at_last.filter(|from_us| from_us + QUIET_US <= end_us).map(|from_us| (from_us, None)));
        quiet
    }

    /// How much of this time lies in seconds in which nothing was asked of these labels, microseconds.
    pub fn unasked_us(&self, labels: &BTreeSet<usize>, from_us: u64, to_us: u64) -> u64 {
        let seconds = from_us / SECOND_US..to_us.div_ceil(SECOND_US);
        let is_asked = |second: u64| self.each(labels).any(|of| of.asked.has(second));
        // a request that was open when the second before the last ended was so until that time's end
        let last = to_us.saturating_sub(1) / SECOND_US;
        let goes_on = |second: u64| second == last && second > from_us / SECOND_US && is_asked(second - 1);
        let unasked = seconds.filter(|second| !is_asked(*second) && !goes_on(*second));
        let within = |second: u64| {
            let begin_us = second * SECOND_US;
            (begin_us + SECOND_US).min(to_us).saturating_sub(begin_us.max(from_us))
        };
        unasked.map(within).sum()
    }

    /// What of these labels failed in this time.
    pub fn failed(&self, labels: &BTreeSet<usize>, from_us: u64, to_us: u64) -> Failed {
        let mut failed = Failed::new();
        for of in self.each(labels) {
            let seconds = (from_us / SECOND_US, Outcome::Ok)..(to_us.div_ceil(SECOND_US), Outcome::Ok);
            for ((_, outcome), count) in of.failed.range(seconds) {
                *failed.entry(*outcome).or_default() += count;
            }
        }
        failed
    }

    /// How long an answer behind the window took at most, of those labels, or all, that took more than so many times as long as in
    /// the window, microseconds. Of a label without an answer in the window nobody knows how long one takes.
    pub fn hung_us(&self, labels: Option<&BTreeSet<usize>>, times: u64) -> Option<u64> {
        let all = self.by_label.iter().enumerate();
        let of = all.filter(|(index, _)| labels.is_none_or(|labels| labels.contains(index)));
        let hung = of.filter(|(_, of)| of.good > 0 && of.longest_us.1 > times * of.longest_us.0);
        hung.map(|(_, of)| of.longest_us.1).max()
    }
}
