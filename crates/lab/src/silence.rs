//! A system that stopped answering, for a while or for good.
//!
//! Users of a closed model send less when nothing answers, so that a system that dies halfway has a small share of
//! errors and a good throughput of the first half: by its figures alone such a run would pass. Of one that keeps its
//! connections and says nothing more, no more fails than there are users, and that is known after the window only. So
//! what counts here is time, not requests.

use std::collections::BTreeMap;

use tidemark_record::{Outcome, ThreadInterval};

/// A shorter silence is not told from an interval's edge.
const SILENCE_US: u64 = 1_000_000;
/// So many failures in a silence are no chance, …
const FAILURES: u64 = 10;
/// … nor is any, where so many requests would have succeeded at the rate of the other time.
const MISSED: f64 = 10.0;
/// Least share of the window that a silence within it takes to count: that of failed requests in `errors < 0.1%`.
const SHARE: f64 = 0.001;
/// An answer that took more than so many times as long as any in the window is a hang, not a slow answer.
const HUNG: u64 = 2;

type Failed = BTreeMap<&'static str, u64>;

/// What ended in an interval, all threads together.
#[derive(Debug, Default)]
struct Slice {
    length_us: u64,
    good: u64,
    /// Failures by kind; empty where a request succeeded.
    failed: Failed,
}

/// When requests succeeded and failed.
#[derive(Debug, Default)]
pub struct Silence {
    /// Whether a silence that ends within the window counts.
    judges_breaks: bool,
    begin_us: Option<u64>,
    /// Within the measured window, by the interval's end.
    slices: BTreeMap<u64, Slice>,
    longest_good_us: u64,
    /// The longest good answer behind the window, and what was due within it and failed then.
    longest_good_after_us: Option<u64>,
    failed_after: Failed,
}

impl Silence {
    /// Nothing yet. `judges_breaks`: whether a silence counts after which the system answers again, as it does where
    /// nobody asked for a fault and nobody says how much may fail.
    pub fn new(judges_breaks: bool) -> Self {
        Silence { judges_breaks, ..Silence::default() }
    }

    /// Takes what a thread handed over. Threads report in their own time.
    pub fn add(&mut self, interval: &ThreadInterval) {
        if interval.in_window {
            self.add_within(interval);
        } else if self.slices.last_key_value().is_some_and(|(end_us, _)| interval.start_us >= *end_us) {
            self.add_after(interval);
        }
    }

    fn add_within(&mut self, interval: &ThreadInterval) {
        self.begin_us = Some(self.begin_us.map_or(interval.start_us, |begin| begin.min(interval.start_us)));
        let slice = self.slices.entry(interval.end_us).or_default();
        // a driver that was not there hears nothing
        let length_us = (interval.end_us - interval.start_us).saturating_sub(interval.absent_us);
        slice.length_us = slice.length_us.max(length_us);
        for series in &interval.series {
            match series.outcome {
                Outcome::Ok => {
                    slice.good += series.response_time_us.len();
                    self.longest_good_us = self.longest_good_us.max(series.service_time_us.max());
                }
                // what was never sent says nothing about the system
                Outcome::Variable => {}
                failed => *slice.failed.entry(failed.name()).or_default() += series.response_time_us.len(),
            }
        }
        if slice.good > 0 {
            slice.failed.clear();
        }
    }

    fn add_after(&mut self, interval: &ThreadInterval) {
        for series in &interval.series {
            match series.outcome {
                Outcome::Ok => {
                    let longest_us = series.service_time_us.max();
                    self.longest_good_after_us = self.longest_good_after_us.max(Some(longest_us));
                }
                failed if series.measured && failed != Outcome::Variable => {
                    *self.failed_after.entry(failed.name()).or_default() += series.response_time_us.len();
                }
                _ => {}
            }
        }
    }

