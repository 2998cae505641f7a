//! The level at which a percentile of the response time reaches its bound, with an interval, from trials at several levels.
//!
//! docs/method.md, *The limit*, says why, and from whom it is. What is done:
//!
//! 1. Trials take part within [`NEAR`] of where the limit is guessed, and the next one on either side. What is more than
//!    [`FAR`] times under or over its bound says no more than on which side it is.
//! 2. One over the percentile falls on a line over the level. Of all lines, each a level at which it crosses the bound and a
//!    steepness, the one is taken for which the check function over all requests of all trials is least. It is done again
//!    with each trial weighed by how little it scatters.
//! 3. The dispersion is by how much more trials scatter around the line than independent requests would: measured at the
//!    bound and where [`MORE`] times as many are slower, the larger of the two, and drawn towards that of a queue as long as
//!    the bound as if [`PRIOR`] trials more had shown it.
//! 4. The interval is of all levels whose best line has a loss that exceeds the least one by no more than chance explains,
//!    by Student's t and the dispersion that each of them implies.

use crate::student;
use crate::tail::{Cumulative, Losses, Place, Tail};

/// How often the limit lies outside of the interval.
const UNCERTAIN: f64 = 0.05;
/// Trials take part whose levels are within so much of the limit, in logarithms: 17 % above, 15 % below.
const NEAR: f64 = 0.16;
/// A percentile so many times under or over its bound says only that.
pub(crate) const FAR: f64 = 3.0;
/// The flattest and the steepest line that is believed: by how many times its value at the limit one over the percentile
/// falls while the level doubles.
const STEEPNESS: (f64, f64) = (0.1, 1_000.0);
/// Steepnesses that are tried before the best of them is made better.
const STEEPNESSES: usize = 9;
/// Levels that are tried before the best of them is made better.
const LEVELS: usize = 24;
/// How far around the crossing they are looked for, in logarithms.
const AROUND: f64 = 0.22;
/// A crossing that is so near to where it was looked for, in logarithms, is looked for once.
const MOVED: f64 = 0.01;
/// The dispersion is also measured where so many times as many are slower, but at most a quarter.
const MORE: f64 = 8.0;
/// Trials within so much of the limit, in logarithms, say where that is.
const CLOSE: f64 = 0.05;
/// What a queue has counts as much as so many trials.
const PRIOR: f64 = 8.0;
/// The dispersion grows with this power of the percentile.
const GROWS: f64 = 2.0;
/// By how much at most, and at least, a limit's own dispersion differs from that of the best one.
const GROWN: (f64, f64) = (0.5, 4.0);
/// How far to either side the density at the percentile is taken, as a ratio of times.
const DENSITY_WITHIN: f64 = 1.25;
/// Losses that differ by less are the same.
const SAME: f64 = 1e-6;

/// A level at which a percentile reaches its bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    pub level: f64,
    /// The interval; none where nothing bounds it.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// How steep the percentile rises there; see [`STEEPNESS`].
    pub steepness: f64,
    /// Trials that are not far from their bound: they say more than on which side they are.
    pub near_bound: usize,
    /// Whether an end of the interval is no more than the nearest trial that is surely on its side.
    pub is_between_trials: bool,
}

/// Fits the trials' tails, each with its level, for a percentile that `allowed` (0 to 1) of the requests may be slower than.
/// So many neighbours are `alike` in a queue as long as the bound. `around` is about where the limit is.
pub(crate) fn fit(trials: &[(f64, &Tail)], allowed: f64, alike: f64, around: f64) -> Option<Fit> {
    let (mut found, _) = once(trials, allowed, alike, around)?;
    // those that are near were chosen by a guess
    let mut guess = around;
    for _ in 0..2 {
        if (found.level / guess).ln().abs() < MOVED {
            break;
        }
        guess = found.level;
        (found, _) = once(trials, allowed, alike, guess)?;
    }
    Some(found)
}

