//! The figures of one phase of the load: those of a run whose measured window is the phase.

use super::{DRIVER, LabelTotals, Totals, Window, merge};
use crate::ThreadInterval;
use crate::manifest;
use crate::summary::{Phase, Process, ratio};

/// What a phase of the load came to.
#[derive(Debug, Clone)]
pub struct PhaseTotals {
    phase: manifest::Phase,
    index: u16,
    /// Its figures as if the phase were the measured window. By label and group only where that was asked for; what needs
    /// the whole run is left out: lag, examples, statuses, what the scenario measured itself, processes.
    pub totals: Totals,
}

impl Totals {
    /// The load has these phases. Where `in_parts` says so of a phase, what was due in it is kept by label and group, too.
    pub(crate) fn set_phases(&mut self, phases: &[manifest::Phase], in_parts: impl Fn(usize) -> bool) {
        let of = |(index, phase): (u16, &manifest::Phase)| {
            let mut totals = Totals::new(&[]);
            if in_parts(usize::from(index)) {
                totals.by_label = vec![LabelTotals::default(); self.labels.len()];
                totals.by_group = vec![LabelTotals::default(); self.groups.len()];
            }
            PhaseTotals { phase: phase.clone(), index, totals }
        };
        self.phases = (0..).zip(phases).map(of).collect();
    }
}

impl PhaseTotals {
    /// Adds what of an interval is about the phase: what was due in it, and what ended while it went on.
    pub(super) fn add(&mut self, interval: &ThreadInterval) {
        let PhaseTotals { phase, index, totals } = self;
        // once a load is stopped, what is left of its phase is no part of the measured window
        let is_within = phase.start_us <= interval.start_us
            && interval.end_us <= phase.end_us
            && (interval.in_window || !phase.measured);
        for series in &interval.series {
            let is_due = series.phase == Some(*index);
            if is_due || is_within {
                totals.all.add(series, is_due, is_within);
                if !series.outcome.is_error() {
                    merge(&mut totals.all_service_time_us, &series.service_time_us);
                }
                let of_label = totals.by_label.get_mut(usize::from(series.label));
                of_label.into_iter().for_each(|of| of.add(series, is_due, is_within));
            }
        }
        for series in &interval.groups {
            let of_group = totals.by_group.get_mut(usize::from(series.label));
            of_group.into_iter().for_each(|of| of.add(series, series.phase == Some(*index), is_within));
        }
        for counts in interval.by_phase.iter().filter(|counts| counts.phase == *index) {
            totals.offered += counts.offered;
            totals.add_dropped(counts.dropped);
        }
        if is_within {
            *totals.backlog.entry(interval.end_us).or_default() += interval.in_flight + interval.waiting;
            *totals.due.entry(interval.end_us).or_default() += interval.offered;
            totals.add_to_window(interval);
        }
    }

