//! Where the objectives break, from all trials until now.
//!
//! Of each objective by itself; the lowest is the limit. A percentile is [fitted](crate::fit). Of all others only the
//! trials' verdicts are known: the limit is between the highest level below which none missed it and the lowest above which
//! none met it.
//!
//! Trials that [contradict](contradicting) each other are no chance that an interval knows of. One that stands alone is left
//! out; where there are more, the interval reaches over all of them.

use crate::fit::{FAR, Fit, fit};
use crate::stopping_rule::alike;
use crate::tail::Tail;
use crate::trial::{Goal, Purpose, Trial};

/// Objectives whose limits are within so much of the lowest one share its interval's lower end.
const SHARES: f64 = 1.1;

/// The limit as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The most probable level.
    pub level: f64,
    /// The interval of 95 %; none where nothing bounds it.
    pub low: Option<f64>,
    #[allow(missing_docs)]
    pub high: Option<f64>,
    /// The goal that breaks first; none where something else makes trials fail.
    pub goal: Option<usize>,
    /// Whether the interval is no more than what trials held and broke, without a probability.
    pub is_between_trials: bool,
    /// How steep the percentile rises; none where there is only a bracket.
    pub(crate) steepness: Option<f64>,
}

/// None where nothing broke, or nothing held.
pub fn estimate(goals: &[Goal], trials: &[&Trial]) -> Option<Estimate> {
    let decided = decided(goals, trials);
    let against = contradicting(goals, &decided);
    let alone = lone(&against);
    let kept: Vec<&Trial> = decided.iter().copied().filter(|trial| !is_in(&alone, trial)).collect();
    let found = of_kept(goals, &kept)?;
    if alone.is_some() || against.is_empty() {
        return Some(found);
    }
    let levels =
        |holds: bool| kept.iter().filter(move |trial| trial.holds() == holds).map(|trial| trial.ask.level);
    let lowest = against.iter().map(|trial| trial.ask.level).fold(f64::INFINITY, f64::min);
    let highest = levels(true).fold(0.0, f64::max);
    let low = levels(true).filter(|level| *level < lowest).reduce(f64::max);
    let high = levels(false).filter(|level| *level > highest).reduce(f64::min);
    Some(Estimate {
        low: found.low.zip(low).map(|(a, b)| a.min(b)),
        high: found.high.zip(high).map(|(a, b)| a.max(b)),
        ..found
    })
}

fn of_kept(goals: &[Goal], trials: &[&Trial]) -> Option<Estimate> {
    let held = trials.iter().filter(|trial| trial.holds()).map(|trial| trial.ask.level).reduce(f64::max)?;
    let of_goals = (0..goals.len()).filter_map(|goal| of_goal(goals, goal, trials, held));
    let failure = bracket(trials, held, &|trial| trial.failure.is_some());
    let failure = failure.map(|Bracket { level, low, high }| Estimate {
        level,
        low,
        high,
        goal: None,
        is_between_trials: true,
        steepness: None,
    });
    let all: Vec<Estimate> = of_goals.chain(failure).collect();
    let first = all.iter().min_by(|a, b| a.level.total_cmp(&b.level))?.clone();
    let sharing = all.iter().filter(|other| other.level <= first.level * SHARES);
    let low = sharing.map(|other| other.low).reduce(|a, b| Some(a?.min(b?))).flatten();
    let high = all.iter().filter_map(|other| other.high).reduce(f64::min);
    Some(Estimate { low, high, ..first })
}

/// Trials at up to so many times the lowest level that errors broke show how many requests fail there.
const ALIKE: f64 = 4.0;
/// That a system fails as seldom as it was seen to by chance has a probability of 2 % at most where so many failures, and so
/// many more for each that was seen, were to be expected (Poisson).
const EXPECTED: f64 = 4.0;
const EXPECTED_MORE: f64 = 2.0;

/// Those with enough requests to hold or to break. Where errors broke a trial, another that held says so only with enough
/// requests to show as many: of a system that fails one of two hundred at any load, a hundred may hold by chance.
pub(crate) fn decided<'a>(goals: &[Goal], trials: &[&'a Trial]) -> Vec<&'a Trial> {
    let mut told: Vec<&Trial> =
        trials.iter().copied().filter(|trial| trial.verdict(goals).is_some()).collect();
    if let Some(share) = failing(goals, trials) {
        told.retain(|trial| {
            !trial.holds() || trial.due() * share >= EXPECTED + EXPECTED_MORE * trial.failed()
        });
    }
    told
}

/// So many requests show whether they fail as the lowest trials that errors broke do; none where none did.
pub(crate) fn wanted_by_errors(goals: &[Goal], trials: &[&Trial]) -> Option<f64> {
    failing(goals, trials).map(|share| EXPECTED / share)
}

