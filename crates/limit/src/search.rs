//! What to try next: doubling until something breaks, halving the distance, then trials around the limit.
//!
//! The search keeps nothing: what it asks for follows from the trials that were carried out, so that one that was stopped
//! goes on where it was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::{
    Estimate, breaks_plainly, contradicted_by, decided, estimate, holds_by_far, wanted_by_errors,
};
use crate::found::requests_per_session;
use crate::stopping_rule::StoppingRule;
use crate::trial::{Goal, NotCounted, Purpose, Trial, TrialPlan};

/// Where a search begins and ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The first level.
    #[serde(rename = "first")]
    pub level_first: f64,
    /// No level is higher.
    #[serde(rename = "most")]
    pub level_max: f64,
    /// Whether levels are users, and the load is closed.
    pub users: bool,
    /// How long the search may take, seconds.
    pub budget_s: f64,
    /// The search ends where half of the interval is no more than this share of the limit.
    pub precision: f64,
    /// Shortest warm-up of a trial, seconds.
    pub warm_up_s: f64,
    /// Shortest time that a trial may be measured, seconds.
    #[serde(default)]
    pub measured_least_s: f64,
    /// Of the order in which trials around the limit are carried out.
    pub seed: u64,
    /// Requests each second that it must hold, if so many are asked for: a last trial is to show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_per_s: Option<f64>,
}

impl Options {
    /// Beginning at this rate of arriving sessions, within so many seconds, with the usual rest.
    pub fn new(level_first: f64, budget_s: f64) -> Options {
        Options {
            level_first,
            level_max: 1e7,
            users: false,
            budget_s,
            precision: PRECISION,
            warm_up_s: 0.0,
            measured_least_s: 0.0,
            seed: 1,
            at_least_per_s: None,
        }
    }
}

/// The usual precision: half of the interval is at most 2 % of the limit.
const PRECISION: f64 = 0.02;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// This trial.
    Trial(TrialPlan),
    /// Nothing.
    Over(Ending),
}

/// Why a search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The interval is as narrow as it was to be.
    Precise,
    /// The time is used up.
    Budget,
    /// Trials have too few requests that say anything, and more of them would have no more.
    Undecided,
    /// Above this level the driver is the limit.
    Driver,
    /// Others had the machine, again and again.
    Disturbed,
    /// Not even the lowest level holds.
    NothingHolds,
    /// Not even the highest level breaks.
    NothingBreaks,
    /// More users make no more throughput, and no objective minds.
    Saturated,
}

/// Carries out trials in virtual time, for [`search`].
pub trait Trials {
    /// Why one could not be carried out.
    type Error;

    /// Holds the level until the trial was measured for as long as it may be, or the rule, asked after each second, is sure.
    ///
    /// # Errors
    /// Where it cannot be carried out. The search ends with it, and can go on later from the trials before it.
    fn run(&mut self, ask: &TrialPlan, rule: &StoppingRule) -> Result<Trial, Self::Error>;
}

/// The loop over [`next`] for trials in virtual time (tests, examples). `done` has the trials that were carried out before,
/// and has all of them afterwards.
///
/// # Errors
/// What a trial failed with.
pub fn search<T: Trials>(
    goals: &[Goal],
    options: &Options,
    done: &mut Vec<Trial>,
    trials: &mut T,
) -> Result<Ending, T::Error> {
    loop {
        match next(goals, done, options) {
            Next::Trial(ask) => done.push(trials.run(&ask, &StoppingRule::new(goals, &ask))?),
            Next::Over(ending) => return Ok(ending),
        }
    }
}

