//! A system that stopped answering, for a while or for good.
//!
//! Users of a closed model send less when nothing answers, so that a system that dies halfway has a small share of
//! errors and a good throughput of the first half: by its figures alone such a run would pass. Of one that keeps its
//! connections and says nothing more, no more fails than there are users, and that is known after the window only. So
//! what counts here is time, not requests: from one good answer to the next, wherever seconds begin.
//!
//! A part of it may be silent while others answer: a label, and a group, a target or a kind of sessions. It is judged in the
//! same way, by whole seconds, of which only those count in which anything was asked of it.

mod labels;

use std::collections::{BTreeMap, BTreeSet};

use tidemark_record::{Outcome, QUIET_US, SECOND_US, ThreadInterval, Window};

use crate::chance::is_too_rare;
use crate::driver::{CORE_WAIT_SHARE_MAX, NO_CORE_SHARE};
use crate::parts::Named;
use labels::Labels;

/// So many failures in a silence are no chance, …
const FAILURES: u64 = 10;
/// … nor is any, where so many requests would have succeeded at the rate of the other time.
const MISSED: f64 = 10.0;
/// Least part of a silence that lies within the window, microseconds: answers come several at once.
const WITHIN_US: u64 = 100_000;
/// Least share of the window that a silence within it takes to count: that of failed requests in `errors < 0.1%`.
const SHARE: f64 = 0.001;
/// An answer that took more than so many times as long as any in the window is a hang, not a slow answer.
const HUNG: u64 = 2;
/// Nor is a silence more than usual that is no longer than so many times one in which nothing failed.
const USUAL: u64 = 2;

/// A freeze is longer than so many times the median answer: users in step wait together for answers that are slow.
const FROZEN: u64 = 5;

/// Who is silent where all are.
const SYSTEM: &str = "the system";

/// A silence that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// What is said of it.
    pub reason: String,
    /// When it was, as far as it is known and lies behind the window's begin.
    pub time: Window,
    /// By what most failed in it.
    pub failed_by: FailedBy,
    /// The share of it in which every driving thread waited for a core at most, as far as that is known, 0 to 1: it heard
    /// nothing then.
    pub unheard_share: f64,
    /// Whether it would count without that time, too.
    pub counts_as_heard: bool,
}

/// By what most failed in a silence; the later, the less it tells of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailedBy {
    /// By answers, which the driver read: it was not the driver that missed them.
    Answered,
    /// By connections that were refused or broken off: by who should have answered.
    Refused,
    /// Nobody said anything, and time ran out.
    TimedOut,
}

impl FailedBy {
    fn of(outcome: Outcome) -> FailedBy {
        match outcome {
            Outcome::Status | Outcome::Check | Outcome::Protocol => FailedBy::Answered,
            Outcome::Connect | Outcome::Reset => FailedBy::Refused,
            Outcome::Timeout | Outcome::Unfinished => FailedBy::TimedOut,
            // never among what failed in a silence
            Outcome::Ok | Outcome::Variable => FailedBy::TimedOut,
        }
    }
}

impl Outage {
    /// Whether the driver was on its core enough of that time to say that the system was silent, and not itself.
    pub fn is_heard(&self) -> bool {
        match self.failed_by {
            FailedBy::Answered => true,
            // it may have let them go itself
            FailedBy::Refused => self.unheard_share <= NO_CORE_SHARE,
            // answers may lie unread, and a system beside it may have had no core either
            FailedBy::TimedOut => self.unheard_share <= CORE_WAIT_SHARE_MAX && self.counts_as_heard,
        }
    }
}

type Failed = BTreeMap<Outcome, u64>;

/// What ended in an interval, all threads together.
#[derive(Debug, Default)]
struct Slice {
    start_us: u64,
    /// How long a thread was not there; the longest.
    absent_us: u64,
    /// How long each thread that had a good answer before waited for a core at least; none before the first has told.
    waited_us: Option<u64>,
    failed: Failed,
    /// When the first and the last failed.
    failed_us: Option<(u64, u64)>,
}

