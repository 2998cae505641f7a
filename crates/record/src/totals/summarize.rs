//! From totals to the object that `--json` prints.

use std::path::Path;

use super::{Achieved, LabelTotals, ThreadTotals, Totals};
use crate::distribution::{Distribution, latency};
use crate::histogram::Merged;
use crate::summary::{Driver, Group, LATE_US, LagClass, Status, Step, Summary, Target, Verdict, ratio};
use crate::{Counter, HISTOGRAM_HIGH_US};

/// Puts a run's figures into the object that `--json` prints. The verdict is `pass` without reasons: whoever knows
/// the objectives holds the figures against them.
pub fn summarize(totals: &Totals, run_dir: &Path) -> Summary {
    let measured_s = totals.window.map_or(0.0, |window| window.length_s());
    let requests = totals.all.requests();
    let step = |(index, (label, of)): (usize, (&String, &LabelTotals))| Step {
        label: label.clone(),
        target: totals.target_of(index).to_owned(),
        tags: totals.tags.get(index).cloned().unwrap_or_default(),
        requests: of.requests(),
        share: ratio(of.requests() as f64, requests as f64),
        achieved_per_s: ratio(of.good_in_window as f64, measured_s),
        achieved_due_per_s: None,
        errors: of.errors_by_kind(),
        response_time_us: of.response_times().latency(),
        service_time_us: of.service_times().latency(),
        good: of.good(),
        parts: of.parts(),
    };
    let group = |(name, of): (&String, &LabelTotals)| Group {
        group: name.clone(),
        count: of.requests(),
        achieved_per_s: ratio(of.good_in_window as f64, measured_s),
        errors: of.errors_by_kind(),
        response_time_us: of.response_times().latency(),
        service_time_us: of.service_times().latency(),
    };
    Summary {
        verdict: Verdict { status: Status::Pass, reasons: Vec::new() },
        offered_per_s: ratio(totals.offered as f64, measured_s),
        achieved_per_s: ratio(totals.all.good_in_window as f64, measured_s),
        achieved_share: (totals.offered > 0).then(|| totals.achieved_share()),
        achieved_due_per_s: None,
        measured_s,
        requests,
        errors: totals.all.errors_by_kind(),
        statuses: totals
            .statuses
            .iter()
            .map(|(status, count)| (crate::status_name(*status), *count))
            .collect(),
        dropped: totals.all.dropped,
        failed: totals.all.failed(),
        sessions_begun: totals.sessions_in_window,
        failed_steps: totals.counters[Counter::FailedSteps],
        unconnected: totals.all.unconnected,
        failures: totals.all.failures(),
        response_time_us: totals.all.response_times().latency(),
        service_time_us: totals.all.service_times().latency(),
        response_time_less_lag_us: Distribution::new(
            &totals.all.response_time_less_lag_us,
            totals.all.failed(),
        )
        .latency(),
        good: totals.all.good(),
        parts: totals.all.parts(),
        slowest: Vec::new(),
        steps: totals.labels.iter().zip(&totals.by_label).enumerate().map(step).collect(),
        targets: totals.targets.iter().map(|(name, labels)| target(totals, name, labels)).collect(),
        phases: totals.phases.iter().filter_map(|phase| phase.summary(totals)).collect(),
        groups: totals.groups.iter().zip(&totals.by_group).map(group).collect(),
        metrics: totals.own.iter().map(|of| of.summary(measured_s)).collect(),
        ratios: totals.ratios.iter().map(|of| of.told(|name| totals.counted(name))).collect(),
        processes: totals.processes(),
        driver: driver(totals),
        ledger: None,
        faults: Vec::new(),
        maintenance: Vec::new(),
        stores_figures: totals.figures.summary(),
        run_dir: run_dir.display().to_string(),
        steady_state: None,
        warnings: Vec::new(),
    }
}

/// Tells what was achieved of what was due, of all and of each label: the load has a rate.
pub fn tell_achieved_due(summary: &mut Summary, totals: &Totals) {
    let per_s = |of: Achieved, due: f64| ratio(of.share * due, summary.measured_s);
    let all = (totals.offered > 0).then(|| per_s(totals.achieved(), totals.offered as f64));
    let of_steps: Vec<f64> = (0..totals.by_label.len())
        .map(|label| {
            let of = totals.achieved_by_labels(&[label].into(), None);
            per_s(of, totals.by_label[label].due() as f64)
        })
        .collect();
    summary.achieved_due_per_s = all;
    for (step, per_s) in summary.steps.iter_mut().zip(of_steps).filter(|(step, _)| step.requests > 0) {
        step.achieved_due_per_s = Some(per_s);
    }
}

