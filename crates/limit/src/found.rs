//! What a search came to: the limit, the curve, and what is to be known of them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::anomaly::{Anomaly, anomalies, shrinks};
use crate::cause::{Cause, Resources, at_the_limit, cause};
use crate::estimate::{Estimate, OVERLOADED_BELOW, breaks_plainly, decided, estimate};
use crate::search::{Ending, Lasting, Options, counted, spent_s};
use crate::trial::{Cores, Goal, NotCounted, Purpose, Trial};

/// One that has too much answers no less than such a share of its most.
const FULL_NEAR: f64 = 0.8;
/// Half of a narrow interval, as a part of the limit.
const NARROW: f64 = 0.1;

/// The result of a search. Rates are of requests; null what is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// The highest rate at which everything holds.
    pub per_s: Option<f64>,
    /// Lower end of its interval of 95 %.
    pub low_per_s: Option<f64>,
    /// Upper end.
    pub high_per_s: Option<f64>,
    /// The level itself: sessions that arrive each second, or users.
    pub level: Option<f64>,
    /// Lower end of its interval of 95 %.
    pub low_level: Option<f64>,
    /// Upper end.
    pub high_level: Option<f64>,
    /// Whether the interval is no more than what trials held and broke: it has no probability then.
    pub is_between_trials: bool,
    /// The highest rate that held in a last trial, the longest kind.
    pub lasted_per_s: Option<f64>,
    /// Whether a last trial was carried out that decided nothing, as others disturbed it, say, and none held.
    #[serde(skip)]
    pub is_last_undecided: bool,
    /// From this rate on good answers are smaller than at less load, so that what holds there is another answer.
    pub smaller_from_per_s: Option<f64>,
    /// How many trials others on the machine disturbed; they count for nothing.
    pub disturbed: usize,
    /// What others used of the cores in those trials, mean, the busiest first.
    pub neighbours: Vec<Cores>,
    /// How many trials count.
    pub counted: usize,
    /// Whether levels are users.
    pub users: bool,
    /// The objective that breaks first, or what else happens.
    pub first_to_break: Option<String>,
    /// What was measured of it where it broke.
    pub first_to_break_measured: Option<String>,
    /// Why the search ended.
    pub ended: Option<Ending>,
    /// What the driver was held up by, where it was the limit.
    pub driver: Option<String>,
    /// What the limit is.
    pub cause: Option<Cause>,
    /// What processes used of the cores at the limit.
    pub cpu: Vec<Cores>,
    /// The rate with the most throughput for its response time: beyond it, more load buys mostly waiting.
    pub knee_per_s: Option<f64>,
    /// What does not fit a system that load alone decides: regular pauses, a slowdown, contradictions.
    pub anomalies: Vec<Anomaly>,
    /// How long the search took, seconds.
    pub took_s: f64,
    /// Throughput, response time and CPU by offered rate.
    pub curve: Vec<Point>,
}

/// What a search that has ended is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchVerdict {
    /// A limit was found, or nothing broke; or it holds as much as it must, whatever ended the search.
    Pass,
    /// Nothing holds, or for sure less than it must.
    Fail,
    /// No limit of the system was seen.
    Unknown,
}

/// A point of the curve: one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Sessions that arrived each second, or users.
    pub level: f64,
    /// Requests that became due each second.
    pub offered_per_s: f64,
    /// Good answers each second.
    pub achieved_per_s: f64,
    /// Median of the response time, microseconds; null, as the other percentiles, where it was not reached.
    pub p50_us: Option<u64>,
    /// Its 90th percentile.
    pub p90_us: Option<u64>,
    /// Its 99th percentile.
    pub p99_us: Option<u64>,
    /// Its 99.9th percentile.
    pub p999_us: Option<u64>,
    /// Requests without a good answer, as a share of those that were due, 0 to 1.
    pub failed_share: f64,
    /// What the system's processes used of the cores; null where nobody watches them.
    pub cpu_cores: Option<f64>,
    /// Whether every objective was met; null where it does not say, as there were too few requests.
    pub holds: Option<bool>,
}

