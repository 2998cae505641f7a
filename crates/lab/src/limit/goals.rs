//! A plan's objectives as the goals of a search.

use tidemark_limit::{Goal, Percentile};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Comparison, CustomFigure, Metric, Objective};

use tidemark_verdict as verdict;

/// What is searched for.
#[derive(Debug, Clone, Default)]
pub struct Goals {
    /// As the search knows them.
    pub all: Vec<Goal>,
    /// By goal: which of a run's objectives it is.
    pub of: Vec<usize>,
    /// By goal: the requests that are counted over its bound, where it is of a percentile.
    pub bounded: Vec<Option<Bounded>>,
    /// By goal: the least share of what is offered that is to be achieved, where it is of that.
    pub achieved: Vec<Option<f64>>,
    /// Objectives that no load breaks.
    pub left_out: Vec<String>,
}

/// Requests that are held against a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// Which.
    pub about: About,
    /// The bound, microseconds.
    pub bound_us: f64,
}

impl Goals {
    /// Those of a plan, and those by which every run is judged: there is always one, as errors are always judged.
    pub fn of(plan: &Plan) -> Goals {
        let mut goals = Goals::default();
        let defaults = verdict::defaults(plan);
        for (index, objective) in plan.objectives.iter().chain(&defaults).enumerate() {
            if asks_for_load(objective) {
                goals.left_out.push(objective.text.clone());
                continue;
            }
            let percentile = percentile(objective);
            let bound_us = objective.bound;
            goals.achieved.push(achieved(objective));
            goals.bounded.push(percentile.map(|_| Bounded { about: objective.about, bound_us }));
            let is_of_errors = matches!(objective.metric, Metric::Errors | Metric::ErrorShare);
            let is_whole = objective.metric == Metric::ErrorShare && objective.about == About::All;
            let errors_allowed = (is_whole && !is_at_least(objective)).then_some(objective.bound);
            let text = objective.text.clone();
            goals.all.push(Goal { text, is_of_errors, errors_allowed, percentile });
            goals.of.push(index);
        }
        goals
    }
}

/// Whether an objective asks for a load instead of bounding what it does: the more there is, the better.
fn asks_for_load(objective: &Objective) -> bool {
    let amount = matches!(
        objective.metric,
        Metric::Rate | Metric::Custom(CustomFigure::Count | CustomFigure::Sum | CustomFigure::Rate)
    );
    is_at_least(objective) && amount
}

/// Refuses what is on a phase, and a time that is bounded from below: more load makes times longer, so that it would hold where
/// the system does not.
pub fn check(objectives: &[Objective]) -> Result<(), String> {
    if let Some(Objective { text, .. }) = objectives.iter().find(|of| matches!(of.about, About::Phase(..))) {
        let whole = text.split_once(':').map_or(text.as_str(), |(_, rest)| rest.trim());
        return Err(format!(
            "`{text}` is on a phase, and each trial of a search holds one level instead of the phases; give --until '{whole}', \
             which leaves out what is on phases, or write `{whole}` in the scenario"
        ));
    }
    let is_time = |objective: &Objective| matches!(objective.metric, Metric::Percentile(_) | Metric::Mean);
    match objectives.iter().find(|objective| is_time(objective) && is_at_least(objective)) {
        None => Ok(()),
        Some(Objective { text, .. }) => Err(format!(
            "`{text}` is broken by less load, not by more; a time is bounded from above: {}",
            text.replacen('>', "<", 1)
        )),
    }
}

fn is_at_least(objective: &Objective) -> bool {
    matches!(objective.comparison, Comparison::Greater | Comparison::GreaterOrEqual)
}

/// The bound of an objective on the share of what is offered that is achieved.
fn achieved(objective: &Objective) -> Option<f64> {
    (is_at_least(objective) && objective.metric == Metric::AchievedShare).then_some(objective.bound)
}

/// A percentile with an upper bound; the longest time is decided trial by trial.
fn percentile(objective: &Objective) -> Option<Percentile> {
    let Metric::Percentile(percent) = objective.metric else { return None };
    let at_most = matches!(objective.comparison, Comparison::Less | Comparison::LessOrEqual);
    let allowed = 1.0 - percent / 100.0;
    // what nearly all may exceed is no tail
    let fits = at_most && (1e-7..0.99).contains(&allowed) && objective.bound > 0.0;
    fits.then_some(Percentile { allowed, bound_s: objective.bound / 1e6 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_scenario::plan::{LoadModel, Spacing};
    use tidemark_verdict::test_plan::plan;

    fn goals(objectives: &[&str]) -> Goals {
        let mut plan = plan(LoadModel::Open(Spacing::Poisson));
        objectives.iter().for_each(|text| plan.add_objective(text).unwrap());
        Goals::of(&plan)
    }

    #[test]
    fn objectives_become_goals_and_those_that_no_load_breaks_are_left_out() {
        let goals = goals(&["rate > 5k/s", "p99 < 50ms", "A p90 <= 2ms", "max < 1s"]);
        let shares: Vec<f64> = goals.all.iter().filter_map(|goal| goal.errors_allowed).collect();
        assert_eq!(shares, [0.001], "of all requests, by default");
        let of_errors: Vec<bool> = goals.all.iter().map(|goal| goal.is_of_errors).collect();
        assert_eq!(of_errors, [false, false, false, true]);
        let texts: Vec<&str> = goals.all.iter().map(|goal| goal.text.as_str()).collect();
        // `rate >` stands for the default on what was achieved, too
        assert_eq!(texts, ["p99 < 50ms", "A p90 <= 2ms", "max < 1s", "errors < 0.1%"]);
        assert_eq!((goals.of, goals.left_out), (vec![1, 2, 3, 4], vec!["rate > 5k/s".to_owned()]));
        let percentile = goals.all[0].percentile.unwrap();
        assert!((percentile.allowed - 0.01).abs() < 1e-12 && percentile.bound_s == 0.05);
        let label = Bounded { about: About::Label(0), bound_us: 2_000.0 };
        assert_eq!(goals.bounded[1..], [Some(label), None, None]);
    }

    #[test]
    fn what_is_on_a_phase_is_refused_with_what_to_write_instead() {
        let text = "sessions: {s: {steps: [{GET: /, label: Buy}]}}\nload: {phases: [{name: high, for: 1s, rate: 9/s}]}\n\
                    objectives: ['high: Buy p99 < 5ms']\n";
        let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let reason = check(&plan.objectives).unwrap_err();
        assert!(reason.starts_with("`high: Buy p99 < 5ms` is on a phase"), "{reason}");
        assert!(reason.contains("give --until 'Buy p99 < 5ms',"), "{reason}");
    }

    #[test]
    fn a_time_that_is_bounded_from_below_is_refused() {
        let checked = |text: &str| {
            let mut plan = plan(LoadModel::Open(Spacing::Poisson));
            plan.add_objective(text).unwrap();
            check(&plan.objectives)
        };
        for (text, right) in
            [("p99>50ms", "p99<50ms"), ("A mean >= 2ms", "A mean <= 2ms"), ("max > 1s", "max < 1s")]
        {
            let reason = checked(text).unwrap_err();
            assert!(reason.ends_with(&format!("from above: {right}")), "{reason}");
        }
        for text in ["p99 < 50ms", "rate > 5k/s", "achieved >= 99% of offered"] {
            assert_eq!(checked(text), Ok(()));
        }
    }
}