/// The share of requests that failed in the trials from the lowest on that errors broke, whatever became of them: those that
/// broke alone would be the ones in which more failed than usual.
fn failing(goals: &[Goal], trials: &[&Trial]) -> Option<f64> {
    let by_errors = |trial: &&&Trial| {
        let missed = (0..goals.len()).any(|index| goals[index].is_of_errors && trial.missed(goals, index));
        missed && trial.failed() > 0.0
    };
    let lowest = trials.iter().filter(by_errors).map(|trial| trial.ask.level).reduce(f64::min)?;
    let near = || trials.iter().filter(|trial| (lowest..=lowest * ALIKE).contains(&trial.ask.level));
    Some(near().map(|trial| trial.failed()).sum::<f64>() / near().map(|trial| trial.due()).sum::<f64>())
}

/// So many trials against one that broke are a contradiction.
const AGAINST: usize = 2;
/// Where the objective that was missed is no percentile, they held at so many times its level.
const BEYOND: f64 = 1.5;

/// Trials that broke by far although others held at no less load: no load explains that. By how far is known of percentiles
/// alone; of all else what held at far more load counts.
pub(crate) fn contradicting<'a>(goals: &[Goal], trials: &[&'a Trial]) -> Vec<&'a Trial> {
    contradicted_by(AGAINST, goals, trials)
}

/// The same where so many held.
pub(crate) fn contradicted_by<'a>(count: usize, goals: &[Goal], trials: &[&'a Trial]) -> Vec<&'a Trial> {
    let is_against = |broke: &Trial| {
        let from = broke.ask.level * if breaks_by_far(goals, broke) { 1.0 } else { BEYOND };
        let against = trials.iter().filter(|held| held.holds() && held.ask.level >= from);
        against.take(count).count() == count
    };
    trials.iter().copied().filter(|trial| !trial.holds() && is_against(trial)).collect()
}

/// The one that contradicts all others; a trial that was to last says more than the short ones.
pub(crate) fn lone<'a>(against: &[&'a Trial]) -> Option<&'a Trial> {
    match against {
        [one] if one.ask.purpose != Purpose::Last => Some(one),
        _ => None,
    }
}

fn is_in(one: &Option<&Trial>, trial: &Trial) -> bool {
    one.is_some_and(|one| std::ptr::eq(one, trial))
}

/// What each percentile was, in parts of its bound.
fn parts<'a>(goals: &'a [Goal], trial: &'a Trial) -> impl Iterator<Item = f64> + 'a {
    let with = goals.iter().zip(&trial.seen).filter(|(goal, seen)| !seen.has_too_few(goal));
    with.filter_map(|(goal, seen)| Some(seen.tail.as_ref()?.cumulative().quantile(goal.percentile?.allowed)))
}

/// Whether it held, and every percentile was far under its bound.
pub(crate) fn holds_by_far(goals: &[Goal], trial: &Trial) -> bool {
    trial.holds()
        && parts(goals, trial).next().is_some()
        && parts(goals, trial).all(|parts| parts <= 1.0 / FAR)
}

fn breaks_by_far(goals: &[Goal], trial: &Trial) -> bool {
    !trial.holds() && parts(goals, trial).any(|parts| parts >= FAR)
}

/// A trial that answered less of what was offered was overloaded.
pub(crate) const OVERLOADED_BELOW: f64 = 0.97;

/// Whether it broke beyond what chance explains: a percentile by far, or much had no good answer.
pub(crate) fn breaks_plainly(goals: &[Goal], trial: &Trial) -> bool {
    breaks_by_far(goals, trial) || (!trial.holds() && trial.answered_share() < OVERLOADED_BELOW)
}

fn of_goal(goals: &[Goal], goal: usize, trials: &[&Trial], held: f64) -> Option<Estimate> {
    let with = |trial: &&&Trial| trial.seen.get(goal).is_none_or(|seen| trial.tells(&goals[goal], seen));
    let trials: Vec<&Trial> = trials.iter().filter(with).copied().collect();
    let breaks = |trial: &Trial| trial.seen.get(goal).is_some_and(|seen| !seen.met);
    let Bracket { level, low, high } = bracket(&trials, held, &breaks)?;
    let fitted = goals[goal].percentile.and_then(|percentile| {
        let tails: Vec<(f64, &Tail)> = trials
            .iter()
            .filter_map(|trial| Some((trial.ask.level, trial.seen.get(goal)?.tail.as_ref()?)))
            .collect();
        let distance = |trial: &Trial| (trial.ask.level / level).ln().abs();
        let nearest = trials.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let due = nearest.seen.get(goal)?.tail.as_ref()?.due() as f64;
        let alike = alike(percentile, due / nearest.measured_s.max(1e-9));
        let fit = fit(&tails, percentile.allowed, alike, level)?;
        let high = fit.high.and_then(|high| twice(&trials, &breaks, goals, high));
        Some(Fit { high, ..fit })
    });
    Some(match fitted {
        Some(Fit { level, low, high, steepness, near_bound, is_between_trials }) => {
            let steepness = Some(steepness).filter(|_| near_bound > 1);
            Estimate { level, low, high, goal: Some(goal), is_between_trials, steepness }
        }
        None => Estimate { level, low, high, goal: Some(goal), is_between_trials: true, steepness: None },
    })
}