impl Found {
    /// Whether so many requests each second hold: true where a last trial held there or above, and the interval lies there
    /// or above, or is narrow; false where the interval lies below; none where it does not say.
    pub fn holds_at_least(&self, per_s: f64) -> Option<bool> {
        let lasted = self.lasted_per_s.is_some_and(|lasted| lasted >= per_s);
        let is_whole = self.smaller_from_per_s.is_none_or(|from| per_s < from);
        match (self.low_per_s, self.high_per_s) {
            _ if !self.is_quiet() => None,
            (_, Some(high)) if high < per_s => Some(false),
            (Some(low), _) if (low >= per_s || self.is_narrow()) && lasted && is_whole => Some(true),
            _ => None,
        }
    }

    /// Whether others disturbed no more trials than count.
    pub fn is_quiet(&self) -> bool {
        self.disturbed <= self.counted
    }

    /// Whether the interval has both ends, near each other, and was not left as it was where the time ended.
    pub fn is_narrow(&self) -> bool {
        let is_told = !self.is_between_trials || self.ended == Some(Ending::Precise);
        is_told && self.is_close()
    }

    /// Whether the interval has both ends, near each other.
    pub fn is_close(&self) -> bool {
        let Some((low, high)) = self.low_per_s.zip(self.high_per_s) else { return false };
        self.per_s.is_some_and(|per_s| high - low <= 2.0 * NARROW * per_s)
    }

    /// What the search is worth once it has ended; `at_least_per_s`: requests each second that the system must hold, if so
    /// many are asked for.
    pub fn verdict(&self, at_least_per_s: Option<f64>) -> SearchVerdict {
        let is_broken = self.first_to_break.is_some();
        if let Some(per_s) = at_least_per_s {
            match self.holds_at_least(per_s) {
                Some(true) => return SearchVerdict::Pass,
                Some(false) => return SearchVerdict::Fail,
                None if self.ended == Some(Ending::NothingHolds) && self.is_quiet() => {
                    return SearchVerdict::Fail;
                }
                None => return SearchVerdict::Unknown,
            }
        }
        match self.ended {
            _ if !self.is_quiet() => SearchVerdict::Unknown,
            Some(Ending::NothingHolds) => SearchVerdict::Fail,
            Some(Ending::Driver) => SearchVerdict::Unknown,
            // nothing was shown to hold
            _ if self.per_s.is_none() || self.low_per_s.is_none() => SearchVerdict::Unknown,
            // whether it lasts was asked, and nobody knows
            _ if self.is_last_undecided => SearchVerdict::Unknown,
            Some(Ending::Budget | Ending::Undecided | Ending::Disturbed) if !is_broken => {
                SearchVerdict::Unknown
            }
            _ => SearchVerdict::Pass,
        }
    }
}