/// The fit, and the dispersion: how much more trials scatter than independent requests.
fn once(trials: &[(f64, &Tail)], allowed: f64, alike: f64, around: f64) -> Option<(Fit, f64)> {
    let near = near(trials, allowed, around);
    let (first, last) = (near.first()?.0, near.last()?.0);
    let mut curve = Curve::new(near, allowed, 1.0);
    let range = (
        first.ln().max(around.ln() - AROUND) - CLOSE / 2.0,
        last.ln().min(around.ln() + AROUND) + CLOSE / 2.0,
    );
    let (at, steepness) = curve.best(range);
    curve.weigh(at, steepness);
    let best = curve.best(range);
    let (at, steepness) = best;
    let (scatter, near_bound) = curve.scatter(at, steepness);
    let freedom = near_bound.saturating_sub(2).max(1);
    let shown = scatter.max(curve.scatter_below(at)).max(1.0);
    let dispersion = shown * (alike / shown).max(1.0).powf(PRIOR / (PRIOR + freedom as f64));
    let per_deviance = allowed * (1.0 - allowed) / (2.0 * curve.density(at, steepness));
    let bound = dispersion * student::quantile(UNCERTAIN, freedom as f64).powi(2) * per_deviance;
    let least = curve.loss(at, steepness);
    let flat = |at: f64| curve.along(at).1 - least <= SAME * (1.0 + bound);
    let middle = (edge(at, -1.0, range.0, &flat).unwrap_or(range.0)
        + edge(at, 1.0, range.1, &flat).unwrap_or(range.1))
        / 2.0;
    let middle = if flat(middle) { middle } else { at };
    let within = |other: f64| {
        let (steepness_there, loss) = curve.along(other);
        loss - least <= bound * curve.grown(best, (other, steepness_there))
    };
    // beyond the trials nothing is known
    let ends = (first.ln().min(at) - CLOSE / 2.0, last.ln().max(at) + CLOSE / 2.0);
    let low = edge(middle, -1.0, ends.0, &within).map(f64::exp);
    let high = edge(middle, 1.0, ends.1, &within).map(f64::exp);
    let level = middle.exp();
    let surely = |is: &dyn Fn(f64, f64) -> bool| {
        let sure = trials.iter().filter(|(level, tail)| is(*level, tail.cumulative().quantile(allowed)));
        sure.map(|(level, _)| *level).collect::<Vec<_>>()
    };
    let holds = surely(&|other, parts| other < level && parts <= 1.0 / FAR).into_iter().reduce(f64::max);
    let breaks = surely(&|other, parts| other > level && parts >= FAR).into_iter().reduce(f64::min);
    let is_between_trials = low.is_none() || high.is_none();
    let (low, high) = (low.or(holds), high.or(breaks));
    Some((Fit { level, low, high, steepness, near_bound, is_between_trials }, dispersion))
}

/// The trials that take part, by level: those near, the next one below that holds, the next one above that breaks.
fn near(trials: &[(f64, &Tail)], allowed: f64, around: f64) -> Vec<(f64, Cumulative)> {
    let distance = |level: f64| (level / around).ln();
    let breaks = |tail: &Tail| tail.slow() as f64 > allowed * tail.due() as f64;
    let usable = || trials.iter().filter(|(level, tail)| *level > 0.0 && tail.due() > 0);
    let far = || usable().filter(|(level, _)| distance(*level).abs() >= NEAR);
    let below = far().filter(|(level, tail)| distance(*level) < 0.0 && !breaks(tail));
    let below = below.map(|(level, _)| *level).reduce(f64::max);
    let above = far().filter(|(level, tail)| distance(*level) > 0.0 && breaks(tail));
    let above = above.map(|(level, _)| *level).reduce(f64::min);
    let takes_part =
        |level: f64| distance(level).abs() < NEAR || Some(level) == below || Some(level) == above;
    let mut near: Vec<(f64, Cumulative)> = usable()
        .filter(|(level, _)| takes_part(*level))
        .map(|(level, tail)| (*level, tail.cumulative()))
        .collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    near
}