/// Levels that hold and break are brought so close before the limit is looked at more closely, as a ratio.
const CLOSE_RATIO: f64 = 1.12;
/// Trials around the limit: by how much one over the percentile is to be more or less than at the limit.
const OFFSETS: [f64; 5] = [-0.8, -0.5, -0.2, 0.1, 0.4];
/// They stay within so much of it, in logarithms.
const WITHIN: (f64, f64) = (-0.1, 0.06);
/// Rounds of those before the interval is believed.
const ROUNDS: u32 = 2;
/// A trial that was disturbed is repeated so often.
const REPEATED: usize = 6;
/// So many trials at a level in which the driver was the limit make it one.
const BOUND_MIN: usize = 2;
/// A trial around the limit takes this part of the budget, within these bounds, seconds.
const REFINE_PART: f64 = 1.0 / 20.0;
const REFINE_S: (f64, f64) = (3.0, 60.0);
/// The last trial takes this part of the budget, within these bounds, seconds.
const LAST_PART: f64 = 1.0 / 8.0;
const LAST_S: (f64, f64) = (3.0, 60.0);
/// It is at no less than so much of the limit.
const LAST_BELOW: f64 = 0.9;
/// One that broke is followed by one at so much of its level, where it broke by little, and by far.
const LAST_LOWER: (f64, f64) = (0.9, 0.8);
/// Where it answered less than that, the next one is at no more than so much of what it answered.
const LAST_ANSWERED: f64 = 0.95;
/// Levels that differ by less than this factor are the same for a last trial.
const LAST_NEXT: f64 = 1.005;
/// Bounds of the warm-up, seconds, and its part of the trial.
const WARM_UP_S: (f64, f64) = (1.0, 5.0);
const WARM_UP_PART: f64 = 1.0 / 6.0;
/// What a trial takes beside its load before that is known, seconds.
const BESIDE_S: f64 = 1.0;
/// Below this share of the first level nothing is tried.
const LEAST_PART: f64 = 1.0 / 4_096.0;
/// So many requests are to fall due in a trial, and at the lowest level that is tried,
const REQUESTS_MIN: f64 = 20.0;
/// or so many times as many as a percentile needs for one of them to be slower.
const ENOUGH: f64 = 1.2;
/// Requests without a good answer from which on it is all of them.
const ALL_FAILED_SHARE: f64 = 0.99;
/// After so many trials in a row at one level that said nothing there is no use in another.
const UNDECIDED_MAX: usize = 3;
/// Twice as many users that make less than so many times the throughput make no more.
const GAIN: f64 = 1.05;

/// What follows from these trials.
pub fn next(goals: &[Goal], trials: &[Trial], options: &Options) -> Next {
    let counted = counted(trials);
    let decided = decided(goals, &counted);
    let lasting = Lasting::of(&decided);
    let planner = Planner { goals, trials, options, counted, decided, lasting };
    let wanted = match planner.wanted() {
        Next::Trial(ask) => {
            Next::Trial(TrialPlan { measured_max_s: ask.measured_max_s.max(options.measured_least_s), ..ask })
        }
        over => over,
    };
    let then = match wanted {
        Next::Trial(ask) if planner.fits(&ask) => Next::Trial(ask),
        Next::Trial(TrialPlan { purpose: Purpose::Refine { .. }, .. }) => planner.end(Ending::Budget),
        Next::Trial(_) => Next::Over(Ending::Budget),
        over => over,
    };
    match (then, planner.pending()) {
        (Next::Over(ending), Some(asked)) if ending != Ending::Disturbed => {
            planner.last(asked).unwrap_or(then)
        }
        _ => then,
    }
}

/// The trials that count: those that say something of the system.
pub fn counted(trials: &[Trial]) -> Vec<&Trial> {
    trials.iter().filter(|trial| trial.is_counted()).collect()
}

struct Planner<'a> {
    goals: &'a [Goal],
    trials: &'a [Trial],
    options: &'a Options,
    counted: Vec<&'a Trial>,
    /// Those of them that hold or break.
    decided: Vec<&'a Trial>,
    lasting: Lasting,
}

