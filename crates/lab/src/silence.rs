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

/// When a request last succeeded within the measured window, and what failed since.
#[derive(Debug, Default)]
pub struct Silence {
    /// End of the last interval in which one succeeded.
    last_us: Option<u64>,
    /// End of the last interval.
    end_us: u64,
    /// Failures by kind, by the end of the interval, of those behind the last success only: threads report in their
    /// own time, so a success may still come that ends before some of them. Empty while the system answers.
    failed: BTreeMap<u64, BTreeMap<&'static str, u64>>,
}

impl Silence {
    /// Takes what a thread handed over.
    pub fn add(&mut self, interval: &ThreadInterval) {
        if !interval.in_window {
            return;
        }
        self.end_us = self.end_us.max(interval.end_us);
        if interval.series.iter().any(|series| series.outcome == Outcome::Ok) {
            self.last_us = self.last_us.max(Some(interval.end_us));
        }
        for series in interval.series.iter().filter(|series| series.outcome != Outcome::Ok) {
            let failed = self.failed.entry(interval.end_us).or_default();
            *failed.entry(series.outcome.name()).or_default() += series.response_time_us.len();
        }
        if let Some(last_us) = self.last_us {
            self.failed = self.failed.split_off(&(last_us + 1));
        }
    }

    /// What is to be said of the end of the window, if requests succeeded before it and none did in it.
    pub fn reason(&self) -> Option<String> {
        let last_us = self.last_us?;
        let mut failed = BTreeMap::<&str, u64>::new();
        for second in self.failed.values() {
            second.iter().for_each(|(kind, count)| *failed.entry(kind).or_default() += count);
        }
        let (most, _) = failed.iter().max_by_key(|(_, count)| **count)?;
        let all: u64 = failed.values().sum();
        let silence_us = self.end_us - last_us;
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