/// The furthest place in this direction, up to `end`, to which `is` goes on being true; none where it is true up to the end.
fn edge(from: f64, direction: f64, end: f64, is: &dyn Fn(f64) -> bool) -> Option<f64> {
    let (mut inside, mut step) = (from, 0.002);
    loop {
        let next = inside + direction * step;
        if (next - end) * direction >= 0.0 {
            return if is(end) { None } else { Some(crossing(inside, end, is)) };
        }
        if !is(next) {
            return Some(crossing(inside, next, is));
        }
        (inside, step) = (next, step * 1.3);
    }
}

fn crossing(mut inside: f64, mut outside: f64, is: &dyn Fn(f64) -> bool) -> f64 {
    for _ in 0..12 {
        let middle = (inside + outside) / 2.0;
        if is(middle) { inside = middle } else { outside = middle }
    }
    (inside + outside) / 2.0
}

/// A trial as the regression sees it.
struct Weighed {
    level: f64,
    cumulative: Cumulative,
    losses: Losses,
    weight: f64,
}

/// The losses of all lines. Levels are in logarithms.
struct Curve {
    trials: Vec<Weighed>,
    allowed: f64,
    /// What the percentile is at the limit, in parts of the bound.
    at_limit: f64,
}

impl Curve {
    fn new(trials: Vec<(f64, Cumulative)>, allowed: f64, at_limit: f64) -> Curve {
        let point = |(level, cumulative): (f64, Cumulative)| {
            let losses = cumulative.losses(allowed);
            Weighed { level, cumulative, losses, weight: 1.0 }
        };
        Curve { trials: trials.into_iter().map(point).collect(), allowed, at_limit }
    }

    fn loss(&self, at: f64, steepness: f64) -> f64 {
        let limit = at.exp();
        let of = |trial: &Weighed| {
            let parts = predicted(trial.level, limit, steepness).clamp(1.0 / FAR, FAR);
            trial.weight * trial.losses.at(&trial.cumulative, Place::of(self.at_limit * parts))
        };
        self.trials.iter().map(of).sum()
    }

    /// The best line through this limit, and its loss.
    fn along(&self, at: f64) -> (f64, f64) {
        let (from, to) = (STEEPNESS.0.ln(), STEEPNESS.1.ln());
        let step = (to - from) / (STEEPNESSES - 1) as f64;
        let tried = (0..STEEPNESSES).map(|i| from + step * i as f64);
        let of = |logarithm: f64| self.loss(at, logarithm.exp());
        let best = tried.map(|logarithm| (logarithm, of(logarithm))).min_by(|a, b| a.1.total_cmp(&b.1));
        let (best, loss) = best.unwrap_or((from, f64::INFINITY));
        let better = golden((best - step).max(from), (best + step).min(to), 8, &of);
        if better.1 < loss { (better.0.exp(), better.1) } else { (best.exp(), loss) }
    }

    /// The best limit in this range, and its line.
    fn best(&self, range: (f64, f64)) -> (f64, f64) {
        let step = (range.1 - range.0) / LEVELS as f64;
        let tried = (0..=LEVELS).map(|i| range.0 + step * i as f64);
        let of = |at: f64| self.along(at).1;
        let best = tried.map(|at| (at, of(at))).min_by(|a, b| a.1.total_cmp(&b.1));
        let (best, loss) = best.unwrap_or((range.0, f64::INFINITY));
        let better = golden((best - step).max(range.0), (best + step).min(range.1), 10, &of);
        let at = if better.1 < loss { better.0 } else { best };
        (at, self.along(at).0)
    }