/// What the trials until now come to; `ended` is none while the search goes on.
pub fn found(
    goals: &[Goal],
    trials: &[Trial],
    options: &Options,
    resources: &Resources,
    ended: Option<Ending>,
) -> Found {
    let counted = counted(trials);
    let decided = decided(goals, &counted);
    let estimate = estimate(goals, &counted);
    let held = decided.iter().filter(|trial| trial.holds()).map(|trial| trial.ask.level).reduce(f64::max);
    let (level, low, high) = match &estimate {
        // what broke is above the driver's own limit: no more is known than what held
        Some(Estimate { low, high, .. }) if ended == Some(Ending::Driver) => {
            let level = held.map(|held| held.min(estimate.as_ref().map_or(held, |of| of.level)));
            (level, low.zip(held).map(|(low, held)| low.min(held)), *high)
        }
        Some(Estimate { level, low, high, .. }) => (Some(*level), *low, *high),
        // nothing broke: as far as it was tried
        None if held.is_some() => (held, held, None),
        None => (None, None, decided.iter().map(|trial| trial.ask.level).reduce(f64::min)),
    };
    let each = requests_per_session(&counted).filter(|each| *each > 0.0 && !options.users);
    let lasting = Lasting::of(&decided);
    let (level, low, high) = lasting_only(goals, &decided, lasting, (level, low, high));
    let low = low.filter(|_| !is_doubted(goals, trials, lasting));
    let most = full(&counted).zip(each).map(|(full, each)| full.each(1.0 / each));
    let (level, low, high) = most.map_or((level, low, high), |full| full.cap(level, low, high));
    // where nothing broke no more is known than what was offered
    let offered = decided.iter().filter(|trial| trial.holds()).map(|trial| trial.figures.offered_per_s);
    let offered = offered.reduce(f64::max).filter(|_| estimate.is_none() && !options.users);
    let is_whole = requests_per_session(&counted).is_some_and(|each| each.fract() == 0.0);
    let most = offered.filter(|_| !is_whole).unwrap_or(f64::INFINITY);
    let per_s = |level: Option<f64>| {
        level.and_then(|level| rate_at(&counted, level, options.users)).map(|rate| rate.min(most))
    };
    let (first_to_break, first_to_break_measured) = first_to_break(goals, &decided, estimate.as_ref());
    let driver = trials.iter().rev().find_map(|trial| match &trial.not_counted {
        Some(NotCounted::Driver(why)) => Some(why.clone()),
        _ => None,
    });
    // where nothing holds it is no limit that the system has
    let is_limited =
        ended != Some(Ending::Driver) && (estimate.is_some() || ended == Some(Ending::Saturated));
    let lasted = lasting.held.and_then(|held| {
        let achieved = || {
            let of = decided.iter().filter(|of| of.ask.purpose == Purpose::Last && of.holds());
            of.map(|of| of.figures.achieved_per_s).reduce(f64::max)
        };
        if options.users { achieved() } else { per_s(Some(held)) }
    });
    let is_last = |trial: &&Trial| trial.ask.purpose == Purpose::Last;
    let is_undecided = |trial: &Trial| !decided.iter().any(|of| std::ptr::eq(*of, trial));
    Found {
        per_s: per_s(level),
        is_last_undecided: lasting.held.is_none() && trials.iter().filter(is_last).any(is_undecided),
        low_per_s: per_s(low),
        // without a trial that holds there is no interval, and less than what broke may not have been tried
        high_per_s: per_s(high).filter(|_| level.is_some() || ended == Some(Ending::NothingHolds)),
        level,
        low_level: low,
        high_level: high,
        lasted_per_s: lasted,
        smaller_from_per_s: shrinks(&counted).map(|shrinks| shrinks.from_per_s),
        disturbed: trials.iter().filter(|trial| trial.is_disturbed()).count(),
        neighbours: neighbours(trials),
        counted: counted.len(),
        is_between_trials: estimate.as_ref().is_some_and(|estimate| estimate.is_between_trials),
        users: options.users,
        first_to_break,
        first_to_break_measured,
        ended,
        driver: driver.filter(|_| ended == Some(Ending::Driver)),
        cause: cause(&counted, estimate.as_ref(), resources).filter(|_| is_limited),
        cpu: cpu(&counted, level),
        knee_per_s: knee(&decided),
        anomalies: anomalies(goals, trials, estimate.as_ref(), resources.fresh),
        took_s: spent_s(trials),
        curve: curve(&counted, &decided),
    }
}

/// Others that are named, at most.
const NEIGHBOURS_MAX: usize = 3;

/// What others used of the cores in the trials that they disturbed.
fn neighbours(trials: &[Trial]) -> Vec<Cores> {
    let disturbed = || trials.iter().filter(|trial| trial.is_disturbed());
    let mut all: Vec<Cores> = Vec::new();
    for neighbour in disturbed().flat_map(|trial| &trial.figures.neighbours) {
        match all.iter_mut().find(|of| of.name == neighbour.name) {
            Some(known) => known.cores += neighbour.cores,
            None => all.push(neighbour.clone()),
        }
    }
    let count = disturbed().count().max(1) as f64;
    all.iter_mut().for_each(|of| of.cores /= count);
    all.sort_by(|a, b| b.cores.total_cmp(&a.cores));
    all.truncate(NEIGHBOURS_MAX);
    all
}