    /// The phase in few numbers, `run` being the totals of the whole run; none where it did not come to pass.
    pub(super) fn summary(&self, run: &Totals) -> Option<Phase> {
        let PhaseTotals { phase, totals, .. } = self;
        let window = totals.window?;
        let Window { start_us, end_us } = window;
        let length_s = window.length_s();
        let all = &totals.all;
        let good_per_cpu_s = |process: &Process| {
            let is_told = process.name != DRIVER && process.cpu_s > 0.0;
            is_told.then(|| all.good_in_window as f64 / process.cpu_s)
        };
        let processes = run.processes_within(window).into_iter();
        Some(Phase {
            name: phase.name.clone(),
            level: phase.level.clone(),
            measured: phase.measured,
            from_s: start_us as f64 / 1e6,
            to_s: end_us as f64 / 1e6,
            offered_per_s: ratio(totals.offered as f64, length_s),
            achieved_per_s: ratio(all.good_in_window as f64, length_s),
            requests: all.requests(),
            errors: all.errors_by_kind(),
            dropped: all.dropped,
            failed: all.failed(),
            response_time_us: all.response_times().latency(),
            service_time_us: all.service_times().latency(),
            good: all.good(),
            processes: processes.map(|of| Process { good_per_cpu_s: good_per_cpu_s(&of), ..of }).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::test_run::{interval, series};
    use crate::{Outcome, PhaseCounts, Sample, Series, summarize};

    fn phases() -> [manifest::Phase; 3] {
        let phase = |name: &str, from_s: u64, to_s: u64, measured| manifest::Phase {
            name: name.into(),
            start_us: from_s * 1_000_000,
            end_us: to_s * 1_000_000,
            measured,
            level: format!("{name} level"),
        };
        [phase("warm-up", 0, 1, false), phase("low", 1, 3, true), phase("high", 3, 4, true)]
    }

    fn due_in(phase: u16, outcome: Outcome, times_us: &[(u64, u32)]) -> Series {
        Series { phase: Some(phase), ..series(0, outcome, phase > 0, times_us) }
    }

    /// Low: 400 answers of 1 ms, ten of which come in high. High: 100 of 9 ms, two failed and three dropped after the load.
    fn totals(in_parts: bool) -> Totals {
        let mut totals = Totals::new(&["a".into()]);
        totals.set_phases(&phases(), |_| in_parts);
        let counts = |phase, offered, dropped| vec![PhaseCounts { phase, offered, dropped }];
        for (second, phase) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3)] {
            let mut one = interval(0, second, second + 1);
            one.in_window = (1..4).contains(&second);
            match second {
                0 => one.series = vec![due_in(0, Outcome::Ok, &[(50, 30)])],
                1 | 2 => one.series = vec![due_in(1, Outcome::Ok, &[(1_000, 195)])],
                3 => {
                    one.series =
                        vec![due_in(1, Outcome::Ok, &[(1_000, 10)]), due_in(2, Outcome::Ok, &[(9_000, 90)])];
                }
                _ => {
                    one.series = vec![
                        due_in(2, Outcome::Ok, &[(9_000, 8)]),
                        due_in(2, Outcome::Timeout, &[(70_000, 2)]),
                    ];
                    one.by_phase = counts(2, 0, 3);
                }
            }
            if phase < 3 {
                one.by_phase = counts(phase, [30, 200, 103][usize::from(phase)], 0);
            }
            totals.add_interval(&one);
            let sample = |process: &str, cpu_share| Sample {
                at_us: (second + 1) * 1_000_000 - 500_000,
                process: process.into(),
                cpu_share,
                ..Sample::default()
            };
            totals.add_sample(&sample("system", second as f64));
            totals.add_sample(&sample(DRIVER, 0.25));
        }
        totals
    }

    #[test]
    fn a_request_is_of_the_phase_in_which_it_was_due() {
        let told = summarize(&totals(false), Path::new("x")).phases;
        let names: Vec<&str> = told.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["warm-up", "low", "high"]);
        let [warm_up, low, high] = &told[..] else { unreachable!() };
        assert_eq!((warm_up.requests, warm_up.measured, warm_up.from_s, warm_up.to_s), (30, false, 0.0, 1.0));
        assert_eq!((low.requests, low.offered_per_s, low.achieved_per_s), (400, 200.0, 195.0));
        assert_eq!((low.response_time_us.p50, low.response_time_us.max), (Some(1_000), Some(1_000)));
        // of its own 90 came in time, and ten of the phase before
        assert_eq!((high.requests, high.dropped, high.failed, high.achieved_per_s), (100, 3, 5, 100.0));
        assert_eq!(high.errors, [("timeout".to_owned(), 2)].into());
        assert_eq!(high.level, "high level");
        assert_eq!(
            (high.response_time_us.p90, high.response_time_us.p99),
            (Some(9_007), None),
            "five failed"
        );
        assert_eq!((warm_up.response_time_us.p50, warm_up.response_time_us.p99), (Some(50), None), "too few");
        // half a second of the look before the edge, and half a second of the next
        let cpu: Vec<(&str, f64)> =
            high.processes.iter().map(|of| (of.name.as_str(), of.cpu_share)).collect();
        assert_eq!(cpu, [("system", 3.5), (DRIVER, 0.25)]);
    }

    #[test]
    fn a_phase_that_is_shorter_than_the_answers_take_may_have_achieved_more() {
        let mut totals = Totals::new(&["a".into()]);
        totals.set_phases(&phases(), |_| false);
        for second in 0..8u64 {
            let mut one = interval(0, second, second + 1);
            one.in_window = (1..4).contains(&second);
            one.in_flight = 100 * (second + 1).min(4);
            if (1..3).contains(&second) {
                one.by_phase = vec![PhaseCounts { phase: 1, offered: 100, dropped: 0 }];
            }
            if (5..7).contains(&second) {
                one.series = vec![due_in(1, Outcome::Ok, &[(8_000_000, 100)])];
            }
            totals.add_interval(&one);
        }
        let low = totals.phases[1].totals.achieved();
        assert!(low.share < 0.9 && low.at_most > 0.99 && (3.9..4.1).contains(&low.fastest_s), "{low:?}");
    }

    #[test]
    fn a_phase_that_did_not_come_to_pass_is_not_told_and_one_that_was_stopped_is_as_long_as_it_was() {
        let mut totals = Totals::new(&["a".into()]);
        totals.set_phases(&phases(), |_| false);
        totals.add_interval(&interval(0, 0, 1));
        let mut low = interval(0, 1, 2);
        low.in_window = true;
        totals.add_interval(&low);
        // what ends once the load was stopped is not of the phase's time
        totals.add_interval(&interval(0, 2, 3));
        let told = summarize(&totals, Path::new("x")).phases;
        let times: Vec<(f64, f64)> = told.iter().map(|phase| (phase.from_s, phase.to_s)).collect();
        assert_eq!(times, [(0.0, 1.0), (1.0, 2.0)]);
    }

    #[test]
    fn a_label_is_kept_apart_where_it_is_asked_for() {
        let phases = |in_parts| totals(in_parts).phases;
        assert!(phases(false)[2].totals.by_label.is_empty());
        let high = &phases(true)[2].totals;
        assert_eq!((high.by_label[0].requests(), high.by_label[0].errors()), (100, 2));
        // two answers of the 98 good ones came behind the phase that are not of a backlog that was there at its begin
        assert!((0.85..1.0).contains(&high.achieved_share()), "{}", high.achieved_share());
    }
}
