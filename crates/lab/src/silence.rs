//! A system that stopped answering before the measured window was over.
//!
//! Users of a closed model send less when nothing answers, so that a system that dies halfway has a small share of
//! errors and a good throughput of the first half: by its figures alone such a run would pass.

use std::collections::BTreeMap;

use tidemark_record::{Outcome, ThreadInterval};

/// A shorter silence is not told from an interval's edge.
const SILENCE_US: u64 = 1_000_000;
/// Fewer failures than this in the silence may be chance.
const FAILURES: u64 = 10;

/// When requests succeeded and failed, second by second of the measured window.
#[derive(Debug, Default)]
pub struct Silence {
    /// By the end of the interval: one small entry for each second and thread at most.
    seconds: BTreeMap<u64, Second>,
}

#[derive(Debug, Default)]
struct Second {
    succeeded: bool,
    failed: BTreeMap<&'static str, u64>,
}

impl Silence {
    /// Takes what a thread handed over.
    pub fn add(&mut self, interval: &ThreadInterval) {
        if !interval.in_window {
            return;
        }
        let second = self.seconds.entry(interval.end_us).or_default();
        for series in &interval.series {
            match series.outcome {
                Outcome::Ok => second.succeeded = true,
                failure => {
                    *second.failed.entry(failure.name()).or_default() += series.response_time_us.len();
                }
            }
        }
    }

    /// What is to be said of the end of the window, if requests succeeded before it and none did in it.
    pub fn reason(&self) -> Option<String> {
        let end_us = *self.seconds.keys().next_back()?;
        let last_us =
            self.seconds.iter().rev().find(|(_, second)| second.succeeded).map(|(at_us, _)| *at_us)?;
        let mut failed = BTreeMap::<&str, u64>::new();
        for second in self.seconds.range(last_us + 1..).map(|(_, second)| second) {
            second.failed.iter().for_each(|(kind, count)| *failed.entry(kind).or_default() += count);
        }
        let (most, _) = failed.iter().max_by_key(|(_, count)| **count)?;
        let all: u64 = failed.values().sum();
        let silence_us = end_us - last_us;
        (silence_us >= SILENCE_US && all >= FAILURES).then(|| {
            format!(
                "the system stopped answering: in the last {:.1} s no request succeeded and {all} failed, most by {most}",
                silence_us as f64 / 1e6
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_record::{Series, new_histogram};

    fn interval(second: u64, outcome: Outcome, count: u32) -> ThreadInterval {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = true;
        let mut time = new_histogram();
        time.record_n(50, count).unwrap();
        let (response_time_us, service_time_us) = (time.clone(), time);
        interval.series.push(Series { label: 0, outcome, measured: true, response_time_us, service_time_us });
        interval
    }

    fn reason(intervals: &[ThreadInterval]) -> Option<String> {
        let mut silence = Silence::default();
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

    #[test]
    fn one_that_still_answers_or_never_did_is_not() {
        use Outcome::*;
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&[interval(0, Ok, 9), interval(1, Connect, 50), interval(2, Ok, 1)]), None);
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
        assert_eq!(
            reason(&[interval(0, Ok, 9), after]),
            None,
            "what the window does not hold does not count"
        );
    }
}
