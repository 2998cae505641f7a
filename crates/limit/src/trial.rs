//! What is asked of a trial, and what it says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tail::Tail;

/// An objective, as far as the search needs to know it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// As it is written: `p99 < 50ms`.
    pub text: String,
    /// Whether it bounds how many requests, or which share of them, have no good answer.
    #[serde(default)]
    pub is_of_errors: bool,
    /// Of a share of errors of all requests: how large it may be, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_allowed: Option<f64>,
    /// Of a percentile with an upper bound: the share of requests that may be slower, 0 to 1, and the bound, seconds. All
    /// others are decided trial by trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Percentile>,
}

/// A percentile that is bounded from above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// The share of requests that may be slower, above 0 and below 1.
    pub allowed: f64,
    /// The bound, seconds.
    pub bound_s: f64,
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To find any level that breaks, and any that holds.
    Explore,
    /// To bring the two closer.
    Narrow,
    /// To know the limit well: one of several in shuffled order.
    Refine {
        /// From 1.
        round: u32,
        /// From 0.
        place: u32,
    },
    /// To see whether it holds for longer.
    Last,
}

/// A trial that is to be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Sessions that arrive each second, or users.
    pub level: f64,
    /// What it is for.
    pub purpose: Purpose,
    /// How long the level is held before anything counts, seconds.
    pub warm_up_s: f64,
    /// How long it is measured at most, seconds.
    #[serde(rename = "most_s")]
    pub measured_max_s: f64,
}

/// Why a trial says nothing of the system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotCounted {
    /// The driver was the limit.
    Driver(String),
    /// Somebody else had the machine: other processes, or its hypervisor.
    Machine(String),
}

/// What a trial says of a goal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// Whether it was met.
    pub met: bool,
    /// What was measured, for a person.
    pub measured: String,
    /// Of a percentile: how many requests took how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
    /// Whether the driver's own fault, or want of a core, could have changed the answer, so that there is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

/// Where most of so many requests are slow every percentile is.
const MOSTLY_SLOW_MIN: u64 = 10;

impl GoalResult {
    /// Whether these are too few requests for the percentile of the goal: not one of them may be slow, and it is not most of
    /// them that are.
    pub(crate) fn has_too_few(&self, goal: &Goal) -> bool {
        let Some((percentile, tail)) = goal.percentile.zip(self.tail.as_ref()) else { return false };
        let due = tail.due();
        let is_mostly_slow = due >= MOSTLY_SLOW_MIN && tail.slow() * 2 >= due;
        due as f64 * percentile.allowed < 1.0 - 1e-9 && !is_mostly_slow
    }
}

/// A second of a trial, or less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Its middle, seconds since the trial's load began.
    pub at_s: f64,
    /// Requests that ended in it.
    pub ended: u64,
    /// Those of them that were slower than the bound of the first goal that is a percentile, or had no good answer.
    pub slow: u64,
}

/// What a program used of the cores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cores {
    /// `system`, a store's name; the kernel's name of a neighbour.
    pub name: String,
    /// Mean use.
    pub cores: f64,
    /// How long its threads, all together, were ready to run without a core, as a share of the time; absent where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<f64>,
}

/// How large the good answers of a label were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerSize {
    /// The label; empty where it is of all.
    #[serde(default)]
    pub label: String,
    /// How many there were.
    pub answers: u64,
    /// Bytes of each, mean.
    pub bytes: f64,
}

/// What was measured in a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Requests that became due each second.
    pub offered_per_s: f64,
    /// Good answers each second.
    pub achieved_per_s: f64,
    /// Requests without a good answer as a share of those that were due, 0 to 1.
    pub failed_share: f64,
    /// Percentiles of the response time, microseconds; null what was not reached.
    pub p50_us: Option<u64>,
    #[allow(missing_docs)]
    pub p90_us: Option<u64>,
    #[allow(missing_docs)]
    pub p99_us: Option<u64>,
    #[allow(missing_docs)]
    pub p999_us: Option<u64>,
    /// Mean response time of the good answers, microseconds.
    pub mean_us: Option<f64>,
    /// Mean service time of the good answers, microseconds.
    pub service_mean_us: Option<f64>,
    /// What was started, or is driven: its use of the cores.
    pub processes: Vec<Cores>,
    /// Who else used the machine most.
    pub neighbours: Vec<Cores>,
    /// Requests under way at the ends of its seconds, mean.
    pub in_flight: f64,
    /// Arrivals that waited for a connection then, mean.
    pub waiting: f64,
    /// Good answers by label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerSize>,
    /// The trend within the trial, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
}