/// The limit and its ends by what the last trials say. The lower end is no higher than one that held, where one broke: where
/// none of them held there is none. Where one broke plainly no more than that holds.
fn lasting_only(
    goals: &[Goal],
    decided: &[&Trial],
    lasting: Lasting,
    (level, low, high): (Option<f64>, Option<f64>, Option<f64>),
) -> (Option<f64>, Option<f64>, Option<f64>) {
    let Lasting { held, broke: Some(broke) } = lasting else { return (level, low, high) };
    let low = low.zip(held).map(|(low, held)| low.min(held));
    let is_last = |trial: &&&Trial| trial.ask.purpose == Purpose::Last && trial.ask.level == broke;
    let is_plain = decided.iter().filter(is_last).any(|trial| breaks_plainly(goals, trial));
    match (is_plain, held) {
        (true, Some(held)) => (level.map(|level| level.min((held * broke).sqrt())), low, high),
        (true, None) => (None, None, Some(broke)),
        (false, _) => (level, low, high),
    }
}

/// Whether the only last trials are disturbed ones, and one of them broke: whether anything lasts is not shown.
fn is_doubted(goals: &[Goal], trials: &[Trial], lasting: Lasting) -> bool {
    let broke = |trial: &Trial| {
        trial.ask.purpose == Purpose::Last && trial.is_disturbed() && trial.verdict(goals) == Some(false)
    };
    lasting == Lasting::default() && trials.iter().any(broke)
}

/// What a system that is full answers each second.
#[derive(Debug, Clone, Copy)]
struct Full {
    per_s: f64,
    /// By how much of it that may be off, as so many answers are counted.
    uncertain: f64,
}

impl Full {
    fn each(self, by: f64) -> Full {
        Full { per_s: self.per_s * by, ..self }
    }

    /// A limit with its interval: no more than that holds, however short the trials and however slow an answer may be.
    fn cap(
        self,
        level: Option<f64>,
        low: Option<f64>,
        high: Option<f64>,
    ) -> (Option<f64>, Option<f64>, Option<f64>) {
        let Some(level) = level.filter(|level| *level > self.per_s) else { return (level, low, high) };
        let most = self.per_s * (1.0 + self.uncertain);
        let least = self.per_s * (1.0 - self.uncertain);
        (
            Some(level.min(self.per_s)),
            low.map(|low| low.min(least)),
            Some(high.map_or(most, |high| high.min(most))),
        )
    }
}

/// The most good answers each second in any trial, where one that answered nearly as much was offered more: a system that answers
/// less once it has too much shows no such number. What may fail counts as if it did not.
fn full(trials: &[&Trial]) -> Option<Full> {
    let answered = |trial: &Trial| {
        let figures = &trial.figures;
        let allowed = if trial.holds() { figures.failed_share * figures.offered_per_s } else { 0.0 };
        figures.achieved_per_s + allowed
    };
    let per_s = trials.iter().map(|trial| answered(trial)).reduce(f64::max)?;
    let as_much = trials.iter().filter(|trial| answered(trial) > OVERLOADED_BELOW * per_s);
    let count: f64 = as_much.map(|trial| answered(trial) * trial.measured_s).sum();
    let is_short = |trial: &Trial| answered(trial) < OVERLOADED_BELOW * trial.figures.offered_per_s;
    let is_full = trials.iter().any(|trial| answered(trial) > FULL_NEAR * per_s && is_short(trial));
    is_full.then(|| Full { per_s, uncertain: 2.0 / count.max(4.0).sqrt() })
}