    /// What is to be said, if requests succeeded within the window and for a while none did.
    pub fn reason(&self) -> Option<String> {
        self.at_the_end().or_else(|| self.within())
    }

    /// Of the end of the window.
    fn at_the_end(&self) -> Option<String> {
        let (last_us, _) = self.slices.iter().rfind(|(_, slice)| slice.good > 0)?;
        let silence_us: u64 = self.slices.range(last_us + 1..).map(|(_, slice)| slice.length_us).sum();
        if silence_us < SILENCE_US {
            return None;
        }
        let silence = format!(
            "the system stopped answering: in the last {:.1} s no request succeeded",
            silence_us as f64 / 1e6
        );
        let mut failed = Failed::new();
        self.slices.range(last_us + 1..).for_each(|(_, slice)| add(&mut failed, &slice.failed));
        let good: u64 = self.slices.values().map(|slice| slice.good).sum();
        let is_no_chance = good as f64 * silence_us as f64 / (last_us - self.begin_us?) as f64 >= MISSED;
        if is_no_chance && self.longest_good_after_us.is_none() {
            add(&mut failed, &self.failed_after);
        }
        let all: u64 = failed.values().sum();
        if let Some(most) = most(&failed)
            && (is_no_chance || all >= FAILURES)
        {
            return Some(format!("{silence} and {all} failed, most by {most}"));
        }
        let hung_us = silence_us.max(HUNG * self.longest_good_us);
        let longest_us = self.longest_good_after_us.filter(|us| is_no_chance && *us > hung_us)?;
        Some(format!("{silence}, and what was under way then took up to {:.1} s", longest_us as f64 / 1e6))
    }

    /// Of the time between two answers.
    fn within(&self) -> Option<String> {
        let window_us: u64 = self.slices.values().map(|slice| slice.length_us).sum();
        let good: u64 = self.slices.values().map(|slice| slice.good).sum();
        let mut longest = (0, Failed::new());
        let mut silence = None::<(u64, Failed)>;
        for slice in self.slices.values() {
            match &mut silence {
                _ if slice.good > 0 => {
                    longest = silence.replace((0, Failed::new())).unwrap_or_default().max(longest);
                }
                Some((length_us, failed)) => {
                    *length_us += slice.length_us;
                    add(failed, &slice.failed);
                }
                None => {}
            }
        }
        let (length_us, failed) = longest;
        let missed = good as f64 * length_us as f64 / (window_us - length_us).max(1) as f64;
        let share = length_us as f64 / window_us.max(1) as f64;
        let counts = self.judges_breaks && length_us >= SILENCE_US && missed >= MISSED && share >= SHARE;
        let most = most(&failed).filter(|_| counts)?;
        let all: u64 = failed.values().sum();
        Some(format!(
            "the system stopped answering for {:.1} s: no request succeeded then and {all} failed, most by {most}",
            length_us as f64 / 1e6
        ))
    }
}

fn add(sum: &mut Failed, failed: &Failed) {
    failed.iter().for_each(|(kind, count)| *sum.entry(kind).or_default() += count);
}