impl Planner<'_> {
    fn wanted(&self) -> Next {
        if let Some(last) = self.trials.last()
            && last.is_disturbed()
        {
            let in_a_row = self.trials.iter().rev().take_while(|trial| trial.is_disturbed()).count();
            return match last.ask.purpose {
                _ if in_a_row > REPEATED => Next::Over(Ending::Disturbed),
                // for as long as there is time
                Purpose::Last => self.last(last.ask.level).unwrap_or(Next::Over(Ending::Budget)),
                _ => Next::Trial(last.ask),
            };
        }
        // what held the driver up may have been over in a moment
        if let Some(last) = self.trials.last()
            && is_bound(last)
            && self.bound(last.ask.level).count() < BOUND_MIN
        {
            return Next::Trial(last.ask);
        }
        if self.is_stuck() {
            return Next::Over(Ending::Undecided);
        }
        if let Lasting { held, broke: Some(broke) } = self.lasting
            && held.is_none_or(|held| self.is_far(held, broke))
        {
            return self.lower_last(held, broke);
        }
        let held = self.levels(true).reduce(f64::max);
        let broken = self.broken();
        if let Some(level) = broken.filter(|level| self.is_doubtful(*level, held)) {
            return self.ask(self.again(level), Purpose::Explore);
        }
        let ceiling = self.ceiling();
        let top = [broken, ceiling].into_iter().flatten().reduce(f64::min);
        match (held, top) {
            // where nothing was decided there were too few requests
            (None, None) => match self.undecided().reduce(f64::max) {
                Some(level) if level >= self.options.level_max => Next::Over(Ending::Undecided),
                Some(level) => self.ask(level * 2.0, Purpose::Explore),
                None => self.ask(self.options.level_first, Purpose::Explore),
            },
            (Some(held), None) if held >= self.rounded(self.options.level_max) => self.at_most(held),
            (Some(_), None) if self.is_saturated() => Next::Over(Ending::Saturated),
            (Some(held), None) => self.ask(held * 2.0, Purpose::Explore),
            (None, Some(top)) => match self.lower(top) {
                Some(level) => self.ask(level, Purpose::Explore),
                None if self.has_lowest_broken() => Next::Over(Ending::NothingHolds),
                None if broken.is_none_or(|level| level > top) => Next::Over(Ending::Driver),
                None => Next::Over(self.unheard()),
            },
            (Some(held), Some(top)) if self.is_far(held, top) => {
                self.ask((held * top).sqrt(), Purpose::Narrow)
            }
            (Some(_), Some(top)) if broken.is_none_or(|level| level > top) => self.end(Ending::Driver),
            (Some(_), Some(_)) => self.refine(),
        }
    }

    fn levels(&self, holds: bool) -> impl Iterator<Item = f64> + '_ {
        self.decided.iter().filter(move |trial| trial.holds() == holds).map(|trial| trial.ask.level)
    }

    /// Levels of trials that had too few requests to say anything.
    fn undecided(&self) -> impl Iterator<Item = f64> + '_ {
        self.counted.iter().filter(|trial| !self.is_decided(trial)).map(|trial| trial.ask.level)
    }

    fn is_stuck(&self) -> bool {
        let last = self.counted.iter().rev().take(UNDECIDED_MAX);
        let level = self.counted.last().map(|trial| trial.ask.level);
        self.counted.len() >= UNDECIDED_MAX
            && last.clone().all(|trial| Some(trial.ask.level) == level && !self.is_decided(trial))
    }

    fn is_decided(&self, trial: &Trial) -> bool {
        self.decided.iter().any(|decided| std::ptr::eq(*decided, trial))
    }

    /// The lowest level at which it breaks: more trials broke there or below than held there or above. One that broke while
    /// the system stood still for a moment is outvoted so.
    fn broken(&self) -> Option<f64> {
        let outvotes = |level: &f64| {
            let broke = self.levels(false).filter(|other| other <= level).count();
            broke > self.levels(true).filter(|other| other >= level).count()
        };
        self.levels(false).filter(outvotes).reduce(f64::min)
    }

    /// Whether a single trial says that this level breaks, and what holds below says nothing of the kind: it is far from its
    /// bounds, or there is nothing. `held`: the highest level that holds.
    fn is_doubtful(&self, level: f64, held: Option<f64>) -> bool {
        let Some(held) = held else { return self.decided.len() == 1 };
        let is_between = |other: &f64| *other > held && *other <= level;
        let is_near = |trial: &&&Trial| {
            let is_bounded = self.goals.iter().any(|goal| goal.percentile.is_some());
            trial.holds() && trial.ask.level == held && is_bounded && !holds_by_far(self.goals, trial)
        };
        // on the way there it is enough to look again once
        let was_tried = |trial: &&Trial| {
            let broke = trial.ask.level == level && !trial.holds();
            let is_there = trial.ask.purpose == Purpose::Narrow && !self.is_far(held, level);
            broke && (trial.ask.purpose == Purpose::Explore || is_there)
        };
        held < level
            && self.levels(false).filter(is_between).count() == 1
            && self.decided.iter().copied().any(|trial| was_tried(&trial))
            && !self.decided.iter().any(|trial| is_near(&trial))
    }

    /// Where it is tried again: at the same level; at hardly any load where all requests of the first trial failed, as then
    /// they may at any.
    fn again(&self, level: f64) -> f64 {
        match self.decided.as_slice() {
            [one] if one.figures.failed_share >= ALL_FAILED_SHARE => {
                let light = self.least(self.explore_s());
                if light * 2.0 < level { light } else { level }
            }
            _ => level,
        }
    }

    /// A lower level than any that broke or was the driver's limit; none where it makes no sense.
    fn lower(&self, top: f64) -> Option<f64> {
        let fails = |trial: &&Trial| trial.figures.failed_share >= ALL_FAILED_SHARE && !trial.holds();
        let least = self.least(self.last_s());
        if top <= least || self.decided.len() > 1 && self.decided.iter().all(fails) {
            return None;
        }
        let level = (top / 4.0).max(least);
        match self.undecided().filter(|undecided| *undecided >= level && *undecided < top).reduce(f64::max) {
            Some(undecided) => Some((undecided * top).sqrt()).filter(|_| self.is_far(undecided, top)),
            None => Some(level),
        }
    }

    /// What follows where nothing outvotes that the highest level holds: nothing breaks, once that lasted and no trial broke
    /// there. Where as many broke as held, another trial decides.
    fn at_most(&self, held: f64) -> Next {
        let is_tied = |level: &f64| {
            let broke = self.levels(false).filter(|other| other <= level).count();
            broke == self.levels(true).filter(|other| other >= level).count()
        };
        if self.levels(false).any(|level| is_tied(&level)) {
            let measured_max_s = self.last_s().round();
            let (purpose, warm_up_s) = (Purpose::Narrow, self.warm_up_s());
            return Next::Trial(TrialPlan { level: held, purpose, warm_up_s, measured_max_s });
        }
        if self.levels(false).any(|level| level >= held) {
            return self.refine();
        }
        let lasted = |trial: &&Trial| trial.ask.purpose == Purpose::Last && trial.ask.level >= held;
        if self.decided.iter().any(lasted) {
            return Next::Over(Ending::NothingBreaks);
        }
        self.last(held).unwrap_or(Next::Over(Ending::Budget))
    }

    /// Whether the lowest level that was tried says of the system that it breaks there.
    fn has_lowest_broken(&self) -> bool {
        let lowest = self.trials.iter().map(|trial| trial.ask.level).fold(f64::INFINITY, f64::min);
        self.levels(false).any(|level| level <= lowest)
    }

    /// Why nothing could be told below what broke.
    fn unheard(&self) -> Ending {
        let lowest = self.trials.iter().min_by(|a, b| a.ask.level.total_cmp(&b.ask.level));
        match lowest.and_then(|trial| trial.not_counted.as_ref()) {
            Some(NotCounted::Driver(_)) => Ending::Driver,
            _ => Ending::Undecided,
        }
    }

    /// The lowest level at which a trial of so many seconds says something, but no higher than the first.
    fn least(&self, measured_s: f64) -> f64 {
        if self.options.users {
            return 1.0;
        }
        let least = self.wanted_requests() / (self.per_level().unwrap_or(1.0) * measured_s);
        let least = least.max(self.options.level_first * LEAST_PART);
        // a lower one would need a longer trial
        rounded_by(least, f64::ceil).min(self.rounded(self.options.level_first))
    }

    /// Requests that say something of every objective.
    fn wanted_requests(&self) -> f64 {
        let percentiles = self.goals.iter().filter_map(|goal| goal.percentile);
        let by_errors = wanted_by_errors(self.goals, &self.counted).unwrap_or(0.0);
        percentiles.map(|percentile| ENOUGH / percentile.allowed).fold(REQUESTS_MIN, f64::max).max(by_errors)
    }

    /// Requests each second that fall due for each session, or user; none where nobody knows.
    fn per_level(&self) -> Option<f64> {
        let due = |trial: &Trial| trial.figures.offered_per_s;
        let all = self.counted.iter().filter(|trial| due(trial) > 0.0);
        let (due, level) = all.fold((0.0, 0.0), |sum, trial| (sum.0 + due(trial), sum.1 + trial.ask.level));
        (due > 0.0 && level > 0.0).then(|| due / level)
    }

    /// The lowest level at which the driver was the limit, twice, and there or below more often than trials said something
    /// of the system there or above.
    fn ceiling(&self) -> Option<f64> {
        let has_held = self.levels(true).next().is_some();
        let is_ceiling = |level: &f64| {
            let below =
                self.trials.iter().filter(|trial| is_bound(trial) && trial.ask.level <= *level).count();
            // where nothing held yet, what broke above says nothing of the driver
            let says = |trial: &&&Trial| trial.ask.level >= *level && (trial.holds() || has_held);
            let above = self.decided.iter().filter(says).count();
            self.bound(*level).count() >= BOUND_MIN && below > above
        };
        let levels = self.trials.iter().filter(|trial| is_bound(trial)).map(|trial| trial.ask.level);
        levels.filter(is_ceiling).reduce(f64::min)
    }

    /// Trials at this level in which the driver was the limit.
    fn bound(&self, level: f64) -> impl Iterator<Item = &Trial> + '_ {
        self.trials.iter().filter(move |trial| is_bound(trial) && trial.ask.level == level)
    }

    fn is_far(&self, held: f64, top: f64) -> bool {
        top > held * CLOSE_RATIO && (!self.options.users || top - held > 1.0)
    }

    /// Whether twice as many users made no more throughput, twice in a row, where no percentile is bounded.
    fn is_saturated(&self) -> bool {
        if !self.options.users || self.goals.iter().any(|goal| goal.percentile.is_some()) {
            return false;
        }
        let mut all: Vec<(f64, f64)> =
            self.counted.iter().map(|trial| (trial.ask.level, trial.figures.achieved_per_s)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut last = all.windows(2).rev().take(2);
        all.len() > 2 && last.all(|pair| pair[1].1 < pair[0].1 * GAIN)
    }

    /// A trial around the limit, or the last one.
    fn refine(&self) -> Next {
        // one that another says cannot be is done again
        if let [one] = contradicted_by(1, self.goals, &self.decided)[..]
            && matches!(one.ask.purpose, Purpose::Refine { .. })
            && self.counted.iter().filter(|trial| trial.ask.level == one.ask.level).count() == 1
        {
            return Next::Trial(one.ask);
        }
        let round_of = |trial: &Trial| match trial.ask.purpose {
            Purpose::Refine { round, .. } => round,
            _ => 0,
        };
        let round = self.trials.iter().map(round_of).max().unwrap_or(0);
        let first = self.trials.iter().position(|trial| round > 0 && round_of(trial) == round);
        let (before, rest) = self.trials.split_at(first.unwrap_or(self.trials.len()));
        let place_of = |trial: &Trial| match trial.ask.purpose {
            Purpose::Refine { place, .. } => place + 1,
            _ => 0,
        };
        if let Some(place) = rest.iter().map(place_of).max()
            && let Some(level) = self.places(before, round).get(place as usize)
        {
            return self.ask(*level, Purpose::Refine { round, place });
        }
        let estimate = estimate(self.goals, &self.counted);
        let precise = estimate.as_ref().is_some_and(|estimate| self.is_precise(estimate));
        if round >= ROUNDS && precise {
            return self.end(Ending::Precise);
        }
        match self.places(self.trials, round + 1).first() {
            Some(level) => self.ask(*level, Purpose::Refine { round: round + 1, place: 0 }),
            None => self.end(Ending::Precise),
        }
    }

    fn is_precise(&self, estimate: &Estimate) -> bool {
        let (Some(low), Some(high)) = (estimate.low, estimate.high) else { return false };
        (high / low).ln() / 2.0 <= self.options.precision || (self.options.users && high - low <= 1.0)
    }

    /// The levels of a round, shuffled, from the trials before it.
    fn places(&self, before: &[Trial], round: u32) -> Vec<f64> {
        let Some(estimate) = estimate(self.goals, &counted(before)) else { return Vec::new() };
        let precision = self.options.precision;
        let mut levels: Vec<f64> = match estimate.steepness {
            Some(steepness) => OFFSETS
                .iter()
                .map(|by| estimate.level * (by / steepness).clamp(WITHIN.0, WITHIN.1).exp())
                .collect(),
            None => {
                let low = estimate.low.unwrap_or(estimate.level * (1.0 - 2.0 * precision));
                let high = estimate.high.unwrap_or(estimate.level * (1.0 + 2.0 * precision));
                match self.is_precise(&estimate) {
                    // whether each end does it again
                    true => vec![low * (1.0 - precision), low, high, high * (1.0 + precision)],
                    false => [0.2, 0.5, 0.8].iter().map(|part| low * (high / low).powf(*part)).collect(),
                }
            }
        };
        let most =
            self.ceiling().map_or(self.options.level_max, |ceiling| ceiling.min(self.options.level_max));
        levels.iter_mut().for_each(|level| *level = self.rounded(level.min(most)));
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        fastrand::Rng::with_seed(self.options.seed.wrapping_add(round.into())).shuffle(&mut levels);
        levels
    }

    /// The last trial, if none has shown what it is to show and there is time; else the end.
    fn end(&self, ending: Ending) -> Next {
        let wanted = match (estimate(self.goals, &self.counted), self.levels(true).reduce(f64::max)) {
            // what broke is above the driver's own limit
            (_, Some(held)) if ending == Ending::Driver => Some((held, held)),
            (Some(estimate), _) => {
                // an interval that reaches far below is no reason to ask about what nobody doubts
                let low = estimate.low.unwrap_or(estimate.level).max(LAST_BELOW * estimate.level);
                Some((self.rounded(low), estimate.high.unwrap_or(estimate.level)))
            }
            (None, _) => None,
        };
        let Some((low, high)) = wanted else { return Next::Over(ending) };
        // what must hold is shown at that level, where it may be above the lower end
        let can_last = |asked: &f64| self.lasting.broke.is_none_or(|broke| *asked < broke);
        let asked = self.level_asked().filter(|asked| (low..=high).contains(asked) && can_last(asked));
        let level = asked.unwrap_or(low);
        let is_shown = match asked {
            Some(asked) => self.lasting.held.is_some_and(|held| held >= asked),
            None => self.had_last(),
        };
        if is_shown { None } else { self.last(level) }.unwrap_or(Next::Over(ending))
    }

    /// The level at which as many requests fall due as it must hold; none where nobody knows, as with users.
    fn level_asked(&self) -> Option<f64> {
        let each = requests_per_session(&self.counted).filter(|each| *each > 0.0 && !self.options.users)?;
        Some(rounded_by(self.options.at_least_per_s? / each, f64::ceil).min(self.options.level_max))
    }

    /// The level that must hold, where far more held and no last trial has shown or refuted it. That trial comes at the end:
    /// what the search asked for before has used up what a system may have saved.
    fn pending(&self) -> Option<f64> {
        let was_tried = |asked: f64| {
            let is_there = |of: &TrialPlan| of.purpose == Purpose::Last && of.level == asked;
            self.counted.iter().any(|trial| is_there(&trial.ask))
        };
        let Lasting { held, broke } = self.lasting;
        self.asked_far_below(self.levels(true).reduce(f64::max)).filter(|asked| {
            let is_free = |broken: Option<f64>| broken.is_none_or(|broken| broken > *asked);
            let is_shown = held.is_some_and(|held| held >= *asked);
            !is_shown && !was_tried(*asked) && is_free(broke) && is_free(self.broken())
        })
    }

    /// The level that must hold, where it is far below the highest that held.
    fn asked_far_below(&self, held: Option<f64>) -> Option<f64> {
        self.level_asked().filter(|asked| held.is_some_and(|held| self.is_far(*asked, held)))
    }

    /// What follows a last trial that broke: a lower one, until one of that length holds, and then those in between.
    fn lower_last(&self, held: Option<f64>, broke: f64) -> Next {
        let is_last = |trial: &&&Trial| trial.ask.purpose == Purpose::Last && trial.ask.level == broke;
        let Some(trial) = self.decided.iter().find(is_last) else { return Next::Over(Ending::Budget) };
        let low = estimate(self.goals, &self.counted).and_then(|estimate| estimate.low);
        let level = match held {
            Some(held) => (held * broke).sqrt(),
            None if !breaks_plainly(self.goals, trial) => {
                let low = low.filter(|low| low * LAST_NEXT < broke);
                low.unwrap_or(0.0).max(broke * LAST_LOWER.0)
            }
            None => broke * LAST_LOWER.1.min(trial.answered_share() * LAST_ANSWERED),
        };
        let level = self.rounded(level);
        let is_other = level < broke && held.is_none_or(|held| level > held);
        if !is_other || level < self.least(self.last_s()) {
            return Next::Over(Ending::Undecided);
        }
        self.last(level).unwrap_or(Next::Over(Ending::Budget))
    }

    /// The last trial, at this level; none where there is no time for it.
    fn last(&self, level: f64) -> Option<Next> {
        let left_s = self.options.budget_s - self.spent_s() - self.beside_s() - self.warm_up_s();
        let measured_max_s = self.last_s().min(left_s).floor();
        let (purpose, warm_up_s) = (Purpose::Last, self.warm_up_s());
        let is_long = measured_max_s >= LAST_S.0 && level > 0.0;
        is_long.then_some(Next::Trial(TrialPlan { level, purpose, warm_up_s, measured_max_s }))
    }

    fn ask(&self, level: f64, purpose: Purpose) -> Next {
        let refine_s = self.refine_s();
        let measured_max_s = match purpose {
            Purpose::Explore => self.explore_s(),
            Purpose::Narrow => (refine_s / 2.0).max(REFINE_S.0),
            Purpose::Refine { .. } | Purpose::Last => refine_s,
        };
        let warm_up_s = match purpose {
            Purpose::Explore => WARM_UP_S.0.max(self.options.warm_up_s),
            _ => self.warm_up_s(),
        };
        let level = self.rounded(level.min(self.options.level_max));
        let measured_max_s = measured_max_s.max(self.enough_s(level, measured_max_s)).round();
        Next::Trial(TrialPlan { level, purpose, warm_up_s, measured_max_s })
    }

    /// How long a trial is that has enough requests, where that is not too long; else as long as it was to be.
    fn enough_s(&self, level: f64, measured_max_s: f64) -> f64 {
        let per_level = self.per_level().or((!self.options.users).then_some(1.0));
        let Some(per_level) = per_level else { return measured_max_s };
        let has_top = self.levels(false).next().is_some() || self.ceiling().is_some();
        let bound_s = if has_top { self.last_s() } else { self.refine_s() };
        let enough_s = self.wanted_requests() / (level * per_level);
        // a bound is no whole second, and the lowest level is made for it
        if enough_s <= bound_s { enough_s.ceil().min(bound_s.round()) } else { measured_max_s }
    }

    fn explore_s(&self) -> f64 {
        (self.refine_s() / 4.0).max(REFINE_S.0)
    }

    fn rounded(&self, level: f64) -> f64 {
        let most = self.options.level_max;
        match self.options.users {
            true => level.round().max(1.0),
            // the bound itself is a level, and no other may be rounded to beyond it
            false if level >= most => most,
            false => rounded_by(level, f64::round).min(most),
        }
    }

    fn refine_s(&self) -> f64 {
        // what takes long to start is measured for longer, too
        (self.options.budget_s * REFINE_PART)
            .clamp(REFINE_S.0, REFINE_S.1)
            .max(self.beside_s().min(REFINE_S.1))
    }

    fn warm_up_s(&self) -> f64 {
        (self.refine_s() * WARM_UP_PART).clamp(WARM_UP_S.0, WARM_UP_S.1).max(self.options.warm_up_s)
    }

    fn last_s(&self) -> f64 {
        (self.options.budget_s * LAST_PART).clamp(LAST_S.0, LAST_S.1)
    }

    /// What a trial takes beside its load.
    fn beside_s(&self) -> f64 {
        let beside = |trial: &Trial| (trial.took_s - trial.ask.warm_up_s - trial.measured_s).max(0.0);
        let last: Vec<f64> = self.trials.iter().rev().take(3).map(beside).collect();
        if last.is_empty() { BESIDE_S } else { last.iter().sum::<f64>() / last.len() as f64 }
    }

    fn spent_s(&self) -> f64 {
        spent_s(self.trials)
    }

    /// Whether a last trial was done; one that held far below the limit says nothing of that.
    fn had_last(&self) -> bool {
        let early = self.asked_far_below(self.levels(true).reduce(f64::max));
        let is_of_limit = |trial: &&Trial| !trial.holds() || early != Some(trial.ask.level);
        let mut last = self.counted.iter().copied().filter(|trial| trial.ask.purpose == Purpose::Last);
        last.any(|trial| is_of_limit(&trial))
    }

    /// Whether there is time for a trial, and for the last one after it.
    fn fits(&self, ask: &TrialPlan) -> bool {
        let takes = |measured_max_s: f64| self.beside_s() + ask.warm_up_s + measured_max_s;
        let after_s = match ask.purpose {
            Purpose::Refine { .. } if !self.had_last() => takes(self.last_s()),
            _ => 0.0,
        };
        let pending = self.pending().filter(|asked| ask.purpose != Purpose::Last || ask.level != *asked);
        let after_s = after_s + pending.map_or(0.0, |_| takes(self.last_s()));
        self.spent_s() + takes(ask.measured_max_s) + after_s <= self.options.budget_s
    }
}

