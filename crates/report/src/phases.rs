//! The figures of each phase of the load, as rows of a table.

use tidemark_record::summary::{Phase, Summary};
use tidemark_record::{DRIVER, SYSTEM};

use crate::units::{count, seconds, three_digits, time};

/// What the columns behind the name say. CPU is in cores, a mean.
pub(crate) const HEAD: [&str; 11] = [
    "for",
    "offered/s",
    "achieved/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "failed",
    "CPU system",
    "CPU driver",
];

/// The phases, those that are not measured included. None where only one is measured: its figures are those of the whole.
pub(crate) fn told(summary: &Summary) -> &[Phase] {
    let measured = summary.phases.iter().filter(|phase| phase.measured).count();
    if measured > 1 { &summary.phases } else { &[] }
}

/// The figures of a phase, a dash where there is none.
pub(crate) fn figures(phase: &Phase) -> [String; HEAD.len()] {
    let of = &phase.response_time_us;
    let [p50, p90, p99, p999, max] = [of.p50, of.p90, of.p99, of.p999, of.max].map(time);
    let cores = |name: &str| {
        let process = phase.processes.iter().find(|process| process.name == name);
        process.map_or_else(|| "-".to_owned(), |process| three_digits(process.cpu_share))
    };
    [
        seconds(phase.length_s()),
        three_digits(phase.offered_per_s),
        three_digits(phase.achieved_per_s),
        p50,
        p90,
        p99,
        p999,
        max,
        count(phase.failed),
        cores(SYSTEM),
        cores(DRIVER),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use tidemark_record::summary::{Latency, Process};

    use super::*;

    /// A warm-up and two measured phases.
    pub(crate) fn three() -> Vec<Phase> {
        let process = |name: &str, cpu_share| Process { name: name.into(), cpu_share, ..Process::default() };
        let phase = |name: &str, measured, from_s, to_s, per_s| Phase {
            name: name.into(),
            level: format!("{per_s}/s"),
            measured,
            from_s,
            to_s,
            offered_per_s: per_s,
            achieved_per_s: per_s - 1.0,
            failed: 3,
            response_time_us: Latency { p50: Some(1_500), p99: Some(90_000), ..Latency::default() },
            processes: vec![process(SYSTEM, per_s / 100.0), process("store", 1.0)],
            ..Phase::default()
        };
        vec![
            phase("warm-up", false, 0.0, 1.5, 50.0),
            phase("low", true, 1.5, 11.5, 100.0),
            phase("high|er", true, 11.5, 21.5, 250.0),
        ]
    }

    #[test]
    fn a_phase_has_a_row_where_several_are_measured() {
        let (_dir, run) = crate::test_run::airline();
        let mut summary = run.manifest.summary;
        summary.phases = three();
        let rows: Vec<String> = told(&summary)
            .iter()
            .map(|phase| format!("{} {}", phase.name, figures(phase).join(" ")))
            .collect();
        assert_eq!(rows[0], "warm-up 1.5s 50.0 49.0 1.50ms - 90.0ms - - 3 0.5 -");
        assert_eq!(rows[2], "high|er 10s 250 249 1.50ms - 90.0ms - - 3 2.50 -");
        summary.phases.truncate(2);
        assert!(told(&summary).is_empty());
    }
}