/// When a thread had no good answer.
#[derive(Debug, Default)]
struct Thread {
    quiet: Vec<(u64, u64)>,
    last_good_us: u64,
    /// Whether it ever had one: a thread without users hears nothing on any core.
    had_good: bool,
}

/// A time in which no thread had a good answer; for good where it has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quiet {
    begin_us: u64,
    end_us: Option<u64>,
}

impl Quiet {
    /// 0 where it has no end.
    fn length_us(&self) -> u64 {
        self.end_us.map_or(0, |end_us| end_us - self.begin_us)
    }
}

/// When requests succeeded and failed.
#[derive(Debug, Default)]
pub struct Silence {
    /// Whether a silence that ends within the window counts.
    judges_breaks: bool,
    /// Whether faults are asked for.
    has_faults: bool,
    /// The measured window, as far as it was reached.
    window: Option<(u64, u64)>,
    /// Begin and end of all that is known.
    known: Option<(u64, u64)>,
    /// When nothing more was sent, where that was before the time.
    stopped_us: Option<u64>,
    good: u64,
    threads: BTreeMap<u16, Thread>,
    /// From the window's begin on, by the interval's end.
    slices: BTreeMap<u64, Slice>,
    labels: Labels,
}

/// Who is silent: the system, or a part of it.
struct Heard<'a> {
    /// In a sentence.
    who: &'a str,
    /// The labels of a part; none of the system.
    labels: Option<&'a BTreeSet<usize>>,
    /// Good answers in the window.
    good: u64,
    quiet: Vec<Quiet>,
    /// How many silences are looked at, in how many parts.
    looks: usize,
}

impl Silence {
    /// Nothing yet. `judges_breaks`: whether a silence counts after which the system answers again, as it does where
    /// nobody asked for a fault and nobody allows that much to fail.
    pub fn new(judges_breaks: bool) -> Self {
        Silence { judges_breaks, ..Silence::default() }
    }

    /// Whether faults are asked for: nobody is told then that the system froze.
    pub fn beside_faults(self, has_faults: bool) -> Self {
        Silence { has_faults, ..self }
    }

    /// Takes what threads handed over. Threads report in their own time.
    pub fn add(&mut self, interval: &ThreadInterval) {
        let (start_us, end_us) = (interval.start_us, interval.end_us);
        let shares = interval.shares();
        for share in &*shares {
            let thread = self.threads.entry(share.thread).or_default();
            thread.quiet.extend_from_slice(&share.quiet);
            thread.last_good_us = share.last_good_us;
            thread.had_good |= share.had_good;
        }
        self.labels.add(interval);
        self.known = Some(both(self.known, start_us, end_us));
        if interval.in_window {
            self.window = Some(both(self.window, start_us, end_us));
        } else if self.window.is_none_or(|(begin_us, _)| end_us <= begin_us) {
            return; // the warm-up
        }
        let slice = self.slices.entry(end_us).or_default();
        slice.start_us = start_us;
        for share in &*shares {
            slice.absent_us = slice.absent_us.max(share.totals.absent_us);
            // who does not tell waited for nothing
            let waited_us = share.totals.waited_us().unwrap_or(0);
            if self.threads.get(&share.thread).is_some_and(|thread| thread.had_good) {
                slice.waited_us = Some(slice.waited_us.map_or(waited_us, |least_us| least_us.min(waited_us)));
            }
        }
        if let Some((first_us, last_us)) = interval.failed_us {
            slice.failed_us = Some(both(slice.failed_us, first_us, last_us));
        }
        for series in &interval.series {
            let count = series.response_time_us.len();
            match series.outcome {
                Outcome::Ok if interval.in_window => self.good += count,
                Outcome::Ok => {}
                // what was never sent says nothing about the system
                Outcome::Variable => {}
                failed if interval.in_window || series.measured => {
                    *slice.failed.entry(failed).or_default() += count;
                }
                _ => {}
            }
        }
    }