/// The figures of a target: those of its labels together.
fn target(totals: &Totals, name: &str, labels: &[usize]) -> Target {
    let of = totals.of_labels(labels.iter().copied());
    Target {
        target: name.to_owned(),
        requests: of.requests(),
        share: ratio(of.requests() as f64, totals.all.requests() as f64),
        achieved_per_s: ratio(
            of.good_in_window as f64,
            totals.window.map_or(0.0, |window| window.length_s()),
        ),
        errors: of.errors_by_kind(),
        response_time_us: of.response_times().latency(),
        service_time_us: of.service_times().latency(),
        good: of.good(),
    }
}

fn driver(totals: &Totals) -> Driver {
    let threads = &totals.threads;
    let sum = |of: fn(&ThreadTotals) -> u64| threads.iter().map(of).sum::<u64>() as f64;
    let most = |of: fn(&ThreadTotals) -> f64| threads.iter().map(of).fold(0.0, f64::max);
    let length_us = sum(|thread| thread.length_us);
    // a wait that nobody has told of would look like idleness
    let told = length_us > 0.0 && sum(|thread| thread.untold_us) == 0.0;
    let waited_us = sum(|thread| thread.core_waits.waited_us);
    Driver {
        cpu_s: sum(|thread| thread.cpu_us) / 1e6,
        threads: threads.len() as u64,
        busiest_thread_share: most(ThreadTotals::cpu_share),
        lag_us: latency(&totals.lag_us),
        read_lag_us: (!totals.read_lag_us.is_empty()).then(|| latency(&totals.read_lag_us)),
        lag_histogram: lag_histogram(&totals.lag_us),
        late: totals.lag_us.count_between(LATE_US, HISTOGRAM_HIGH_US),
        cpu_share_by_thread: threads.iter().map(ThreadTotals::cpu_share).collect(),
        wanted_share: told.then(|| most(ThreadTotals::wanted_share)),
        waited_share: told.then(|| waited_us / length_us),
        core_wait_us: told.then(|| waited_us / sum(|thread| thread.core_waits.sleeps).max(1.0)),
        absent_s: most(|thread| thread.absent_us as f64 / 1e6),
        computing_share: totals.computing_share(),
        steal_share: totals.steal_share(),
        limits: Vec::new(),
        busiest: Vec::new(),
        agents: Vec::new(),
    }
}

/// Classes that end at 1, 2, 5, 10, 20, 50, … microseconds, from the first that holds a value to the last.
fn lag_histogram(lag_us: &Merged) -> Vec<LagClass> {
    let decades = std::iter::successors(Some(1u64), |decade| Some(decade * 10));
    let edges = decades.flat_map(|decade| [1, 2, 5].map(|step| step * decade));
    let edges: Vec<u64> = std::iter::once(0).chain(edges.take_while(|us| *us <= HISTOGRAM_HIGH_US)).collect();
    let ends = edges.iter().skip(1).copied().chain([u64::MAX]);
    let mut classes: Vec<LagClass> =
        edges.iter().zip(ends).map(|(&from_us, to_us)| LagClass { from_us, to_us, count: 0 }).collect();
    for value in lag_us.iter_recorded() {
        let class = classes.partition_point(|class| class.to_us <= value.value_iterated_to());
        classes[class].count += value.count_at_value();
    }
    let used = |class: &LagClass| class.count > 0;
    let end = classes.iter().rposition(used).map_or(0, |last| last + 1);
    classes.truncate(end);
    classes.drain(..classes.iter().position(used).unwrap_or(0));
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::new_merged;

    #[test]
    fn every_lag_is_in_one_class() {
        assert_eq!(lag_histogram(&new_merged()), []);
        let mut lag_us = new_merged();
        for (us, count) in [(3, 7), (4, 1), (12, 2), (HISTOGRAM_HIGH_US, 1)] {
            lag_us.record_n(us, count).unwrap();
        }
        let classes = lag_histogram(&lag_us);
        assert_eq!(classes[0], LagClass { from_us: 2, to_us: 5, count: 8 });
        assert_eq!(classes[1], LagClass { from_us: 5, to_us: 10, count: 0 });
        assert_eq!(classes[2], LagClass { from_us: 10, to_us: 20, count: 2 });
        assert_eq!(classes.iter().map(|class| class.count).sum::<u64>(), lag_us.len());
        assert!(classes.windows(2).all(|two| two[0].to_us == two[1].from_us));
        let last = classes[classes.len() - 1];
        assert!(last.from_us <= HISTOGRAM_HIGH_US && HISTOGRAM_HIGH_US < last.to_us && last.count == 1);
        let mut totals = Totals::new(&[]);
        totals.lag_us = lag_us;
        assert_eq!(summarize(&totals, Path::new("x")).driver.late, 1);
    }
}
