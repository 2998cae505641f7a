//! Objectives that can no longer be met, so that a run that has already failed need not be driven to its end.
//!
//! # The rule
//!
//! An objective is unreachable when it would be missed **even if everything still to come were perfect**: no further
//! failure, every answer within no time. Nothing is guessed from a trend.
//!
//! | objective | unreachable when |
//! | --- | --- |
//! | `errors = 0`, `errors < N`, `dropped …` | the count so far breaks it: counts only grow |
//! | `max < T`, `mean < T` | one request was slower or had no good answer |
//! | `rate < R` | so many good answers came already that the rate over the whole window is above |
//! | `p99 < T` and the like, `mean < T`, `errors < S%`, `rate > R`, `achieved > S% of offered` | it is missed even if every request still planned is added at its best |
//!
//! The last row needs the number of requests still planned to be known: an open load (a known number of sessions
//! arrives) whose sessions have no loops (each sends at most so many requests). Where it is unknown, as in every
//! closed load, these objectives are never unreachable. The number is an upper bound: sessions of every phase count,
//! each with the longest way through its steps, and Poisson arrivals with six standard deviations more.

use tidemark_record::{LabelTotals, Merged, Totals, rank};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Comparison, LoadModel, Metric, Objective, Op, SessionKind, Spacing};

use crate::objectives::holds;
use crate::text::duration_text;

/// How far above their mean number Poisson arrivals are allowed for, standard deviations.
const POISSON_DEVIATIONS: f64 = 6.0;

/// An objective that can no longer be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// Which of the plan's objectives.
    pub(crate) index: usize,
    /// Why, for a person: `p99 < 50ms can no longer be met: …`.
    pub reason: String,
}

/// Watches the objectives that ask for it.
pub struct Watch<'p> {
    plan: &'p Plan,
    /// Index of each watched objective, and the most requests that it can be about.
    watched: Vec<(usize, Option<f64>)>,
    /// Length of the measured window as planned, seconds.
    window_s: f64,
}

impl<'p> Watch<'p> {
    /// For a plan whose measured window is so long.
    pub fn new(plan: &'p Plan, window_s: f64) -> Self {
        let watched = plan.objectives.iter().enumerate().filter(|(_, objective)| objective.abort_early);
        let watched =
            watched.map(|(index, objective)| (index, requests_max(plan, objective.about))).collect();
        Watch { plan, watched, window_s }
    }

    /// The first watched objective that can no longer be met.
    pub fn unreachable(&self, totals: &Totals) -> Option<Unreachable> {
        self.watched.iter().find_map(|&(index, requests_max)| {
            let objective = &self.plan.objectives[index];
            let so_far = SoFar::new(totals, objective.about, requests_max, self.window_s);
            let why = so_far.broken(objective)?;
            Some(Unreachable { index, reason: format!("{} can no longer be met: {why}", objective.text) })
        })
    }
}

/// What a label, or all of them, came to until now.
struct SoFar<'t> {
    of: &'t LabelTotals,
    /// Requests still to come, at most; none where nobody knows.
    remaining: Option<f64>,
    window_s: f64,
}

impl<'t> SoFar<'t> {
    fn new(totals: &'t Totals, about: About, requests_max: Option<f64>, window_s: f64) -> Self {
        // one on a group, or on a metric of the scenario's own, is not watched
        let label = if let About::Label(label) = about { Some(label) } else { None };
        let of = totals.of(label);
        let remaining = requests_max.map(|most| (most - of.due() as f64).max(0.0));
        SoFar { of, remaining, window_s }
    }

    /// Why an objective is out of reach, if it is.
    fn broken(&self, objective: &Objective) -> Option<String> {
        let Objective { metric, comparison, bound, .. } = *objective;
        match metric {
            Metric::Errors => grown(self.of.failed(), comparison, bound, "errors"),
            Metric::Dropped => grown(self.of.dropped, comparison, bound, "requests dropped"),
            Metric::Mean if is_upper(comparison) && self.of.failed() > 0 => {
                Some(format!("{} had no good answer", self.of.failed()))
            }
            Metric::Percentile(percent) if is_upper(comparison) => self.slow(percent, comparison, bound),
            Metric::Mean if is_upper(comparison) => {
                let answered = self.of.response_time_us.len() as f64;
                let sum_us = self.of.response_time_us.mean() * answered;
                let best = sum_us / (answered + self.remaining?);
                (best.is_finite() && !holds(best, comparison, bound))
                    .then(|| format!("it would be {} even if all to come took no time", duration_text(best)))
            }
            Metric::ErrorShare if is_upper(comparison) => {
                let (errors, all) = (self.of.failed() as f64, self.of.due() as f64 + self.remaining?);
                (all > 0.0 && !holds(errors / all, comparison, bound))
                    .then(|| format!("{errors:.0} errors among at most {all:.0} requests"))
            }
            Metric::Rate => self.rate(comparison, bound),
            // what stands in a ledger is known only after the run; lower bounds of times can always be met
            Metric::Lost | Metric::LostShare | Metric::Duplicated | Metric::Custom(_) => None,
            Metric::Percentile(_) | Metric::Mean | Metric::ErrorShare => None,
            Metric::AchievedShare if is_upper(comparison) => None,
            Metric::AchievedShare => {
                let (failed, all) = (self.of.failed() as f64, self.of.due() as f64 + self.remaining?);
                (all > 0.0 && !holds(1.0 - failed / all, comparison, bound))
                    .then(|| format!("{failed:.0} of at most {all:.0} requests had no good answer"))
            }
        }
    }