    /// The load was stopped then, before its time: nothing was asked of the system any more.
    pub fn stopped(&mut self, at_us: u64) {
        self.stopped_us = Some(at_us);
    }

    /// The silence of the system that counts; else those of labels (`single`); else those of groups, targets and kinds
    /// (`joined`).
    pub fn outages(&self, single: &[Named], joined: &[Named]) -> Vec<Outage> {
        if let Some(outage) = self.outage() {
            return vec![outage];
        }
        let seconds = self.window.map_or(0, |(begin_us, end_us)| (end_us - begin_us) / SECOND_US);
        let looks = (single.len() + joined.len()) * usize::try_from(seconds).unwrap_or(usize::MAX).max(1);
        let told = |parts: &[Named]| -> Vec<Outage> {
            parts.iter().filter_map(|part| self.outage_of_part(part, looks)).collect()
        };
        let single = told(single);
        if single.is_empty() { told(joined) } else { single }
    }

    /// That of the system.
    pub fn outage(&self) -> Option<Outage> {
        let quiet = self.quiet();
        self.longest(&Heard { who: SYSTEM, labels: None, good: self.good, quiet, looks: 1 })
    }

    fn outage_of_part(&self, part: &Named, looks: usize) -> Option<Outage> {
        self.longest(&self.heard(part, looks)?)
    }