/// The kind that most failed by.
fn most(failed: &Failed) -> Option<&'static str> {
    failed.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(second: u64, outcome: Outcome, count: u32) -> ThreadInterval {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = true;
        interval.series.push(crate::test_plan::series(0, outcome, 50, count));
        interval
    }

    fn reason(intervals: &[ThreadInterval]) -> Option<String> {
        let mut silence = Silence::new(true);
        intervals.iter().for_each(|interval| silence.add(interval));
        silence.reason()
    }

    #[test]
    fn a_system_that_dies_before_the_end_is_told() {
        use Outcome::*;
        let died = [interval(0, Ok, 9_000), interval(1, Reset, 3), interval(2, Connect, 20)];
        let reason = reason(&died).unwrap();
        assert!(
            reason.contains("in the last 2.0 s no request succeeded and 23 failed, most by connect"),
            "{reason}"
        );
    }

    /// As few fail as there are users, and only once the load is over.
    #[test]
    fn a_system_that_only_falls_silent_is_told() {
        let silent = |begin, end| ThreadInterval { in_window: true, ..ThreadInterval::empty(0, begin, end) };
        let hung = |outcome| ThreadInterval { in_window: false, ..interval(8, outcome, 2) };
        let silent =
            [interval(0, Outcome::Ok, 9_000), silent(1_000_000, 2_000_000), silent(2_000_000, 5_000_000)];
        let told = reason(&[&silent[..], &[hung(Outcome::Unfinished)]].concat()).unwrap();
        assert!(told.contains("in the last 4.0 s no request succeeded and 2 failed"), "{told}");
        let awake = [&silent[..], &[hung(Outcome::Unfinished), hung(Outcome::Ok)]].concat();
        assert_eq!(reason(&awake), None, "it answers again");
        let slow = [&[interval(0, Outcome::Ok, 2)], &silent[1..], &[hung(Outcome::Unfinished)]].concat();
        assert_eq!(reason(&slow), None, "it may be as slow as before");
        assert_eq!(reason(&silent), None, "nothing was asked of it");
    }

    #[test]
    fn one_that_hangs_beyond_the_end_is_told_though_it_answers_then() {
        let took = |us: u32| {
            let series = crate::test_plan::series(0, Outcome::Ok, us.into(), 2);
            ThreadInterval { series: vec![series], ..ThreadInterval::empty(0, 3_000_000, 4_000_000) }
        };
        let silent = ThreadInterval { in_window: true, ..ThreadInterval::empty(0, 1_000_000, 3_000_000) };
        let told = reason(&[interval(0, Outcome::Ok, 9_000), silent.clone(), took(3_500_000)]).unwrap();
        assert!(told.contains("in the last 2.0 s") && told.contains("took up to 3.5 s"), "{told}");
        assert_eq!(reason(&[interval(0, Outcome::Ok, 9_000), silent, took(1_500_000)]), None);
    }

    /// As few fail as a user who waits before he tries again makes: what counts is the time.
    #[test]
    fn a_break_is_told_where_nobody_says_what_may_fail() {
        use Outcome::*;
        let broken =
            [interval(0, Ok, 9_000), interval(1, Connect, 1), interval(2, Connect, 1), interval(3, Ok, 9)];
        let told = reason(&broken).unwrap();
        assert!(told.contains("stopped answering for 2.0 s") && told.contains("2 failed"), "{told}");
        let mut allowed = Silence::new(false);
        broken.iter().for_each(|interval| allowed.add(interval));
        assert_eq!(allowed.reason(), None);
        let mut absent = broken.clone();
        (absent[1].absent_us, absent[2].absent_us) = (900_000, 800_000);
        assert_eq!(reason(&absent), None, "the driver was not there");
        let long = (0..2_000).map(|second| interval(second, if second == 9 { Connect } else { Ok }, 100));
        assert_eq!(reason(&long.collect::<Vec<_>>()), None, "a second of so many");
    }

    #[test]
    fn one_that_still_answers_or_never_did_is_not() {
        use Outcome::*;
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&[interval(0, Ok, 3), interval(1, Connect, 50), interval(2, Ok, 3)]), None);
        assert_eq!(
            reason(&[interval(0, Ok, 9), interval(1, Connect, 9)]),
            None,
            "few failures may be chance"
        );
        assert_eq!(
            reason(&[interval(0, Connect, 90), interval(1, Connect, 90)]),
            None,
            "other reasons say it"
        );
        let other_thread = [interval(0, Ok, 9), interval(1, Connect, 50), interval(1, Ok, 1)];
        assert_eq!(reason(&other_thread), None);
        let mut after = interval(1, Connect, 50);
        after.in_window = false;
        assert_eq!(reason(&[interval(0, Ok, 9), after]), None, "the window was over");
    }
}