/// The upper end, moved up until two trials broke there or below, where all that held below is far from its bound: one trial
/// that broke says too little then.
fn twice(trials: &[&Trial], breaks: &dyn Fn(&Trial) -> bool, goals: &[Goal], high: f64) -> Option<f64> {
    let mut below = trials.iter().filter(|trial| trial.ask.level <= high && !breaks(trial));
    if below.any(|trial| trial.holds() && !holds_by_far(goals, trial)) {
        return Some(high);
    }
    let mut broke: Vec<f64> =
        trials.iter().filter(|trial| breaks(trial)).map(|trial| trial.ask.level).collect();
    broke.sort_by(f64::total_cmp);
    broke.get(1).map(|second| second.max(high))
}

struct Bracket {
    level: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// Between the levels at which trials hold and those at which they break; none where none breaks. `held`: the highest level
/// at which everything held.
fn bracket(trials: &[&Trial], held: f64, breaks: &dyn Fn(&Trial) -> bool) -> Option<Bracket> {
    let levels = |broken: bool| {
        let of = trials.iter().filter(move |trial| breaks(trial) == broken);
        of.map(|trial| trial.ask.level)
    };
    let lowest_broken = levels(true).reduce(f64::min)?;
    let highest_met = levels(false).reduce(f64::max);
    let mut low = levels(false).filter(|level| *level < lowest_broken).reduce(f64::max);
    let high = levels(true).filter(|level| highest_met.is_none_or(|met| *level > met)).reduce(f64::min);
    if low.is_none() && held < lowest_broken {
        low = Some(held);
    }
    let level = match (low, high) {
        (Some(low), Some(high)) => (low * high).sqrt(),
        (Some(low), None) => (low * lowest_broken).sqrt(),
        (None, _) => lowest_broken,
    };
    Some(Bracket { level, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Figures, GoalResult, Purpose, TrialPlan};

    fn trial(level: f64, met: bool) -> Trial {
        let ask = TrialPlan { level, purpose: Purpose::Explore, warm_up_s: 1.0, measured_max_s: 3.0 };
        let figures = Figures { offered_per_s: level, ..Figures::default() };
        Trial::new(ask, vec![GoalResult { met, ..GoalResult::default() }], figures)
    }

    fn of(trials: &[(f64, bool)]) -> Option<(f64, Option<f64>, Option<f64>)> {
        let goals = [Goal { text: "errors = 0".into(), is_of_errors: true, ..Goal::default() }];
        let trials: Vec<Trial> = trials.iter().map(|(level, met)| trial(*level, *met)).collect();
        let trials: Vec<&Trial> = trials.iter().collect();
        estimate(&goals, &trials).map(|of| (of.level.round(), of.low, of.high))
    }

    #[test]
    fn a_limit_is_between_what_held_and_what_broke() {
        assert_eq!(
            of(&[(100.0, true), (400.0, false), (800.0, false)]),
            Some((200.0, Some(100.0), Some(400.0)))
        );
        assert_eq!(of(&[(100.0, true)]), None);
        assert_eq!(of(&[(100.0, false)]), None);
        // 200 broke once and held once
        let mixed = [(100.0, true), (200.0, false), (200.0, true), (300.0, true), (400.0, false)];
        assert_eq!(of(&mixed), Some((200.0, Some(100.0), Some(400.0))));
        assert_eq!(of(&[(100.0, true), (90.0, false)]), Some((90.0, None, None)));
    }

    #[test]
    fn too_few_requests_to_show_an_error_hold_nothing() {
        let goals = [Goal { text: "errors < 0.1%".into(), is_of_errors: true, ..Goal::default() }];
        let of = |level: f64, failed: f64| {
            let mut trial = trial(level, failed / (3.0 * level) < 1e-3);
            trial.figures.failed_share = failed / (3.0 * level);
            trial
        };
        let count = |trials: &[Trial]| decided(&goals, &trials.iter().collect::<Vec<_>>()).len();
        // one of two hundred fails: 12 of 2,400, 3 of 600; 150 without one may be chance
        assert_eq!(count(&[of(800.0, 12.0), of(200.0, 3.0), of(50.0, 0.0)]), 2);
        // where half fail they are not
        assert_eq!(count(&[of(800.0, 1_200.0), of(200.0, 300.0), of(50.0, 0.0)]), 3);
        // nor where they are enough, or nothing failed
        assert_eq!(count(&[of(800.0, 12.0), of(700.0, 0.0)]), 2);
        assert_eq!(count(&[of(800.0, 0.0), of(1.0, 0.0)]), 2);
    }

    #[test]
    fn what_falls_is_a_limit_of_its_own() {
        let goals = [Goal { text: "errors = 0".into(), is_of_errors: true, ..Goal::default() }];
        let (held, mut ended) = (trial(100.0, true), trial(300.0, true));
        ended.failure = Some("the system ended by itself".into());
        let found = estimate(&goals, &[&held, &ended]).unwrap();
        assert_eq!((found.goal, found.low, found.high), (None, Some(100.0), Some(300.0)));
    }
}