/// A trial that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What it was to be.
    pub ask: TrialPlan,
    /// When its load began, seconds since the search began; times in which nobody searched are left out.
    pub began_s: f64,
    /// How long it took altogether, with the start of the system and its cool-down, seconds.
    pub took_s: f64,
    /// How long was measured, seconds.
    pub measured_s: f64,
    /// By goal.
    pub seen: Vec<GoalResult>,
    /// What else made it fail: the system ended by itself, all requests of a label failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Why it says nothing of the system and is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<NotCounted>,
    /// What was measured.
    pub figures: Figures,
    /// Second by second.
    #[serde(default)]
    pub moments: Vec<Moment>,
    /// Where the run is, within the search's directory.
    #[serde(default)]
    pub dir: String,
}

/// That chance fails so many requests, or more, is less probable than this where too many failed.
const BY_CHANCE: f64 = 0.05;
/// From so many on the normal distribution is near enough, with its quantile of that probability.
const MANY: f64 = 50.0;
const QUANTILE: f64 = 1.645;

/// Whether more requests failed than chance explains where so many may on average (Poisson).
fn are_too_many(failed: f64, allowed: f64) -> bool {
    if failed > MANY {
        return failed - allowed > QUANTILE * allowed.sqrt();
    }
    let mut term = (-allowed).exp();
    let mut fewer = 0.0;
    for count in 0..failed.round() as u32 {
        fewer += term;
        term *= allowed / f64::from(count + 1);
    }
    1.0 - fewer < BY_CHANCE
}

impl Trial {
    /// One that took as long as it may, with nothing beside it.
    pub fn new(ask: TrialPlan, seen: Vec<GoalResult>, figures: Figures) -> Trial {
        Trial {
            ask,
            began_s: 0.0,
            took_s: ask.warm_up_s + ask.measured_max_s,
            measured_s: ask.measured_max_s,
            seen,
            failure: None,
            not_counted: None,
            figures,
            moments: Vec::new(),
            dir: String::new(),
        }
    }

    /// Whether every goal was met.
    pub fn holds(&self) -> bool {
        self.failure.is_none() && self.seen.iter().all(|seen| seen.met)
    }

    /// Whether the objectives hold, as far as its requests can say: none where there was no request, or a percentile had too
    /// few of them and nothing else was missed.
    pub fn verdict(&self, goals: &[Goal]) -> Option<bool> {
        if self.failure.is_some() {
            return Some(false);
        }
        if !self.has_requests() {
            return None;
        }
        let mut has_enough = true;
        for (goal, seen) in goals.iter().zip(&self.seen) {
            if !self.tells(goal, seen) {
                has_enough = false;
            } else if !seen.met {
                return Some(false);
            }
        }
        has_enough.then_some(true)
    }

    /// Whether what was seen of a goal decides it.
    pub(crate) fn tells(&self, goal: &Goal, seen: &GoalResult) -> bool {
        let is_chance = !seen.met
            && goal.errors_allowed.is_some_and(|allowed| !are_too_many(self.failed(), allowed * self.due()));
        !seen.has_too_few(goal) && !is_chance && !seen.undecided
    }

    /// Whether it missed this goal; not what is not decided.
    pub fn missed(&self, goals: &[Goal], index: usize) -> bool {
        let of = goals.get(index).zip(self.seen.get(index));
        of.is_some_and(|(goal, seen)| !seen.met && self.tells(goal, seen))
    }

    /// Good answers as a share of what was offered, no more than 1.
    pub(crate) fn answered_share(&self) -> f64 {
        (self.figures.achieved_per_s / self.figures.offered_per_s.max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// Requests that were due.
    pub(crate) fn due(&self) -> f64 {
        self.figures.offered_per_s * self.measured_s
    }

    /// Requests without a good answer.
    pub(crate) fn failed(&self) -> f64 {
        self.figures.failed_share * self.due()
    }

    fn has_requests(&self) -> bool {
        let counted = self.seen.iter().any(|seen| seen.tail.as_ref().is_some_and(|tail| tail.due() > 0));
        counted || self.figures.offered_per_s > 0.0
    }

    /// Whether others had the machine.
    pub fn is_disturbed(&self) -> bool {
        matches!(self.not_counted, Some(NotCounted::Machine(_)))
    }

    /// Whether it says something of the system.
    pub fn is_counted(&self) -> bool {
        self.not_counted.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_may_be_chance_and_many_are_none() {
        // by the tables of the Poisson distribution
        assert!(!are_too_many(1.0, 0.8) && !are_too_many(2.0, 0.8) && are_too_many(3.0, 0.8));
        assert!(!are_too_many(1.0, 0.1) && are_too_many(1.0, 0.04) && are_too_many(2.0, 0.1));
        assert!(are_too_many(1.0, 0.0) && !are_too_many(0.0, 0.0) && !are_too_many(0.0, 5.0));
        assert!(!are_too_many(40.0, 800.0) && !are_too_many(820.0, 800.0) && are_too_many(900.0, 800.0));
    }
}