    /// More answers are too slow than the percentile leaves out, of all that can come.
    fn slow(&self, percent: f64, comparison: Comparison, bound_us: f64) -> Option<String> {
        let slow = slower(&self.of.response_time_us, comparison, bound_us) + self.of.failed();
        let due = self.of.due();
        let allowed = match self.remaining {
            Some(remaining) => {
                // the rank that the percentile is read at, as the histogram counts it, among all that can come
                let all = due as f64 + remaining.ceil();
                (all - rank(percent / 100.0, all as u64) as f64).max(0.0)
            }
            None if percent >= 100.0 => 0.0,
            None => return None,
        };
        (slow as f64 > allowed).then(|| {
            let all = self.remaining.map_or_else(String::new, |remaining| {
                format!(", and of at most {:.0} requests {allowed:.0} may", due as f64 + remaining)
            });
            format!("{slow} took longer or had no good answer{all}")
        })
    }

    fn rate(&self, comparison: Comparison, bound: f64) -> Option<String> {
        if self.window_s <= 0.0 {
            return None;
        }
        let ended = self.of.good_in_window as f64;
        if is_upper(comparison) {
            // the window may only turn out longer than planned by the drain, which is not measured
            let rate = ended / self.window_s;
            return (!holds(rate, comparison, bound)).then(|| {
                format!("{ended:.0} good answers came already in a window of {:.0} s", self.window_s)
            });
        }
        let most = (ended + self.remaining?) / self.window_s;
        (matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual)
            && !holds(most, comparison, bound))
        .then(|| format!("at most {most:.0}/s are planned"))
    }
}

fn is_upper(comparison: Comparison) -> bool {
    matches!(comparison, Comparison::Less | Comparison::LessOrEqual)
}

/// A count that only grows broke its upper bound.
fn grown(count: u64, comparison: Comparison, bound: f64, what: &str) -> Option<String> {
    let count_f = count as f64;
    let broken = match comparison {
        Comparison::Equal => count_f > bound,
        Comparison::Less | Comparison::LessOrEqual => !holds(count_f, comparison, bound),
        Comparison::Greater | Comparison::GreaterOrEqual => false,
    };
    broken.then(|| format!("{what} so far: {count}"))
}

/// How many values break the bound, as a percentile read from the histogram would show them.
fn slower(times_us: &Merged, comparison: Comparison, bound_us: f64) -> u64 {
    let recorded = times_us.iter_recorded();
    recorded
        .filter(|value| !holds(value.value_iterated_to() as f64, comparison, bound_us))
        .map(|value| value.count_at_value())
        .sum()
}

/// The most requests that a run can make, of a label or of all; none where that is not known.
fn requests_max(plan: &Plan, about: About) -> Option<f64> {
    let is_counted = |request: u16| {
        let of = plan.requests.get(usize::from(request)).map(|request| request.label);
        match about {
            About::All => true,
            About::Label(label) => of == Some(label),
            About::Group(_) | About::Metric(_) | About::Phase(..) => false,
        }
    };
    let kinds = plan.sessions.iter().filter(|kind| kind.weight > 0);
    let longest =
        kinds.map(|kind| longest_way(kind, &is_counted)).try_fold(0, |most, one| Some(one?.max(most)))?;
    Some(sessions_max(plan)? * longest as f64)
}

/// The most sessions that arrive in all phases together.
fn sessions_max(plan: &Plan) -> Option<f64> {
    let LoadModel::Open(spacing) = plan.load.model else { return None };
    let phases = plan.load.phases.iter();
    let mean: f64 = phases.map(|phase| (phase.from + phase.to) / 2.0 * phase.duration.as_secs_f64()).sum();
    let beyond = match spacing {
        Spacing::Poisson => POISSON_DEVIATIONS * mean.sqrt(),
        Spacing::Constant => 0.0,
    };
    // the first arrival of each may be at the very begin
    Some((mean + beyond).ceil() + 1.0)
}

/// The most requests that count on any path through a session; none where a path leads back.
fn longest_way(kind: &SessionKind, is_counted: &dyn Fn(u16) -> bool) -> Option<u64> {
    let mut most = vec![0; kind.ops.len() + 1];
    for (at, op) in kind.ops.iter().enumerate().rev() {
        let goes_to = |to: u32| most.get(to as usize).copied().filter(|_| to as usize > at);
        let next = most[at + 1];
        most[at] = match op {
            Op::Request(request) => next + u64::from(is_counted(*request)),
            Op::Jump(to) => goes_to(*to)?,
            Op::JumpUnless { to, .. } | Op::JumpUnlessGood(to) => goes_to(*to)?.max(next),
            Op::Choose { ways, .. } => {
                ways.iter().map(|(_, to)| goes_to(*to)).try_fold(0, |most, one| Some(one?.max(most)))?
            }
            Op::End => 0,
            other => match other {
                Op::Set { .. }
                | Op::Refuse { .. }
                | Op::Take { .. }
                | Op::Think(_)
                | Op::BeginGroup(_)
                | Op::EndGroup
                | Op::Parallel { .. }
                | Op::Measure { .. }
                | Op::Code { .. } => next,
                // a step of which is not known how many requests it makes
                _ => return None,
            },
        };
    }
    Some(most[0])
}

#[cfg(test)]
mod tests;