/// Requests each second at a level. Where sessions arrive it is a number of requests for each; with users what was
/// achieved by the trials on either side.
fn rate_at(trials: &[&Trial], level: f64, users: bool) -> Option<f64> {
    if !users {
        return Some(level * requests_per_session(trials)?);
    }
    let mean_of = |at: f64| {
        let of =
            trials.iter().filter(|trial| trial.ask.level == at).map(|trial| trial.figures.achieved_per_s);
        let (sum, count) = of.fold((0.0, 0.0), |(sum, count), rate| (sum + rate, count + 1.0));
        sum / count
    };
    let levels = || trials.iter().map(|trial| trial.ask.level);
    let below = levels().filter(|other| *other <= level).reduce(f64::max);
    let above = levels().filter(|other| *other >= level).reduce(f64::min);
    match (below, above) {
        (Some(below), Some(above)) if above > below => {
            let part = (level - below) / (above - below);
            Some(mean_of(below) * (1.0 - part) + mean_of(above) * part)
        }
        (Some(at), _) | (None, Some(at)) => Some(mean_of(at)),
        (None, None) => None,
    }
}

/// Requests for each session that arrives, of the trials that hold. Sessions mostly have the same number of them: where it
/// differs from a whole one by no more than chance, as arrivals are drawn, it is that.
pub(crate) fn requests_per_session(trials: &[&Trial]) -> Option<f64> {
    let holding: Vec<&&Trial> = trials.iter().filter(|trial| trial.holds()).collect();
    let of = if holding.is_empty() { trials.iter().collect() } else { holding };
    let (due, sessions) = of.iter().fold((0.0, 0.0), |(due, sessions), trial| {
        (due + trial.figures.offered_per_s * trial.measured_s, sessions + trial.ask.level * trial.measured_s)
    });
    if sessions <= 0.0 {
        return None;
    }
    let each = due / sessions;
    let whole = each.round().max(1.0);
    let by_chance = DRAWN_BY_CHANCE * whole / f64::sqrt(sessions);
    Some(if due > 0.0 && (each - whole).abs() <= by_chance { whole } else { each })
}

fn first_to_break(
    goals: &[Goal],
    trials: &[&Trial],
    estimate: Option<&Estimate>,
) -> (Option<String>, Option<String>) {
    let by_level = |a: &&&Trial, b: &&&Trial| a.ask.level.total_cmp(&b.ask.level);
    let goal = match estimate {
        Some(estimate) => estimate.goal,
        // nothing holds: what breaks at the lowest level
        None => {
            let lowest = trials.iter().filter(|trial| !trial.holds()).min_by(by_level);
            lowest.and_then(|trial| (0..goals.len()).find(|goal| trial.missed(goals, *goal)))
        }
    };
    match errors(goals, trials, goal).or(goal).and_then(|goal| Some((goal, goals.get(goal)?))) {
        Some((index, goal)) => {
            let broke = trials.iter().filter(|trial| trial.missed(goals, index));
            let lowest = broke.min_by(by_level).map(|trial| trial.seen[index].measured.clone());
            (Some(goal.text.clone()), lowest.filter(|text| !text.is_empty()))
        }
        None => {
            let failure = trials.iter().filter(|trial| trial.failure.is_some()).min_by(by_level);
            (failure.and_then(|trial| trial.failure.clone()), None)
        }
    }
}

/// What processes used in the trial next below the limit.
fn cpu(trials: &[&Trial], level: Option<f64>) -> Vec<Cores> {
    let below = trials.iter().filter(|trial| level.is_some_and(|level| trial.ask.level <= level));
    let next = below.max_by(|a, b| a.ask.level.total_cmp(&b.ask.level)).copied();
    next.or(at_the_limit(trials, None)).map(|trial| trial.figures.processes.clone()).unwrap_or_default()
}

/// Where most requests failed at the lowest level that broke an objective, that is what breaks, whatever else they miss.
fn errors(goals: &[Goal], trials: &[&Trial], broken: Option<usize>) -> Option<usize> {
    let broken = broken?;
    let broke = trials.iter().filter(|trial| trial.missed(goals, broken));
    let lowest = broke.min_by(|a, b| a.ask.level.total_cmp(&b.ask.level))?;
    let is_missed = |goal: usize| lowest.missed(goals, goal);
    let mut all = goals.iter().enumerate().filter(|(index, goal)| goal.is_of_errors && is_missed(*index));
    all.next().filter(|_| lowest.figures.failed_share > MOST_FAILED).map(|(index, _)| index)
}

