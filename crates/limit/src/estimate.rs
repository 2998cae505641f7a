//! Where the objectives break, from all trials until now.
//!
//! Of each objective by itself; the lowest is the limit. A percentile is [fitted](crate::fit). Of all others only the
//! trials' verdicts are known: the limit is between the highest level below which none missed it and the lowest above which
//! none met it.

use crate::fit::{Fit, fit};
use crate::tail::Tail;
use crate::trial::{Goal, Trial};
use crate::watch::alike;

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
    /// How steep the percentile rises, and how many trials say so; none where there is only a bracket.
    pub(crate) steepness: Option<f64>,
}

/// None where nothing broke, or nothing held.
pub fn estimate(goals: &[Goal], trials: &[&Trial]) -> Option<Estimate> {
    let held = trials.iter().filter(|trial| trial.holds()).map(|trial| trial.ask.level).reduce(f64::max)?;
    let of_goals = (0..goals.len()).filter_map(|goal| of_goal(goals, goal, trials, held));
    let fell = bracket(trials, held, &|trial| trial.fell.is_some());
    let fell =
        fell.map(|Bracket { level, low, high }| Estimate { level, low, high, goal: None, steepness: None });
    let all: Vec<Estimate> = of_goals.chain(fell).collect();
    let first = all.iter().min_by(|a, b| a.level.total_cmp(&b.level))?.clone();
    let sharing = all.iter().filter(|other| other.level <= first.level * SHARES);
    let low = sharing.map(|other| other.low).reduce(|a, b| Some(a?.min(b?))).flatten();
    let high = all.iter().filter_map(|other| other.high).reduce(f64::min);
    Some(Estimate { low, high, ..first })
}

fn of_goal(goals: &[Goal], goal: usize, trials: &[&Trial], held: f64) -> Option<Estimate> {
    let breaks = |trial: &Trial| trial.seen.get(goal).is_some_and(|seen| !seen.met);
    let Bracket { level, low, high } = bracket(trials, held, &breaks)?;
    let fitted = goals[goal].percentile.and_then(|percentile| {
        let tails: Vec<(f64, &Tail)> = trials
            .iter()
            .filter_map(|trial| Some((trial.ask.level, trial.seen.get(goal)?.tail.as_ref()?)))
            .collect();
        let distance = |trial: &Trial| (trial.ask.level / level).ln().abs();
        let nearest = trials.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        let due = nearest.seen.get(goal)?.tail.as_ref()?.due() as f64;
        let alike = alike(percentile, due / nearest.measured_s.max(1e-9));
        fit(&tails, percentile.allowed, alike, level)
    });
    Some(match fitted {
        Some(Fit { level, low, high, steepness, telling, .. }) => {
            let steepness = Some(steepness).filter(|_| telling > 1);
            Estimate { level, low, high, goal: Some(goal), steepness }
        }
        None => Estimate { level, low, high, goal: Some(goal), steepness: None },
    })
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
    use crate::trial::{Ask, Figures, Purpose, Seen};

    fn trial(level: f64, met: bool) -> Trial {
        let ask = Ask { level, purpose: Purpose::Explore, warm_up_s: 1.0, most_s: 3.0 };
        Trial::new(ask, vec![Seen { met, ..Seen::default() }], Figures::default())
    }

    fn of(trials: &[(f64, bool)]) -> Option<(f64, Option<f64>, Option<f64>)> {
        let goals = [Goal { text: "errors = 0".into(), percentile: None }];
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
    fn what_falls_is_a_limit_of_its_own() {
        let goals = [Goal { text: "errors = 0".into(), percentile: None }];
        let (held, mut fell) = (trial(100.0, true), trial(300.0, true));
        fell.fell = Some("the system ended by itself".into());
        let found = estimate(&goals, &[&held, &fell]).unwrap();
        assert_eq!((found.goal, found.low, found.high), (None, Some(100.0), Some(300.0)));
    }
}
