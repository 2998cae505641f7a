//! When a trial has shown enough: a sequential test of each percentile.
//!
//! After each second the requests over the bound are held against those that may be, as two numbers of a Poisson
//! distribution, by the deviance. Both are first divided by how much requests that are neighbours depend on each other: a
//! queue that is longer than the bound stays so for several times the bound ([`BOUNDS`]), and all requests meanwhile count as one.
//! The test is sure above [`SURE`], which is four standard deviations: looked at sixty times, it is wrong in one trial of
//! two hundred at most (by Bonferroni's inequality).

use crate::fit::FAR;
use crate::tail::Tail;
use crate::trial::{Goal, Percentile, Purpose, TrialPlan};

/// Requests within so many times the bound fare alike.
const BOUNDS: f64 = 8.0;
/// A deviance above this leaves no doubt.
const SURE: f64 = 16.0;
/// Nothing is sure before, seconds.
const LEAST_S: f64 = 2.0;

/// Says when a trial may end.
#[derive(Debug, Clone)]
pub struct StoppingRule {
    goals: Vec<Goal>,
    purpose: Purpose,
}

impl StoppingRule {
    /// For a trial.
    pub fn new(goals: &[Goal], ask: &TrialPlan) -> StoppingRule {
        StoppingRule { goals: goals.to_owned(), purpose: ask.purpose }
    }

    /// Whether the trial has shown enough after so many seconds that were measured; tails by goal, in order.
    pub fn is_sure(&self, tails: &[Option<Tail>], measured_s: f64) -> bool {
        if measured_s < LEAST_S || self.purpose == Purpose::Last {
            return false;
        }
        let percentiles = self.goals.iter().zip(tails);
        let percentiles = percentiles.filter_map(|(goal, tail)| Some((goal.percentile?, tail.as_ref()?)));
        let mut hold = !self.goals.is_empty() && self.goals.iter().all(|goal| goal.percentile.is_some());
        for (percentile, tail) in percentiles {
            let (due, slow) = (tail.due() as f64, tail.slow() as f64);
            let alike = alike(percentile, due / measured_s);
            let may = percentile.allowed * due;
            let is_sure = deviance(slow / alike, may / alike) > SURE;
            if is_sure && slow > may {
                // near the limit the share itself is wanted, and only what is far from it is known well enough
                match self.purpose {
                    Purpose::Refine { .. } if tail.cumulative().quantile(percentile.allowed) < FAR => {}
                    _ => return true,
                }
            }
            hold &= is_sure && slow < may;
        }
        hold && matches!(self.purpose, Purpose::Explore | Purpose::Narrow)
    }
}

/// How many requests fare alike in a queue as long as the bound, at so many a second.
pub(crate) fn alike(percentile: Percentile, per_s: f64) -> f64 {
    (per_s * percentile.bound_s * BOUNDS).max(1.0)
}

/// Twice the logarithm of how much better the seen number explains itself than the expected one does.
fn deviance(seen: f64, expected: f64) -> f64 {
    let excess = if seen > 0.0 { seen * (seen / expected).ln() } else { 0.0 };
    2.0 * (excess - (seen - expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(purpose: Purpose) -> StoppingRule {
        let percentile = Some(Percentile { allowed: 0.01, bound_s: 0.05 });
        let goals = [Goal { text: "p99 < 50ms".into(), percentile, ..Goal::default() }];
        StoppingRule::new(&goals, &TrialPlan { level: 1_000.0, purpose, warm_up_s: 1.0, measured_max_s: 9.0 })
    }

    fn tail(fast: u64, slow: u64, parts: f64) -> Vec<Option<Tail>> {
        let mut tail = Tail::default();
        tail.add(0.1, fast);
        tail.add(parts, slow);
        vec![Some(tail)]
    }

    #[test]
    fn what_is_slow_by_far_is_known_soon() {
        let explore = rule(Purpose::Explore);
        assert!(!explore.is_sure(&tail(0, 1_000, 9.0), 1.0), "too early");
        assert!(explore.is_sure(&tail(0, 2_000, 9.0), 2.0));
        // two bursts of as many requests as depend on each other say little
        assert!(!explore.is_sure(&tail(4_200, 800, 9.0), 5.0));
        assert!(!rule(Purpose::Last).is_sure(&tail(0, 2_000, 9.0), 2.0));
    }

    #[test]
    fn that_it_holds_takes_long_to_know() {
        let explore = rule(Purpose::Explore);
        assert!(!explore.is_sure(&tail(20_000, 0, 9.0), 20.0));
        assert!(explore.is_sure(&tail(400_000, 0, 9.0), 400.0));
    }

    #[test]
    fn near_the_limit_a_trial_goes_on_unless_it_is_far_over() {
        let refine = rule(Purpose::Refine { round: 1, place: 0 });
        assert!(!refine.is_sure(&tail(0, 5_000, 2.0), 5.0));
        assert!(refine.is_sure(&tail(0, 5_000, 9.0), 5.0));
        assert!(!refine.is_sure(&tail(400_000, 0, 9.0), 400.0));
    }
}
