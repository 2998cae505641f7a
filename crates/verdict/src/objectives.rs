//! Each objective held against what was measured, and those by which a run is judged though nobody wrote them.

use tidemark_record::manifest::{ObjectiveResult, Undecided};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Comparison, Load, LoadModel, Metric, Objective};

use crate::figure::{Both, Measured};
use crate::text::{bound_text, significant, text, text_or_not_reached};
use crate::{custom, window};

/// What is said of a figure where there was nothing to measure it on.
pub(crate) const NOT_MEASURED: &str = "not measured";
/// The share of requests that may fail where nobody says so: below this.
pub(crate) const DEFAULT_ERROR_SHARE: f64 = 0.001;
/// The objectives that nobody wrote.
pub(crate) const DEFAULT_ERRORS: &str = "errors < 0.1%";
pub(crate) const ACHIEVED: &str = "achieved > 99% of offered";

/// The objectives by which a run is judged though nobody wrote them, as far as the scenario says nothing on the matter.
pub fn defaults(plan: &Plan) -> Vec<Objective> {
    // one that asks for many errors, or for a low rate, asks for nothing that the default would
    let about = |metrics: &[Metric], not: [Comparison; 2]| {
        let mut of_all = plan.objectives.iter().filter(|of| of.about == About::All);
        of_all.any(|of| metrics.contains(&of.metric) && !not.contains(&of.comparison))
    };
    let (at_least, at_most) =
        ([Comparison::Greater, Comparison::GreaterOrEqual], [Comparison::Less, Comparison::LessOrEqual]);
    let objective = |text: &str, metric, comparison, bound| Objective {
        text: text.into(),
        about: About::All,
        metric,
        comparison,
        bound,
        abort_early: false,
    };
    let mut defaults = Vec::new();
    if !about(&[Metric::Errors, Metric::ErrorShare], at_least) {
        defaults.push(objective(DEFAULT_ERRORS, Metric::ErrorShare, Comparison::Less, DEFAULT_ERROR_SHARE));
    }
    if has_a_rate(&plan.load) && !about(&[Metric::AchievedShare, Metric::Rate], at_most) {
        defaults.push(objective(ACHIEVED, Metric::AchievedShare, Comparison::Greater, 0.99));
    }
    defaults
}

/// Whether nobody wrote that more may fail than by default may.
pub fn judges_errors(plan: &Plan) -> bool {
    let of_all = plan.objectives.iter().filter(|of| of.about == About::All);
    defaults(plan).iter().any(|of| of.metric == Metric::ErrorShare) || of_all.clone().any(is_as_strict)
}

/// Whether an objective allows no more failures than the default.
fn is_as_strict(objective: &Objective) -> bool {
    let is_bound = !matches!(objective.comparison, Comparison::Greater | Comparison::GreaterOrEqual);
    is_bound
        && match objective.metric {
            Metric::ErrorShare => objective.bound <= DEFAULT_ERROR_SHARE,
            Metric::Errors => objective.bound <= 1.0,
            _ => false,
        }
}

/// Whether somebody wrote how much of a label, or of a group, may fail.
pub(crate) fn is_allowed_to_fail(plan: &Plan, about: About) -> bool {
    let of_it = plan.objectives.iter().filter(|of| of.about == about);
    let mut of_errors = of_it.filter(|of| matches!(of.metric, Metric::Errors | Metric::ErrorShare));
    of_errors.any(|of| !is_as_strict(of))
}

/// Whether something is due at its own time, whatever the system does.
pub fn has_a_rate(load: &Load) -> bool {
    let models = load.streams();
    models.iter().any(|stream| matches!(stream.model, LoadModel::Open(_) | LoadModel::Paced(_)))
}

/// What came of an objective. `is_part`: whether too few requests are for others to judge.
pub(crate) fn result(objective: &Objective, of: &Measured<'_>, is_part: bool) -> ObjectiveResult {
    if let (About::Metric(metric), Metric::Custom(figure)) = (objective.about, objective.metric) {
        return custom::result(objective, metric, figure, of);
    }
    let Some(Both { measured, without_driver }) = of.figure(objective) else {
        let (objective, measured) = (objective.text.clone(), NOT_MEASURED.into());
        return ObjectiveResult { objective, measured, ..ObjectiveResult::default() };
    };
    let forgiven = if objective.metric == Metric::AchievedShare { of.forgiven } else { 0.0 };
    let meets = |value: f64| holds(value + forgiven, objective.comparison, objective.bound);
    let (met, would_meet) = (meets(measured), meets(without_driver));
    let share = of.failed_share(objective);
    let as_text = |value| text_or_not_reached(objective.metric, value, share);
    // what agents that were lost never sent decides it, and nothing that the others did
    let is_of_lost = of.never_sent > 0
        && of.lacking(0).figure(objective).is_some_and(|of| meets(of.measured) == meets(of.without_driver));
    let mut told = match met == would_meet {
        true => as_text(measured),
        false if of.lacks_connections && !of.limited => format!(
            "{} as measured, {} without what waited for a connection",
            as_text(measured),
            bound_text(objective.metric, without_driver)
        ),
        false if is_of_lost => format!(
            "{} as measured, {} if what was never sent had been answered",
            as_text(measured),
            bound_text(objective.metric, without_driver)
        ),
        false => format!(
            "{} as measured, {} with the load generator's own share taken out",
            as_text(measured),
            bound_text(objective.metric, without_driver)
        ),
    };
    if forgiven > 0.0 {
        told += &format!(
            " ({} if the {} that may fail is counted)",
            text(Metric::AchievedShare, measured + forgiven),
            text(Metric::ErrorShare, forgiven)
        );
    }
    let steps = of.failed_steps(objective);
    if steps > 0 && matches!(objective.metric, Metric::ErrorShare | Metric::Errors) {
        let what = if steps == 1 { "step" } else { "steps" };
        told += &format!(
            "; {steps} {what} of sessions failed and sent no request: see `variable` under Failures"
        );
    }
    let by = match of.lacks_connections && !of.limited {
        true => Undecided::Connections,
        false if is_of_lost => Undecided::Incomplete,
        false => Undecided::DriverBound,
    };
    let mut undecided_by = (met != would_meet).then_some(by);
    let is_met = met && would_meet;
    if let Some(few) = of.too_few(objective).filter(|_| measured.is_finite()) {
        told += &few;
        if is_met && !is_part {
            undecided_by = Some(Undecided::TooFew);
        }
    }
    if let (Some(achieved), Some(window), None) = (of.achieved(objective), of.totals.window, undecided_by) {
        let window_s = window.length_s();
        let short = match is_met {
            false => meets(achieved.at_most).then(|| window::is_too_short_for(&achieved, window_s)),
            true if is_part => None,
            true if meets(achieved.at_least) => None,
            true => {
                told = format!("{}% to {told}", significant(achieved.at_least * 100.0));
                Some(window::shows_no_trend(&achieved, window_s))
            }
        };
        if let Some(short) = short {
            told += &format!(": {short}");
            undecided_by = Some(Undecided::ShortWindow);
        }
    }
    ObjectiveResult {
        objective: objective.text.clone(),
        met: is_met && undecided_by.is_none(),
        measured: told,
        default: false,
        undecided: undecided_by.is_some(),
        undecided_by,
    }
}

pub(crate) fn holds(value: f64, comparison: Comparison, bound: f64) -> bool {
    match comparison {
        Comparison::Less => value < bound,
        Comparison::LessOrEqual => value <= bound,
        Comparison::Equal => value == bound,
        Comparison::GreaterOrEqual => value >= bound,
        Comparison::Greater => value > bound,
    }
}