/// What the last, longest trials say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Lasting {
    /// The highest level that held, below all that broke.
    pub held: Option<f64>,
    /// The lowest that broke.
    pub broke: Option<f64>,
}

impl Lasting {
    pub fn of(decided: &[&Trial]) -> Lasting {
        let last = |holds: bool| {
            let of = decided.iter().filter(move |trial| trial.ask.purpose == Purpose::Last);
            of.filter(move |trial| trial.holds() == holds).map(|trial| trial.ask.level)
        };
        let broke = last(false).reduce(f64::min);
        let held = last(true).filter(|level| broke.is_none_or(|broke| *level < broke)).reduce(f64::max);
        Lasting { held, broke }
    }
}

fn is_bound(trial: &Trial) -> bool {
    matches!(trial.not_counted, Some(NotCounted::Driver(_)))
}

/// To four digits, which are enough for a person.
fn rounded_by(level: f64, whole: fn(f64) -> f64) -> f64 {
    let digits = 3 - level.max(f64::MIN_POSITIVE).log10().floor() as i32;
    match digits > 0 {
        true => whole(level * 10f64.powi(digits)) / 10f64.powi(digits),
        false => whole(level / 10f64.powi(-digits)) * 10f64.powi(-digits),
    }
}

/// How long these trials took, seconds.
pub fn spent_s(trials: &[Trial]) -> f64 {
    trials.iter().map(|trial| trial.took_s).sum()
}