    fn heard<'a>(&self, part: &'a Named, looks: usize) -> Option<Heard<'a>> {
        let (begin_us, end_us) = self.known?;
        let quiet = self.labels.quiet(&part.labels, begin_us, end_us);
        let quiet = quiet.into_iter().map(|(begin_us, end_us)| Quiet { begin_us, end_us }).collect();
        let good = self.labels.good(&part.labels);
        Some(Heard { who: &part.name, labels: Some(&part.labels), good, quiet, looks })
    }

    /// One silence that counts; where there are several, one that [was heard](Outage::is_heard).
    fn longest(&self, of: &Heard<'_>) -> Option<Outage> {
        let quiet = &of.quiet;
        let mut ended: Vec<Quiet> = quiet.iter().copied().filter(|quiet| quiet.end_us.is_some()).collect();
        ended.sort_by_key(|quiet| std::cmp::Reverse(quiet.length_us()));
        // users who think for long and in step are silent together, and well
        let is_usual = |one: &Quiet| {
            let well = |other: &&Quiet| {
                self.failed(of, other.begin_us, other.begin_us + other.length_us()).is_empty()
            };
            let usual_us =
                ended.iter().find(|other| *other != one && well(other)).map_or(0, |other| other.length_us());
            let end_us = one.end_us.unwrap_or_else(|| self.window.map_or(0, |(_, end_us)| end_us));
            end_us.saturating_sub(one.begin_us) <= USUAL * usual_us
        };
        let at_the_end = quiet.iter().rev().find_map(|quiet| self.at_the_end(of, *quiet, is_usual(quiet)));
        let within = ended.iter().filter_map(|quiet| self.within(of, *quiet, is_usual(quiet)));
        let mut unheard = None;
        for outage in at_the_end.into_iter().chain(within) {
            if outage.is_heard() {
                return Some(outage);
            }
            unheard.get_or_insert(outage);
        }
        unheard
    }

    /// That the system answered nothing for a while, though requests were under way, and that none of them failed. Users of a closed
    /// load send nothing meanwhile, so that few response times show it. If the system as a whole did not freeze, looks for a label
    /// that did.
    ///
    /// `median_us`: median service time of all answers, microseconds, and of each part in `labels`.
    pub fn freeze(&self, median_us: u64, labels: &[(Named, u64)]) -> Option<String> {
        if self.has_faults {
            return None;
        }
        let (quiet, all) = (self.quiet(), self.labels.all());
        let system = Heard { who: SYSTEM, labels: Some(&all), good: self.good, quiet, looks: 1 };
        self.freeze_of(&system, true, median_us).or_else(|| {
            let seconds = self.window.map_or(0, |(begin_us, end_us)| (end_us - begin_us) / SECOND_US);
            let looks = labels.len() * usize::try_from(seconds).unwrap_or(usize::MAX).max(1);
            let freeze = |(part, median_us): &(Named, u64)| {
                self.freeze_of(&self.heard(part, looks)?, false, *median_us)
            };
            labels.iter().find_map(freeze)
        })
    }

    /// `is_system`: whether it is of all requests, whatever their label.
    fn freeze_of(&self, of: &Heard<'_>, is_system: bool, median_us: u64) -> Option<String> {
        let (window_begin_us, _) = self.window?;
        let labels = of.labels.filter(|_| !is_system);
        let failing = Heard { who: of.who, labels, good: of.good, quiet: Vec::new(), looks: of.looks };
        let frozen = of.quiet.iter().filter_map(|one| {
            let to_us = one.end_us?;
            // what lies within the window, without what nobody asked or heard
            let (silent_us, missed) = self.in_window(of, *one, true)?;
            let is_well = self.failed(&failing, one.begin_us, to_us).is_empty();
            let is_long = silent_us >= QUIET_US.max(FROZEN * median_us);
            (is_well && is_long && is_missed(missed, of)).then_some((to_us - one.begin_us, one.begin_us))
        });
        let frozen: Vec<(u64, u64)> = frozen.collect();
        let (length_us, from_us) = frozen.iter().max()?;
        let times = match frozen.len() {
            1 => String::new(),
            count => format!(" (the longest of {count} such times)"),
        };
        let from = if is_system { String::new() } else { format!(" from {}", of.who) };
        let shown = match *from_us < window_begin_us {
            true => "it began before the measured window, so response times may not show it",
            false => "look at the response times",
        };
        Some(format!(
            "no answer came{from} for {:.1}s{times}, from {:.1}s into the run on, while requests were open: no request failed; {shown}",
            *length_us as f64 / 1e6,
            *from_us as f64 / 1e6
        ))
    }

    /// Times in which no thread had a good answer, behind a good one within the window or the warm-up; the last has no end.
    fn quiet(&self) -> Vec<Quiet> {
        let Some((known_begin_us, _)) = self.known else { return Vec::new() };
        let of_thread = |thread: &Thread| {
            let ended = thread.quiet.iter().map(|(begin_us, end_us)| (*begin_us, *end_us));
            ended.chain([(thread.last_good_us, u64::MAX)]).collect::<Vec<_>>()
        };
        let all = self.threads.values().map(of_thread).reduce(|one, other| in_both(&one, &other));
        let told = all.unwrap_or_default().into_iter().filter(|(begin_us, _)| *begin_us > known_begin_us);
        told.map(|(begin_us, end_us)| Quiet { begin_us, end_us: (end_us < u64::MAX).then_some(end_us) })
            .collect()
    }

    /// What of a silence lies in the window, and how many good answers were missed there at the rate of the other time.
    /// `without_waits`: without the time in which every thread waited for a core.
    fn in_window(&self, of: &Heard<'_>, quiet: Quiet, without_waits: bool) -> Option<(u64, f64)> {
        let (begin_us, end_us) = self.window?;
        let from_us = quiet.begin_us.max(begin_us);
        let silent_us = quiet.end_us.unwrap_or(u64::MAX).min(end_us).checked_sub(from_us)?;
        let not_counted_us = self.not_counted_us(of, from_us, from_us + silent_us, without_waits);
        let silent_us = silent_us.saturating_sub(not_counted_us);
        // two answers in a millisecond are no rate
        let other_us = (end_us - begin_us).saturating_sub(silent_us).max(QUIET_US);
        Some((silent_us, of.good as f64 * silent_us as f64 / other_us as f64))
    }

    /// How much of this time does not count: a driver that was not there hears nothing, nor does one that waits for a core; nor
    /// does a part answer of which nothing is asked.
    fn not_counted_us(&self, of: &Heard<'_>, from_us: u64, to_us: u64, without_waits: bool) -> u64 {
        let absent_us: u64 = self.overlapping(from_us, to_us).map(|slice| slice.absent_us).sum();
        let unasked_us = of.labels.map_or(0, |labels| self.labels.unasked_us(labels, from_us, to_us));
        absent_us + unasked_us + if without_waits { self.unheard_us(from_us, to_us) } else { 0 }
    }

    /// For how long of this time every thread waited for a core at most: when within an interval nobody knows.
    fn unheard_us(&self, from_us: u64, to_us: u64) -> u64 {
        let (mut unheard_us, mut begin_us) = (0, from_us);
        for (end_us, slice) in self.slices.range(from_us + 1..) {
            let within_us = to_us.min(*end_us).saturating_sub(begin_us.max(slice.start_us));
            unheard_us += slice.waited_us.unwrap_or(0).min(within_us);
            begin_us = begin_us.max(*end_us);
        }
        unheard_us
    }

    /// This silence, if it counts. `words`: what is said of so many seconds; `counts`: how much of it counts, microseconds, if
    /// it does, all of it or without the time in which every thread waited for a core.
    fn outage_of(
        &self,
        of: &Heard<'_>,
        (from_us, to_us): (u64, u64),
        failed_by: FailedBy,
        words: impl FnOnce(f64) -> String,
        counts: impl Fn(bool) -> Option<u64>,
    ) -> Option<Outage> {
        let words = words(counts(false)? as f64 / 1e6);
        // nothing is known of waits before the window
        let start_us = self.window.map_or(from_us, |(begin_us, _)| from_us.max(begin_us));
        let time = Window { start_us, end_us: to_us.max(start_us) };
        let unheard_us = self.unheard_us(time.start_us, time.end_us) as f64;
        let unheard_share = unheard_us / (time.end_us - time.start_us).max(1) as f64;
        let did = if failed_by == FailedBy::Answered { "gave no good answer" } else { "stopped answering" };
        let reason = format!("{} {did}{words}", of.who);
        Some(Outage { reason, time, failed_by, unheard_share, counts_as_heard: counts(true).is_some() })
    }

    fn overlapping(&self, from_us: u64, to_us: u64) -> impl Iterator<Item = &Slice> {
        self.slices
            .range(from_us + 1..)
            .map(|(_, slice)| slice)
            .take_while(move |slice| slice.start_us < to_us)
    }

    fn failed(&self, of: &Heard<'_>, from_us: u64, to_us: u64) -> Failed {
        if let Some(labels) = of.labels {
            return self.labels.failed(labels, from_us, to_us);
        }
        let mut failed = Failed::new();
        let is_within = |slice: &&Slice| {
            slice.failed_us.is_some_and(|(first_us, last_us)| last_us > from_us && first_us < to_us)
        };
        for slice in self.overlapping(from_us, to_us).filter(is_within) {
            slice.failed.iter().for_each(|(outcome, count)| *failed.entry(*outcome).or_default() += count);
        }
        failed
    }

    /// Of the end of the window.
    fn at_the_end(&self, of: &Heard<'_>, quiet: Quiet, is_usual: bool) -> Option<Outage> {
        let ((_, window_end_us), (_, known_end_us)) = (self.window?, self.known?);
        if quiet.end_us.is_some_and(|end_us| end_us <= window_end_us) || of.good == 0 {
            return None;
        }
        let is_no_chance =
            |silent_us: u64, missed: f64| is_missed(missed, of) && silent_us >= WITHIN_US && !is_usual;
        if quiet.end_us.is_none() {
            let end_us = self.stopped_us.unwrap_or(known_end_us).max(window_end_us);
            let failed = self.failed(of, quiet.begin_us, u64::MAX);
            let all: u64 = failed.values().sum();
            // all of it, where it counts
            let counts = |without_waits| {
                let (silent_us, missed) = self.in_window(of, quiet, without_waits)?;
                let not_counted_us = self.not_counted_us(of, quiet.begin_us, end_us, without_waits);
                let all_us = (end_us - quiet.begin_us).saturating_sub(not_counted_us);
                let is_told = is_no_chance(silent_us, missed) || (silent_us >= QUIET_US && all >= FAILURES);
                (all_us >= QUIET_US && is_told).then_some(all_us)
            };
            let most = most(&failed)?;
            let by = most.name();
            let words = |last_s: f64| {
                format!(
                    ": in the last {last_s:.1}s no request succeeded and {all} failed, most of them by {by}"
                )
            };
            return self.outage_of(of, (quiet.begin_us, end_us), FailedBy::of(most), words, counts);
        }
        // what of it lies in the window, where it counts
        let hung_us = self.labels.hung_us(of.labels, HUNG)?;
        let counts = |without_waits| {
            let (silent_us, missed) = self.in_window(of, quiet, without_waits)?;
            let is_hang = silent_us >= QUIET_US && hung_us > silent_us;
            (is_hang && is_no_chance(silent_us, missed)).then_some(silent_us)
        };
        let words = |last_s: f64| {
            format!(
                ": in the last {last_s:.1}s of the window no request succeeded, and what was under way then took up to {:.1}s",
                hung_us as f64 / 1e6
            )
        };
        self.outage_of(of, (quiet.begin_us, window_end_us), FailedBy::TimedOut, words, counts)
    }

    /// Of the time between two answers.
    fn within(&self, of: &Heard<'_>, quiet: Quiet, is_usual: bool) -> Option<Outage> {
        let (window_begin_us, window_end_us) = self.window?;
        let end_us = quiet.end_us?;
        // what of it lies in the window, where it counts
        let counts = |without_waits| {
            let (silent_us, missed) = self.in_window(of, quiet, without_waits)?;
            let share = silent_us as f64 / (window_end_us - window_begin_us).max(1) as f64;
            let is_long = silent_us >= QUIET_US && share >= SHARE;
            (self.judges_breaks && is_long && is_missed(missed, of)).then_some(silent_us)
        };
        let failed = self.failed(of, quiet.begin_us, end_us);
        let all: u64 = failed.values().sum();
        let most = most(&failed).filter(|_| !is_usual || all >= FAILURES)?;
        let by = most.name();
        let words = |silent_s: f64| {
            format!(" for {silent_s:.1}s: no request succeeded then and {all} failed, most of them by {by}")
        };
        self.outage_of(of, (quiet.begin_us, end_us), FailedBy::of(most), words, counts)
    }
}

/// Whether so many good answers that did not come are no chance.
fn is_missed(missed: f64, of: &Heard<'_>) -> bool {
    missed >= MISSED && is_too_rare(missed, of.looks)
}

fn both(range: Option<(u64, u64)>, start_us: u64, end_us: u64) -> (u64, u64) {
    range.map_or((start_us, end_us), |(begin, end)| (begin.min(start_us), end.max(end_us)))
}

/// What lies in a time of each of the two; both are in order.
fn in_both(one: &[(u64, u64)], other: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        let (begin_us, end_us) = (a.0.max(b.0), a.1.min(b.1));
        if end_us.saturating_sub(begin_us) >= QUIET_US {
            all.push((begin_us, end_us));
        }
        if a.1 <= b.1 { i += 1 } else { j += 1 }
    }
    all
}

/// What most failed by; of as many, what tells less of the system.
fn most(failed: &Failed) -> Option<Outcome> {
    let most = failed.iter().max_by_key(|(outcome, count)| (**count, FailedBy::of(**outcome)));
    most.map(|(outcome, _)| *outcome)
}

#[cfg(test)]
mod tests;