    /// Weighs each trial by how little it scatters.
    fn weigh(&mut self, at: f64, steepness: f64) {
        for trial in &mut self.trials {
            let parts = predicted(trial.level, at.exp(), steepness);
            // what is far beyond its bound is sure to be
            trial.weight = if parts >= FAR { 1.0 } else { parts.max(1.0 / FAR).powf(-GROWS) };
        }
    }

    /// The trials that say more than on which side they are, with what is predicted for each.
    fn near_bound(&self, at: f64, steepness: f64) -> impl Iterator<Item = (&Weighed, f64)> {
        let with = move |trial: &'_ Weighed| predicted(trial.level, at.exp(), steepness);
        let all = self.trials.iter().map(move |trial| (trial, with(trial)));
        all.filter(|(_, parts)| (1.0 / FAR..=FAR).contains(parts))
    }

    /// How much more the trials scatter than independent requests, and how many are near their bound.
    fn scatter(&self, at: f64, steepness: f64) -> (f64, usize) {
        let (mut sum, mut count) = (0.0, 0);
        for (trial, parts) in self.near_bound(at, steepness) {
            let wanted = self.allowed * trial.cumulative.due;
            let over = trial.cumulative.over(Place::of(self.at_limit * parts));
            sum += trial.weight * (over - wanted).powi(2) / (wanted * (1.0 - self.allowed));
            count += 1;
        }
        (if count > 2 { sum / (count - 2) as f64 } else { 1.0 }, count)
    }

    /// The same at a lower percentile, of which there is more to count.
    fn scatter_below(&self, at: f64) -> f64 {
        let allowed = (MORE * self.allowed).min(0.25);
        let mut pooled: Option<Cumulative> = None;
        for trial in self.trials.iter().filter(|trial| (trial.level.ln() - at).abs() < CLOSE) {
            match &mut pooled {
                Some(pooled) => pooled.add(&trial.cumulative),
                None => pooled = Some(trial.cumulative.clone()),
            }
        }
        let Some(pooled) = pooled.filter(|_| allowed > self.allowed) else { return 1.0 };
        let at_limit = pooled.quantile(allowed);
        let trials = self.trials.iter().map(|trial| (trial.level, trial.cumulative.clone())).collect();
        let mut lower = Curve::new(trials, allowed, at_limit);
        for (lower, trial) in lower.trials.iter_mut().zip(&self.trials) {
            lower.weight = trial.weight;
        }
        let (at, steepness) = lower.best((at - CLOSE, at + CLOSE));
        lower.scatter(at, steepness).0
    }

    /// The density of the logarithm of the response time at the percentile, over all trials near their bound: what a
    /// little more time is worth in requests.
    fn density(&self, at: f64, steepness: f64) -> f64 {
        let (mut within, mut due) = (0.0, 0.0);
        for (trial, parts) in self.near_bound(at, steepness) {
            let over = |parts: f64| trial.cumulative.over(Place::of(self.at_limit * parts));
            within += over(parts / DENSITY_WITHIN) - over(parts * DENSITY_WITHIN);
            due += trial.cumulative.due;
        }
        let density = if due > 0.0 { within / due / (2.0 * DENSITY_WITHIN.ln()) } else { 0.0 };
        density.max(self.allowed / 2.0)
    }

    /// By how much the dispersion differs if another limit is the true one.
    fn grown(&self, best: (f64, f64), other: (f64, f64)) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (trial, parts) in self.near_bound(best.0, best.1) {
            let there = predicted(trial.level, other.0.exp(), other.1).clamp(1.0 / FAR, FAR);
            sum += (there / parts).powf(GROWS);
            count += 1.0;
        }
        if count > 0.0 { (sum / count).clamp(GROWN.0, GROWN.1) } else { 1.0 }
    }
}

/// What the percentile is at a level, as parts of what it is at the limit; infinite beyond saturation.
fn predicted(level: f64, limit: f64, steepness: f64) -> f64 {
    let one_over = 1.0 + steepness * (limit - level) / limit;
    if one_over > 0.0 { 1.0 / one_over } else { f64::INFINITY }
}