/// The number of arrivals that are drawn differs by chance by up to so many of its roots.
const DRAWN_BY_CHANCE: f64 = 2.0;
/// A larger share than this is most of the requests.
const MOST_FAILED: f64 = 0.5;
/// A response time that rises by less, from the lowest level to the highest that holds, does not rise.
const RISES: f64 = 1.5;

/// Where throughput over response time is greatest (the power of Kleinrock, International Conference on Communications,
/// 1979), of the trials that hold; none where the response time does not rise, or it is greatest at the highest of them.
fn knee(trials: &[&Trial]) -> Option<f64> {
    let of = |trial: &&Trial| {
        let figures = &trial.figures;
        let mean_us = figures.mean_us.filter(|us| *us > 0.0)?;
        Some((figures.offered_per_s, mean_us, figures.achieved_per_s / mean_us))
    };
    let mut all: Vec<(f64, f64, f64)> = trials.iter().filter(|trial| trial.holds()).filter_map(of).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (all.first()?, all.last()?);
    let best = all.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    (last.1 >= first.1 * RISES && best.0 < last.0).then_some(best.0)
}

fn curve(trials: &[&Trial], decided: &[&Trial]) -> Vec<Point> {
    let point = |trial: &&Trial| {
        let figures = &trial.figures;
        Point {
            level: trial.ask.level,
            offered_per_s: figures.offered_per_s,
            achieved_per_s: figures.achieved_per_s,
            p50_us: figures.p50_us,
            p90_us: figures.p90_us,
            p99_us: figures.p99_us,
            p999_us: figures.p999_us,
            failed_share: figures.failed_share,
            cpu_cores: figures.processes.iter().map(|process| process.cores).reduce(|a, b| a + b),
            holds: decided.iter().any(|of| std::ptr::eq(*of, *trial)).then(|| trial.holds()),
        }
    };
    let mut curve: Vec<Point> = trials.iter().map(point).collect();
    curve.sort_by(|a, b| a.level.total_cmp(&b.level));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Figures, GoalResult, TrialPlan};

    #[test]
    fn a_last_trial_that_others_disturbed_leaves_it_open_whether_it_lasts() {
        let goals = [Goal { text: "mean < 50ms".into(), ..Goal::default() }];
        let trial = |level: f64, purpose, disturbed: bool| {
            let ask = TrialPlan { level, purpose, warm_up_s: 1.0, measured_max_s: 9.0 };
            let figures = Figures { offered_per_s: level, achieved_per_s: level, ..Figures::default() };
            let seen = vec![GoalResult { met: level < 850.0, ..GoalResult::default() }];
            let not_counted = disturbed.then(|| NotCounted::Machine("cargo 1.50 cores".into()));
            Trial { not_counted, ..Trial::new(ask, seen, figures) }
        };
        let searched = |last: &[(f64, bool)]| {
            let mut trials =
                vec![trial(800.0, Purpose::Explore, false), trial(900.0, Purpose::Narrow, false)];
            trials.extend(last.iter().map(|(level, disturbed)| trial(*level, Purpose::Last, *disturbed)));
            let options = Options::new(100.0, 100.0);
            found(&goals, &trials, &options, &Resources::default(), Some(Ending::Precise)).verdict(None)
        };
        assert_eq!(searched(&[(800.0, true)]), SearchVerdict::Unknown, "it held, beside neighbours");
        assert_eq!(searched(&[(900.0, true)]), SearchVerdict::Unknown, "it broke, beside neighbours");
        assert_eq!(searched(&[(800.0, true), (800.0, false)]), SearchVerdict::Pass, "tried again");
        assert_eq!(searched(&[(800.0, false), (820.0, true)]), SearchVerdict::Pass, "one is shown");
    }

    #[test]
    fn a_search_is_worth_what_it_proves() {
        let found = |ended, per_s: Option<f64>, broke: Option<&str>| Found {
            per_s,
            low_per_s: per_s.map(|per_s| per_s - 10.0),
            lasted_per_s: per_s.map(|per_s| per_s - 10.0),
            counted: 9,
            high_per_s: per_s.filter(|_| broke.is_some()).map(|per_s| per_s + 10.0),
            first_to_break: broke.map(str::to_owned),
            ended: Some(ended),
            ..Found::default()
        };
        let broke = Some("errors < 0.1%");
        let (pass, fail, unknown) = (SearchVerdict::Pass, SearchVerdict::Fail, SearchVerdict::Unknown);
        for (found, verdict) in [
            (found(Ending::Precise, Some(730.0), broke), pass),
            (found(Ending::Budget, Some(730.0), broke), pass),
            (found(Ending::Budget, Some(730.0), None), unknown),
            (found(Ending::Budget, None, None), unknown),
            (found(Ending::Budget, None, broke), unknown),
            (found(Ending::NothingBreaks, Some(730.0), None), pass),
            (found(Ending::NothingHolds, None, broke), fail),
            (found(Ending::Driver, Some(730.0), None), unknown),
        ] {
            assert_eq!(found.verdict(None), verdict, "{found:?}");
        }
        // the interval is known from short trials, and whether it lasts was asked in vain
        for ended in [Ending::Precise, Ending::Budget, Ending::NothingBreaks, Ending::Saturated] {
            let doubted =
                Found { is_last_undecided: true, lasted_per_s: None, ..found(ended, Some(730.0), broke) };
            assert_eq!(doubted.verdict(None), unknown, "{ended:?}");
            assert_eq!(doubted.verdict(Some(741.0)), fail, "what breaks in short trials breaks");
        }
        let precise = found(Ending::Precise, Some(730.0), broke);
        let of = |per_s| precise.verdict(Some(per_s));
        assert_eq!([of(720.0), of(730.0), of(741.0)], [pass, unknown, fail]);
        // a last trial within a narrow interval shows it, and nothing is shown without one
        let lasted = |lasted_per_s| Found { lasted_per_s, ..precise.clone() };
        assert_eq!(lasted(Some(731.0)).verdict(Some(730.0)), pass);
        assert_eq!([720.0, 741.0].map(|per_s| lasted(None).verdict(Some(per_s))), [unknown, fail]);
        // where answers shrink another answer holds
        let shrunk = Found { smaller_from_per_s: Some(715.0), ..precise.clone() };
        assert_eq!([700.0, 720.0].map(|per_s| shrunk.verdict(Some(per_s))), [pass, unknown]);
        // and beside neighbours nothing is sure
        let disturbed = |disturbed| Found { disturbed, ..precise.clone() };
        assert_eq!([disturbed(9).verdict(None), disturbed(10).verdict(None)], [pass, unknown]);
        assert_eq!([700.0, 741.0].map(|per_s| disturbed(10).verdict(Some(per_s))), [unknown; 2]);
        let wide = Found { low_per_s: Some(550.0), ..precise.clone() };
        assert_eq!([550.0, 700.0, 741.0].map(|per_s| wide.verdict(Some(per_s))), [pass, unknown, fail]);
        let open = |low: bool, ended| Found {
            low_per_s: Some(720.0).filter(|_| low),
            high_per_s: Some(740.0).filter(|_| !low),
            ..found(ended, Some(730.0), broke)
        };
        for ended in [Ending::Budget, Ending::Precise, Ending::NothingBreaks] {
            assert_eq!(open(true, ended).verdict(Some(1e6)), unknown, "it was not tried that far");
            assert_eq!(open(true, ended).verdict(Some(720.0)), pass);
            assert_eq!(open(false, ended).verdict(Some(20.0)), unknown, "nothing is known from below");
            assert_eq!(open(false, ended).verdict(Some(741.0)), fail);
        }
        assert_eq!(found(Ending::NothingHolds, None, broke).verdict(Some(1.0)), fail);
        let driver = found(Ending::Driver, Some(730.0), None);
        assert_eq!([driver.verdict(Some(700.0)), driver.verdict(Some(800.0))], [pass, unknown]);
    }
}
