//! Objectives on one phase of the load: decided by the same rules, on the figures of a run whose window is the phase. That the
//! driver was held up counts for each phase as for the whole run, as nobody knows in which of them it was.

use tidemark_record::Totals;
use tidemark_record::manifest::{ObjectiveResult, Undecided};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Objective};

/// The name and the figures of the phase that an objective is held against, where it is on one.
pub fn of<'a>(objective: &Objective, plan: &'a Plan, run: &'a Totals) -> Option<(&'a str, &'a Totals)> {
    let About::Phase(phase, _) = objective.about else { return None };
    let index = usize::from(phase);
    Some((&plan.load.phases.get(index)?.name, &run.phases.get(index)?.totals))
}

/// What comes of an objective on a phase in which nothing was due: nobody knows. None where something was.
pub fn undecided(objective: &Objective, name: &str, of: &Totals) -> Option<ObjectiveResult> {
    (of.all.due() == 0).then(|| ObjectiveResult {
        objective: objective.text.clone(),
        measured: format!("{}, as nothing was due in phase {name}", crate::objectives::NOT_MEASURED),
        undecided: true,
        undecided_by: Some(Undecided::TooFew),
        ..ObjectiveResult::default()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tidemark_record::manifest::{ObjectiveResult, Phase};
    use tidemark_record::{Outcome, PhaseCounts, RunWriter, Series, ThreadInterval, summarize};

    use crate::test_plan::series;
    use crate::{Evidence, judge};

    /// Low: 1,000 answers of 1 ms of Home. High: 1,000 of 80 ms, and Buy fails once in 500 times.
    fn judged(objectives: &str, limits: &[&str]) -> Vec<ObjectiveResult> {
        let text = format!(
            "sessions: {{s: {{steps: [{{GET: /, label: Home}}, {{POST: /, label: Buy}}]}}}}\n\
             load: {{phases: [{{name: low, for: 1s, rate: 1k/s}}, {{name: high, for: 1s, rate: 1500/s}}, \
             {{name: calm, for: 1ms, rate: 1/s}}]}}\n\
             objectives:\n{objectives}\n"
        );
        let plan = tidemark_scenario::load_text("t.yaml", &text, Path::new("."), &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), &plan.labels, "").unwrap();
        let phase = |name: &str, start_us, end_us| Phase {
            name: name.into(),
            start_us,
            end_us,
            measured: true,
            level: String::new(),
        };
        let phases = [
            phase("low", 0, 1_000_000),
            phase("high", 1_000_000, 2_000_000),
            phase("calm", 2_000_000, 2_001_000),
        ];
        writer.phases(&phases, |phase| plan.judges_parts_of_phase(phase));
        for index in 0..2u16 {
            let start_us = u64::from(index) * 1_000_000;
            let mut one = ThreadInterval::empty(0, start_us, start_us + 1_000_000);
            one.in_window = true;
            let of = |label, outcome, us, count| Series {
                phase: Some(index),
                ..series(label, outcome, us, count)
            };
            one.series = match index {
                0 => vec![of(0, Outcome::Ok, 1_000, 1_000)],
                _ => vec![
                    of(0, Outcome::Ok, 80_000, 1_000),
                    of(1, Outcome::Ok, 2_000, 499),
                    of(1, Outcome::Status, 2_000, 1),
                ],
            };
            let offered = one.series.iter().map(|of| of.response_time_us.len()).sum();
            one.measured_offered = offered;
            one.by_phase = vec![PhaseCounts { phase: index, offered, dropped: 0 }];
            writer.add_interval(&one).unwrap();
        }
        let totals = writer.totals();
        let mut summary = summarize(totals, Path::new("x"));
        summary.driver.limits = limits.iter().map(|limit| (*limit).to_owned()).collect();
        judge(&Evidence::of(&plan, totals, &summary)).objectives
    }

    #[test]
    fn an_objective_on_a_phase_is_held_against_its_requests_alone() {
        for (objective, met, measured) in [
            ("low: p99 < 5ms", true, "1ms"),
            ("high: p99 < 5ms", false, "80"),
            ("high: Buy p99 < 5ms", true, "2ms"),
            ("low: errors = 0", true, "0"),
            ("high: errors = 0", false, "1"),
            ("high: Home errors = 0", true, "0"),
            ("high: Buy errors < 0.1%", false, "0.2%"),
            ("low: Buy p99 < 5ms", false, "not measured"),
            ("low: rate > 900/s", true, "1000/s"),
            ("high: rate > 1600/s", false, "1499/s"),
            ("low: achieved > 99% of offered", true, "100%"),
            ("high: dropped = 0", true, "0"),
        ] {
            let result = &judged(&format!("  - {objective}"), &[])[0];
            let told = (result.met, result.undecided, result.measured.as_str());
            assert_eq!((told.0, told.1), (met, false), "{objective}: {told:?}");
            assert!(told.2.starts_with(measured), "{objective}: {told:?}");
        }
    }

    #[test]
    fn an_objective_on_a_phase_in_which_nothing_is_due_is_not_decided() {
        for objective in ["calm: p99 < 5ms", "calm: errors = 0", "calm: rate > 1/s", "calm: dropped = 0"] {
            let result = &judged(&format!("  - {objective}"), &[])[0];
            assert!(result.undecided && !result.met, "{result:?}");
            assert_eq!(result.measured, "not measured, as nothing was due in phase calm");
        }
    }

    #[test]
    fn a_driver_that_was_held_up_leaves_a_phase_undecided_as_it_does_the_whole() {
        let limits = ["it had no core"];
        let result = &judged("  - high: rate > 1600/s", &limits)[0];
        assert!(result.undecided && !result.met, "{result:?}");
        // what was answered wrongly was no doing of the driver
        let result = &judged("  - high: errors = 0", &limits)[0];
        assert!(!result.undecided && !result.met, "{result:?}");
    }
}