/// Looks for the least value between two places by golden sections; the place and the value. Of several minima it finds one.
fn golden(from: f64, to: f64, sections: usize, of: &dyn Fn(f64) -> f64) -> (f64, f64) {
    const RATIO: f64 = 0.618_033_988_749_895;
    let (mut from, mut to) = (from, to);
    let (mut a, mut b) = (to - RATIO * (to - from), from + RATIO * (to - from));
    let (mut at_a, mut at_b) = (of(a), of(b));
    for _ in 0..sections {
        if at_a <= at_b {
            (to, b, at_b) = (b, a, at_a);
            a = to - RATIO * (to - from);
            at_a = of(a);
        } else {
            (from, a, at_a) = (a, b, at_b);
            b = from + RATIO * (to - from);
            at_b = of(b);
        }
    }
    if at_a <= at_b { (a, at_a) } else { (b, at_b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found() {
        let (at, value) = golden(-3.0, 8.0, 40, &|x| (x - 1.25).powi(2) + 7.0);
        assert!((at - 1.25).abs() < 1e-4 && (value - 7.0).abs() < 1e-6);
    }

    /// Requests that take exponential times whose percentile grows as the model says.
    fn tail(random: &mut fastrand::Rng, level: f64, requests: u64, steepness: f64) -> Tail {
        let mut tail = Tail::default();
        let mean = 1.0 / (100f64).ln() / (1.0 + steepness * (1_000.0 - level) / 1_000.0);
        (0..requests).for_each(|_| tail.add(-mean * (1.0 - random.f64()).ln(), 1));
        tail
    }

    #[test]
    fn independent_requests_have_no_dispersion_and_their_limit_is_found() {
        let mut random = fastrand::Rng::with_seed(1);
        let levels = [900.0, 950.0, 970.0, 990.0, 1_010.0, 1_030.0, 1_060.0];
        let tails: Vec<(f64, Tail)> =
            levels.iter().map(|level| (*level, tail(&mut random, *level, 20_000, 8.0))).collect();
        let trials: Vec<(f64, &Tail)> = tails.iter().map(|(level, tail)| (*level, tail)).collect();
        let fit = fit(&trials, 0.01, 1.0, 950.0).unwrap();
        assert!((fit.level / 1_000.0 - 1.0).abs() < 0.005, "{fit:?}");
        assert!(fit.low.unwrap() < 1_000.0 && fit.high.unwrap() > 1_000.0, "{fit:?}");
        assert!(fit.high.unwrap() - fit.low.unwrap() < 30.0, "{fit:?}");
        let (_, dispersion) = once(&trials, 0.01, 1.0, fit.level).unwrap();
        assert!(dispersion < 4.0 && fit.near_bound >= 6, "{dispersion}: {fit:?}");
    }

    /// It is fast, and from one level to the next it is not.
    #[test]
    fn where_trials_hold_or_break_clearly_the_limit_is_between_them() {
        let mut random = fastrand::Rng::with_seed(2);
        let fast = tail(&mut random, 500.0, 10_000, 40.0);
        let mut slow = Tail::default();
        slow.add(20.0, 10_000);
        let trials = [(500.0, &fast), (900.0, &fast), (980.0, &fast), (1_020.0, &slow), (1_200.0, &slow)];
        let fit = fit(&trials, 0.01, 1.0, 1_000.0).unwrap();
        assert!((981.0..1_019.0).contains(&fit.level), "{fit:?}");
        assert!(fit.low.unwrap() >= 960.0 && fit.high.unwrap() <= 1_040.0, "{fit:?}");
    }

    #[test]
    fn of_nothing_there_is_no_limit() {
        assert_eq!(fit(&[], 0.01, 1.0, 10.0), None);
        assert_eq!(fit(&[(10.0, &Tail::default())], 0.01, 1.0, 10.0), None);
    }
}
